// SPDX-License-Identifier: MIT
#include "lib/facts/facts.h"

#include <algorithm>

namespace p2p {

std::uint64_t ResizableBar::maxBytes() const {
    // Bit n stands for 2^(20+n) bytes; the specification ends at bit 43 (8 EB).
    for (int n = 43; n >= 0; --n)
        if ((sizes >> n) & 1) return std::uint64_t{1} << (20 + n);
    return 0;
}

const char* portTypeName(PortType t) {
    switch (t) {
        case PortType::Endpoint:
            return "endpoint";
        case PortType::LegacyEndpoint:
            return "legacy endpoint";
        case PortType::RootPort:
            return "root port";
        case PortType::UpstreamPort:
            return "switch upstream port";
        case PortType::DownstreamPort:
            return "switch downstream port";
        case PortType::Bridge:
            return "bridge";
        case PortType::Unknown:
            break;
    }
    return "unknown";
}

namespace {
template <class C, class P>
auto findIn(const C& all, P matches) -> decltype(&*all.begin()) {
    auto it = std::find_if(all.begin(), all.end(), matches);
    return it == all.end() ? nullptr : &*it;
}
}  // namespace

const Gpu* Facts::gpu(const std::string& bdf) const {
    return findIn(gpus, [&](const Gpu& g) { return g.bdf == bdf; });
}

const Bridge* Facts::bridge(const std::string& bdf) const {
    return findIn(bridges, [&](const Bridge& b) { return b.bdf == bdf; });
}

const Kernel* Facts::runningKernel() const {
    return findIn(kernels, [](const Kernel& k) { return k.running; });
}

const ModuleFile* Facts::chosenModule() const {
    const Kernel* k = runningKernel();
    return k ? findIn(k->nvidia, [](const ModuleFile& m) { return m.chosen; }) : nullptr;
}

const ModuleFile* Facts::loadedFile() const {
    if (!loaded || !loaded->build_id) return nullptr;
    const Kernel* k = runningKernel();
    return k ? findIn(k->nvidia,
                      [&](const ModuleFile& m) {
                          return m.build_id && *m.build_id == *loaded->build_id;
                      })
             : nullptr;
}

const ModprobeOption* Facts::option(const std::string& name) const {
    // The kernel keeps the last value that it is given.
    const ModprobeOption* found = nullptr;
    for (const ModprobeOption& o : options)
        if (o.module == "nvidia" && o.name == name) found = &o;
    return found;
}

}  // namespace p2p
