// SPDX-License-Identifier: MIT
#pragma once
#include <stdexcept>
#include <string>

namespace p2p {

// This machine's fault (no room, no rights, no such program), and not that of a file which the
// user named; one line with file, reason and remedy.
struct SystemFault : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// "No such file or directory; make its folder first": why a file could not be written.
std::string whyNotWritten(int error);

}  // namespace p2p
