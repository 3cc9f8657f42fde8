// SPDX-License-Identifier: MIT
// Kernel, firmware, libraries and processes.
#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "lib/facts/collect.h"
#include "lib/facts/parse.h"

namespace p2p {
namespace {

using parse::startsWith;
bool isNumber(const std::string& s) {
    return !s.empty() && s.size() < 10 && s.find_first_not_of("0123456789") == std::string::npos;
}

Sourced<bool> secureBoot(Machine& m) {
    // UEFI 2.10, 3.3: variable SecureBoot; efivarfs puts four bytes of attributes in front.
    const std::string path =
        "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
    const auto raw = m.bytes(path, 16);
    if (!raw) return Sourced<bool>::missing(path, raw.unread);
    if (raw->size() < 5) return Sourced<bool>::missing(path, "too short");
    return {path, (*raw)[4] == 1};
}

void firmware(Machine& m, Facts& f) {
    // No serial numbers and no UUID: they name a machine, and nothing here needs them.
    for (const char* name : {"sys_vendor", "product_name", "board_vendor", "board_name",
                             "bios_vendor", "bios_version", "bios_date"})
        f.dmi[name] = m.line(std::string("/sys/class/dmi/id/") + name);

    f.secure_boot = secureBoot(m);
    const auto lockdown = m.line("/sys/kernel/security/lockdown");
    f.lockdown =
        lockdown ? Sourced<std::string>(lockdown.path, parse::selected(*lockdown)) : lockdown;
    const auto enforce = m.line("/sys/module/module/parameters/sig_enforce");
    f.sig_enforce = enforce ? Sourced<bool>(enforce.path, *enforce == "Y" || *enforce == "1")
                            : Sourced<bool>::missing(enforce.path, enforce.unread);
}

Sourced<std::string> hypervisor(Machine& m, const Facts& f, const Sourced<std::string>& cpu) {
    auto type = m.line("/sys/hypervisor/type");
    if (type && !type->empty()) return type;
    if (!cpu) return cpu;
    if (!parse::hypervisorFlag(*cpu)) return Sourced<std::string>::missing(cpu.path, kAbsent);
    static const struct {
        const char *vendor, *name;
    } known[] = {{"QEMU", "qemu"},         {"VMware", "vmware"},
                 {"Microsoft", "hyper-v"}, {"innotek", "virtualbox"},
                 {"Xen", "xen"},           {"Amazon EC2", "ec2"},
                 {"Google", "gce"},        {"OpenStack", "openstack"}};
    const auto vendor = f.dmi.find("sys_vendor");
    if (vendor != f.dmi.end() && vendor->second)
        for (const auto& k : known)
            if (startsWith(*vendor->second, k.vendor)) return {cpu.path, k.name};
    return {cpu.path, "unknown"};
}

Sourced<std::string> container(Machine& m) {
    if (m.exists("/.dockerenv")) return {"/.dockerenv", "docker"};
    if (m.exists("/run/.containerenv")) return {"/run/.containerenv", "podman"};
    return Sourced<std::string>::missing("/.dockerenv", kAbsent);
}

void libraries(Machine& m, Facts& f) {
    std::vector<std::string> dirs = {
        "/usr/lib/x86_64-linux-gnu",  "/usr/lib64",     "/usr/lib",
        "/usr/lib/aarch64-linux-gnu", "/usr/local/lib", "/usr/lib/x86_64-linux-gnu/nvidia/current"};
    // ld.so.conf(5) of packages that bring their own folder.
    const auto confs = m.list("/etc/ld.so.conf.d");
    for (const std::string& c : confs.valueOr({})) {
        const std::string path = "/etc/ld.so.conf.d/" + c;
        const auto text = m.text(path, 65536);
        std::string kept;
        for (const std::string& l : parse::lines(text.valueOr(""))) {
            const std::string dir = parse::trim(l);
            if (!dir.empty() && dir[0] == '/' && dir.find("..") == std::string::npos) {
                dirs.push_back(dir);
                kept += dir + "\n";
            }
        }
        if (text) m.note(path, {Machine::Entry::File, kept});
    }
    std::set<std::string> seen;
    for (std::string dir : dirs) {
        // /lib is /usr/lib on all but old systems.
        if (startsWith(dir, "/lib/") && m.link("/lib")) dir = "/usr" + dir;
        while (dir.size() > 1 && dir.back() == '/') dir.pop_back();
        if (!seen.insert(dir).second) continue;
        if (m.link(dir)) continue;  // the same folder under another name
        const auto names = m.list(dir);
        for (const std::string& n : names.valueOr({})) {
            if (n.compare(0, 3, "lib") != 0) continue;
            for (const char* lib : {"libcuda.so", "libnvidia-ml.so"}) {
                const std::string v = parse::libraryVersion(n, lib);
                if (v.empty() || !m.exists(dir + "/" + n)) continue;
                f.libraries.push_back({dir + "/" + n, lib, v});
            }
        }
    }
}

Sourced<std::string> compiler(Machine& m) {
    // cc -> /etc/alternatives/cc -> /usr/bin/gcc -> gcc-12 -> x86_64-linux-gnu-gcc-12
    const std::string cc = "/usr/bin/cc";
    std::string path = cc;
    for (int i = 0; i < 8; ++i) {
        const auto target = m.link(path);
        if (!target && i == 0 && !m.exists(cc)) return Sourced<std::string>::missing(cc, kAbsent);
        if (!target) break;
        path = target->front() == '/' ? *target : path.substr(0, path.rfind('/') + 1) + *target;
    }
    const std::string name = path.substr(path.rfind('/') + 1);
    const std::size_t gcc = name.rfind("gcc");  // without the target in front of it
    return {cc, gcc == std::string::npos ? name : name.substr(gcc)};
}

Sourced<std::vector<Holder>> holders(Machine& m) {
    using Result = Sourced<std::vector<Holder>>;
    const std::string path = "/proc/*/fd";
    if (const std::string why = m.unreadReason(path); !why.empty()) {
        m.note(path, {Machine::Entry::Unread, why});
        return Result::missing(path, why);
    }
    std::vector<Holder> all;
    bool hidden = false;
    const bool recording = m.recording();
    Machine quiet(m.host(""));
    const auto pids = quiet.list("/proc");
    for (const std::string& pid : pids.valueOr({})) {
        if (!isNumber(pid)) continue;
        const std::string dir = "/proc/" + pid + "/fd";
        const auto fds = quiet.list(dir);
        if (fds.needsRoot()) hidden = true;
        Holder h;
        h.pid = std::atoi(pid.c_str());  // NOLINT(cert-err34-c): digits only, see isNumber
        std::set<std::string> devices;
        for (const std::string& fd : fds.valueOr({})) {
            const auto target = quiet.link(dir + "/" + fd);
            if (!target || !startsWith(*target, "/dev/nvidia")) continue;
            devices.insert(*target);
            if (recording) m.note(dir + "/" + fd, {Machine::Entry::Link, *target});
        }
        if (devices.empty()) continue;
        h.command = m.line("/proc/" + pid + "/comm").valueOr("");
        h.devices.assign(devices.begin(), devices.end());
        all.push_back(std::move(h));
    }
    std::sort(all.begin(), all.end(),
              [](const Holder& a, const Holder& b) { return a.pid < b.pid; });
    if (hidden) {
        // A part of the processes is worse than none: "nobody" would be a guess.
        m.note(path, {Machine::Entry::Unread, kNeedsRoot});
        return Result::missing(path, kNeedsRoot);
    }
    return {path, std::move(all)};
}

void vllmCaches(Machine& m, Facts& f) {
    std::vector<std::string> homes = {"/root"};
    Machine quiet(m.host(""));
    const auto users = quiet.list("/home");
    for (const std::string& u : users.valueOr({})) homes.push_back("/home/" + u);
    std::set<std::string> names;
    for (const std::string& home : homes) {
        const auto files = quiet.list(home + "/.cache/vllm");
        for (const std::string& n : files.valueOr({}))
            if (startsWith(n, "gpu_p2p_access_cache_for_")) names.insert(n);
    }
    for (const std::string& n : names) {
        f.vllm_caches.push_back("~/.cache/vllm/" + n);
        // Whose it is is nobody's business.
        m.note("/root/.cache/vllm/" + n, {Machine::Entry::File, ""});
    }
}

}  // namespace

void collectHost(Machine& m, Facts& f) {
    f.kernel = m.line("/proc/sys/kernel/osrelease");
    f.kernel_version = m.line("/proc/version");
    f.cmdline = m.line("/proc/cmdline");
    const auto log = m.kernelLog();
    if (log)
        f.log = {log.path, parse::kernelLog(*log)};
    else
        f.log = Sourced<std::vector<std::string>>::missing(log.path, log.unread);
    f.iommus = m.list("/sys/class/iommu");
    for (const std::string& name : f.iommus.valueOr({})) m.exists("/sys/class/iommu/" + name);

    firmware(m, f);
    // One processor tells: all are the same (the file grows with their number).
    const auto cpuinfo = m.text("/proc/cpuinfo", 4096);
    f.hypervisor = hypervisor(m, f, cpuinfo);
    const auto processor = cpuinfo ? parse::processor(*cpuinfo) : std::nullopt;
    f.processor = processor ? Sourced<Processor>(cpuinfo.path, *processor)
                            : Sourced<Processor>::missing("/proc/cpuinfo",
                                                          cpuinfo ? kAbsent : cpuinfo.unread);
    f.container = container(m);
    const auto mounts = m.text("/proc/mounts");
    f.shm_bytes = Sourced<std::uint64_t>::missing("/proc/mounts", mounts ? kAbsent : mounts.unread);
    if (mounts) {
        if (const auto limit = parse::shmLimit(*mounts)) f.shm_bytes = {"/proc/mounts", *limit};
        std::string kept;
        for (const std::string& l : parse::lines(*mounts))
            if (l.find(" /dev/shm ") != std::string::npos) kept += l + "\n";
        m.note("/proc/mounts", {Machine::Entry::File, kept});
    }
    libraries(m, f);
    f.compiler = compiler(m);
    f.holders = holders(m);
    vllmCaches(m, f);
    // What the package remembers of each kernel: kernels/RELEASE, `name=value` a line.
    const std::string state = "/var/lib/nvidia-p2p/kernels";
    const auto files = m.list(state);
    for (const std::string& n : files.valueOr({})) {
        const auto content = m.text(state + "/" + n, 4096);
        if (content && n[0] != '.') f.package_state[n] = parse::settings(*content);
    }
    f.reboot_required = m.text("/run/reboot-required.pkgs", 65536);
}

}  // namespace p2p
