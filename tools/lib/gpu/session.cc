// SPDX-License-Identifier: MIT
#include "lib/gpu/session.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <thread>

#include "lib/gpu/pattern.h"
#include "lib/gpu/ptx.h"

namespace p2p {

namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point t) {
    return std::chrono::duration<double>(Clock::now() - t).count();
}

// Why a test could not be judged, without that being the GPUs' fault.
class NotJudged : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

#define CU(call, ...)                                                                   \
    do {                                                                                \
        if (const cu::Result r_ = cu.call(__VA_ARGS__)) throw cu::Error(cu, #call, r_); \
    } while (0)

class ScopedStream {
  public:
    explicit ScopedStream(const cu::Api& api) : cu(api) {
        CU(cuStreamCreate, &s_, cu::kNonBlocking);
    }
    ~ScopedStream() { cu.cuStreamDestroy_v2(s_); }
    ScopedStream(const ScopedStream&) = delete;
    ScopedStream& operator=(const ScopedStream&) = delete;
    operator cu::Stream() const { return s_; }  // NOLINT(google-explicit-constructor)

  private:
    const cu::Api& cu;
    cu::Stream s_ = nullptr;
};

class ScopedMemory {
  public:
    ScopedMemory(const GpuContext& gpu, std::size_t bytes) : gpu_(gpu) {
        const cu::Api& cu = gpu.cu;
        gpu.use();
        CU(cuMemAlloc_v2, &p_, bytes);
    }
    ~ScopedMemory() {
        gpu_.cu.cuCtxSetCurrent(gpu_.ctx);
        gpu_.cu.cuMemFree_v2(p_);
    }
    ScopedMemory(const ScopedMemory&) = delete;
    ScopedMemory& operator=(const ScopedMemory&) = delete;
    operator cu::Ptr() const { return p_; }  // NOLINT(google-explicit-constructor)

  private:
    const GpuContext& gpu_;
    cu::Ptr p_ = 0;
};

class ScopedHostMemory {
  public:
    ScopedHostMemory(const cu::Api& api, std::size_t bytes) : cu(api) {
        CU(cuMemHostAlloc, &p_, bytes, 0);
        std::memset(p_, 0x5a, bytes);
    }
    ~ScopedHostMemory() { cu.cuMemFreeHost(p_); }
    ScopedHostMemory(const ScopedHostMemory&) = delete;
    ScopedHostMemory& operator=(const ScopedHostMemory&) = delete;
    void* get() const { return p_; }

  private:
    const cu::Api& cu;
    void* p_ = nullptr;
};

// Runs `copy` on `stream` again and again for `seconds` at least; GB/s by the GPU's own events.
template <typename Copy>
double rate(const GpuContext& gpu, cu::Stream stream, std::uint64_t bytes, double seconds,
            Copy copy) {
    const cu::Api& cu = gpu.cu;
    gpu.use();
    cu::Event from = nullptr, to = nullptr;
    CU(cuEventCreate, &from, cu::kEventDefault);
    CU(cuEventCreate, &to, cu::kEventDefault);
    auto timed = [&](int n) {
        CU(cuEventRecord, from, stream);
        for (int i = 0; i < n; i++) copy();
        CU(cuEventRecord, to, stream);
        CU(cuEventSynchronize, to);
        float ms = 0;
        CU(cuEventElapsedTime, &ms, from, to);
        return std::max(1e-6, static_cast<double>(ms) / 1e3);
    };
    timed(1);  // the first copy maps and wakes the link
    const double one = timed(2) / 2;
    const int n = std::max(2, std::min(100000, static_cast<int>(seconds / one) + 1));
    const double took = timed(n);
    cu.cuEventDestroy_v2(from);
    cu.cuEventDestroy_v2(to);
    return static_cast<double>(bytes) * n / took / 1e9;
}

}  // namespace

// ---- GpuContext ----

