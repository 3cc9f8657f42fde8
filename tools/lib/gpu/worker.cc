// SPDX-License-Identifier: MIT
#include "lib/gpu/worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "lib/gpu/plan.h"
#include "lib/gpu/session.h"
#include "lib/gpu/wire.h"

namespace p2p {

namespace {

using nlohmann::json;

class Worker {
  public:
    Worker(const GpuOptions& options, const std::set<std::size_t>& settled, int fd)
        : options_(options), settled_(settled), fd_(fd) {}

    int run() {
        const bool env = options_.level == GpuLevel::Env;
        if (options_.level == GpuLevel::Data || options_.level == GpuLevel::Full)
            ipc_ = std::make_unique<IpcPeer>();
        askNvml();
        if (!env && startCuda()) {
            if (const int again = runSteps()) return again;
        }
        say({{"ev", "done"}});
        return kWorkerDone;
    }

  private:
    void say(const json& event) {
        if (!sendEvent(fd_, event)) std::_Exit(1);  // nobody listens any more
    }
    void phase(const std::string& what) {
        say({{"ev", "phase"}, {"what", what}, {"limit", options_.init_timeout_s}});
    }
    void sayGpu(const GpuInfo& g) {
        json j = g;
        j["ev"] = "gpu";
        say(j);
    }

    void askNvml() {
        phase("NVML");
        std::string error;
        const int code = nvml_.open(error);
        have_nvml_ = code == nvml::kOk;
        say({{"ev", "nvml"},
             {"code", code},
             {"error", error},
             {"driver", have_nvml_ ? nvml_.driverVersion() : ""}});
        if (!have_nvml_) return;
        infos_ = nvml_.gpus();
        for (const GpuInfo& g : infos_) sayGpu(g);
    }

