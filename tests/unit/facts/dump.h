// SPDX-License-Identifier: MIT
// Every fact as a line of text: two machines are the same when their dumps are.
#pragma once
#include <sstream>
#include <string>

#include "lib/facts/facts.h"

namespace p2p::test {

class Dump {
  public:
    explicit Dump(const Facts& f) {
        for (const Gpu& g : f.gpus) gpu(g);
        for (const Bridge& b : f.bridges) {
            out_ << "bridge " << b.bdf << ' ' << b.vendor << ':' << b.device << '\n';
            add("port", b.port);
            add("acs", b.acs);
            add("link", b.link);
            add("link_max", b.link_max);
            add("mps", b.max_payload);
            add("prefetch", b.prefetch_window);
            add("window", b.window);
        }
        add("host_bridge", f.host_bridge);
        add("host_windows", f.host_windows);
        add("kernel", f.kernel);
        add("kernel_version", f.kernel_version);
        add("cmdline", f.cmdline);
        add("log", f.log);
        add("iommus", f.iommus);
        add("loaded", f.loaded);
        add("nvrm", f.nvrm_version);
        line("modules", text(f.gpu_modules));
        for (const Kernel& k : f.kernels) kernel(k);
        for (const DkmsState& d : f.dkms)
            out_ << "dkms " << d.module << ' ' << d.version << ' ' << d.kernel << ' ' << d.state
                 << ' ' << d.log_error << '\n';
        add("compiler", f.compiler);
        for (const LibraryVersion& l : f.libraries)
            out_ << "library " << l.path << ' ' << l.version << '\n';
        for (const ModprobeOption& o : f.options)
            out_ << "option " << o.path << ':' << o.line << ' ' << o.module << ' ' << o.name << '='
                 << o.value << '\n';
        for (const ModprobeRule& r : f.modprobe_rules)
            out_ << "rule " << r.path << ' ' << r.text << '\n';
        add("params", f.params);
        add("holders", f.holders);
        add("secure_boot", f.secure_boot);
        add("lockdown", f.lockdown);
        add("sig_enforce", f.sig_enforce);
        for (const auto& [k, v] : f.dmi) add(k.c_str(), v);
        add("hypervisor", f.hypervisor);
        add("container", f.container);
        add("shm", f.shm_bytes);
        line("vllm", text(f.vllm_caches));
        for (const auto& [k, v] : f.package_state) line(k.c_str(), text(v));
        add("reboot", f.reboot_required);
    }
    std::string str() const { return out_.str(); }

  private:
    void gpu(const Gpu& g) {
        out_ << "gpu " << g.bdf << ' ' << g.vendor << ':' << g.device << ' ' << g.subsystem_vendor
             << ':' << g.subsystem_device << ' ' << g.name << ' ' << g.root_bus << ' '
             << g.config_bytes << ' ' << g.bar1_number << ' ' << text(g.upstream) << '\n';
        add("bar1", g.bar1);
        add("regions", g.regions);
        add("rebar", g.rebar);
        add("vf_rebar", g.vf_rebar);
        add("bar1_max", g.bar1_max_bytes);
        add("vram", g.vram_bytes);
        add("link", g.link);
        add("link_max", g.link_max);
        add("mps", g.max_payload);
        add("acs", g.acs);
        add("numa", g.numa_node);
        add("driver", g.driver);
        add("group", g.iommu_group);
        add("type", g.iommu_type);
        add("boot_vga", g.boot_vga);
        add("fb", g.framebuffer);
        add("connected", g.connected);
        add("aer", g.aer);
    }
    void kernel(const Kernel& k) {
        out_ << "kernel " << k.release << ' ' << k.running << k.headers << '\n';
        for (const ModuleFile& m : k.nvidia) {
            out_ << "file " << m.path << ' ' << m.chosen << '\n';
            add("version", m.version);
            add("vermagic", m.vermagic);
            add("marker", m.marker);
            add("license", m.license);
            add("signer", m.signer);
            add("build_id", m.build_id);
        }
    }
    template <class T>
    void add(const char* name, const Sourced<T>& s) {
        out_ << name << " [" << s.path << "] ";
        if (s)
            out_ << text(*s);
        else
            out_ << "UNREAD " << s.unread;
        out_ << '\n';
    }
    void line(const char* name, const std::string& t) { out_ << name << ' ' << t << '\n'; }

    static std::string text(const std::string& s) { return s; }
    static std::string text(int v) { return std::to_string(v); }
    static std::string text(bool v) { return v ? "yes" : "no"; }
    static std::string text(std::uint64_t v) { return std::to_string(v); }
    static std::string text(PortType t) { return portTypeName(t); }
    static std::string text(const Acs& a) {
        return std::to_string(a.offset) + "/" + std::to_string(a.control);
    }
    static std::string text(const PcieLink& l) {
        return std::to_string(l.gts) + "x" + std::to_string(l.width);
    }
    static std::string text(const BridgeWindow& w) {
        return std::to_string(w.base) + "+" + std::to_string(w.bytes);
    }
    static std::string text(const HostWindow& w) {
        return w.bus + " " + std::to_string(w.base) + "+" + std::to_string(w.bytes);
    }
    static std::string text(const PciRegion& r) {
        return std::to_string(r.bar) + "@" + std::to_string(r.start) + "+" +
               std::to_string(r.bytes) + "f" + std::to_string(r.flags);
    }
    static std::string text(const ResizableBar& r) {
        return std::to_string(r.bar) + ":" + std::to_string(r.current_bytes) + "/" +
               std::to_string(r.sizes);
    }
    static std::string text(const LoadedModule& l) {
        return l.version + " " + l.build_id.valueOr(l.build_id.unread) + " " +
               l.taint.valueOr(l.taint.unread);
    }
    static std::string text(const Holder& h) { return h.command + " " + text(h.devices); }
    template <class T>
    static std::string text(const std::vector<T>& all) {
        std::string t;
        for (const T& x : all) t += text(x) + ",";
        return t;
    }
    template <class T>
    static std::string text(const std::map<std::string, T>& all) {
        std::string t;
        for (const auto& [k, v] : all) t += k + "=" + text(v) + ",";
        return t;
    }

    std::ostringstream out_;
};

inline std::string dump(const Facts& f) {
    return Dump(f).str();
}

}  // namespace p2p::test
