// SPDX-License-Identifier: MIT
// Rules one by one: Facts and GpuRun made by hand, one change from a machine where all is well.
#include "lib/rules/rules.h"

#include <boost/test/unit_test.hpp>
#include <functional>
#include <map>
#include <set>

using namespace p2p;

namespace {

constexpr std::uint64_t kMiB = 1ULL << 20, kGiB = 1ULL << 30;
const std::string A = "0000:01:00.0", B = "0000:02:00.0";

template <class T>
Sourced<T> is(T v) {
    return {"/test", std::move(v)};
}
template <class T>
Sourced<T> none(const char* why = kAbsent) {
    return Sourced<T>::missing("/test", why);
}

Gpu gpu(const std::string& bdf) {
    Gpu g;
    g.bdf = bdf;
    g.vendor = 0x10de;
    g.device = 0x2684;
    g.name = "NVIDIA GeForce RTX 4090";
    g.upstream = {bdf == A ? "0000:00:01.0" : "0000:00:02.0"};
    g.root_bus = "0000:00";
    g.config_bytes = 4096;
    g.bar1 = is(PciRegion{1, 0x8000000000, 32 * kGiB, 0x14220c, true, true});
    g.rebar = is(std::vector<ResizableBar>{{1, 32 * kGiB, 0xffc0}});
    g.bar1_max_bytes = is(std::uint64_t{32 * kGiB});
    g.vram_bytes = is(std::uint64_t{24564 * kMiB});
    g.link = is(PcieLink{16, 16});
    g.link_max = is(PcieLink{16, 16});
    g.driver = is(std::string("nvidia"));
    g.numa_node = is(0);
    g.iommu_group = none<std::string>();
    g.iommu_type = none<std::string>();
    g.framebuffer = none<std::string>();
    g.connected = is(std::vector<std::string>{});
    g.aer = none<std::map<std::string, std::uint64_t>>();
    return g;
}

Bridge bridge(const std::string& bdf) {
    Bridge b;
    b.bdf = bdf;
    b.port = is(PortType::RootPort);
    b.acs = is(Acs{0x2a0, 0x5f, 0});
    b.link = b.link_max = is(PcieLink{16, 16});
    return b;
}

ModuleFile ko(const std::string& kernel, bool ours = true, const std::string& id = "aa") {
    ModuleFile m;
    m.path = "/lib/modules/" + kernel + "/updates/dkms/nvidia.ko";
    m.kernel = kernel;
    m.chosen = true;
    m.version = is(std::string("570.211.01"));
    m.marker = ours ? is(std::string("570.211.01+p2p1")) : none<std::string>();
    m.signer = none<std::string>();
    m.build_id = is(id);
    return m;
}

Facts good() {
    Facts f;
    f.gpus = {gpu(A), gpu(B)};
    f.bridges = {bridge("0000:00:01.0"), bridge("0000:00:02.0")};
    f.host_bridge = is(std::string("1022:14a4"));
    f.kernel = is(std::string("6.8.0"));
    f.cmdline = is(std::string("ro"));
    f.log = is(std::vector<std::string>{});
    LoadedModule l;
    l.name = "nvidia";
    l.version = "570.211.01";
    l.build_id = is(std::string("aa"));
    f.loaded = is(l);
    Kernel k;
    k.release = "6.8.0";
    k.running = k.headers = true;
    k.nvidia = {ko("6.8.0")};
    f.kernels = {k};
    f.libraries = {{"/usr/lib/libcuda.so.570.211.01", "libcuda.so", "570.211.01"}};
    f.options = {
        {"nvidia", "NVreg_EnableResizableBar", "1", "/etc/modprobe.d/nvidia-p2p.conf", 1},
        {"nvidia", "NVreg_RegistryDwords", "NvP2pBar1=1", "/etc/modprobe.d/nvidia-p2p.conf", 1}};
    f.params = is(std::map<std::string, std::string>{{"EnableResizableBar", "1"},
                                                     {"RegistryDwords", "NvP2pBar1=1"}});
    f.holders = is(std::vector<Holder>{});
    f.hypervisor = none<std::string>();
    f.container = none<std::string>();
    f.shm_bytes = none<std::uint64_t>();
    f.reboot_required = none<std::string>();
    f.secure_boot = is(false);
    f.sig_enforce = is(false);
    f.host_windows = is(std::vector<HostWindow>{{"0000:00", 0x8000000000, 256 * kGiB}});
    return f;
}

GpuRun passed() {
    GpuRun r;
    r.ran = r.cuda_asked = true;
    for (const std::string& b : {A, B}) {
        GpuInfo i;
        i.bdf = b;
        i.vram_bytes = 24564 * kMiB;
        i.in_cuda = true;
        r.gpus.push_back(i);
    }
    for (const auto& [s, d] : {std::pair{A, B}, std::pair{B, A}}) {
        PairResult p;
        p.src = s;
        p.dst = d;
        p.can_access = true;
        p.path = "pcie-bar1";
        for (const char* t : {"ce_push", "ce_pull", "sm_store", "sm_load", "handshake", "ipc"}) {
            TestResult x;
            x.test = t;
            x.outcome = Outcome::Ok;
            x.words = 1000;
            p.tests.push_back(x);
        }
        p.bandwidth_gbs = 26;
        p.limit_gbs = 28.6;
        r.pairs.push_back(p);
    }
    return r;
}

TestResult& testOf(GpuRun& r, const std::string& name) {
    for (TestResult& t : r.pairs[0].tests)
        if (t.test == name) return t;
    throw std::logic_error(name);
}

const Finding* find(const std::vector<Finding>& all, const std::string& id) {
    for (const Finding& f : all)
        if (f.id == id) return &f;
    return nullptr;
}

struct Case {
    const char* id;
    Severity severity;
    std::function<void(Facts&, GpuRun&)> change;
    bool with_run = false;
};

void set(TestResult& t, Outcome o, int code = 0) {
    t.outcome = o;
    t.cuda_error = code;
    t.bad_words = o == Outcome::Corrupt ? 1 : 0;
}

const std::vector<Case>& cases() {
    static const std::vector<Case> all = {
        {"no-gpu", Severity::Inconclusive, [](Facts& f, GpuRun&) { f.gpus.clear(); }},
        {"one-gpu", Severity::Inconclusive, [](Facts& f, GpuRun&) { f.gpus.pop_back(); }},
        {"unread", Severity::Inconclusive,
         [](Facts& f, GpuRun&) { f.bridges[0].acs = none<Acs>(kNeedsRoot); }},
        {"guest-view", Severity::Inconclusive,
         [](Facts& f, GpuRun&) { f.hypervisor = is(std::string("qemu")); }},
        {"nouveau-bound", Severity::Block,
         [](Facts& f, GpuRun&) { f.gpus[0].driver = is(std::string("nouveau")); }},
        {"vfio-bound", Severity::Info,
         [](Facts& f, GpuRun&) { f.gpus[0].driver = is(std::string("vfio-pci")); }},
        {"gpu-not-bound", Severity::Block,
         [](Facts& f, GpuRun&) { f.gpus[0].driver = none<std::string>(); }},
        {"bar1-unassigned", Severity::Block,
         [](Facts& f, GpuRun&) { f.gpus[0].bar1 = is(PciRegion{}); }},
        {"mmio-window-too-small", Severity::Block,
         [](Facts& f, GpuRun&) {
             f.gpus[0].bar1 = is(PciRegion{1, 1, 256 * kMiB, 0, true, true});
             f.host_windows = is(std::vector<HostWindow>{{"0000:00", 0x8000000000, 40 * kGiB}});
         }},
        {"rebar-off", Severity::Block,
         [](Facts& f, GpuRun&) {
             f.gpus[0].bar1 = is(PciRegion{1, 1, 256 * kMiB, 0, true, true});
         }},
        {"vbios-limits-bar1", Severity::Block,
         [](Facts& f, GpuRun&) {
             f.gpus[0].bar1 = is(PciRegion{1, 1, 256 * kMiB, 0, true, true});
             f.gpus[0].bar1_max_bytes = is(std::uint64_t{256 * kMiB});
         }},
        {"bar1-smaller-than-vram", Severity::Block,
         [](Facts& f, GpuRun&) { f.gpus[0].vram_bytes = is(std::uint64_t{49140 * kMiB}); }},
        {"iommu-translating", Severity::Block,
         [](Facts& f, GpuRun&) { f.gpus[0].iommu_type = is(std::string("DMA")); }},
        {"acs-redirect", Severity::Block,
         [](Facts& f, GpuRun&) {
             f.bridges[0].port = is(PortType::DownstreamPort);
             f.bridges[0].acs = is(Acs{0x2a0, 0x5f, 0x1d});
         }},
        {"display-attached", Severity::Block,
         [](Facts& f, GpuRun&) { f.gpus[0].framebuffer = is(std::string("fb0")); }},
        {"gpu-not-covered", Severity::Block, [](Facts& f, GpuRun&) { f.gpus[0].device = 0x2204; }},
        {"mixed-generations", Severity::Warning,
         [](Facts& f, GpuRun&) { f.gpus[0].device = 0x2204; }},
        {"link-degraded", Severity::Warning,
         [](Facts& f, GpuRun&) {
             f.bridges[0].link = is(PcieLink{16, 4});
         }},
        {"link-errors", Severity::Warning,
         [](Facts& f, GpuRun&) {
             f.gpus[0].aer = is(std::map<std::string, std::uint64_t>{{"TOTAL_ERR_COR", 1000}});
         }},
        {"link-idle-speed", Severity::Info,
         [](Facts& f, GpuRun&) {
             f.gpus[0].link = is(PcieLink{2.5, 16});
         }},
        {"crosses-sockets", Severity::Info, [](Facts& f, GpuRun&) { f.gpus[0].numa_node = is(1); }},
        {"nccl-defaults", Severity::Info,
         [](Facts& f, GpuRun&) { f.gpus.push_back(gpu("0000:03:00.0")); }},
        {"driver-library-mismatch", Severity::Block,
         [](Facts& f, GpuRun&) { f.libraries[0].version = "570.133.20"; }},
        {"module-not-loaded-yet", Severity::Reload,
         [](Facts& f, GpuRun&) { f.kernels[0].nvidia[0].build_id = is(std::string("bb")); }},
        {"options-not-applied", Severity::Reload,
         [](Facts& f, GpuRun&) {
             f.params = is(std::map<std::string, std::string>{{"EnableResizableBar", "0"},
                                                              {"RegistryDwords", ""}});
         }},
        {"module-not-ours", Severity::Block,
         [](Facts& f, GpuRun&) { f.kernels[0].nvidia = {ko("6.8.0", false)}; }},
        {"module-unknown", Severity::Inconclusive, [](Facts& f, GpuRun&) { f.kernels.clear(); }},
        {"two-modules", Severity::Warning,
         [](Facts& f, GpuRun&) { f.kernels[0].nvidia.push_back(ko("6.8.0", false, "cc")); }},
        {"no-module-for-kernel", Severity::Warning,
         [](Facts& f, GpuRun&) {
             f.kernels.emplace_back();
             f.kernels[1].release = "6.9.0";
         }},
        {"dkms-build-failed", Severity::Warning,
         [](Facts& f, GpuRun&) {
             f.dkms.push_back({"nvidia", "1", "", "", "added", "/d",
                               "gcc: error: -ftrivial-auto-var-init=zero"});
         }},
        {"compiler-mismatch", Severity::Info,
         [](Facts& f, GpuRun&) {
             f.kernel_version = is(std::string(
                 "Linux version 6.8 (b@h) (x86_64-linux-gnu-gcc-12 (Ubuntu) 12.3.0, GNU ld)"));
             f.compiler = is(std::string("gcc-11"));
         }},
        {"secure-boot-unsigned", Severity::Block,
         [](Facts& f, GpuRun&) {
             f.secure_boot = is(true);
             f.loaded = none<LoadedModule>();
         }},
        {"secure-boot-key-not-enrolled", Severity::Block,
         [](Facts& f, GpuRun&) {
             f.secure_boot = is(true);
             f.loaded = none<LoadedModule>();
             f.kernels[0].nvidia[0].signer = is(std::string("me"));
             f.log =
                 is(std::vector<std::string>{"Loading of module with unavailable key is rejected"});
         }},
        {"driver-too-old", Severity::Block,
         [](Facts& f, GpuRun&) {
             LoadedModule l = *f.loaded;
             l.version = "525.60.13";
             f.loaded = is(l);
         }},
        {"no-driver-library", Severity::Info, [](Facts& f, GpuRun&) { f.libraries.clear(); }},
        {"registry-conflict", Severity::Block,
         [](Facts& f, GpuRun&) {
             f.options.push_back(
                 {"nvidia", "NVreg_RegistryDwords", "X=1", "/etc/modprobe.d/zz.conf", 3});
         }},
        {"p2p-not-enabled", Severity::Block,
         [](Facts& f, GpuRun&) {
             f.options.pop_back();
             f.params = is(std::map<std::string, std::string>{{"EnableResizableBar", "1"},
                                                              {"RegistryDwords", ""}});
         }},
        {"risky-registry-key", Severity::Warning,
         [](Facts& f, GpuRun&) { f.options[1].value = "NvP2pBar1=1;ForceP2P=17"; }},
        {"log-iommu-fault", Severity::Warning,
         [](Facts& f, GpuRun&) {
             f.log = is(std::vector<std::string>{
                 "DMAR: [DMA Write] Request device [01:00.0] fault addr 0x1"});
         }},
        {"log-peer-misaligned", Severity::Warning,
         [](Facts& f, GpuRun&) {
             f.log = is(std::vector<std::string>{
                 "NVRM: The peer DMA address 0x6000400000 is not aligned at 0x20000000"});
         }},
        {"log-xid-31", Severity::Warning,
         [](Facts& f, GpuRun&) {
             f.log =
                 is(std::vector<std::string>{"NVRM: Xid (PCI:0000:01:00): 31, pid=1, MMU Fault"});
         }},
        {"log-gpu-lost", Severity::Warning,
         [](Facts& f, GpuRun&) {
             f.log = is(std::vector<std::string>{
                 "NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus."});
         }},
        {"log-api-mismatch", Severity::Warning,
         [](Facts& f, GpuRun&) {
             f.log = is(std::vector<std::string>{"NVRM: API mismatch: the client 'x' (pid 1)"});
         }},
        {"log-bar-invalid", Severity::Warning,
         [](Facts& f, GpuRun&) {
             f.log = is(std::vector<std::string>{"NVRM: BAR1 is 0M @ 0x0 (PCI:0000:14:00.0)"});
         }},
        {"log-signature", Severity::Warning,
         [](Facts& f, GpuRun&) {
             f.log = is(std::vector<std::string>{"Loading of unsigned module is rejected"});
         }},
        {"log-probe-not-called", Severity::Warning,
         [](Facts& f, GpuRun&) {
             f.log = is(std::vector<std::string>{
                 "NVRM: The NVIDIA probe routine was not called for 1 device(s)."});
         }},
        {"log-unread", Severity::Info,
         [](Facts& f, GpuRun&) { f.log = none<std::vector<std::string>>(kNeedsRoot); }},
        {"small-shm", Severity::Info,
         [](Facts& f, GpuRun&) { f.shm_bytes = is(std::uint64_t{64 * kMiB}); }},
        {"container", Severity::Info,
         [](Facts& f, GpuRun&) { f.container = is(std::string("docker")); }},
        {"vllm-cache", Severity::Info,
         [](Facts& f, GpuRun&) { f.vllm_caches = {"~/.cache/vllm/x.json"}; }},
        {"gpu-in-use", Severity::Info,
         [](Facts& f, GpuRun&) {
             f.holders = is(std::vector<Holder>{{7, "python3", {"/dev/nvidia0"}}});
         }},
        {"reboot-required", Severity::Info,
         [](Facts& f, GpuRun&) { f.reboot_required = is(std::string("nvidia-p2p-dkms\n")); }},

        {"data-not-delivered", Severity::WrongData,
         [](Facts&, GpuRun& r) { set(testOf(r, "ce_push"), Outcome::NotDelivered); }, true},
        {"data-zeros", Severity::WrongData,
         [](Facts&, GpuRun& r) { set(testOf(r, "sm_load"), Outcome::Zeros); }, true},
        {"data-corrupt", Severity::WrongData,
         [](Facts&, GpuRun& r) { set(testOf(r, "sm_store"), Outcome::Corrupt); }, true},
        {"handshake-wrong-data", Severity::WrongData,
         [](Facts&, GpuRun& r) { set(testOf(r, "handshake"), Outcome::Corrupt); }, true},
        {"ipc-wrong-data", Severity::WrongData,
         [](Facts&, GpuRun& r) { set(testOf(r, "ipc"), Outcome::Corrupt); }, true},
        {"handshake-timeout", Severity::Hang,
         [](Facts&, GpuRun& r) { set(testOf(r, "handshake"), Outcome::Timeout); }, true},
        {"test-timeout", Severity::Hang,
         [](Facts&, GpuRun& r) { set(testOf(r, "ce_pull"), Outcome::Timeout); }, true},
        {"device-lost", Severity::Hang,
         [](Facts&, GpuRun& r) { set(testOf(r, "ce_push"), Outcome::Refused, 719); }, true},
        {"gpu-program-hung", Severity::Hang,
         [](Facts&, GpuRun& r) {
             r = GpuRun();
             r.cuda_asked = r.timed_out = true;
         },
         true},
        {"cuda-unavailable", Severity::Inconclusive,
         [](Facts&, GpuRun& r) {
             r = GpuRun();
             r.cuda_asked = true;
             r.cuda_init = -1;
         },
         true},
        {"gpu-program-failed", Severity::Inconclusive, [](Facts&, GpuRun& r) { r.ran = false; },
         true},
        {"mapping-refused", Severity::Block,
         [](Facts&, GpuRun& r) { set(testOf(r, "ce_push"), Outcome::Refused, 205); }, true},
        {"no-access", Severity::Block,
         [](Facts&, GpuRun& r) {
             r.pairs[0].can_access = false;
             for (TestResult& t : r.pairs[0].tests) set(t, Outcome::NotRun);
         },
         true},
        {"illegal-access", Severity::Block,
         [](Facts&, GpuRun& r) { set(testOf(r, "sm_load"), Outcome::Refused, 700); }, true},
        {"test-refused", Severity::Block,
         [](Facts&, GpuRun& r) { set(testOf(r, "sm_load"), Outcome::Refused, 304); }, true},
        {"jit-missing", Severity::Inconclusive,
         [](Facts&, GpuRun& r) { set(testOf(r, "sm_load"), Outcome::Refused, 221); }, true},
        {"test-not-run", Severity::Inconclusive,
         [](Facts&, GpuRun& r) { set(testOf(r, "sm_load"), Outcome::NotRun); }, true},
        {"self-test-failed", Severity::WrongData,
         [](Facts&, GpuRun& r) {
             TestResult t;
             t.test = "self_copy";
             set(t, Outcome::Corrupt);
             r.single.push_back(t);
         },
         true},
        {"ipc-refused", Severity::Warning,
         [](Facts&, GpuRun& r) { set(testOf(r, "ipc"), Outcome::Refused, 801); }, true},
        {"bandwidth-degraded", Severity::Slow,
         [](Facts&, GpuRun& r) { r.pairs[0].bandwidth_gbs = 6; }, true},
        {"gpu-busy", Severity::Info, [](Facts&, GpuRun& r) { r.gpus[0].compute_processes = 1; },
         true},
        {"gpu-hidden", Severity::Warning, [](Facts&, GpuRun& r) { r.gpus[1].in_cuda = false; },
         true},
        {"gpu-not-started", Severity::Block, [](Facts&, GpuRun& r) { r.gpus.pop_back(); }, true},
        {"host-not-listed", Severity::Block,
         [](Facts& f, GpuRun&) {
             f.processor = is(Processor{"GenuineIntel", 6, 183});
         }},
        {"driver-refused", Severity::Block,
         [](Facts& f, GpuRun&) {
             f.log = is(std::vector<std::string>{
                 "NVRM: nvidia-p2p: GPU1: PCIe BAR1 P2P requested",
                 "NVRM: nvidia-p2p: GPU1: no BAR1 window (0x51), P2P is off"});
         }},
    };
    return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(nothing_is_found_where_all_is_well) {
    BOOST_TEST(verdictName(verdictOf(assess(good()))) == "proven");
    for (const Finding& f : assess(good())) BOOST_ERROR(f.id << ": " << f.cause);
    const GpuRun r = passed();
    for (const Finding& f : assess(good(), &r)) BOOST_ERROR(f.id << ": " << f.cause);
}

BOOST_AUTO_TEST_CASE(each_rule_sees_its_failure) {
    std::set<std::string> covered;
    for (const Case& c : cases()) {
        Facts f = good();
        GpuRun r = passed();
        c.change(f, r);
        const auto all = assess(f, c.with_run ? &r : nullptr);
        const Finding* x = find(all, c.id);
        BOOST_TEST((x != nullptr), c.id << " was not found");
        if (x) BOOST_TEST(severityName(x->severity) == std::string(severityName(c.severity)), c.id);
        covered.insert(c.id);
    }
    for (const Rule& r : rules()) BOOST_TEST(covered.count(r.id) == 1U, "no case for " << r.id);
}

BOOST_AUTO_TEST_CASE(data_that_passed_beats_a_forecast) {
    Facts f = good();
    f.gpus[0].iommu_type = is(std::string("DMA"));
    f.bridges[0].port = is(PortType::DownstreamPort);
    f.bridges[0].acs = is(Acs{0x2a0, 0x5f, 0x1d});
    GpuRun r = passed();
    auto all = assess(f, &r);
    BOOST_TEST(severityName(find(all, "iommu-translating")->severity) == std::string("warning"));
    BOOST_TEST(severityName(find(all, "acs-redirect")->severity) == std::string("warning"));
    BOOST_TEST(verdictName(verdictOf(all)) == "proven");
    // A single wrong word takes that back.
    set(testOf(r, "sm_store"), Outcome::Corrupt);
    all = assess(f, &r);
    BOOST_TEST(severityName(find(all, "iommu-translating")->severity) == std::string("block"));
    BOOST_TEST(verdictName(verdictOf(all)) == "wrong-data");
    BOOST_TEST(all.front().id == "data-corrupt");
    // And so does a kind of transfer that was not tried.
    r = passed();
    set(testOf(r, "sm_store"), Outcome::NotRun);
    all = assess(f, &r);
    BOOST_TEST(severityName(find(all, "iommu-translating")->severity) == std::string("block"));
}

BOOST_AUTO_TEST_CASE(redirect_blocks_where_it_is_a_detour) {
    Facts f = good();
    f.bridges[0].acs = f.bridges[1].acs = is(Acs{0x2a0, 0x5f, 0x1d});
    // Root ports with a GPU each, as any IOMMU sets them: only data tells.
    BOOST_TEST(verdictName(verdictOf(assess(f))) == "inconclusive");
    const GpuRun r = passed();
    BOOST_TEST(verdictName(verdictOf(assess(f, &r))) == "proven");
    // The same port above both.
    f.gpus[1].upstream = f.gpus[0].upstream;
    BOOST_TEST(verdictName(verdictOf(assess(f))) == "unavailable");
    f = good();
    f.bridges[0].port = is(PortType::DownstreamPort);
    f.bridges[0].acs = is(Acs{0x2a0, 0x5f, 0x1d});
    BOOST_TEST(verdictName(verdictOf(assess(f))) == "unavailable");
    BOOST_TEST(find(assess(f), "acs-redirect")->remedy.find("pci=disable_acs_redir=0000:00:01.0") !=
               std::string::npos);
}

BOOST_AUTO_TEST_CASE(hosts_that_the_driver_trusts) {
    const auto listed = [](const Processor& p, const char* branch) {
        Facts f = good();
        f.processor = is(p);
        f.loaded.value->version = std::string(branch) + ".99";
        f.kernels[0].nvidia[0].version = is(f.loaded->version);
        f.libraries.clear();
        return find(assess(f), "host-not-listed") == nullptr;
    };
    BOOST_TEST(listed({"AuthenticAMD", 0x17, 1}, "550"));
    BOOST_TEST(listed({"AuthenticAMD", 0x19, 1}, "550"));
    BOOST_TEST(!listed({"AuthenticAMD", 0x1a, 2}, "565"));
    BOOST_TEST(listed({"AuthenticAMD", 0x1a, 2}, "570"));
    BOOST_TEST(!listed({"AuthenticAMD", 0x15, 2}, "595"));
    BOOST_TEST(listed({"GenuineIntel", 6, 143}, "550"));
    BOOST_TEST(!listed({"GenuineIntel", 6, 207}, "595"));
    BOOST_TEST(!listed({"HygonGenuine", 0x18, 1}, "595"));

    Facts f = good();
    f.processor = is(Processor{"GenuineIntel", 6, 183});
    BOOST_TEST(verdictName(verdictOf(assess(f))) == "unavailable");
    // Vouched for, on both sides.
    f.options[1].value = (*f.params.value)["RegistryDwords"] = "NvP2pBar1=3";
    BOOST_TEST(verdictName(verdictOf(assess(f))) == "proven");
    (*f.params.value)["RegistryDwordsPerDevice"] = "pci=0000:01:00.0;NvP2pBar1=1";
    BOOST_TEST((find(assess(f), "host-not-listed") != nullptr));
    // A switch above both.
    f = good();
    f.processor = is(Processor{"GenuineIntel", 6, 183});
    Bridge up = bridge("0000:03:00.0");
    up.port = is(PortType::UpstreamPort);
    f.bridges.push_back(up);
    for (Gpu& g : f.gpus) g.upstream.push_back(up.bdf);
    BOOST_TEST((find(assess(f), "host-not-listed") == nullptr));
    // CUDA's refusal there names the same way out.
    f = good();
    GpuRun r = passed();
    for (PairResult& p : r.pairs) {
        p.can_access = false;
        p.tests.clear();
        p.path_evidence = "READ: chipset not supported";
    }
    BOOST_TEST(find(assess(f, &r), "no-access")->remedy.find("NvP2pBar1=3") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(each_gpu_is_asked_for_its_own_key) {
    const auto verdict = [](const char* all, const char* each, const char* taken_each = nullptr) {
        Facts f = good();
        f.options[1].value = (*f.params.value)["RegistryDwords"] = all;
        f.options.push_back({"nvidia", "NVreg_RegistryDwordsPerDevice", each,
                             "/etc/modprobe.d/nvidia-p2p.conf", 2});
        (*f.params.value)["RegistryDwordsPerDevice"] = taken_each ? taken_each : each;
        return verdictName(verdictOf(assess(f)));
    };
    BOOST_TEST(verdict("NvP2pBar1=1", "") == "proven");
    BOOST_TEST(verdict("NvP2pBar1=1", "pci=0000:01:00.0;NvP2pBar1=0") == "unavailable");
    BOOST_TEST(verdict("", "pci=0000:09:00.0;NvP2pBar1=1") == "unavailable");
    BOOST_TEST(verdict("", "pci=0000:01:00.0;NvP2pBar1=1;pci=0000:02:00.0;NvP2pBar1=1") ==
               "proven");
    // The file says one thing, the driver was told another.
    BOOST_TEST(verdict("NvP2pBar1=1", "", "pci=0000:01:00.0;NvP2pBar1=3") == "reload");
    Facts f = good();
    f.options[1].value = "NvP2pBar1=3";
    BOOST_TEST(verdictName(verdictOf(assess(f))) == "reload");
    // The same number in another notation is the same.
    f.options[1].value = "NvP2pBar1=0x1";
    f.options[0].value = "0x1";
    BOOST_TEST(verdictName(verdictOf(assess(f))) == "proven");
}

BOOST_AUTO_TEST_CASE(ampere_is_covered_where_it_is_asked_for) {
    const auto found = [](const char* key, const char* version) {
        Facts f = good();
        for (Gpu& g : f.gpus) g.device = 0x2204;
        f.options[1].value = (*f.params.value)["RegistryDwords"] = std::string("NvP2pBar1=") + key;
        f.loaded.value->version = version;
        f.kernels[0].nvidia[0].version = is(f.loaded->version);
        f.libraries.clear();
        const auto all = assess(f);
        const Finding* x = find(all, "gpu-not-covered");
        return x ? x->remedy : std::string();
    };
    BOOST_TEST(found("5", "580.95.05").empty());
    BOOST_TEST(found("1", "580.95.05").find("NvP2pBar1=5") != std::string::npos);
    BOOST_TEST(!found("5", "570.211.01").empty());
    BOOST_TEST(found("5", "570.211.01").find("NvP2pBar1=5") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_last_word_of_the_driver_on_a_gpu_counts) {
    Facts f = good();
    f.log = is(
        std::vector<std::string>{"NVRM: nvidia-p2p: GPU1: NvP2pBar1=0x9 is not known, left as is",
                                 "NVRM: nvidia-p2p: GPU10: PCIe BAR1 P2P requested"});
    BOOST_TEST((find(assess(f), "driver-refused") != nullptr));
    f.log.value->push_back("NVRM: nvidia-p2p: GPU1: PCIe BAR1 P2P requested");
    BOOST_TEST((find(assess(f), "driver-refused") == nullptr));
}

BOOST_AUTO_TEST_CASE(what_nvml_knows_of_the_gpus) {
    Facts f = good();
    GpuRun r = passed();
    r.cuda_asked = false;
    r.pairs.clear();
    BOOST_TEST(verdictName(verdictOf(assess(f, &r))) == "proven");
    r.nvml_init = 999;
    BOOST_TEST(verdictName(verdictOf(assess(f, &r))) == "inconclusive");
    r.nvml_init = 0;
    r.gpus.clear();
    BOOST_TEST(verdictName(verdictOf(assess(f, &r))) == "unavailable");
    f.container = is(std::string("docker"));
    BOOST_TEST(verdictName(verdictOf(assess(f, &r))) == "inconclusive");
    // NVML that is slow to start says nothing of transfers.
    f = good();
    r.timed_out = true;
    r.ran = false;
    r.error = "NVML did not return within the 30 s for all tests";
    BOOST_TEST((find(assess(f, &r), "gpu-program-hung")->severity == Severity::Inconclusive));
    r.cuda_asked = true;
    BOOST_TEST((find(assess(f, &r), "gpu-program-hung")->severity == Severity::Hang));
}

BOOST_AUTO_TEST_CASE(a_gpu_without_a_pair_proves_nothing) {
    GpuRun r = passed();
    r.gpus[1].in_cuda = false;
    BOOST_TEST(verdictName(verdictOf(assess(good(), &r))) == "proven");
    r.pairs.clear();
    BOOST_TEST(verdictName(verdictOf(assess(good(), &r))) == "inconclusive");
}

BOOST_AUTO_TEST_CASE(which_module_it_is_without_build_ids) {
    Facts f = good();
    f.loaded.value->build_id = none<std::string>();
    BOOST_TEST(verdictName(verdictOf(assess(f))) == "proven");
    f.loaded.value->version = "550.54.15";
    f.libraries.clear();
    BOOST_TEST((find(assess(f), "module-not-loaded-yet") != nullptr));
    // Two files and no modules.dep: modprobe takes none of them.
    f = good();
    f.kernels[0].nvidia[0].chosen = false;
    f.kernels[0].nvidia.push_back(ko("6.8.0", false, "cc"));
    f.kernels[0].nvidia[1].chosen = false;
    BOOST_TEST(verdictName(verdictOf(assess(f))) == "proven");
    f.loaded.value->build_id = is(std::string("cc"));
    BOOST_TEST((find(assess(f), "module-not-ours") != nullptr));
    f.loaded.value->build_id = none<std::string>();
    BOOST_TEST((find(assess(f), "module-unknown") != nullptr));
}

// Debian 11's own kernel: the driver has the option and cannot follow it.
BOOST_AUTO_TEST_CASE(an_old_kernel_is_named_where_the_driver_cannot_grow_bar1) {
    for (const auto& [kernel, old] :
         std::vector<std::pair<std::string, bool>>{{"5.10.0-46-amd64", true},
                                                   {"5.11.22", true},
                                                   {"4.19.0", true},
                                                   {"5.12.0", false},
                                                   {"5.15.0-130-generic", false},
                                                   {"6.1.0-57-amd64", false},
                                                   {"odd", false}}) {
        Facts f = good();
        f.kernel = is(kernel);
        f.gpus[0].bar1 = is(PciRegion{1, 1, 256 * kMiB, 0, true, true});
        const auto all = assess(f);
        const Finding* x = find(all, "rebar-off");
        BOOST_REQUIRE(x);
        BOOST_TEST((x->remedy.find("before 5.12") != std::string::npos) == old, kernel);
    }
}

BOOST_AUTO_TEST_CASE(nothing_unread_is_called_absent) {
    Facts f = good();
    f.gpus[0].bar1 = is(PciRegion{1, 1, 256 * kMiB, 0, true, true});
    f.gpus[0].rebar = none<std::vector<ResizableBar>>(kNeedsRoot);
    f.gpus[0].bar1_max_bytes = none<std::uint64_t>(kNeedsRoot);
    const auto all = assess(f);
    BOOST_TEST((find(all, "rebar-off") == nullptr));
    BOOST_TEST((find(all, "vbios-limits-bar1") == nullptr));
    const Finding* x = find(all, "bar1-smaller-than-vram");
    BOOST_REQUIRE(x);
    BOOST_TEST(x->cause.find("needs root") != std::string::npos);
    BOOST_TEST((find(all, "unread") != nullptr));
}

BOOST_AUTO_TEST_CASE(version_mismatch_from_the_libraries_themselves) {
    for (int way : {0, 1}) {
        GpuRun r;
        r.cuda_asked = true;
        (way ? r.cuda_init : r.nvml_init) = way ? 803 : 18;
        const auto all = assess(good(), &r);
        BOOST_TEST((find(all, "driver-library-mismatch") != nullptr));
        BOOST_TEST(verdictName(verdictOf(all)) == "unavailable");
    }
}

BOOST_AUTO_TEST_CASE(of_a_gpu_that_is_set_aside_only_that_is_said) {
    for (const char* driver : {"vfio-pci", "pci-stub"}) {
        Facts f = good();
        Gpu& g = f.gpus[1];
        g.driver = is(std::string(driver));
        g.bar1 = is(PciRegion{1, 1, 256 * kMiB, 0, true, true});
        g.bar1_max_bytes = none<std::uint64_t>(kNeedsRoot);
        g.link = is(PcieLink{2.5, 1});
        g.aer = is(std::map<std::string, std::uint64_t>{{"TOTAL_ERR_COR", 1000}});
        // Its own 256 MiB and the 32 GiB of the other fit; twice 32 GiB would not.
        f.host_windows = is(std::vector<HostWindow>{{"0000:00", 0x8000000000, 40 * kGiB}});
        f.gpus[0].bar1 = is(PciRegion{1, 1, 256 * kMiB, 0, true, true});
        const auto all = assess(f);
        for (const Finding& x : all)
            if (x.subject == B) BOOST_TEST(x.id == "vfio-bound");
        BOOST_TEST((find(all, "vfio-bound") != nullptr));
        BOOST_TEST((find(all, "one-gpu") != nullptr));
        BOOST_TEST((find(all, "unread") == nullptr));
        BOOST_TEST((find(all, "mmio-window-too-small") == nullptr));
        BOOST_TEST((find(all, "rebar-off") != nullptr));
        // With nothing in the way of the GPU that is left, one is too few to tell.
        f.gpus[0].bar1 = good().gpus[0].bar1;
        BOOST_TEST(verdictName(verdictOf(assess(f))) == "inconclusive");
    }
}
