// SPDX-License-Identifier: MIT
// Command line of p2p-bench.
#pragma once
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "lib/cli/clidoc.h"

namespace p2p::bench {

struct Options {
    std::vector<std::string> gpus;
    double timeout_s = 300;
    double seconds = 0.5;
    int size_mib = 64;
    double min_share = 0;  // percent; 0: speed is no matter of success
    bool json = false, csv = false;
    std::string html;
};

std::unique_ptr<CLI::App> makeApp(Options& o);
ManPage manPage();

}  // namespace p2p::bench
