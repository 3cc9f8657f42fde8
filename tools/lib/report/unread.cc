// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <map>
#include <set>

#include "lib/report/make_report.h"

namespace p2p {

namespace {

class Unread {
  public:
    template <typename T>
    void add(const Sourced<T>& s) {
        if (s.value || s.unread.empty() || s.unread == kAbsent || s.path.empty()) return;
        // Registers of one device are named "FILE offset ..."; the file is what was not readable.
        const std::string file = s.path.substr(0, s.path.find(' '));
        const auto slash = file.rfind('/');
        groups_[{s.unread, slash == std::string::npos ? file : file.substr(slash + 1)}].insert(
            file);
    }

    std::vector<std::string> texts() const {
        std::vector<std::string> out;
        for (const auto& [key, files] : groups_) {
            const std::string& first = *files.begin();
            if (files.size() == 1)
                out.push_back(fmt::format("{}: {}", first, key.first));
            else
                out.push_back(fmt::format("{} and {} more files named {}: {}", first,
                                          files.size() - 1, key.second, key.first));
        }
        return out;
    }

  private:
    std::map<std::pair<std::string, std::string>, std::set<std::string>>
        groups_;  // (why, file name)
};

}  // namespace

std::vector<std::string> unreadTexts(const Facts& f) {
    Unread u;
    for (const Gpu& g : f.gpus) {
        u.add(g.bar1);
        u.add(g.regions);
        u.add(g.rebar);
        u.add(g.bar1_max_bytes);
        u.add(g.vram_bytes);
        u.add(g.link);
        u.add(g.link_max);
        u.add(g.max_payload);
        u.add(g.acs);
        u.add(g.numa_node);
        u.add(g.driver);
        u.add(g.iommu_group);
        u.add(g.iommu_type);
        u.add(g.boot_vga);
        u.add(g.framebuffer);
        u.add(g.connected);
        u.add(g.aer);
    }
    for (const Bridge& b : f.bridges) {
        u.add(b.port);
        u.add(b.acs);
        u.add(b.link);
        u.add(b.link_max);
        u.add(b.max_payload);
        u.add(b.prefetch_window);
        u.add(b.window);
    }
    u.add(f.host_bridge);
    u.add(f.kernel);
    u.add(f.kernel_version);
    u.add(f.cmdline);
    u.add(f.log);
    u.add(f.iommus);
    u.add(f.loaded);
    if (f.loaded) {
        u.add(f.loaded->build_id);
        u.add(f.loaded->taint);
    }
    u.add(f.nvrm_version);
    u.add(f.compiler);
    u.add(f.params);
    u.add(f.holders);
    u.add(f.secure_boot);
    u.add(f.lockdown);
    u.add(f.sig_enforce);
    for (const auto& [name, value] : f.dmi) u.add(value);
    u.add(f.hypervisor);
    u.add(f.container);
    u.add(f.shm_bytes);
    u.add(f.reboot_required);
    for (const Kernel& k : f.kernels)
        for (const ModuleFile& m : k.nvidia) {
            u.add(m.version);
            u.add(m.vermagic);
            u.add(m.marker);
            u.add(m.signer);
            u.add(m.build_id);
        }
    return u.texts();
}

}  // namespace p2p
