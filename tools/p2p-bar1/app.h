// SPDX-License-Identifier: MIT
// Command line of p2p-bar1.
#pragma once
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "lib/cli/clidoc.h"

namespace p2p::bar1 {

inline constexpr int kExitRefused = 1;  // nothing was changed; one line says why

struct Options {
    enum Command { List, Enable, Disable } command = List;
    std::string root;  // folder or .tar.gz (list), folder (enable, disable); empty = this machine
    bool json = false;
    std::string gpu;  // PCI address; empty = all
    bool dry_run = false;
};

std::unique_ptr<CLI::App> makeApp(Options& options);
ManPage manPage();

// Exit status.  Throws UsageError for what the option table cannot see.
int run(const Options& options);

}  // namespace p2p::bar1