GpuContext::GpuContext(const cu::Api& api, cu::Device dev, std::string address,
                       std::uint64_t payload_bytes)
    : cu(api),
      device(dev),
      bdf(std::move(address)),
      payload((payload_bytes / 4) | 1U),
      total(kDstAt + payload + kGuard) {
    CU(cuDevicePrimaryCtxRetain, &ctx, device);
    use();
    std::array<char, 2048> log{};
    std::array<int, 2> options = {cu::kJitErrorLog, cu::kJitErrorLogBytes};
    // The driver takes a number in a pointer here.
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    std::array<void*, 2> values = {log.data(), reinterpret_cast<void*>(log.size() - 1)};
    if (const cu::Result r =
            cu.cuModuleLoadDataEx(&module_, kPtx, 2, options.data(), values.data())) {
        std::string call = "translating the test kernels (cuModuleLoadDataEx)";
        if (log[0]) call += std::string(": ") + log.data();
        throw cu::Error(cu, call.c_str(), r);
    }
    CU(cuModuleGetFunction, &fill_, module_, "p2p_fill");
    CU(cuModuleGetFunction, &check_, module_, "p2p_check");
    CU(cuModuleGetFunction, &copy_, module_, "p2p_copy");
    CU(cuModuleGetFunction, &handshake_, module_, "p2p_handshake");
    CU(cuMemAlloc_v2, &src, 4 * total);
    CU(cuMemAlloc_v2, &dst, 4 * total);
    CU(cuMemAlloc_v2, &counters, 4096);
    CU(cuMemAlloc_v2, &boxes, 8192);
}

GpuContext::~GpuContext() {
    // Errors are of no interest here: a lost device cannot free anything either.
    if (!ctx) return;
    cu.cuCtxSetCurrent(ctx);
    for (cu::Ptr p : {src, dst, counters, boxes})
        if (p) cu.cuMemFree_v2(p);
    cu.cuDevicePrimaryCtxRelease_v2(device);
}

void GpuContext::use() const {
    CU(cuCtxSetCurrent, ctx);
}

void GpuContext::sync() const {
    use();
    CU(cuCtxSynchronize);
}

void GpuContext::launch(cu::Function f, unsigned blocks, unsigned threads, cu::Stream stream,
                        void** args) const {
    use();
    CU(cuLaunchKernel, f, blocks, 1, 1, threads, 1, 1, 0, stream, args, nullptr);
}

void GpuContext::fill(cu::Ptr at, std::uint64_t words, std::uint64_t base,
                      std::uint32_t seed) const {
    if (!words) return;
    std::array<void*, 4> args = {&at, &words, &base, &seed};
    launch(fill_, 256, 256, nullptr, args.data());
}

void GpuContext::copyByKernel(cu::Ptr to, cu::Ptr from, std::uint64_t words) const {
    std::array<void*, 3> args = {&to, &from, &words};
    launch(copy_, 256, 256, nullptr, args.data());
}

GpuContext::Zone GpuContext::check(cu::Ptr at, std::uint64_t words, std::uint64_t base,
                                   std::uint32_t seed, std::uint32_t stale) const {
    std::array<std::uint64_t, 5> r = {0, 0, 0, 0, ~0ULL};
    if (!words) return {};
    use();
    CU(cuMemcpyHtoD_v2, counters, r.data(), sizeof(r));
    cu::Ptr out = counters;
    std::array<void*, 6> args = {&at, &words, &base, &seed, &stale, &out};
    launch(check_, 256, 256, nullptr, args.data());
    sync();
    CU(cuMemcpyDtoH_v2, r.data(), counters, sizeof(r));
    if (r[0] != words)
        throw NotJudged(
            fmt::format("the check kernel on {} looked at {} of {} words", bdf, r[0], words));
    return {r[0], r[1], r[2], r[3], r[4]};
}

void GpuContext::handshake(cu::Stream stream, cu::Ptr mine, cu::Ptr peer, std::uint32_t rounds,
                           std::uint32_t words, bool first, std::uint32_t seed,
                           std::uint64_t deadline_ns, cu::Ptr out) const {
    std::uint32_t is_first = first ? 1 : 0;
    std::array<void*, 8> args = {&mine,     &peer, &rounds,      &words,
                                 &is_first, &seed, &deadline_ns, &out};
    launch(handshake_, 1, 1, stream, args.data());
}

