// SPDX-License-Identifier: MIT
#pragma once
#include <sys/types.h>

#include <string>

namespace p2p {

// Creates a file to write and rename into place, never what somebody has put there to be written
// over: a regular file is what an interrupted run has left and is made anew, all else stays.
// Returns the open file; -1 with errno, EEXIST when `path` is no regular file.
int createNew(const std::string& path, mode_t mode);
bool isLink(const std::string& path);

}  // namespace p2p
