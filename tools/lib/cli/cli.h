// SPDX-License-Identifier: MIT
// What every command line has in common.
#pragma once
#include <CLI/CLI.hpp>
#include <functional>
#include <stdexcept>
#include <string>

#include "lib/util/system_fault.h"
#include "lib/util/verdict.h"

namespace p2p {

std::string toolsVersion();  // "1.0.0"

CLI::Option* addVersionFlag(CLI::App& app);  // for cliMain and the page generator

// For values where an empty one would mean something else than what was typed: an unset variable of
// a script gives it.  Not for an option whose value may be left out.
CLI::Validator notEmpty();
// Beside CLI::Range and its like, which let "nan" pass.
CLI::Validator finite();

// Parses, runs `run` and returns the exit status of the process:
// what `run` returned; 0 after --help and --version; 64 for a wrong command line and 70 for an
// exception, each with one line on stderr.  A reader that closed stdout early is no error of ours:
// SIGPIPE is ignored and the status of `run` stands.  A stdout that cannot be written for another
// reason (disk full) gives 70.
int cliMain(CLI::App& app, int argc, char** argv, const std::function<int()>& run);

// Wrong use that only shows after parsing; cliMain reports it with status 64.
struct UsageError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// What stopped the program and is no fault in it, as one line: a file that cannot be read (status
// 64, for it was named on the command line) or written (70).
struct Failure : std::runtime_error {
    Failure(const std::string& text, int exit_status)
        : std::runtime_error(text), status(exit_status) {}
    int status;
};

// Reads what --root names ("" = this machine).  What cannot be read is a mistake in the command
// where a root was named, else this machine's fault.
template <class F>
auto readRoot(const std::string& root, F read) {
    try {
        return read();
    } catch (const SystemFault&) {
        throw;
    } catch (const std::runtime_error& e) {  // its text names the file and the reason
        throw Failure(e.what(), root.empty() ? kExitInternal : kExitUsage);
    }
}

}  // namespace p2p
