// SPDX-License-Identifier: MIT
// Which tests a run consists of, in order.  The same GPUs and level give the same plan, so a new
// child can go on where one that had to be killed stopped.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "lib/gpu/run.h"

namespace p2p {

constexpr int kNoPair = -1;  // a test of one GPU alone

struct Step {
    std::string test;
    int pair = kNoPair;  // index into Plan::pairs
};

struct Plan {
    std::vector<std::pair<int, int>> pairs;  // ordered (src, dst), indexes of GPUs
    std::vector<Step> steps;
};

// One GPU gives the self tests; none gives an empty plan.
Plan makePlan(GpuLevel level, int gpus);

}  // namespace p2p
