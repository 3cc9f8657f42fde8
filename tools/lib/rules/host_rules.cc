// SPDX-License-Identifier: MIT
// The rest of the host: hints from the kernel log, containers, caches, processes.
#include <fmt/format.h>

#include "lib/rules/parts.h"

namespace p2p::rules_detail {
namespace {

// A log line is a hint and never a verdict: some of the driver's complaints are harmless.
Findings hint(const Facts& f, const char* id, const std::string* line, const char* cause,
              const char* remedy) {
    if (!line) return {};
    Finding x;
    x.id = id;
    x.severity = Severity::Warning;
    x.subject = "host";
    for (const Gpu& g : f.gpus)
        if (line->find(g.bdf) != std::string::npos) x.subject = g.bdf;
    x.cause = cause;
    x.remedy = remedy;
    x.evidence.push_back({f.log.path, *line});
    return {x};
}

bool aboutGpu(const Facts& f, const std::string& line) {
    for (const Gpu& g : f.gpus) {
        // "0000:01:00.0", and "[01:00.0]" as the DMAR code writes it.
        if (line.find(g.bdf) != std::string::npos ||
            line.find(g.bdf.substr(5)) != std::string::npos)
            return true;
    }
    return false;
}

Findings logIommuFault(const Facts& f, const GpuRun*) {
    for (const std::string& l : f.log.valueOr({})) {
        const bool amd = l.find("IO_PAGE_FAULT") != std::string::npos;
        const bool intel =
            l.find("DMAR:") != std::string::npos &&
            (l.find("[DMA Read") != std::string::npos || l.find("[DMA Write") != std::string::npos);
        if ((amd || intel) && aboutGpu(f, l))
            return hint(
                f, "log-iommu-fault", &l, "The IOMMU refused a transfer of a GPU since boot.",
                "Boot with iommu=pt; if it comes back, switch the IOMMU off in the firmware.");
    }
    return {};
}

Findings logMisaligned(const Facts& f, const GpuRun*) {
    const std::string* l = logLine(f, {"peer DMA address", "not aligned"});
    if (!l) l = logLine(f, {"IOMMU mapping failed from GPU"});
    return hint(
        f, "log-peer-misaligned", l,
        "The driver could not map a peer's window through the IOMMU: it lies off the 512 MiB grid.",
        "Boot with iommu=pt, and keep the console off that GPU.");
}

Findings logXid(const Facts& f, const GpuRun*) {
    const std::string* l = logLine(f, {"NVRM: Xid", ": 31,"});
    return hint(f, "log-xid-31", l, "A GPU touched memory that was not mapped (Xid 31) since boot.",
                "If it came with peer-to-peer: p2p-verify --level data names the pair; else it is "
                "the application's.");
}

Findings logLost(const Facts& f, const GpuRun*) {
    const std::string* l = logLine(f, {"NVRM: Xid", ": 79,"});
    if (!l) l = logLine(f, {"fallen off the bus"});
    return hint(f, "log-gpu-lost", l, "A GPU fell off the bus (Xid 79) since boot.",
                "Check power cables, riser and slot; a GPU that is lost comes back with a cold "
                "start only.");
}

Findings logMismatch(const Facts& f, const GpuRun*) {
    return hint(f, "log-api-mismatch", logLine(f, {"NVRM: API mismatch"}),
                "A program tried the driver with libraries of another version since boot.",
                "Restart that program after the reboot; see driver-library-mismatch if it is "
                "reported too.");
}

Findings logInvalidBar(const Facts& f, const GpuRun*) {
    const std::string* l = logLine(f, {"NVRM: BAR", "is 0M @ 0x0"});
    if (!l) l = logLine(f, {"PCI I/O region assigned to your NVIDIA device is invalid"});
    return hint(f, "log-bar-invalid", l,
                "The driver found a BAR without an address when it loaded.",
                "Switch \"Above 4G Decoding\" on in the firmware; in a guest give it more 64-bit "
                "MMIO space.");
}

Findings logSignature(const Facts& f, const GpuRun*) {
    const std::string* l = logLine(f, {"Key was rejected"});
    if (!l) l = logLine(f, {"Loading of unsigned module is rejected"});
    if (!l) l = logLine(f, {"Loading of module with unavailable key is rejected"});
    return hint(f, "log-signature", l, "The kernel refused a module for its signature since boot.",
                "See secure-boot-unsigned; the key must be enrolled with mokutil --import.");
}

Findings logProbe(const Facts& f, const GpuRun*) {
    return hint(f, "log-probe-not-called",
                logLine(f, {"NVRM: The NVIDIA probe routine was not called"}),
                "Another driver had a GPU when nvidia was loaded.",
                "See nouveau-bound or vfio-bound; after blocking the other driver: "
                "update-initramfs -u and reboot.");
}

Findings smallShm(const Facts& f, const GpuRun*) {
    if (f.gpus.empty() || !f.shm_bytes || *f.shm_bytes > (std::uint64_t{64} << 20)) return {};
    Finding x = host("small-shm", Severity::Info);
    x.cause = fmt::format(
        "/dev/shm holds {} only: NCCL runs out of it, which looks like a fault of peer-to-peer.",
        size(*f.shm_bytes));
    x.remedy = "Start the container with --ipc=host or --shm-size=8g.";
    x.evidence.push_back({f.shm_bytes.path, size(*f.shm_bytes)});
    return {x};
}

Findings container(const Facts& f, const GpuRun*) {
    if (f.gpus.empty() || !f.container) return {};
    Finding x = host("container", Severity::Info);
    x.cause = "This runs inside a container (" + *f.container +
              "): modules, processes and some GPUs of the host may be out of sight.";
    x.remedy =
        "Judge the machine from the host; for IPC between containers use --ipc=host and --gpus "
        "all.";
    x.evidence.push_back({f.container.path, "present"});
    return {x};
}

Findings vllmCache(const Facts& f, const GpuRun*) {
    if (f.gpus.empty() || f.vllm_caches.empty()) return {};
    Finding x = host("vllm-cache", Severity::Info);
    x.cause =
        "vLLM keeps its own record of which GPUs reach each other, and does not renew it when the "
        "driver changes.";
    x.remedy = "If it is older than this driver: rm ~/.cache/vllm/gpu_p2p_access_cache_for_*.json";
    for (const std::string& c : f.vllm_caches) x.evidence.push_back({c, "present"});
    return {x};
}

Findings holders(const Facts& f, const GpuRun*) {
    if (!f.holders || f.holders->empty()) return {};
    Finding x = host("gpu-in-use", Severity::Info);
    x.cause = fmt::format(
        "{} process(es) have a GPU open: the driver cannot be reloaded, and measurements would be "
        "off.",
        f.holders->size());
    x.remedy = "Stop them before a reload or a benchmark.";
    for (const Holder& h : *f.holders)
        x.evidence.push_back({fmt::format("/proc/{}/fd", h.pid),
                              fmt::format("{}: {}", h.command, fmt::join(h.devices, " "))});
    return {x};
}

Findings rebootRequired(const Facts& f, const GpuRun*) {
    if (!f.reboot_required || f.reboot_required->find("nvidia") == std::string::npos) return {};
    Finding x = host("reboot-required", Severity::Info);
    x.cause = "A package with the driver asked for a reboot.";
    x.remedy = "Reboot when convenient.";
    x.evidence.push_back({f.reboot_required.path, "names nvidia"});
    return {x};
}

Findings logUnread(const Facts& f, const GpuRun*) {
    if (f.gpus.empty() || !f.log.needsRoot()) return {};
    Finding x = host("log-unread", Severity::Info);
    x.cause =
        "Could not read the kernel log (needs root): hints from it are missing, the verdict does "
        "not hang on them.";
    x.remedy = "Run it again as root for the hints.";
    x.evidence.push_back(unreadEvidence(f.log));
    return {x};
}

}  // namespace

std::vector<Rule> hostRules() {
    return {
        {"log-iommu-fault", "IOMMU faults of a GPU", "kernel log", logIommuFault,
         "tinygrad/open-gpu-kernel-modules#18, NVIDIA/cuda-samples#48", false},
        {"log-peer-misaligned", "peer window off the grid", "kernel log", logMisaligned,
         "tinygrad/open-gpu-kernel-modules PR48", false},
        {"log-xid-31", "Xid 31", "kernel log", logXid, "tinygrad/open-gpu-kernel-modules#29",
         false},
        {"log-gpu-lost", "Xid 79", "kernel log", logLost, "", false},
        {"log-api-mismatch", "API mismatch", "kernel log", logMismatch,
         "Frogging-Family/nvidia-all#394", false},
        {"log-bar-invalid", "BAR without an address", "kernel log", logInvalidBar,
         "NVIDIA/gpu-operator#492", false},
        {"log-signature", "module refused for its signature", "kernel log", logSignature,
         "linux-surface/linux-surface#906", false},
        {"log-probe-not-called", "another driver was first", "kernel log", logProbe,
         "MrMEEE/ironhide#41", false},
        {"log-unread", "kernel log not readable", "/dev/kmsg", logUnread, "", false},
        {"small-shm", "/dev/shm of a container's default size", "/proc/mounts", smallShm,
         "NVIDIA/nccl#342, #290, #324; openucx/ucx#10070", false},
        {"container", "inside a container", "/.dockerenv, /run/.containerenv", container,
         "NVIDIA/nccl#342", false},
        {"vllm-cache", "vLLM's record of peer access", "~/.cache/vllm", vllmCache,
         "noonghunna/club-3090 PCIE_P2P 7", false},
        {"gpu-in-use", "processes that hold a GPU", "/proc/*/fd", holders,
         "aikitoria/open-gpu-kernel-modules#10", false},
        {"reboot-required", "a package asked for a reboot", "/run/reboot-required.pkgs",
         rebootRequired, "", false},
    };
}

}  // namespace p2p::rules_detail
