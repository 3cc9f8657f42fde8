// SPDX-License-Identifier: MIT
// The text of /etc/modprobe.d/nvidia-p2p.conf with P2P switched on or off.  Text in, text out.
#pragma once
#include <string>
#include <vector>

#include "lib/facts/facts.h"

namespace p2p::bar1 {

inline constexpr const char* kFile = "/etc/modprobe.d/nvidia-p2p.conf";

struct Request {
    bool enable = true;
    std::string gpu;  // BDF; empty = all GPUs
};

struct Edit {
    std::string text;                // new content
    std::vector<std::string> notes;  // one line each, for the person
    std::string refused;             // not empty: nothing may be changed, and this says why
};

// `old` is the file's text, "" if there is none.  `options` is what modprobe reads in all files and
// on the command line, in order (Facts::options).
Edit edit(const std::string& old, const Request& request,
          const std::vector<ModprobeOption>& options);

// Does the file's text set anything for this GPU (BDF)?
bool names(const std::string& text, const std::string& gpu);

}  // namespace p2p::bar1