// ---- Session ----

Session::Session(const cu::Api& cu, const Nvml* nvml, const GpuOptions& options, IpcPeer* ipc,
                 std::vector<std::pair<cu::Device, std::string>> devices)
    : cu_(cu), nvml_(nvml), options_(options), ipc_(ipc), devices_(std::move(devices)) {
    gpus_.resize(devices_.size());
}

Session::~Session() = default;

GpuContext& Session::gpu(int i) {
    auto& g = gpus_.at(i);
    if (!g)
        g = std::make_unique<GpuContext>(cu_, devices_.at(i).first, devices_.at(i).second,
                                         options_.bytes);
    return *g;
}

Session::Seeds Session::seeds() {
    Seeds s{};
    if (options_.seed) {
        // Fixed for the run, but different for every test in it.
        s.fresh = pattern(2ULL * drawn_, *options_.seed);
        s.stale = pattern(2ULL * drawn_ + 1, *options_.seed);
        drawn_++;
    } else if (getrandom(&s, sizeof(s), 0) != static_cast<ssize_t>(sizeof(s))) {
        throw NotJudged("no random numbers from the kernel (getrandom)");
    }
    if (s.stale == s.fresh) s.stale = ~s.fresh;
    return s;
}

void Session::connect(int a, int b) {
    if (a == b || (a == joined_a_ && b == joined_b_)) return;
    if (b == joined_a_ && a == joined_b_) {
        std::swap(joined_a_, joined_b_);
        std::swap(a_to_b_, b_to_a_);
        return;
    }
    disconnect();
    auto map = [&](GpuContext& from, GpuContext& to) {
        from.use();
        const cu::Result r = cu_.cuCtxEnablePeerAccess(to.ctx, 0);
        return r == cu::kPeerAlready ? cu::kOk : r;
    };
    a_to_b_ = map(gpu(a), gpu(b));
    b_to_a_ = map(gpu(b), gpu(a));
    joined_a_ = a;
    joined_b_ = b;
}

void Session::disconnect() {
    auto unmap = [&](GpuContext& from, GpuContext& to) {
        if (cu_.cuCtxSetCurrent(from.ctx) == cu::kOk) cu_.cuCtxDisablePeerAccess(to.ctx);
    };
    if (joined_a_ < 0) return;
    if (a_to_b_ == cu::kOk) unmap(gpu(joined_a_), gpu(joined_b_));
    if (b_to_a_ == cu::kOk) unmap(gpu(joined_b_), gpu(joined_a_));
    joined_a_ = joined_b_ = -1;
}

int Session::mapping(const GpuContext& from, const GpuContext& to) const {
    if (&from == &to) return cu::kOk;
    return from.bdf == bdf(joined_a_) ? a_to_b_ : b_to_a_;
}

void Session::needMapping(const GpuContext& from, const GpuContext& to) const {
    if (const int r = mapping(from, to))
        throw cu::Error(
            cu_, fmt::format("cuCtxEnablePeerAccess({} from {})", to.bdf, from.bdf).c_str(), r);
}

// Source filled with the fresh pattern, all of the destination with another; both proved by their
// own GPUs, so that what is found later was done by the transfer.
void Session::arm(GpuContext& a, GpuContext& b, Seeds s) {
    a.fill(a.src, a.total, GpuContext::kSrcBase, s.fresh);
    b.fill(b.dst, b.total, 0, s.stale);
    a.sync();
    b.sync();
    if (a.check(a.src, a.total, GpuContext::kSrcBase, s.fresh, s.stale).bad)
        throw NotJudged(a.bdf + " does not keep what it writes into its own memory");
    if (b.check(b.dst, b.total, 0, s.stale, s.fresh).bad)
        throw NotJudged(b.bdf + " does not keep what it writes into its own memory");
}

