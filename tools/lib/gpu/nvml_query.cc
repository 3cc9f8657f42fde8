// SPDX-License-Identifier: MIT
#include "lib/gpu/nvml_query.h"

#include <fmt/format.h>

#include <array>

#include "lib/gpu/run.h"

namespace p2p {

int Nvml::open(std::string& error) {
    error = nvml::load(api_);
    if (!error.empty()) return -1;
    const nvml::Return r = api_.nvmlInit_v2();
    if (r != nvml::kOk) error = "nvmlInit_v2: " + nvml::errorText(r);
    return r;
}

std::string Nvml::driverVersion() const {
    std::array<char, 96> text{};
    if (api_.nvmlSystemGetDriverVersion(text.data(), text.size() - 1) != nvml::kOk) return "";
    return text.data();
}

std::vector<GpuInfo> Nvml::gpus() {
    std::vector<GpuInfo> all;
    unsigned count = 0;
    if (api_.nvmlDeviceGetCount_v2(&count) != nvml::kOk) return all;
    for (unsigned i = 0; i < count; i++) {
        nvml::Device dev = nullptr;
        nvml::PciInfo pci{};
        if (api_.nvmlDeviceGetHandleByIndex_v2(i, &dev) != nvml::kOk) continue;
        if (api_.nvmlDeviceGetPciInfo_v3(dev, &pci) != nvml::kOk) continue;
        GpuInfo g;
        pci.bus_id[sizeof(pci.bus_id) - 1] = '\0';
        g.bdf = normalBdf(pci.bus_id);
        handles_[g.bdf] = dev;
        std::array<char, 128> text{};
        if (api_.nvmlDeviceGetUUID(dev, text.data(), text.size() - 1) == nvml::kOk)
            g.uuid = text.data();
        if (api_.nvmlDeviceGetName(dev, text.data(), text.size() - 1) == nvml::kOk)
            g.name = text.data();
        nvml::Memory memory{};
        if (api_.nvmlDeviceGetMemoryInfo(dev, &memory) == nvml::kOk) g.vram_bytes = memory.total;
        nvml::Bar1Memory bar1{};
        if (api_.nvmlDeviceGetBAR1MemoryInfo(dev, &bar1) == nvml::kOk) g.bar1_bytes = bar1.total;
        if (api_.nvmlDeviceGetCudaComputeCapability)
            api_.nvmlDeviceGetCudaComputeCapability(dev, &g.compute_major, &g.compute_minor);
        int active = 0;
        if (api_.nvmlDeviceGetDisplayActive &&
            api_.nvmlDeviceGetDisplayActive(dev, &active) == nvml::kOk)
            g.display_active = active != 0;
        nvml::Utilization use{};
        if (api_.nvmlDeviceGetUtilizationRates &&
            api_.nvmlDeviceGetUtilizationRates(dev, &use) == nvml::kOk)
            g.busy_percent = static_cast<int>(use.gpu);
        // With no room for the list, NVML answers "insufficient size" and the count.
        unsigned processes = 0;
        if (api_.nvmlDeviceGetComputeRunningProcesses_v3) {
            const nvml::Return r =
                api_.nvmlDeviceGetComputeRunningProcesses_v3(dev, &processes, nullptr);
            if (r == nvml::kOk || r == nvml::kInsufficientSize)
                g.compute_processes = static_cast<int>(processes);
        }
        all.push_back(g);
    }
    return all;
}

std::optional<Nvml::Path> Nvml::path(const std::string& a, const std::string& b) const {
    const auto da = handles_.find(a), db = handles_.find(b);
    if (da == handles_.end() || db == handles_.end() || !api_.nvmlDeviceGetP2PStatus)
        return std::nullopt;
    auto status = [&](int index, const char* name, bool& ok) {
        int s = 0;
        const nvml::Return r = api_.nvmlDeviceGetP2PStatus(da->second, db->second, index, &s);
        ok = r == nvml::kOk && s == nvml::kP2pOk;
        static constexpr std::array<const char*, 7> words = {"OK",
                                                             "chipset not supported",
                                                             "GPU not supported",
                                                             "topology not supported",
                                                             "off by regkey",
                                                             "not supported",
                                                             "unknown"};
        if (r != nvml::kOk) return fmt::format("{}: {}", name, nvml::errorText(r));
        return fmt::format("{}: {}", name, s >= 0 && s < 7 ? words.at(s) : "?");
    };
    bool nvlink = false, read = false, write = false;
    std::string seen = status(nvml::kCapsNvlink, "NVML P2P status NVLINK", nvlink);
    seen += ", " + status(nvml::kCapsRead, "READ", read);
    seen += ", " + status(nvml::kCapsWrite, "WRITE", write);
    unsigned links = 0;
    if (api_.nvmlDeviceGetNvLinkState)
        for (unsigned i = 0; i < nvml::kMaxNvlinks; i++) {
            int active = 0;
            if (api_.nvmlDeviceGetNvLinkState(da->second, i, &active) != nvml::kOk) break;
            links += active != 0;
        }
    seen += fmt::format("; {} NVLinks active on {}", links, a);
    if (nvlink && links > 0) return Path{"nvlink", seen};
    // Without NVLink the only way left is PCIe; GeForce has no mailbox, so it is the BAR1 window.
    if (read || write) return Path{"pcie-bar1", seen};
    return Path{"unknown", seen};
}

std::optional<double> Nvml::pcieGbs(const std::string& bdf, bool tx) const {
    const auto dev = handles_.find(bdf);
    unsigned kb = 0;
    if (dev == handles_.end() || !api_.nvmlDeviceGetPcieThroughput ||
        api_.nvmlDeviceGetPcieThroughput(dev->second, tx ? 0 : 1, &kb) != nvml::kOk)
        return std::nullopt;
    return kb * 1e3 / 1e9;  // KB/s, nvmlDeviceGetPcieThroughput
}

}  // namespace p2p
