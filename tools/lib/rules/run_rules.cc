// SPDX-License-Identifier: MIT
// What the GPU tests found.  These decide; everything else forecasts or explains.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "lib/rules/parts.h"

namespace p2p::rules_detail {
namespace {

// CUresult values that rules speak of (cuda.h of CUDA 13).
enum Cuda {
    kMapFailed = 205,        // CUDA_ERROR_MAP_FAILED
    kPeerUnsupported = 217,  // CUDA_ERROR_PEER_ACCESS_UNSUPPORTED
    kInvalidPtx = 218,
    kJitMissing = 221,  // CUDA_ERROR_JIT_COMPILER_NOT_FOUND
    kEccUncorrectable = 214,
    kIllegalAddress = 700,
    kLaunchFailed = 719,
    kVersionMismatch = 803,
    kUnknown = 999,
};

std::string pairName(const PairResult& p) {
    return p.src + "->" + p.dst;
}

// One finding per pair and kind, with every test that showed it.
using Judge = bool (*)(const PairResult&, const TestResult&);

Findings perPair(const GpuRun* run, const char* id, Severity severity, Judge judge,
                 const char* cause, const char* remedy) {
    Findings all;
    if (!run) return all;
    for (const PairResult& p : run->pairs) {
        Finding x;
        x.id = id;
        x.severity = severity;
        x.subject = pairName(p);
        for (const TestResult& t : p.tests) {
            if (!judge(p, t)) continue;
            std::string value = outcomeName(t.outcome);
            if (t.bad_words)
                value += fmt::format(", {} of {} words wrong, the first at {}", t.bad_words,
                                     t.words, t.first_bad);
            if (t.cuda_error) value += fmt::format(", CUDA error {}", t.cuda_error);
            if (!t.detail.empty()) value += ": " + t.detail;
            x.evidence.push_back({"test " + t.test, value});
        }
        if (x.evidence.empty()) continue;
        x.cause = cause;
        x.remedy = remedy;
        if (!p.path_evidence.empty()) x.evidence.push_back({"path " + p.path, p.path_evidence});
        all.push_back(x);
    }
    return all;
}

bool isIpc(const TestResult& t) {
    return t.test == "ipc";
}
bool is(const TestResult& t, int code) {
    return t.outcome == Outcome::Refused && t.cuda_error == code;
}

const char kDataRemedy[] =
    "Do not use peer-to-peer on this pair (NCCL_P2P_DISABLE=1) until the other findings on it are "
    "gone: iommu=pt or IOMMU off, ACS off, "
    "no display on these GPUs, the marker's newest version.";

Findings notDelivered(const Facts& f, const GpuRun* run) {
    return perPair(
        run, "data-not-delivered", Severity::WrongData,
        [](const PairResult&, const TestResult& t) {
            return t.outcome == Outcome::NotDelivered && !isIpc(t);
        },
        "The driver reported success and nothing arrived: the receiving GPU still holds its old "
        "content.",
        f.hypervisor ? "In a guest: take x-nv-gpudirect-clique out of its configuration; each GPU "
                       "then writes into a mirror of its own."
                     : kDataRemedy);
}

Findings zeros(const Facts&, const GpuRun* run) {
    return perPair(
        run, "data-zeros", Severity::WrongData,
        [](const PairResult&, const TestResult& t) {
            return t.outcome == Outcome::Zeros && !isIpc(t);
        },
        "The receiving GPU reads zeros in place of the data: typical of an IOMMU that swallows "
        "transfers.",
        kDataRemedy);
}

Findings corrupt(const Facts&, const GpuRun* run) {
    return perPair(
        run, "data-corrupt", Severity::WrongData,
        [](const PairResult&, const TestResult& t) {
            return t.outcome == Outcome::Corrupt && !isIpc(t) && t.test != "handshake";
        },
        "Data arrived changed: some words differ from what was sent.", kDataRemedy);
}

Findings handshakeOrder(const Facts&, const GpuRun* run) {
    return perPair(
        run, "handshake-wrong-data", Severity::WrongData,
        [](const PairResult&, const TestResult& t) {
            return t.outcome == Outcome::Corrupt && t.test == "handshake";
        },
        "A flag was seen before the data that was written ahead of it: kernels that wait for each "
        "other get wrong data.",
        kDataRemedy);
}

Findings ipcWrong(const Facts&, const GpuRun* run) {
    return perPair(
        run, "ipc-wrong-data", Severity::WrongData,
        [](const PairResult&, const TestResult& t) {
            return isIpc(t) && (t.outcome == Outcome::Corrupt || t.outcome == Outcome::Zeros ||
                                t.outcome == Outcome::NotDelivered);
        },
        "Data sent from a second process through an IPC handle is wrong, as vLLM's custom "
        "all-reduce would send it.",
        "Until it is fixed: vllm --disable-custom-all-reduce, NCCL_P2P_DISABLE=1.");
}

Findings handshakeTimeout(const Facts&, const GpuRun* run) {
    return perPair(
        run, "handshake-timeout", Severity::Hang,
        [](const PairResult&, const TestResult& t) {
            return t.outcome == Outcome::Timeout && t.test == "handshake";
        },
        "Two kernels that wait for each other's flag did not meet before the deadline: NCCL would "
        "hang in its first collective.",
        "Set NCCL_P2P_DISABLE=1 until ACS redirect and the IOMMU are ruled out; see the other "
        "findings on this pair.");
}

Findings testTimeout(const Facts&, const GpuRun* run) {
    return perPair(
        run, "test-timeout", Severity::Hang,
        [](const PairResult&, const TestResult& t) {
            return t.outcome == Outcome::Timeout && t.test != "handshake";
        },
        "A transfer between these GPUs did not end before its deadline.",
        "Look for Xid messages (dmesg | grep Xid); if GPU programs hang now, reboot before the "
        "next try.");
}

Findings mappingRefused(const Facts& f, const GpuRun* run) {
    auto all = perPair(
        run, "mapping-refused", Severity::Block,
        [](const PairResult&, const TestResult& t) { return is(t, kMapFailed); },
        "The driver says that these GPUs reach each other and then cannot map the memory (CUDA "
        "error 205): BAR1 is too small, or the window "
        "does not fit.",
        "See rebar-off, mmio-window-too-small or display-attached; with none of them, reload the "
        "driver and read dmesg | grep NVRM.");
    for (Finding& x : all)
        for (const Gpu& g : f.gpus)
            if (x.subject.find(g.bdf) != std::string::npos && g.bar1)
                x.evidence.push_back({g.bar1.path, "BAR1 " + size(g.bar1->bytes)});
    return all;
}

Findings noAccess(const Facts& f, const GpuRun* run) {
    Findings all;
    if (!run) return all;
    for (const PairResult& p : run->pairs) {
        const bool refused = std::any_of(p.tests.begin(), p.tests.end(), [](const TestResult& t) {
            return is(t, kPeerUnsupported);
        });
        // What was moved was moved, whatever the query says.
        const bool moved = std::any_of(p.tests.begin(), p.tests.end(), [](const TestResult& t) {
            return t.outcome == Outcome::Ok;
        });
        if (!refused && (p.can_access || moved)) continue;
        Finding x;
        x.id = "no-access";
        x.severity = Severity::Block;
        x.subject = pairName(p);
        const Gpu *a = f.gpu(p.src), *b = f.gpu(p.dst);
        const bool mixed = a && b && generationOf(a->device) != generationOf(b->device);
        x.cause = mixed ? "CUDA gives no peer access between GPUs of different generations."
                        : "The driver gives these GPUs no peer access.";
        const bool unlisted = p.path_evidence.find("hipset not supported") != std::string::npos ||
                              !hostListed(f).value_or(true);
        x.remedy = mixed          ? "Expected; set CUDA_VISIBLE_DEVICES to GPUs of one generation."
                   : f.hypervisor ? "The driver does not know the guest's host bridge: run on the "
                                    "host, or vouch for it with NvP2pBar1=3, reboot, and run this "
                                    "again."
                   : unlisted ? "The driver does not know this host as one that forwards reads: "
                                "put the GPUs below one PCIe switch, or vouch for it with "
                                "NvP2pBar1=3, reboot, and run this again."
                              : "See the findings on the module, its options and BAR1; dmesg | "
                                "grep NVRM names the driver's reason.";
        x.evidence.push_back({"cuDeviceCanAccessPeer", p.path_evidence.empty()
                                                           ? (p.can_access ? "1" : "0")
                                                           : p.path_evidence});
        all.push_back(x);
    }
    return all;
}

Findings jitMissing(const Facts&, const GpuRun* run) {
    if (!run) return {};
    Finding x = host("jit-missing", Severity::Inconclusive);
    const auto look = [&](const TestResult& t) {
        if (is(t, kJitMissing) && x.evidence.empty())
            x.evidence.push_back({"test " + t.test, "CUDA error 221: " + t.detail});
    };
    for (const PairResult& p : run->pairs)
        for (const TestResult& t : p.tests) look(t);
    for (const TestResult& t : run->single) look(t);
    if (x.evidence.empty()) return {};
    x.cause =
        "libnvidia-ptxjitcompiler.so.1 is missing, so the checking kernels cannot be loaded and "
        "nothing was proven.";
    x.remedy =
        "Install it with the driver's libraries (libnvidia-compute-BRANCH); for containers: "
        "NVIDIA_DRIVER_CAPABILITIES=compute,utility.";
    return {x};
}

bool deviceLost(const TestResult& t) {
    return is(t, kLaunchFailed) || is(t, kUnknown) || is(t, kEccUncorrectable);
}

Findings lost(const Facts&, const GpuRun* run) {
    return perPair(
        run, "device-lost", Severity::Hang,
        [](const PairResult&, const TestResult& t) { return deviceLost(t); },
        "A GPU failed during the transfer and its context is gone.",
        "Look for Xid messages (dmesg | grep Xid); after Xid 79 only a cold start helps.  Do not "
        "use peer-to-peer on this pair.");
}

Findings illegalAddress(const Facts&, const GpuRun* run) {
    return perPair(
        run, "illegal-access", Severity::Block,
        [](const PairResult&, const TestResult& t) { return is(t, kIllegalAddress); },
        "The GPU faulted on a peer's memory (CUDA error 700, Xid 31): the driver mapped it in a "
        "way that this GPU does not know.",
        "Install the newest version of this driver for your branch; Ada cards are covered, others "
        "are not.");
}

Findings refused(const Facts&, const GpuRun* run) {
    return perPair(
        run, "test-refused", Severity::Block,
        [](const PairResult&, const TestResult& t) {
            static const std::set<int> named = {kMapFailed, kPeerUnsupported, kJitMissing,
                                                kIllegalAddress, kVersionMismatch};
            return t.outcome == Outcome::Refused && !named.count(t.cuda_error) && !deviceLost(t) &&
                   !isIpc(t) && t.cuda_error != kInvalidPtx && t.cuda_error != 2;
        },
        "CUDA refused a step of the test on this pair.",
        "See the error in the evidence, and dmesg | grep NVRM.");
}

Findings ipcRefused(const Facts& f, const GpuRun* run) {
    return perPair(
        run, "ipc-refused", Severity::Warning,
        [](const PairResult&, const TestResult& t) {
            return isIpc(t) && t.outcome == Outcome::Refused && t.cuda_error != kMapFailed &&
                   t.cuda_error != kPeerUnsupported && !deviceLost(t) &&
                   t.cuda_error != kIllegalAddress && t.cuda_error != kJitMissing;
        },
        "A second process could not open this GPU's memory; programs with one process per GPU fall "
        "back to the host's memory.",
        f.container ? "Start the containers with --ipc=host and the same --gpus."
                    : "See the error in the evidence.");
}

Findings notProven(const Facts&, const GpuRun* run) {
    // Tests that were wanted and did not run leave the question open.
    return perPair(
        run, "test-not-run", Severity::Inconclusive,
        [](const PairResult& p, const TestResult& t) {
            if (t.outcome == Outcome::Refused)
                return t.cuda_error == kInvalidPtx || t.cuda_error == 2;
            if (t.outcome != Outcome::NotRun) return false;
            // Enough is known of a pair that failed already.
            return std::none_of(p.tests.begin(), p.tests.end(), [](const TestResult& o) {
                return o.outcome != Outcome::NotRun && o.outcome != Outcome::Ok;
            });
        },
        "A test of this pair could not be carried out, so the pair is not proven.",
        "Free the GPUs' memory and run it again.");
}

Findings selfTest(const Facts&, const GpuRun* run) {
    Findings all;
    if (!run) return all;
    for (const TestResult& t : run->single) {
        if (t.outcome == Outcome::Ok || t.outcome == Outcome::NotRun || is(t, kJitMissing))
            continue;
        Finding x;
        x.id = "self-test-failed";
        x.severity = t.outcome == Outcome::Timeout   ? Severity::Hang
                     : t.outcome == Outcome::Refused ? Severity::Inconclusive
                                                     : Severity::WrongData;
        x.subject = "host";
        x.cause = "A GPU failed a test with its own memory: the fault is not in peer-to-peer.";
        x.remedy = "Check the GPU itself (nvidia-smi -q, dmesg | grep Xid) before looking further.";
        x.evidence.push_back(
            {"test " + t.test,
             fmt::format("{}, CUDA error {}: {}", outcomeName(t.outcome), t.cuda_error, t.detail)});
        all.push_back(x);
    }
    return all;
}

Findings slow(const Facts&, const GpuRun* run) {
    Findings all;
    if (!run) return all;
    for (const PairResult& p : run->pairs) {
        if (!p.bandwidth_gbs || !p.limit_gbs || *p.limit_gbs <= 0) continue;
        const double part = *p.bandwidth_gbs / *p.limit_gbs;
        if (part >= 0.75) continue;
        Finding x;
        x.id = "bandwidth-degraded";
        // Below a half something is wrong; between, topology alone can explain it.
        x.severity = part < 0.5 ? Severity::Slow : Severity::Warning;
        x.subject = pairName(p);
        x.cause = fmt::format(
            "This pair reaches {:.1f} GB/s, {:.0f} % of what its slowest link allows ({:.1f} "
            "GB/s).",
            *p.bandwidth_gbs, part * 100, *p.limit_gbs);
        x.remedy =
            "Look at link-degraded and acs-redirect; make sure that nothing else uses these GPUs.";
        x.evidence.push_back({"test bandwidth", fmt::format("{:.2f} GB/s", *p.bandwidth_gbs)});
        all.push_back(x);
    }
    return all;
}

Findings busy(const Facts&, const GpuRun* run) {
    Findings all;
    if (!run) return all;
    for (const GpuInfo& g : run->gpus) {
        if (g.compute_processes == 0 && g.busy_percent.value_or(0) <= 10) continue;
        Finding x;
        x.id = "gpu-busy";
        x.severity = Severity::Info;
        x.subject = g.bdf;
        x.cause = fmt::format(
            "This GPU is at work ({} process(es), {} % busy): times measured now are not its best.",
            g.compute_processes, g.busy_percent.value_or(0));
        x.remedy = "Measure when it is idle.";
        x.evidence.push_back(
            {"NVML", fmt::format("{} compute processes, utilization {} %", g.compute_processes,
                                 g.busy_percent.value_or(0))});
        all.push_back(x);
    }
    return all;
}

Findings hidden(const Facts& f, const GpuRun* run) {
    Findings all;
    if (!run || !run->cuda_asked || run->cuda_init != 0 || !run->ran) return all;
    for (const Gpu* g : usableGpus(f)) {
        const bool seen = std::any_of(run->gpus.begin(), run->gpus.end(), [&](const GpuInfo& i) {
            return i.bdf == g->bdf && i.in_cuda;
        });
        if (seen) continue;
        Finding x;
        x.id = "gpu-hidden";
        // What the others showed stays true; without a pair nothing was shown.
        x.severity = run->pairs.empty() ? Severity::Inconclusive : Severity::Warning;
        x.subject = g->bdf;
        x.cause = "CUDA does not offer this GPU here, so it was not tested.";
        x.remedy =
            "Unset CUDA_VISIBLE_DEVICES; in a container use --gpus all; or name the GPUs that are "
            "meant with --gpus.";
        x.evidence.push_back({"cuDeviceGetCount", "without " + g->bdf});
        all.push_back(x);
    }
    return all;
}

// NVML knows every GPU that the driver has started.
Findings notStarted(const Facts& f, const GpuRun* run) {
    if (!run || !f.loaded || run->timed_out || f.gpus.empty()) return {};
    constexpr int kNoLibrary = -1, kMismatch = 18;  // other rules' matter
    if (run->nvml_init == kNoLibrary || run->nvml_init == kMismatch) return {};
    if (run->nvml_init != 0) {
        Finding x = host("gpu-not-started", Severity::Inconclusive);
        x.cause = fmt::format(
            "NVML cannot be started (nvmlInit: {}), so the state of the GPUs is "
            "not known.",
            run->nvml_init);
        x.remedy = f.container ? "Give the container the GPUs (--gpus all, or /dev/nvidia*)."
                               : "Read the driver's reason: dmesg | grep -e NVRM -e Xid; let this "
                                 "user open /dev/nvidia*.";
        x.evidence.push_back(
            {"nvmlInit_v2", run->error.empty() ? std::to_string(run->nvml_init) : run->error});
        return {x};
    }
    Findings all;
    for (const Gpu* g : usableGpus(f)) {
        if (!g->driver) continue;  // gpu-not-bound
        const bool known = std::any_of(run->gpus.begin(), run->gpus.end(),
                                       [&](const GpuInfo& i) { return i.bdf == g->bdf; });
        if (known) continue;
        Finding x;
        x.id = "gpu-not-started";
        // A container is given some of the GPUs.
        x.severity = f.container ? Severity::Inconclusive : Severity::Block;
        x.subject = g->bdf;
        x.cause = f.container ? "This container was not given this GPU."
                              : "The driver holds this GPU and could not start it.";
        x.remedy = f.container ? "Run it on the host, give the container all GPUs, or name its own "
                                 "with --gpus."
                               : "Read the driver's reason (RmInitAdapter, GSP, Xid): dmesg | grep "
                                 "-e NVRM -e Xid; a cold start helps after Xid 79.";
        x.evidence.push_back({"nvmlDeviceGetCount_v2",
                              fmt::format("{} GPUs, without {}", run->gpus.size(), g->bdf)});
        if (const auto* l = logLine(f, {"NVRM", "RmInitAdapter"}))
            x.evidence.push_back({f.log.path, *l});
        else if (const auto* xid = logLine(f, {"NVRM", "Xid", g->bdf.substr(0, 10).c_str()}))
            x.evidence.push_back({f.log.path, *xid});
        all.push_back(x);
    }
    return all;
}

Findings program(const Facts& f, const GpuRun* run) {
    if (!run || f.gpus.empty()) return {};
    Finding x;
    x.subject = "host";
    const bool mismatch =
        run->nvml_init == 18 || (run->cuda_asked && run->cuda_init == kVersionMismatch);
    if (run->timed_out && run->pairs.empty() && run->single.empty()) {
        x.id = "gpu-program-hung";
        x.severity = Severity::Hang;
        x.cause = "The GPU tests did not come to their first result before the deadline.";
        x.remedy = "Reboot if other GPU programs hang too; then read dmesg | grep -e NVRM -e Xid.";
        if (!run->cuda_asked && run->error.find("NVML") != std::string::npos) {
            // Starting many GPUs without nvidia-persistenced takes long; that is no broken
            // transfer.
            x.severity = Severity::Inconclusive;
            x.cause = "NVML did not answer before the deadline, so nothing was learnt of the GPUs.";
            x.remedy =
                "Run it again with a longer --timeout, or keep the GPUs started: systemctl enable "
                "--now nvidia-persistenced.  If nvidia-smi hangs too, read dmesg | grep -e NVRM -e "
                "Xid.";
        }
        x.evidence.push_back({"child process", run->error});
        return {x};
    }
    if (run->cuda_asked && run->cuda_init != 0 && !mismatch) {
        x.id = "cuda-unavailable";
        x.severity = Severity::Inconclusive;
        x.cause =
            run->cuda_init == -1
                ? "libcuda.so.1 cannot be loaded, so no data could be moved."
                : fmt::format("CUDA could not be started (cuInit: {}), so no data could be moved.",
                              run->cuda_init);
        x.remedy =
            "Install the driver's libraries of the module's version, and let this user open "
            "/dev/nvidia*.";
        x.evidence.push_back(
            {"cuInit", run->error.empty() ? std::to_string(run->cuda_init) : run->error});
        return {x};
    }
    if (!run->ran && run->cuda_asked && !mismatch && !run->timed_out) {
        x.id = "gpu-program-failed";
        x.severity = Severity::Inconclusive;
        x.cause = "The GPU tests ended before they were done.";
        x.remedy = "Run them again; if it repeats, report it with the output of p2p-verify gather.";
        x.evidence.push_back({"child process", run->error});
        return {x};
    }
    return {};
}

Findings only(Findings all, const char* id) {
    if (!all.empty() && all.front().id != id) all.clear();
    return all;
}
Findings hung(const Facts& f, const GpuRun* run) {
    return only(program(f, run), "gpu-program-hung");
}
Findings noCuda(const Facts& f, const GpuRun* run) {
    return only(program(f, run), "cuda-unavailable");
}
Findings failed(const Facts& f, const GpuRun* run) {
    return only(program(f, run), "gpu-program-failed");
}

}  // namespace

std::vector<Rule> runRules() {
    return {
        {"data-not-delivered", "destination keeps its old content", "data tests", notDelivered,
         "NVIDIA/nccl#2335", false},
        {"data-zeros", "destination reads zeros", "data tests", zeros,
         "tinygrad/open-gpu-kernel-modules#18, pytorch/pytorch#84803", false},
        {"data-corrupt", "some words differ", "data tests", corrupt,
         "aikitoria/open-gpu-kernel-modules#25, #8; tinygrad/open-gpu-kernel-modules#30; "
         "NVIDIA/open-gpu-kernel-modules#1257",
         false},
        {"handshake-wrong-data", "flag ahead of its data", "handshake", handshakeOrder, "", false},
        {"ipc-wrong-data", "wrong data from a second process", "IPC test", ipcWrong,
         "noonghunna/club-3090#922, aikitoria/open-gpu-kernel-modules#21", false},
        {"handshake-timeout", "kernels that never meet", "handshake", handshakeTimeout,
         "noonghunna/club-3090#873, NVIDIA/nccl#2079, tinygrad/open-gpu-kernel-modules#45", false},
        {"test-timeout", "transfer past its deadline", "data tests", testTimeout,
         "NVIDIA/nccl-tests#117", false},
        {"device-lost", "GPU lost during a transfer", "data tests", lost, "NVIDIA/cuda-samples#48",
         false},
        {"gpu-program-hung", "no answer from the GPU tests", "child process", hung, "", false},
        {"cuda-unavailable", "CUDA does not start", "cuInit", noCuda, "", false},
        {"gpu-program-failed", "GPU tests ended early", "child process", failed, "", false},
        {"mapping-refused", "CUDA error 205", "data tests", mappingRefused,
         "tinygrad/open-gpu-kernel-modules#16, #5, #44; aikitoria/open-gpu-kernel-modules#38",
         false},
        {"no-access", "no peer access", "cuDeviceCanAccessPeer", noAccess,
         "tinygrad/open-gpu-kernel-modules#23, #28", false},
        {"illegal-access", "CUDA error 700", "data tests", illegalAddress,
         "tinygrad/open-gpu-kernel-modules#29", false},
        {"test-refused", "another CUDA error", "data tests", refused, "", false},
        {"jit-missing", "no PTX compiler", "data tests", jitMissing, "", false},
        {"test-not-run", "test that could not run", "data tests", notProven, "NVIDIA/DCGM#272",
         false},
        {"self-test-failed", "GPU fails with its own memory", "single-GPU tests", selfTest, "",
         false},
        {"ipc-refused", "IPC handle refused", "IPC test", ipcRefused,
         "NVIDIA/nccl#342, openucx/ucx#10070", false},
        {"bandwidth-degraded", "well under the link limit", "bandwidth test", slow,
         "aikitoria/open-gpu-kernel-modules#6, tinygrad/open-gpu-kernel-modules#26", false},
        {"gpu-not-started", "GPU that NVML does not know", "NVML", notStarted,
         "NVIDIA/gpu-operator#492", false},
        {"gpu-busy", "GPU at work", "NVML", busy, "NVIDIA/DCGM#272", false},
        {"gpu-hidden", "GPU not offered by CUDA", "cuDeviceGetCount", hidden, "", false},
    };
}

}  // namespace p2p::rules_detail
