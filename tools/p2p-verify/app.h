// SPDX-License-Identifier: MIT
// Command line of p2p-verify.
#pragma once
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/cli/clidoc.h"

namespace p2p::verify {

struct Options {
    std::string level = "env";
    std::string root;  // folder or .tar.gz; empty = this machine
    // Files to write; "-" = standard output.
    std::optional<std::string> json, junit, prometheus, html;
    bool nagios = false;
    std::vector<std::string> gpus;  // PCI addresses; empty = all
    double timeout_s = 0;           // seconds for the GPU tests; 0 = by number of pairs
    bool force = false;
    std::optional<double> min_bandwidth_gbs;  // GB/s
    bool no_color = false;

    bool gather = false, explain = false;  // which command
    std::string gather_file;
    std::string explain_id;
    std::string not_for_command;  // an option that was given and says nothing to that command
};

std::unique_ptr<CLI::App> makeApp(Options& options);
ManPage manPage();

// Exit status.  Throws UsageError for what the option table cannot see.
int run(const Options& options);

}  // namespace p2p::verify