// Every word of both buffers, each checked by a kernel on the GPU that holds it.
TestResult Session::judge(GpuContext& a, GpuContext& b, Seeds s) {
    TestResult t;
    const GpuContext::Zone got =
        b.check(b.dstPayload(), b.payload, GpuContext::kDstAt, s.fresh, s.stale);
    const GpuContext::Zone before = b.check(b.dst, GpuContext::kDstAt, 0, s.stale, s.fresh);
    const std::uint64_t end = GpuContext::kDstAt + b.payload;
    const GpuContext::Zone after = b.check(b.dst + 4 * end, b.total - end, end, s.stale, s.fresh);
    const GpuContext::Zone source = a.check(a.src, a.total, GpuContext::kSrcBase, s.fresh, s.stale);
    t.words = got.checked + before.checked + after.checked + source.checked;
    t.bad_words = got.bad + before.bad + after.bad + source.bad;
    t.outcome = Outcome::Corrupt;
    if (got.bad) {
        t.first_bad = got.first;
        if (got.stale == b.payload) {
            t.outcome = Outcome::NotDelivered;
            t.detail = "the destination still holds its old content";
        } else if (got.zero == b.payload) {
            t.outcome = Outcome::Zeros;
            t.detail = "the destination holds zeros only";
        } else {
            t.detail = fmt::format(
                "{} of {} words are wrong ({} kept their old content, {} are zero), the first at "
                "word {}",
                got.bad, b.payload, got.stale, got.zero, got.first);
        }
    } else if (before.bad || after.bad) {
        const bool low = before.bad != 0;
        t.first_bad = low ? before.first : end + after.first;
        t.detail = fmt::format("{} words {} the destination were overwritten",
                               low ? before.bad : after.bad, low ? "before" : "beyond");
    } else if (source.bad) {
        t.first_bad = source.first;
        t.detail = fmt::format("{} words of the source were overwritten", source.bad);
    } else {
        t.outcome = Outcome::Ok;
    }
    return t;
}

TestResult Session::oneWay(const std::string& test, GpuContext& a, GpuContext& b) {
    const Seeds s = seeds();
    const bool pull = test == "ce_pull" || test == "sm_load";
    GpuContext& active = pull ? b : a;
    needMapping(active, pull ? a : b);
    arm(a, b, s);
    active.use();
    const std::uint64_t bytes = 4 * a.payload;
    const cu::Api& cu = cu_;
    if (test == "sm_store")
        a.fill(b.dstPayload(), a.payload, GpuContext::kDstAt, s.fresh);
    else if (test == "sm_load")
        b.copyByKernel(b.dstPayload(), a.srcPayload(), b.payload);
    else if (&a == &b)
        CU(cuMemcpyDtoDAsync_v2, b.dstPayload(), a.srcPayload(), bytes, nullptr);
    else
        CU(cuMemcpyPeerAsync, b.dstPayload(), b.ctx, a.srcPayload(), a.ctx, bytes, nullptr);
    active.sync();
    return judge(a, b, s);
}

TestResult Session::fillAndCheck(GpuContext& g) {
    // A check that cannot fail proves nothing: it must also see one wrong word.
    const Seeds s = seeds();
    arm(g, g, s);
    const std::uint64_t at = g.payload / 2;
    const std::uint32_t wrong = pattern(GpuContext::kDstAt + at, s.stale) ^ 0x10U;
    const cu::Api& cu = cu_;
    g.use();
    CU(cuMemcpyHtoD_v2, g.dstPayload() + 4 * at, &wrong, sizeof(wrong));
    const GpuContext::Zone z =
        g.check(g.dstPayload(), g.payload, GpuContext::kDstAt, s.stale, s.fresh);
    TestResult t;
    t.words = g.total * 2 + z.checked;
    if (z.bad == 1 && z.first == at) {
        t.outcome = Outcome::Ok;
    } else {
        t.outcome = Outcome::Corrupt;
        t.bad_words = z.bad;
        t.first_bad = z.first;
        t.detail =
            fmt::format("one bit was flipped in word {}; the check saw {} wrong words", at, z.bad);
    }
    return t;
}

