// SPDX-License-Identifier: MIT
// Where reports go.
#pragma once
#include <string>

namespace p2p::verify {

// Writes `text` to `file`; "-" is standard output.  A regular file is replaced in one step
// (temporary file beside it, fsync, rename), so that a reader sees the old or the new text whole;
// its mode is 0644 less the umask.  A device or pipe is written to as it is.  Returns an empty
// string, or one line that names the file and the reason.
std::string writeOutput(const std::string& file, const std::string& text);

}  // namespace p2p::verify
