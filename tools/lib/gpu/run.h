// SPDX-License-Identifier: MIT
// Entry point of the GPU tests.  All contact with NVML and CUDA happens in child processes with
// deadlines; the caller always gets an answer.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/gpu/result.h"

namespace p2p {

enum class GpuLevel {
    Env,    // NVML queries only: nothing is allocated or launched on a GPU
    Data,   // + data tests, handshake and IPC on every ordered pair
    Full,   // + all pairs at once, bandwidth, latency
    Rates,  // bandwidth and latency only (the data moved is still checked)
};

struct GpuProgress {
    std::size_t done = 0, total = 0;  // steps; total 0 while the plan is not known
    std::string label;                // "sm_store 0000:01:00.0 -> 0000:02:00.0"
    double elapsed_s = 0;             // since the start of the run
    std::optional<double> left_s;     // estimate, once something has finished
};

struct GpuOptions {
    GpuLevel level = GpuLevel::Env;
    std::vector<std::string> bdfs;    // GPUs to test, "0000:01:00.0"; empty = all CUDA offers
    bool all_needed = true;           // one of bdfs that CUDA does not offer: no test at all
    double timeout_s = 120;           // seconds for everything
    double init_timeout_s = 60;       // seconds for NVML, for cuInit, and for each first context
    double step_timeout_s = 20;       // seconds for one test on one pair
    double handshake_deadline_s = 2;  // seconds, kept on the device by its own clock
    std::uint32_t handshake_rounds = 1000;
    std::uint64_t bytes = 16ULL << 20U;       // bytes moved per data test (rounded to odd words)
    std::uint64_t rate_bytes = 64ULL << 20U;  // bytes per copy when bandwidth is measured
    double rate_seconds = 0.25;               // seconds each rate is measured for, at least
    std::optional<std::uint32_t> seed;        // fixed seed to repeat a run; else random
    // GB/s that the slowest PCIe link between two GPUs allows, (src, dst) by BDF; copied to
    // PairResult::limit_gbs unless the pair goes over NVLink.
    std::map<std::pair<std::string, std::string>, double> limits_gbs;
    std::function<void(const GpuProgress&)> progress;  // called at least twice a second
};

// Runs the tests.  Never throws for anything a GPU, driver or library does: what failed is in the
// result, and a test that was not run says why.  Returns within timeout_s plus about 2 seconds,
// even when a child cannot be killed.  Must be called before the process uses CUDA itself.
GpuRun runGpu(const GpuOptions& options);

// "0000:01:00.0" from any spelling NVML, CUDA or a person uses ("00000000:01:00.0", "01:00.0",
// upper case); empty if it is no PCI address.
std::string normalBdf(const std::string& text);

}  // namespace p2p
