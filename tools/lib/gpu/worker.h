// SPDX-License-Identifier: MIT
// The child process of runGpu.
#pragma once
#include <map>
#include <set>
#include <string>

#include "lib/gpu/run.h"

namespace p2p {

// Exit statuses of the child, besides death by signal.
enum : int {
    kWorkerDone = 0,
    kWorkerAgain = 3,  // the context is broken: a new child must do the rest
};

// Does all steps whose index is not in `settled` and tells of them on `fd` (wire.h).  Returns the
// exit status; the caller must _exit() with it, since driver threads may still run.
int gpuWorker(const GpuOptions& options, const std::set<std::size_t>& settled, int fd);

}  // namespace p2p
