// SPDX-License-Identifier: MIT
#include "lib/gpu/plan.h"

namespace p2p {

Plan makePlan(GpuLevel level, int gpus) {
    Plan plan;
    if (level == GpuLevel::Env || gpus < 1) return plan;
    const bool data = level != GpuLevel::Rates;
    const bool rates = level != GpuLevel::Data;
    if (gpus == 1) {
        if (data)
            for (const char* t : {"self_fill", "self_copy", "self_handshake", "self_ipc"})
                plan.steps.push_back({t, kNoPair});
        if (rates) plan.steps.push_back({"self_rates", kNoPair});
        return plan;
    }
    for (int a = 0; a < gpus; a++)
        for (int b = 0; b < gpus; b++)
            if (a != b) plan.pairs.emplace_back(a, b);
    const int n = static_cast<int>(plan.pairs.size());
    auto eachPair = [&](std::initializer_list<const char*> tests) {
        for (int p = 0; p < n; p++)
            for (const char* t : tests) plan.steps.push_back({t, p});
    };
    if (data) eachPair({"ce_push", "ce_pull", "sm_store", "sm_load", "handshake", "ipc"});
    if (level == GpuLevel::Full) eachPair({"concurrent"});
    if (rates) eachPair({"bandwidth", "bidirectional", "latency"});
    return plan;
}

}  // namespace p2p