TestResult Session::handshake(GpuContext& a, GpuContext& b, std::uint32_t rounds,
                              std::uint32_t words, double* us) {
    needMapping(a, b);
    needMapping(b, a);
    const cu::Api& cu = cu_;
    const std::uint32_t seed = seeds().fresh;
    const auto deadline = static_cast<std::uint64_t>(options_.handshake_deadline_s * 1e9);
    // Box A at 0, box B at 2048, reports at 4096 and 4160; on one GPU both live in its own memory.
    const cu::Ptr box_a = a.boxes, box_b = b.boxes + 2048;
    const cu::Ptr out_a = a.boxes + 4096, out_b = b.boxes + 4160;
    const std::array<std::uint32_t, 2048> zeros{};
    for (GpuContext* g : {&a, &b}) {
        g->use();
        CU(cuMemcpyHtoD_v2, g->boxes, zeros.data(), sizeof(zeros));
    }
    a.use();
    ScopedStream sa(cu);
    b.use();
    ScopedStream sb(cu);
    // Nothing may be loaded lazily once one side spins, so both have run before.
    b.handshake(sb, box_b, box_a, 0, 0, false, seed, deadline, out_b);
    a.handshake(sa, box_a, box_b, 0, 0, true, seed, deadline, out_a);
    CU(cuStreamSynchronize, sb);
    CU(cuStreamSynchronize, sa);
    b.handshake(sb, box_b, box_a, rounds, words, false, seed, deadline, out_b);
    a.handshake(sa, box_a, box_b, rounds, words, true, seed, deadline, out_a);
    a.use();
    CU(cuStreamSynchronize, sa);
    b.use();
    CU(cuStreamSynchronize, sb);
    std::array<std::uint64_t, 4> ra{}, rb{};
    a.use();
    CU(cuMemcpyDtoH_v2, ra.data(), out_a, sizeof(ra));
    b.use();
    CU(cuMemcpyDtoH_v2, rb.data(), out_b, sizeof(rb));
    TestResult t;
    t.words = static_cast<std::uint64_t>(words) * (ra[0] + rb[0]);
    t.bad_words = ra[2] + rb[2];
    if (t.bad_words) {
        t.outcome = Outcome::Corrupt;
        t.first_bad = std::min(ra[3], rb[3]);
        t.detail = fmt::format(
            "{} payload words were not there when their flag was (first in round {}): writes "
            "arrive out of order",
            t.bad_words, t.first_bad);
    } else if (ra[0] != rounds || rb[0] != rounds) {
        t.outcome = Outcome::Timeout;
        t.detail = fmt::format("{} of {} rounds within {} s; the flag of {} did not arrive",
                               std::min(ra[0], rb[0]), rounds, options_.handshake_deadline_s,
                               rb[0] <= ra[0] ? a.bdf : b.bdf);
    } else {
        t.outcome = Outcome::Ok;
        if (us) *us = static_cast<double>(ra[1]) / 1e3 / rounds / 2;
    }
    return t;
}

TestResult Session::ipc(GpuContext& a, GpuContext& b) {
    const cu::Api& cu = cu_;
    const Seeds s = seeds();
    if (!ipc_) throw NotJudged("no second process");
    arm(a, b, s);
    IpcPeer::Order order{};
    std::snprintf(order.writer, sizeof(order.writer), "%s", a.bdf.c_str());
    order.first_word = GpuContext::kDstAt;
    order.words = b.payload;
    order.base = GpuContext::kDstAt;
    order.seed = s.fresh;
    b.use();
    CU(cuIpcGetMemHandle, &order.memory, b.dst);
    IpcPeer::Answer answer{};
    TestResult t;
    switch (ipc_->write(order, options_.step_timeout_s * 0.8, answer)) {
        case IpcPeer::Reply::TimedOut:
            t.outcome = Outcome::Timeout;
            t.detail = "the second process did not come back from its transfer";
            return t;
        case IpcPeer::Reply::Gone:
            t.detail = "the second process ended before it answered";
            return t;
        case IpcPeer::Reply::Answered:
            break;
    }
    answer.text[sizeof(answer.text) - 1] = '\0';
    if (answer.code == -1) throw NotJudged(answer.text);
    if (answer.code) {
        t.outcome = Outcome::Refused;
        t.cuda_error = answer.code;
        t.detail = answer.text;
        return t;
    }
    return judge(a, b, s);
}