    bool startCuda() {
        phase("cuInit");
        std::string error = cu::load(cu_);
        int code = -1;
        if (error.empty()) {
            code = cu_.cuInit(0);
            if (code) error = "cuInit: " + cu::errorText(cu_, code);
        }
        say({{"ev", "cuda"}, {"code", code}, {"error", error}});
        if (code) return false;
        int count = 0;
        cu_.cuDeviceGetCount(&count);
        std::vector<std::string> known;
        for (int i = 0; i < count; i++) {
            cu::Device dev = 0;
            char text[256] = "";
            if (cu_.cuDeviceGet(&dev, i) || cu_.cuDeviceGetPCIBusId(text, sizeof(text), dev))
                continue;
            const std::string bdf = normalBdf(text);
            known.push_back(bdf);
            describe(dev, bdf);
            const auto& want = options_.bdfs;
            if (want.empty() || std::find(want.begin(), want.end(), bdf) != want.end())
                devices_.emplace_back(dev, bdf);
        }
        for (const std::string& bdf : options_.bdfs)
            if (options_.all_needed && std::find(known.begin(), known.end(), bdf) == known.end()) {
                say({{"ev", "fatal"},
                     {"text",
                      fmt::format(
                          "GPU {} is not offered by CUDA, which has {}; check the "
                          "address, CUDA_VISIBLE_DEVICES and the bound driver",
                          bdf,
                          known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")))}});
                return false;
            }
        return true;
    }

    // Completes NVML's account of a GPU with CUDA's.
    void describe(cu::Device dev, const std::string& bdf) {
        auto it = std::find_if(infos_.begin(), infos_.end(),
                               [&](const GpuInfo& g) { return g.bdf == bdf; });
        if (it == infos_.end()) it = infos_.insert(infos_.end(), GpuInfo{});
        it->bdf = bdf;
        it->in_cuda = true;
        char text[256] = "";
        if (it->name.empty() && !cu_.cuDeviceGetName(text, sizeof(text), dev)) it->name = text;
        cu_.cuDeviceGetAttribute(&it->compute_major, cu::kComputeMajor, dev);
        cu_.cuDeviceGetAttribute(&it->compute_minor, cu::kComputeMinor, dev);
        std::size_t bytes = 0;
        if (!it->vram_bytes && !cu_.cuDeviceTotalMem_v2(&bytes, dev)) it->vram_bytes = bytes;
        sayGpu(*it);
    }

    void sayPlan() {
        json pairs = json::array(), steps = json::array();
        for (const auto& p : plan_.pairs)
            pairs.push_back({devices_[p.first].second, devices_[p.second].second});
        for (const Step& s : plan_.steps) steps.push_back({s.test, s.pair});
        say({{"ev", "plan"}, {"pairs", pairs}, {"steps", steps}});
        for (std::size_t i = 0; i < plan_.pairs.size(); i++) sayPath(i);
    }

    void sayPath(std::size_t pair) {
        const auto& [a, b] = plan_.pairs[pair];
        int can = 0, rank = -1;
        const cu::Device da = devices_[a].first, db = devices_[b].first;
        cu_.cuDeviceCanAccessPeer(&can, da, db);
        cu_.cuDeviceGetP2PAttribute(&rank, cu::kPerformanceRank, da, db);
        std::string path = can ? "unknown" : "none", evidence = "NVML does not say";
        std::optional<Nvml::Path> way;
        if (have_nvml_) way = nvml_.path(devices_[a].second, devices_[b].second);
        if (way) {
            evidence = way->evidence;
            if (can) path = way->path;
        }
        evidence =
            fmt::format("cuDeviceCanAccessPeer: {}, performance rank {}; {}", can, rank, evidence);
        say({{"ev", "pair"},
             {"pair", pair},
             {"can_access", can != 0},
             {"path", path},
             {"path_evidence", evidence}});
    }

    void sayResult(std::size_t step, const TestResult& t) {
        json j = t;
        j["ev"] = "result";
        j["step"] = step;
        say(j);
        broken_ = cu::isSticky(t.cuda_error) ||
                  (t.test.find("ipc") != std::string::npos && t.outcome == Outcome::Timeout);
    }

    void begin(const std::vector<std::size_t>& steps, double limit) {
        say({{"ev", "begin"}, {"steps", steps}, {"limit", limit}});
    }

    int runSteps() {
        plan_ = makePlan(options_.level, static_cast<int>(devices_.size()));
        sayPlan();
        session_ = std::make_unique<Session>(cu_, have_nvml_ ? &nvml_ : nullptr, options_,
                                             ipc_.get(), devices_);
        for (std::size_t i = 0; i < plan_.steps.size(); i++) {
            if (settled_.count(i)) continue;
            const Step& step = plan_.steps[i];
            if (step.test == "concurrent") {
                i = concurrent(i);
            } else {
                // A GPU's first use creates its context, which may take long: allow for that.
                const bool first = opened_.insert(step.pair == kNoPair ? -1 : step.pair).second;
                begin({i}, limit(step.test) + (first ? options_.init_timeout_s : 0));
                single(i, step);
            }
            if (broken_) return kWorkerAgain;
        }
        return 0;
    }

    double limit(const std::string& test) const {
        double s = options_.step_timeout_s;
        // Both sides keep their own deadline, and rates measure for a while.
        if (test.find("handshake") != std::string::npos || test == "latency")
            s = std::max(s, 3 * options_.handshake_deadline_s);
        if (test == "bandwidth" || test == "bidirectional" || test == "self_rates")
            s += 10 * options_.rate_seconds;
        return s;
    }

    void single(std::size_t i, const Step& step) {
        if (step.pair == kNoPair) {
            LocalRates local;
            const TestResult t = session_->runSelf(step.test, 0, local);
            if (!local.bdf.empty()) {
                json j = local;
                j["ev"] = "local";
                say(j);
            }
            sayResult(i, t);
            return;
        }
        Rates rates;
        const auto& [a, b] = plan_.pairs[step.pair];
        const TestResult t = session_->runPair(step.test, a, b, rates);
        json j = {{"ev", "pair"}, {"pair", step.pair}};
        if (rates.bandwidth_gbs) j["bandwidth_gbs"] = *rates.bandwidth_gbs;
        if (rates.bidir_gbs) j["bidir_gbs"] = *rates.bidir_gbs;
        if (rates.latency_us) j["latency_us"] = *rates.latency_us;
        if (!rates.traffic.empty()) j["traffic"] = rates.traffic;
        if (j.size() > 2) say(j);
        sayResult(i, t);
    }

    // All steps of this test are one act; returns the index of the last.
    std::size_t concurrent(std::size_t i) {
        std::vector<std::size_t> steps;
        std::vector<std::pair<int, int>> pairs;
        for (; i < plan_.steps.size() && plan_.steps[i].test == "concurrent"; i++) {
            if (settled_.count(i)) continue;
            steps.push_back(i);
            pairs.push_back(plan_.pairs[plan_.steps[i].pair]);
        }
        begin(steps, 2 * options_.step_timeout_s + options_.init_timeout_s);
        const auto results = session_->runConcurrent(pairs);
        bool broken = false;
        for (std::size_t k = 0; k < steps.size(); k++) {
            sayResult(steps[k], results[k]);
            broken = broken || broken_;
        }
        broken_ = broken;
        return i - 1;
    }

    const GpuOptions& options_;
    const std::set<std::size_t>& settled_;
    const int fd_;
    std::unique_ptr<IpcPeer> ipc_;
    Nvml nvml_;
    bool have_nvml_ = false;
    cu::Api cu_;
    std::vector<GpuInfo> infos_;
    std::vector<std::pair<cu::Device, std::string>> devices_;
    Plan plan_;
    std::unique_ptr<Session> session_;
    std::set<int> opened_;
    bool broken_ = false;
};

}  // namespace

int gpuWorker(const GpuOptions& options, const std::set<std::size_t>& settled, int fd) {
    // PCI order, so that an index means the same to NVML; no lazy loading, which would wait for a
    // spinning kernel; no launch blocking, under which a handshake can never meet; no cache, so
    // that each run shows whether the driver translates PTX.
    setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
    setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    setenv("CUDA_CACHE_DISABLE", "1", 1);
    unsetenv("CUDA_LAUNCH_BLOCKING");
    // Never destroyed: releasing a hung device's context can block, and _exit frees all.
    return (new Worker(options, settled, fd))->run();
}

}  // namespace p2p
