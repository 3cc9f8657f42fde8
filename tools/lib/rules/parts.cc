// SPDX-License-Identifier: MIT
#include "lib/rules/parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "lib/facts/parse.h"

namespace p2p::rules_detail {

Finding host(const char* id, Severity severity) {
    Finding x;
    x.id = id;
    x.severity = severity;
    x.subject = "host";
    return x;
}

std::string size(std::uint64_t bytes) {
    static const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    std::size_t u = 0;
    while (u + 1 < std::size(units) && bytes >= 1024 && bytes % 1024 == 0) {
        bytes /= 1024;
        ++u;
    }
    return fmt::format("{} {}", bytes, units[u]);
}

std::string hex(std::uint64_t v) {
    return fmt::format("{:#x}", v);
}

Evidence evidence(const Sourced<std::string>& s) {
    return s ? Evidence{s.path, *s} : unreadEvidence(s);
}

bool setAside(const Gpu& g) {
    return g.driver && (*g.driver == "vfio-pci" || *g.driver == "pci-stub");
}

std::vector<const Gpu*> usableGpus(const Facts& f) {
    std::vector<const Gpu*> all;
    for (const Gpu& g : f.gpus)
        if (!g.takenByOther()) all.push_back(&g);
    return all;
}

Generation generationOf(std::uint16_t d) {
    if (d >= 0x2900 && d < 0x3800) return Generation::Blackwell;
    if (d >= 0x2680 && d < 0x2900) return Generation::Ada;
    if (d >= 0x2300 && d < 0x2400) return Generation::Hopper;
    if (d >= 0x2080 && d < 0x2680) return Generation::Ampere;
    if (d >= 0x1e00 && d < 0x2080) return Generation::Turing;
    return Generation::Older;
}

const char* generationName(Generation g) {
    switch (g) {
        case Generation::Older:
            return "older than Turing";
        case Generation::Turing:
            return "Turing";
        case Generation::Ampere:
            return "Ampere";
        case Generation::Hopper:
            return "Hopper";
        case Generation::Ada:
            return "Ada";
        case Generation::Blackwell:
            return "Blackwell";
    }
    return "unknown";
}

Sourced<std::uint64_t> memoryOf(const Gpu& g, const GpuRun* run) {
    if (run)
        for (const GpuInfo& i : run->gpus)
            if (i.bdf == g.bdf && i.vram_bytes > 0) return {"NVML memory total", i.vram_bytes};
    return g.vram_bytes;
}

std::uint64_t bar1Needed(std::uint64_t memory, Generation g) {
    return g == Generation::Ada || g == Generation::Ampere ? memory + (std::uint64_t{256} << 20)
                                                           : memory;
}

bool oursInstalled(const Facts& f) {
    const ModuleFile* m = f.chosenModule();
    return m && m->marker;
}

bool oursLoaded(const Facts& f) {
    const ModuleFile* m = f.loadedFile();
    return m && m->marker;
}

bool oursAnywhere(const Facts& f) {
    for (const Kernel& k : f.kernels)
        for (const ModuleFile& m : k.nvidia)
            if (m.marker) return true;
    return false;
}

int majorOf(const std::string& version) {
    const long v = std::strtol(version.c_str(), nullptr, 10);
    return v > 0 && v < 100000 ? static_cast<int>(v) : 0;
}

int driverMajor(const Facts& f) {
    if (f.loaded) return majorOf(f.loaded->version);
    const ModuleFile* m = f.chosenModule();
    return m && m->version ? majorOf(*m->version) : 0;
}

const std::string* logLine(const Facts& f, std::initializer_list<const char*> parts) {
    if (!f.log) return nullptr;
    for (const std::string& l : *f.log) {
        const bool all = std::all_of(parts.begin(), parts.end(),
                                     [&](const char* p) { return l.find(p) != std::string::npos; });
        if (all) return &l;
    }
    return nullptr;
}

bool provenByData(const GpuRun* run, const std::string& bdf) {
    if (!run || !run->ran) return false;
    bool any = false;
    for (const PairResult& p : run->pairs) {
        if (!bdf.empty() && p.src != bdf && p.dst != bdf) continue;
        // A push by the copy engine and stores by a kernel: both ways must have been checked on the
        // destination.
        bool push = false, store = false;
        for (const TestResult& t : p.tests) {
            if (t.outcome == Outcome::NotRun) continue;
            if (t.outcome != Outcome::Ok) return false;
            push = push || t.test == "ce_push";
            store = store || t.test == "sm_store";
        }
        if (!push || !store) return false;
        any = true;
    }
    return any;
}

std::string keyOf(const std::string& all, const std::string& perDevice, const std::string& bdf) {
    std::string key;
    for (const auto& [name, value] : parse::registryDwords(all))
        if (parse::sameKey(name, "NvP2pBar1")) key = value;
    for (const auto& [device, dwords] : parse::registryDwordsPerDevice(perDevice))
        for (const auto& [name, value] : dwords)
            if (device == bdf && parse::sameKey(name, "NvP2pBar1")) key = value;
    return key;
}

std::string optionValue(const Facts& f, const char* name) {
    const ModprobeOption* o = f.option(name);
    return o ? o->value : "";
}

std::string param(const Facts& f, const char* name) {
    if (!f.params) return "";
    auto it = f.params->find(name);
    return it == f.params->end() ? "" : it->second;
}

std::string keyOfFiles(const Facts& f, const std::string& bdf) {
    return keyOf(optionValue(f, "NVreg_RegistryDwords"),
                 optionValue(f, "NVreg_RegistryDwordsPerDevice"), bdf);
}

std::string keyTaken(const Facts& f, const std::string& bdf) {
    return keyOf(param(f, "RegistryDwords"), param(f, "RegistryDwordsPerDevice"), bdf);
}

std::string keyInForce(const Facts& f, const std::string& bdf) {
    return f.loaded && f.params ? keyTaken(f, bdf) : keyOfFiles(f, bdf);
}

bool covered(Generation g, const std::string& key, int major) {
    if (g == Generation::Ada) return true;
    const auto v = parse::dword(key);
    return g == Generation::Ampere && major >= 580 && v && (*v & 4) != 0;
}

std::optional<bool> hostListed(const Facts& f) {
    if (f.hypervisor || !f.processor) return std::nullopt;
    const Processor& p = *f.processor;
    // What RM calls Ryzen is every AMD processor from Zen on, EPYC too; Zen 5 from 570.  Of Intel's
    // it knows Sapphire Rapids alone (src/nvidia/src/kernel/platform/cpu.c).
    if (p.vendor == "AuthenticAMD")
        return p.family == 0x17 || p.family == 0x19 || (p.family >= 0x1a && driverMajor(f) >= 570);
    return p.vendor == "GenuineIntel" && p.family == 6 && p.model == 143;
}

bool belowOneSwitch(const Facts& f, const Gpu& a, const Gpu& b) {
    for (const std::string& up : a.upstream) {
        if (std::find(b.upstream.begin(), b.upstream.end(), up) == b.upstream.end()) continue;
        const Bridge* bridge = f.bridge(up);
        // A root port above both does not make a switch of itself, what hangs below it does.
        if (bridge && bridge->port &&
            (*bridge->port == PortType::UpstreamPort || *bridge->port == PortType::DownstreamPort))
            return true;
    }
    return false;
}

}  // namespace p2p::rules_detail