TestResult Session::bandwidth(GpuContext& a, GpuContext& b, bool both, double* gbs,
                              std::string* traffic) {
    needMapping(a, b);
    if (both) needMapping(b, a);
    const cu::Api& cu = cu_;
    const Seeds s = seeds();
    const std::uint64_t words = options_.rate_bytes / 4, bytes = 4 * words;
    const ScopedMemory src_a(a, bytes), dst_b(b, bytes);
    const ScopedMemory src_b(b, both ? bytes : 4), dst_a(a, both ? bytes : 4);
    a.fill(src_a, words, 0, s.fresh);
    b.fill(dst_b, words, 0, s.stale);
    if (both) {
        b.fill(src_b, words, 0, s.fresh);
        a.fill(dst_a, words, 0, s.stale);
    }
    a.sync();
    b.sync();
    a.use();
    const ScopedStream sa(cu);
    b.use();
    const ScopedStream sb(cu);
    auto there = [&] { CU(cuMemcpyPeerAsync, dst_b, b.ctx, src_a, a.ctx, bytes, sa); };
    auto back = [&] { CU(cuMemcpyPeerAsync, dst_a, a.ctx, src_b, b.ctx, bytes, sb); };
    if (!both) {
        *gbs = rate(a, sa, bytes, options_.rate_seconds, there);
        if (nvml_ && traffic) {
            // The driver averages over 20 ms: stay busy for longer while both are read.
            a.use();
            const double busy = std::min(0.12, 2 * options_.rate_seconds);
            const int n =
                std::max(2, static_cast<int>(busy * *gbs * 1e9 / static_cast<double>(bytes)));
            for (int i = 0; i < n; i++) there();
            std::this_thread::sleep_for(std::chrono::duration<double>(busy / 4));
            const auto out = nvml_->pcieGbs(a.bdf, true), in = nvml_->pcieGbs(b.bdf, false);
            CU(cuStreamSynchronize, sa);
            if (out && in)
                *traffic = fmt::format(
                    "while {:.1f} GB/s were copied, NVML counted {:.2f} GB/s leaving {} and {:.2f} "
                    "GB/s entering {} over PCIe",
                    *gbs, *out, a.bdf, *in, b.bdf);
        }
    } else {
        // Both queues are filled before either is waited for; the slower one ends the clock.
        auto timed = [&](int n) {
            const auto t0 = Clock::now();
            for (int i = 0; i < n; i++) {
                a.use();
                there();
                b.use();
                back();
            }
            a.use();
            CU(cuStreamSynchronize, sa);
            b.use();
            CU(cuStreamSynchronize, sb);
            return since(t0);
        };
        timed(1);
        const double one = std::max(1e-6, timed(2) / 2);
        const int n =
            std::max(2, std::min(100000, static_cast<int>(options_.rate_seconds / one) + 1));
        *gbs = 2.0 * static_cast<double>(bytes) * n / timed(n) / 1e9;
    }
    // Speed of data that did not arrive is worth nothing.
    GpuContext::Zone z = b.check(dst_b, words, 0, s.fresh, s.stale);
    if (both && !z.bad) z = a.check(dst_a, words, 0, s.fresh, s.stale);
    TestResult t;
    t.words = z.checked;
    t.bad_words = z.bad;
    t.first_bad = z.bad ? z.first : 0;
    t.outcome = !z.bad             ? Outcome::Ok
                : z.stale == words ? Outcome::NotDelivered
                : z.zero == words  ? Outcome::Zeros
                                   : Outcome::Corrupt;
    if (z.bad)
        t.detail = fmt::format("{} of {} words are wrong after the timed copies", z.bad, words);
    return t;
}

