// SPDX-License-Identifier: MIT
// The data tests themselves, on loaded CUDA.  Runs in the child process only; any call here may
// block for ever or end the process.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/gpu/cuda_api.h"
#include "lib/gpu/ipc_peer.h"
#include "lib/gpu/nvml_query.h"
#include "lib/gpu/result.h"
#include "lib/gpu/run.h"

namespace p2p {

// One GPU: its primary context, the kernels in it, and the memory of the data tests.
//
// Both data buffers are [guard | payload | guard].  The payload begins at an odd word and has an
// odd length, so that a transfer which only works in whole cache lines or pages shows; word k of
// the payload has the same pattern index in both buffers.
class GpuContext {
  public:
    GpuContext(const cu::Api& cu, cu::Device device, std::string bdf, std::uint64_t payload_bytes);
    ~GpuContext();
    GpuContext(const GpuContext&) = delete;
    GpuContext& operator=(const GpuContext&) = delete;

    static constexpr std::uint64_t kGuard = 16384;       // words
    static constexpr std::uint64_t kSrcAt = kGuard + 1;  // payload's first word in the source
    static constexpr std::uint64_t kDstAt = kGuard + 3;  // and in the destination
    static constexpr std::uint64_t kSrcBase = kDstAt - kSrcAt;  // pattern index of source word 0

    struct Zone {  // what the check kernel counted
        std::uint64_t checked = 0, bad = 0, stale = 0, zero = 0, first = 0;
    };

    void use() const;  // make the context current
    void sync() const;
    void fill(cu::Ptr at, std::uint64_t words, std::uint64_t base, std::uint32_t seed) const;
    void copyByKernel(cu::Ptr dst, cu::Ptr src, std::uint64_t words) const;
    // Throws std::runtime_error if the kernel did not look at every word.
    Zone check(cu::Ptr at, std::uint64_t words, std::uint64_t base, std::uint32_t seed,
               std::uint32_t stale) const;
    void handshake(cu::Stream stream, cu::Ptr mine, cu::Ptr peer, std::uint32_t rounds,
                   std::uint32_t words, bool first, std::uint32_t seed, std::uint64_t deadline_ns,
                   cu::Ptr out) const;

    cu::Ptr srcPayload() const { return src + 4 * kSrcAt; }
    cu::Ptr dstPayload() const { return dst + 4 * kDstAt; }

    const cu::Api& cu;
    const cu::Device device;
    const std::string bdf;
    const std::uint64_t payload;  // words
    const std::uint64_t total;    // words of a data buffer
    cu::Ctx ctx = nullptr;
    cu::Ptr src = 0, dst = 0, counters = 0, boxes = 0;

  private:
    void launch(cu::Function f, unsigned blocks, unsigned threads, cu::Stream stream,
                void** args) const;
    cu::Module module_ = nullptr;
    cu::Function fill_ = nullptr, check_ = nullptr, copy_ = nullptr, handshake_ = nullptr;
};

struct Rates {
    std::optional<double> bandwidth_gbs, bidir_gbs, latency_us;
    std::string traffic;  // what PCIe counters said meanwhile, for the path's evidence
};

class Session {
  public:
    Session(const cu::Api& cu, const Nvml* nvml, const GpuOptions& options, IpcPeer* ipc,
            std::vector<std::pair<cu::Device, std::string>> devices);
    ~Session();

    int size() const { return static_cast<int>(devices_.size()); }
    const std::string& bdf(int i) const { return devices_.at(i).second; }
    // Opens the context of GPU `i` if it is not open; throws cu::Error.
    GpuContext& gpu(int i);

    // Maps `b` into `a`'s context and the reverse, after unmapping the pair before it: a GPU can
    // have only 8 peers at a time.  The results are kept per direction.
    void connect(int a, int b);
    void disconnect();

    // One test of the plan on one ordered pair (`a` == `b` for the self tests).  A CUDA error ends
    // in Outcome::Refused, never in an exception.
    TestResult runPair(const std::string& test, int a, int b, Rates& rates);
    TestResult runSelf(const std::string& test, int a, LocalRates& rates);
    // All pairs at once; one result for each of `pairs`.
    std::vector<TestResult> runConcurrent(const std::vector<std::pair<int, int>>& pairs);

  private:
    struct Seeds {
        std::uint32_t fresh, stale;
    };
    Seeds seeds();
    void arm(GpuContext& a, GpuContext& b, Seeds s);
    TestResult judge(GpuContext& a, GpuContext& b, Seeds s);
    TestResult oneWay(const std::string& test, GpuContext& a, GpuContext& b);
    TestResult fillAndCheck(GpuContext& g);
    TestResult handshake(GpuContext& a, GpuContext& b, std::uint32_t rounds, std::uint32_t words,
                         double* us);
    TestResult ipc(GpuContext& a, GpuContext& b);
    TestResult bandwidth(GpuContext& a, GpuContext& b, bool both, double* gbs,
                         std::string* traffic);
    TestResult selfRates(GpuContext& g, LocalRates& rates);
    void needMapping(const GpuContext& from, const GpuContext& to) const;
    int mapping(const GpuContext& from, const GpuContext& to) const;

    const cu::Api& cu_;
    const Nvml* nvml_;
    const GpuOptions& options_;
    IpcPeer* ipc_;
    std::vector<std::pair<cu::Device, std::string>> devices_;
    std::vector<std::unique_ptr<GpuContext>> gpus_;
    int joined_a_ = -1, joined_b_ = -1;
    cu::Result a_to_b_ = cu::kOk, b_to_a_ = cu::kOk;  // of cuCtxEnablePeerAccess
    std::uint32_t drawn_ = 0;
};

}  // namespace p2p
