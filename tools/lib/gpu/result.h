// SPDX-License-Identifier: MIT
// Plain results of the GPU tests: filled by the child process, read by rules and reports.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace p2p {

enum class Outcome {
    NotRun,  // with a reason in `detail`
    Ok,
    NotDelivered,  // destination still holds its old content (mirror, dropped writes)
    Zeros,         // destination reads zeros
    Corrupt,       // some words differ
    Timeout,       // deadline passed
    Refused,       // the driver returned an error; code in `cuda_error`
};
const char* outcomeName(Outcome o);  // "not-run", "ok", "not-delivered", ...

// One test on one ordered pair. `test` is one of: "ce_push", "ce_pull", "sm_store", "sm_load",
// "handshake", "ipc", "concurrent", "bandwidth", "bidirectional", "latency"; single GPU:
// "self_fill", "self_copy", "self_handshake", "self_ipc", "self_rates".
struct TestResult {
    std::string test;
    Outcome outcome = Outcome::NotRun;
    std::string detail;           // one sentence for a person
    int cuda_error = 0;           // CUresult, 0 if none
    std::uint64_t words = 0;      // 32-bit words checked
    std::uint64_t bad_words = 0;  // of them wrong
    std::uint64_t first_bad = 0;  // index of the first wrong word
    double seconds = 0;
};

// Ordered pair: data moves from `src` to `dst` (BDFs, "0000:01:00.0").
struct PairResult {
    std::string src, dst;
    bool can_access = false;    // cuDeviceCanAccessPeer(src, dst): a claim, not a proof
    std::string path;           // "pcie-bar1", "nvlink", "none", "unknown"
    std::string path_evidence;  // how the path is known
    std::vector<TestResult> tests;
    std::optional<double> bandwidth_gbs;  // GB/s (10^9 bytes), unidirectional, under load
    std::optional<double> bidir_gbs;      // GB/s, both directions at once, their sum
    std::optional<double> latency_us;     // one-way, microseconds
    std::optional<double> limit_gbs;      // what the slowest link of the path allows
};

struct GpuInfo {  // as CUDA/NVML see the device
    std::string bdf, uuid, name;
    int compute_major = 0, compute_minor = 0;
    std::uint64_t vram_bytes = 0;
    std::uint64_t bar1_bytes = 0;  // nvmlDeviceGetBAR1MemoryInfo total
    std::optional<bool> display_active;
    std::optional<int> busy_percent;
    int compute_processes = 0;
    bool in_cuda = false;  // cuInit offered it (CUDA_VISIBLE_DEVICES may hide some)
};

// What one GPU reaches without a peer; GB/s (10^9 bytes).
struct LocalRates {
    std::string bdf;
    std::optional<double> host_to_gpu_gbs;  // pinned host memory
    std::optional<double> gpu_to_host_gbs;
    std::optional<double> copy_gbs;    // inside the GPU; bytes copied, each read and written once
    std::optional<double> latency_us;  // one-way flag between two kernels on it, microseconds
};

struct GpuRun {
    bool ran = false;                  // a child ran and answered in full
    bool timed_out = false;            // the parent had to kill it
    bool cuda_asked = false;           // cuInit was called; else cuda_init says nothing
    std::string error;                 // e.g. "libcuda.so.1: cannot open shared object file"
    int cuda_init = 0, nvml_init = 0;  // return codes of cuInit / nvmlInit_v2; -1 = library missing
    std::string driver_version;        // NVML
    std::vector<GpuInfo> gpus;
    std::vector<PairResult> pairs;
    std::vector<TestResult> single;  // one-GPU self tests
    std::vector<LocalRates> local;   // only when rates were asked for
};

}  // namespace p2p
