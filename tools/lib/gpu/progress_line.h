// SPDX-License-Identifier: MIT
// One line on a terminal that says how far a run is.
#pragma once
#include <functional>
#include <string>

#include "lib/gpu/run.h"

namespace p2p {

// For GpuOptions::progress.  Silent for the first two seconds; then, on a terminal, one line on
// stderr is rewritten in place and removed with the last copy of the function; otherwise one line
// is written every ten seconds.
std::function<void(const GpuProgress&)> progressLine(const std::string& program);

// "12/42 sm_store 0000:01:00.0 -> 0000:02:00.0, about 20 s left"
std::string progressText(const GpuProgress& p);

}  // namespace p2p
