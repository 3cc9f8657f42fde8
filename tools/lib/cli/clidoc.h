// SPDX-License-Identifier: MIT
// Man page and bash completion from a program's own option table, so that they cannot drift apart.
#pragma once
#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

namespace p2p {

// What the option table does not say.
struct ManPage {
    int section = 1;
    std::string summary;  // the NAME line after the dash: lower case, no full stop
    // Heading and text.  DESCRIPTION goes before the options, all others after them, in this order.
    // Text: paragraphs separated by an empty line; a line that starts with four spaces is shown as
    // it is, in bold (a command to paste); a line "TERM<TAB>text" is an entry of a list.
    std::vector<std::pair<std::string, std::string>> sections;
};

std::string manText(const CLI::App& app, const ManPage& page, const std::string& version);
std::string bashCompletion(const CLI::App& app);

// Text for EXIT STATUS, from verdict.h; `verdicts` false leaves only 0, 64 and 70.
std::string exitStatusText(bool verdicts);

}  // namespace p2p
