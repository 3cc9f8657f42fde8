// SPDX-License-Identifier: MIT
#include "lib/report/make_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "lib/rules/rules.h"

namespace p2p {

namespace {

ReportLink linkOf(const Sourced<PcieLink>& now, const Sourced<PcieLink>& most) {
    ReportLink l;
    if (now && now->gts > 0) l.gts = now->gts;
    if (now && now->width > 0) l.width = now->width;
    if (most && most->gts > 0) l.max_gts = most->gts;
    if (most && most->width > 0) l.max_width = most->width;
    return l;
}

// "pci0000:00", as sysfs names a host bridge.
std::string hostBridgeOf(const Gpu& g) {
    // A tree copied without its links does not say; the GPU's own bus then stands alone.
    return "pci" + (g.root_bus.empty() ? g.bdf.substr(0, g.bdf.rfind(':')) : g.root_bus);
}

const GpuInfo* infoOf(const GpuRun* run, const std::string& bdf) {
    if (run == nullptr) return nullptr;
    const auto it = std::find_if(run->gpus.begin(), run->gpus.end(),
                                 [&](const GpuInfo& g) { return g.bdf == bdf; });
    return it == run->gpus.end() ? nullptr : &*it;
}

ReportGpu gpuOf(const Gpu& g, const GpuInfo* info) {
    ReportGpu r;
    r.bdf = g.bdf;
    r.device_id = fmt::format("{:04x}:{:04x}", g.vendor, g.device);
    r.name = info != nullptr && !info->name.empty() ? info->name : g.name;
    if (g.bar1) r.bar1_bytes = g.bar1->bytes;
    r.bar1_max_bytes = g.bar1_max_bytes.value;
    // NVML asks the card; the device id only knows the usual size.
    r.vram_bytes = info != nullptr && info->vram_bytes != 0 ? std::optional(info->vram_bytes)
                                                            : g.vram_bytes.value;
    r.driver = g.driver.valueOr("");
    r.iommu = g.iommu_type.valueOr("");
    r.numa_node = g.numa_node.value;
    r.link = linkOf(g.link, g.link_max);
    return r;
}

void topology(const Facts& facts, Report& r) {
    std::set<std::string> hosts;
    auto host = [&](const Gpu& g) {
        std::string id = hostBridgeOf(g);
        if (hosts.insert(id).second) r.bridges.push_back({id, "", "host bridge", {}, std::nullopt});
        return id;
    };
    std::set<std::string> done;
    for (const Gpu& g : facts.gpus) {
        r.gpu_parents.push_back(g.upstream.empty() ? host(g) : g.upstream.front());
        for (std::size_t i = 0; i < g.upstream.size(); i++) {
            const std::string& id = g.upstream[i];
            if (!done.insert(id).second) continue;
            ReportBridge b;
            b.id = id;
            b.parent = i + 1 < g.upstream.size() ? g.upstream[i + 1] : host(g);
            if (const Bridge* known = facts.bridge(id)) {
                b.label = known->name;
                if (known->port && *known->port != PortType::Unknown)
                    b.label = portTypeName(*known->port);
                b.link = linkOf(known->link, known->link_max);
                if (known->acs) b.acs_redirect = known->acs->redirects();
                // Not there is an answer too; not readable is none.
                else if (known->acs.unread == kAbsent)
                    b.acs_redirect = false;
            }
            r.bridges.push_back(b);
        }
    }
    std::sort(r.bridges.begin(), r.bridges.end(),
              [](const ReportBridge& a, const ReportBridge& b) { return a.id < b.id; });
}

}  // namespace

Report makeReport(const Facts& facts, const GpuRun* run, std::vector<Finding> findings,
                  const std::string& level, std::int64_t time) {
    Report r;
    r.version = P2P_VERSION;
    r.level = level;
    r.time = time;
    r.kernel = facts.kernel.valueOr("");
    if (facts.loaded) r.module = facts.loaded->version;
    if (const ModuleFile* file = facts.loadedFile()) r.marker = file->marker.valueOr("");
    for (const Gpu& g : facts.gpus) r.gpus.push_back(gpuOf(g, infoOf(run, g.bdf)));
    topology(facts, r);
    if (run != nullptr) {
        r.pairs = run->pairs;
        r.single = run->single;
        r.local = run->local;
    }
    for (const Rule& rule : rules()) r.rules.push_back({rule.id, rule.title});
    r.unread = unreadTexts(facts);
    if (run != nullptr && !run->error.empty()) r.unread.push_back("GPU driver: " + run->error);
    r.findings = std::move(findings);
    conclude(r);
    return r;
}

}  // namespace p2p