TestResult Session::selfRates(GpuContext& g, LocalRates& rates) {
    const cu::Api& cu = cu_;
    const Seeds s = seeds();
    const std::uint64_t words = options_.rate_bytes / 4, bytes = 4 * words;
    const ScopedMemory from(g, bytes), to(g, bytes);
    const ScopedHostMemory host(cu, bytes);
    const ScopedStream stream(cu);
    g.fill(from, words, 0, s.fresh);
    g.fill(to, words, 0, s.stale);
    g.sync();
    rates.bdf = g.bdf;
    rates.copy_gbs = rate(g, stream, bytes, options_.rate_seconds,
                          [&] { CU(cuMemcpyDtoDAsync_v2, to, from, bytes, stream); });
    rates.gpu_to_host_gbs = rate(g, stream, bytes, options_.rate_seconds,
                                 [&] { CU(cuMemcpyDtoHAsync_v2, host.get(), to, bytes, stream); });
    // Through the host and back into a poisoned buffer: one check covers all three ways.
    g.fill(to, words, 0, s.stale);
    g.sync();
    rates.host_to_gpu_gbs = rate(g, stream, bytes, options_.rate_seconds,
                                 [&] { CU(cuMemcpyHtoDAsync_v2, to, host.get(), bytes, stream); });
    TestResult t;
    const GpuContext::Zone z = g.check(to, words, 0, s.fresh, s.stale);
    t.words = z.checked;
    t.bad_words = z.bad;
    t.first_bad = z.bad ? z.first : 0;
    t.outcome = z.bad ? Outcome::Corrupt : Outcome::Ok;
    if (z.bad)
        t.detail = fmt::format("{} of {} words are wrong after the timed copies", z.bad, words);
    double us = 0;
    if (handshake(g, g, options_.handshake_rounds, 0, &us).outcome == Outcome::Ok)
        rates.latency_us = us;
    return t;
}

namespace {

// Runs one test; whatever goes wrong becomes its result.
template <typename Body>
TestResult guarded(const std::string& test, Body body) {
    TestResult t;
    const auto t0 = Clock::now();
    try {
        t = body();
    } catch (const cu::Error& e) {
        t = TestResult{};
        t.outcome = Outcome::Refused;
        t.cuda_error = e.code;
        t.detail = e.what();
    } catch (const std::exception& e) {
        t = TestResult{};
        t.detail = e.what();
    }
    t.test = test;
    t.seconds = since(t0);
    return t;
}

}  // namespace

TestResult Session::runPair(const std::string& test, int a, int b, Rates& rates) {
    return guarded(test, [&] {
        GpuContext &ga = gpu(a), &gb = gpu(b);
        connect(a, b);
        if (test == "handshake") return handshake(ga, gb, options_.handshake_rounds, 16, nullptr);
        if (test == "ipc") {
            needMapping(ga, gb);
            return ipc(ga, gb);
        }
        double value = 0;
        TestResult t;
        if (test == "bandwidth") {
            t = bandwidth(ga, gb, false, &value, &rates.traffic);
            if (t.outcome == Outcome::Ok) rates.bandwidth_gbs = value;
        } else if (test == "bidirectional") {
            t = bandwidth(ga, gb, true, &value, nullptr);
            if (t.outcome == Outcome::Ok) rates.bidir_gbs = value;
        } else if (test == "latency") {
            t = handshake(ga, gb, options_.handshake_rounds, 0, &value);
            if (t.outcome == Outcome::Ok) rates.latency_us = value;
        } else {
            t = oneWay(test, ga, gb);
        }
        return t;
    });
}

TestResult Session::runSelf(const std::string& test, int a, LocalRates& rates) {
    return guarded(test, [&] {
        GpuContext& g = gpu(a);
        if (test == "self_fill") return fillAndCheck(g);
        if (test == "self_handshake")
            return handshake(g, g, options_.handshake_rounds, 16, nullptr);
        if (test == "self_ipc") return ipc(g, g);
        if (test == "self_rates") return selfRates(g, rates);
        TestResult t = oneWay("ce_push", g, g);
        if (t.outcome != Outcome::Ok) return t;
        // The same by a kernel's loads and stores, so that both engines were used.
        TestResult sm = oneWay("sm_load", g, g);
        sm.words += t.words;
        return sm;
    });
}

std::vector<TestResult> Session::runConcurrent(const std::vector<std::pair<int, int>>& pairs) {
    const cu::Api& cu = cu_;
    std::vector<TestResult> results(pairs.size());
    // At most 4 MiB and a bit per pair: with many GPUs every one holds many of these.
    const std::uint64_t words = (std::min<std::uint64_t>(options_.bytes, 4U << 20U) / 4) | 1U;
    const int rounds = 8;
    struct Lane {
        std::unique_ptr<ScopedMemory> src, dst;
        std::unique_ptr<ScopedStream> stream;
        Seeds seed{};
        cu::Result mapped = cu::kOk;
    };
    std::vector<Lane> lanes(pairs.size());
    const auto t0 = Clock::now();
    auto each = [&](auto body) {
        for (std::size_t i = 0; i < pairs.size(); i++) {
            if (results[i].outcome != Outcome::Ok) continue;
            TestResult t = guarded("concurrent", [&] {
                body(lanes[i], gpu(pairs[i].first), gpu(pairs[i].second), results[i]);
                return results[i];
            });
            results[i] = t;
        }
    };
    for (TestResult& r : results) r.outcome = Outcome::Ok;
    disconnect();  // all pairs are mapped at once here
    each([&](Lane& lane, GpuContext& a, GpuContext& b, TestResult&) {
        a.use();
        lane.mapped = cu.cuCtxEnablePeerAccess(b.ctx, 0);
        if (lane.mapped == cu::kTooManyPeers)
            throw NotJudged(
                "a GPU can have 8 peers at a time; all of its pairs cannot run at once");
        if (lane.mapped && lane.mapped != cu::kPeerAlready)
            throw cu::Error(cu, "cuCtxEnablePeerAccess", lane.mapped);
        lane.mapped = cu::kOk;
        lane.seed = seeds();
        lane.src = std::make_unique<ScopedMemory>(a, 4 * words);
        lane.stream = std::make_unique<ScopedStream>(cu);
        lane.dst = std::make_unique<ScopedMemory>(b, 4 * words);
        a.fill(*lane.src, words, 0, lane.seed.fresh);
        b.fill(*lane.dst, words, 0, lane.seed.stale);
        a.sync();
        b.sync();
    });
    // Everything is queued before anything is waited for.
    for (int round = 0; round < rounds; round++)
        each([&](Lane& lane, GpuContext& a, GpuContext& b, TestResult&) {
            a.use();
            CU(cuMemcpyPeerAsync, *lane.dst, b.ctx, *lane.src, a.ctx, 4 * words, *lane.stream);
        });
    each([&](Lane& lane, GpuContext& a, GpuContext&, TestResult&) {
        a.use();
        CU(cuStreamSynchronize, *lane.stream);
    });
    each([&](Lane& lane, GpuContext&, GpuContext& b, TestResult& r) {
        const GpuContext::Zone z = b.check(*lane.dst, words, 0, lane.seed.fresh, lane.seed.stale);
        r.words = z.checked;
        r.bad_words = z.bad;
        if (!z.bad) return;
        r.first_bad = z.first;
        r.outcome = z.stale == words  ? Outcome::NotDelivered
                    : z.zero == words ? Outcome::Zeros
                                      : Outcome::Corrupt;
        r.detail = fmt::format("{} of {} words are wrong with all pairs at work", z.bad, words);
    });
    for (std::size_t i = 0; i < pairs.size(); i++) {
        Lane& lane = lanes[i];
        if (lane.src && lane.mapped == cu::kOk &&
            cu.cuCtxSetCurrent(gpu(pairs[i].first).ctx) == cu::kOk)
            cu.cuCtxDisablePeerAccess(gpu(pairs[i].second).ctx);
        results[i].test = "concurrent";
        results[i].seconds = since(t0);
    }
    return results;
}

}  // namespace p2p
