// SPDX-License-Identifier: MIT
// PCI: BAR1, bridges, links, IOMMU, display, who has the GPU.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "lib/facts/parse.h"
#include "lib/rules/parts.h"

namespace p2p::rules_detail {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

Findings noGpu(const Facts& f, const GpuRun*) {
    if (!f.gpus.empty()) return {};
    Finding x = host("no-gpu", Severity::Inconclusive);
    x.cause = "No NVIDIA GPU is on the PCI bus of this machine.";
    x.remedy =
        "Check the power cables and the slot, and that the card is not hidden by the firmware "
        "or given to a virtual machine: lspci -d 10de:";
    const std::string seen = f.host_bridge ? "no function of vendor 10de, class 03xx"
                                           : "could not read: " + f.host_bridge.unread;
    x.evidence.push_back({"/sys/bus/pci/devices", seen});
    return {x};
}

Findings oneGpu(const Facts& f, const GpuRun*) {
    const auto usable = usableGpus(f);
    if (f.gpus.empty() || usable.size() >= 2) return {};
    Finding x = host("one-gpu", Severity::Inconclusive);
    x.cause = usable.empty() ? "No GPU is left to the nvidia driver, and peer-to-peer needs two."
                             : "Only one GPU can be used here, and peer-to-peer needs two.";
    x.remedy = f.gpus.size() > usable.size()
                   ? "Give the other GPUs back to the nvidia driver; see the findings on them."
                   : "Install a second GPU of the same generation.";
    for (const Gpu& g : f.gpus)
        x.evidence.push_back({g.driver.path, g.bdf + " " + g.driver.valueOr("no driver")});
    return {x};
}

// --- BAR1 ----------------------------------------------------------------------------------------

// What BAR1 should become, and why it is not: one finding per GPU, the most exact that can be had.
enum class Bar1State {
    Fine,
    Unassigned,
    WindowTooSmall,
    Off,
    LimitedByVbios,
    TooSmall,
    Unreadable
};

struct Bar1 {
    Bar1State state = Bar1State::Fine;
    std::uint64_t now = 0, max = 0, memory = 0, needed = 0, window = 0, window_needed = 0;
    const std::string* log = nullptr;
};

// Size that BAR1 is wanted at: the smallest offered one that holds the memory, else the largest.
std::uint64_t wantedSize(const Gpu& g, std::uint64_t needed) {
    if (!g.rebar) return 0;
    for (const ResizableBar& r : *g.rebar) {
        if (r.bar != g.bar1_number) continue;
        for (unsigned n = 0; n < 44; ++n)
            if (((r.sizes >> n) & 1) && (kMiB << n) >= needed) return kMiB << n;
        return r.maxBytes();
    }
    return 0;
}

// A line like "pci 0000:84:00.0: BAR 1 [mem size ...]: can't assign; no space" for this GPU.
const std::string* noSpaceLine(const Facts& f, const Gpu& g) {
    for (const char* words : {"no space", "failed to assign"}) {
        const std::string bar = fmt::format("BAR {}", g.bar1_number);
        if (const auto* l = logLine(f, {g.bdf.c_str(), bar.c_str(), words})) return l;
    }
    return nullptr;
}

Bar1 bar1Of(const Facts& f, const GpuRun* run, const Gpu& g) {
    Bar1 b;
    if (!g.bar1 || setAside(g)) return b;  // said by the rules on unread facts and set-aside GPUs
    b.now = g.bar1->bytes;
    b.max = g.bar1_max_bytes.valueOr(0);
    b.memory = memoryOf(g, run).valueOr(0);
    if (b.memory) b.needed = bar1Needed(b.memory, generationOf(g.device));
    b.log = noSpaceLine(f, g);

    // Sum of what the GPUs below one host bridge want, against what it hands out above 4 GiB.
    if (f.host_windows && b.max) {
        for (const HostWindow& w : *f.host_windows)
            if (w.bus == g.root_bus && w.base >= (std::uint64_t{4} << 30)) b.window += w.bytes;
        for (const Gpu& o : f.gpus) {
            if (o.root_bus != g.root_bus) continue;
            const auto memory = memoryOf(o, run).valueOr(0);
            const auto needed = memory ? bar1Needed(memory, generationOf(o.device)) : UINT64_MAX;
            // One that is set aside keeps what it has.
            const auto want = setAside(o) ? 0 : wantedSize(o, needed);
            b.window_needed += std::max(want, o.bar1 ? o.bar1->bytes : 0);
        }
    }
    const bool tooSmall = b.needed ? b.now < b.needed : b.max > b.now;
    if (b.now != 0 && !tooSmall) return b;
    const bool windowShort = b.window != 0 && b.window_needed > b.window;
    if (windowShort || (b.log && b.max > b.now))
        b.state = Bar1State::WindowTooSmall;
    else if (b.now == 0)
        b.state = Bar1State::Unassigned;
    else if (g.bar1_max_bytes && b.max >= b.needed && b.max > b.now)
        b.state = Bar1State::Off;
    else if (g.bar1_max_bytes && b.max <= 256 * kMiB)
        b.state = Bar1State::LimitedByVbios;
    else if (g.bar1_max_bytes)
        b.state = Bar1State::TooSmall;
    else
        b.state = Bar1State::Unreadable;
    return b;
}

Finding bar1Finding(const Facts& f, const GpuRun* run, const Gpu& g, const Bar1& b,
                    const char* id) {
    Finding x;
    x.id = id;
    x.severity = Severity::Block;
    x.subject = g.bdf;
    x.evidence.push_back(
        {g.bar1.path, fmt::format("BAR{} {}", g.bar1_number, b.now ? size(b.now) : "unassigned")});
    if (g.bar1_max_bytes)
        x.evidence.push_back({g.bar1_max_bytes.path, "offers up to " + size(b.max)});
    else
        x.evidence.push_back(unreadEvidence(g.bar1_max_bytes));
    const auto memory = memoryOf(g, run);
    if (memory) x.evidence.push_back({memory.path, size(*memory)});
    if (b.log) x.evidence.push_back({f.log.path, *b.log});
    return x;
}

Findings bar1Unassigned(const Facts& f, const GpuRun* run) {
    Findings all;
    for (const Gpu& g : f.gpus) {
        const Bar1 b = bar1Of(f, run, g);
        if (b.state != Bar1State::Unassigned) continue;
        Finding x = bar1Finding(f, run, g, b, "bar1-unassigned");
        x.cause =
            "The firmware and the kernel gave BAR1 no address, so the driver cannot start this "
            "GPU.";
        x.remedy = f.hypervisor
                       ? "Give the virtual machine more 64-bit MMIO space (QEMU with OVMF: -fw_cfg "
                         "name=opt/ovmf/X-PciMmio64Mb,string=262144)."
                       : "Switch \"Above 4G Decoding\" on in the firmware; if it is, boot once "
                         "with pci=realloc.";
        all.push_back(x);
    }
    return all;
}

Findings windowTooSmall(const Facts& f, const GpuRun* run) {
    Findings all;
    for (const Gpu& g : f.gpus) {
        const Bar1 b = bar1Of(f, run, g);
        if (b.state != Bar1State::WindowTooSmall) continue;
        Finding x = bar1Finding(f, run, g, b, "mmio-window-too-small");
        if (b.window) {
            x.cause = fmt::format(
                "The host bridge hands out {} above 4 GiB, and the GPUs below it need {} for BAR1 "
                "alone.",
                size(b.window), size(b.window_needed));
            x.evidence.push_back({f.host_windows.path, fmt::format("PCI Bus {}: {} above 4 GiB",
                                                                   g.root_bus, size(b.window))});
        } else {
            x.cause =
                "The kernel found no space below the host bridge for a BAR1 of the size that this "
                "GPU offers.";
        }
        x.remedy =
            "Raise \"MMIO High Size\" (also: MMIOH Size, MMIO High Base) in the firmware, or boot "
            "once with pci=realloc; with many GPUs use fewer below one host bridge.";
        all.push_back(x);
    }
    return all;
}

// Can a driver ask which sizes BAR1 offers?  pci_rebar_get_possible_sizes() is exported from 5.12.
bool kernelLetsDriversGrow(const Facts& f) {
    if (!f.kernel) return true;
    char* end = nullptr;
    const long major = std::strtol(f.kernel->c_str(), &end, 10);
    if (*end != '.') return true;
    return major > 5 || (major == 5 && std::strtol(end + 1, nullptr, 10) >= 12);
}

Findings rebarOff(const Facts& f, const GpuRun* run) {
    Findings all;
    for (const Gpu& g : f.gpus) {
        const Bar1 b = bar1Of(f, run, g);
        if (b.state != Bar1State::Off) continue;
        Finding x = bar1Finding(f, run, g, b, "rebar-off");
        x.cause = fmt::format("BAR1 is {} although this GPU offers {}.", size(b.now), size(b.max));
        // The driver can grow BAR1 by itself, when it may.
        const ModprobeOption* option = f.option("NVreg_EnableResizableBar");
        const bool asked = option && option->value == "1";
        std::string taken;
        if (f.params) {
            auto it = f.params->find("EnableResizableBar");
            if (it != f.params->end()) {
                taken = it->second;
                x.evidence.push_back({f.params.path, "EnableResizableBar: " + taken});
            }
        }
        if (!kernelLetsDriversGrow(f)) {
            x.remedy =
                "Linux before 5.12 does not let the driver grow it: install a newer kernel, or "
                "switch \"Re-Size BAR\" and \"Above 4G Decoding\" on and CSM off in the firmware.";
            x.evidence.push_back({f.kernel.path, *f.kernel});
        } else if (!asked)
            x.remedy =
                "Let the driver grow it: p2p-bar1 enable, then reboot; if it stays small, switch "
                "\"Re-Size "
                "BAR\" and \"Above 4G Decoding\" on and CSM off in the firmware.";
        else if (taken == "0" || !f.loaded)
            x.remedy = "The option to grow it is set but not in force yet: reboot.";
        else
            x.remedy =
                "Switch \"Re-Size BAR\" and \"Above 4G Decoding\" on and CSM off in the firmware; "
                "update the "
                "firmware if it has no such setting.";
        all.push_back(x);
    }
    return all;
}

Findings vbiosLimit(const Facts& f, const GpuRun* run) {
    Findings all;
    for (const Gpu& g : f.gpus) {
        const Bar1 b = bar1Of(f, run, g);
        if (b.state != Bar1State::LimitedByVbios || f.hypervisor) continue;
        Finding x = bar1Finding(f, run, g, b, "vbios-limits-bar1");
        x.cause = fmt::format(
            "The card's own firmware offers no BAR1 above {}: the machine's setting cannot change "
            "that.",
            size(b.max));
        x.remedy =
            "Install the card vendor's VBIOS update for Resizable BAR; it must match the board "
            "revision.";
        all.push_back(x);
    }
    return all;
}

Findings bar1Smaller(const Facts& f, const GpuRun* run) {
    Findings all;
    for (const Gpu& g : f.gpus) {
        const Bar1 b = bar1Of(f, run, g);
        const bool guestLimit = b.state == Bar1State::LimitedByVbios && f.hypervisor;
        if (b.state != Bar1State::TooSmall && b.state != Bar1State::Unreadable && !guestLimit)
            continue;
        if (!b.memory && b.now > 256 * kMiB) continue;
        Finding x = bar1Finding(f, run, g, b, "bar1-smaller-than-vram");
        std::string need = b.memory ? size(b.memory) + " of memory" : "the card's memory";
        if (b.memory && b.needed > b.memory)
            need += fmt::format(" and the {} that the driver keeps for itself",
                                size(b.needed - b.memory));
        x.cause = fmt::format("BAR1 is {}, which cannot hold {}.", size(b.now), need);
        if (b.state == Bar1State::TooSmall) {
            x.remedy =
                "This card offers no larger BAR1, and mapping a part of the memory is not "
                "supported: use "
                "cards with less memory or a larger BAR1.";
        } else if (g.bar1_max_bytes.needsRoot()) {
            x.cause += "  What the card offers could not be read: needs root.";
            x.remedy = "Run it again as root to learn whether Resizable BAR is off or missing.";
        } else if (f.hypervisor) {
            x.remedy =
                "The guest does not see Resizable BAR: grow BAR1 on the host before the guest "
                "starts.";
        } else {
            x.remedy =
                "The card shows no Resizable BAR capability: switch \"Re-Size BAR\" and \"Above 4G "
                "Decoding\" on, "
                "update the firmware and the card's VBIOS.";
        }
        all.push_back(x);
    }
    return all;
}

// --- drivers
// ---------------------------------------------------------------------------------------

Findings nouveauBound(const Facts& f, const GpuRun*) {
    Findings all;
    for (const Gpu& g : f.gpus) {
        if (!g.driver ||
            (*g.driver != "nouveau" && *g.driver != "nova_core" && *g.driver != "NovaCore"))
            continue;
        Finding x;
        x.id = "nouveau-bound";
        x.severity = Severity::Block;
        x.subject = g.bdf;
        x.cause = "The kernel's own driver " + *g.driver + " holds this GPU, so NVIDIA's cannot.";
        x.remedy = "Reinstall nvidia-p2p-dkms, which blocks it, or add \"blacklist " + *g.driver +
                   "\" to /etc/modprobe.d; then update-initramfs -u and reboot.";
        x.evidence.push_back({g.driver.path, *g.driver});
        all.push_back(x);
    }
    return all;
}

Findings vfioBound(const Facts& f, const GpuRun*) {
    Findings all;
    for (const Gpu& g : f.gpus) {
        if (!setAside(g)) continue;
        Finding x;
        x.id = "vfio-bound";
        x.severity = Severity::Info;
        x.subject = g.bdf;
        x.cause = "This GPU is set aside for a virtual machine by " + *g.driver +
                  " and is left out here.";
        x.remedy =
            "Nothing to do if that is meant; else take it out of vfio-pci's ids= option and "
            "reboot.";
        x.evidence.push_back({g.driver.path, *g.driver});
        all.push_back(x);
    }
    return all;
}

Findings gpuNotBound(const Facts& f, const GpuRun*) {
    Findings all;
    if (!f.loaded) return all;  // another rule's matter
    for (const Gpu& g : f.gpus) {
        if (g.driver || g.driver.unread != kAbsent || (g.bar1 && g.bar1->bytes == 0)) continue;
        Finding x;
        x.id = "gpu-not-bound";
        x.severity = Severity::Block;
        x.subject = g.bdf;
        x.cause = "The nvidia driver is loaded but did not take this GPU.";
        x.remedy = "Read the driver's reason in the kernel log: dmesg | grep NVRM";
        x.evidence.push_back({g.driver.path, "no driver"});
        if (const auto* l = logLine(f, {"NVRM", g.bdf.c_str()}))
            x.evidence.push_back({f.log.path, *l});
        all.push_back(x);
    }
    return all;
}

// --- on the way
// ------------------------------------------------------------------------------------

Findings iommuTranslating(const Facts& f, const GpuRun*) {
    Findings all;
    for (const Gpu* g : usableGpus(f)) {
        if (!g->iommu_type || g->iommu_type->compare(0, 3, "DMA") != 0) continue;
        Finding x;
        x.id = "iommu-translating";
        x.severity = Severity::Block;
        x.subject = g->bdf;
        const std::string cmdline = f.cmdline.valueOr("");
        const bool asked = cmdline.find("iommu=pt") != std::string::npos ||
                           cmdline.find("iommu.passthrough=1") != std::string::npos;
        x.cause = "The IOMMU translates this GPU's transfers (domain type " + *g->iommu_type +
                  "); peers then read zeros or get wrong data on many machines.";
        x.remedy = asked ? "iommu=pt is on the command line but not in force for this group: "
                           "switch the IOMMU off in "
                           "the firmware, or use intel_iommu=off or amd_iommu=off, and reboot."
                         : "Add iommu=pt to the kernel command line and reboot; if transfers still "
                           "fail, switch the "
                           "IOMMU (VT-d, AMD-Vi) off in the firmware.";
        x.evidence.push_back({g->iommu_type.path, *g->iommu_type});
        if (f.cmdline) x.evidence.push_back({f.cmdline.path, cmdline});
        all.push_back(x);
    }
    return all;
}

Findings acsRedirect(const Facts& f, const GpuRun*) {
    const auto usable = usableGpus(f);
    if (usable.size() < 2) return {};
    // A port above several GPUs is named once.
    std::map<std::string, std::vector<std::string>> below;
    for (const Gpu* g : usable)
        for (const std::string& up : g->upstream) {
            const Bridge* b = f.bridge(up);
            if (b && b->acs && b->acs->redirects()) below[up].push_back(g->bdf);
        }
    Findings all;
    for (const auto& [bdf, gpus] : below) {
        const Bridge* b = f.bridge(bdf);
        // Between root ports with one GPU each the traffic goes through the root complex anyway;
        // the kernel sets redirect on all of them where an IOMMU is on, in passthrough too.  Hosts
        // where it works and hosts where collectives hang look alike.
        const bool detour = gpus.size() > 1 || !b->port || *b->port != PortType::RootPort;
        Finding x;
        x.id = "acs-redirect";
        x.severity = detour ? Severity::Block : Severity::Inconclusive;
        x.subject = bdf;
        x.cause =
            detour ? fmt::format(
                         "This {} sends peer traffic of {} up to the root complex (ACS redirect): "
                         "slow at best, and collectives can hang.",
                         b->port ? portTypeName(*b->port) : "bridge", fmt::join(gpus, ", "))
                   : fmt::format(
                         "ACS redirect is on at the root port of {}, as the kernel sets it with "
                         "any IOMMU: on some hosts nothing comes of it, on others collectives "
                         "hang.",
                         fmt::join(gpus, ", "));
        const std::string off = fmt::format(
            "for good with pci=disable_acs_redir={} on the kernel command line, or until the next "
            "boot with setpci -s {} ECAP_ACS+6.w={:04x}",
            bdf, bdf, b->acs->control & ~0x0c);
        x.remedy = detour ? fmt::format("Switch ACS off in the firmware; or {}.", off)
                          : fmt::format(
                                "p2p-verify --level data tells.  If it fails, switch it off "
                                "(several ports: BDF;BDF): {}.",
                                off);
        x.evidence.push_back(
            {b->acs.path,
             fmt::format("control {:#06x}: P2P Request Redirect {}, Completion Redirect {}",
                         b->acs->control, b->acs->control & 4 ? "on" : "off",
                         b->acs->control & 8 ? "on" : "off")});
        all.push_back(x);
    }
    return all;
}

Findings linkDegraded(const Facts& f, const GpuRun*) {
    Findings all;
    for (const Gpu& g : f.gpus) {
        if (setAside(g)) continue;
        // Width, and what the port above can do at all.  Speed at rest says nothing.
        const int most = g.link_max ? g.link_max->width : 0;
        if (most == 0) continue;
        std::string where = g.bdf, path = g.link.path;
        int least = g.link && g.link->width ? g.link->width : most;
        for (const std::string& up : g.upstream) {
            const Bridge* b = f.bridge(up);
            if (!b || !b->link || b->link->width == 0 || b->link->width >= least) continue;
            least = b->link->width;
            where = up;
            path = b->link.path;
        }
        if (least >= most) continue;
        Finding x;
        x.id = "link-degraded";
        x.severity = Severity::Warning;
        x.subject = g.bdf;
        x.cause = fmt::format(
            "The way to this GPU is x{} at {}, and the card could use x{}: transfers are that much "
            "slower.",
            least, where, most);
        x.remedy =
            "Use a slot with all lanes wired to the processor; check riser, bifurcation and M.2 "
            "sharing.";
        x.evidence.push_back({path, fmt::format("x{}", least)});
        x.evidence.push_back({g.link_max.path, fmt::format("x{}", most)});
        all.push_back(x);
    }
    return all;
}

Findings linkIdle(const Facts& f, const GpuRun*) {
    Findings all;
    for (const Gpu& g : f.gpus) {
        if (setAside(g)) continue;
        if (!g.link || !g.link_max || g.link->gts <= 0 || g.link->gts >= g.link_max->gts) continue;
        Finding x;
        x.id = "link-idle-speed";
        x.severity = Severity::Info;
        x.subject = g.bdf;
        x.cause = fmt::format(
            "The link runs at {} of {} GT/s at this moment: normal for an idle GPU, and only a "
            "measurement under "
            "load tells more.",
            g.link->gts, g.link_max->gts);
        x.remedy = "Nothing to do; p2p-bench measures under load.";
        x.evidence.push_back({g.link.path, fmt::format("{} GT/s", g.link->gts)});
        all.push_back(x);
    }
    return all;
}

Findings linkErrors(const Facts& f, const GpuRun*) {
    Findings all;
    for (const Gpu& g : f.gpus) {
        if (setAside(g)) continue;
        if (!g.aer) continue;
        auto total = g.aer->find("TOTAL_ERR_COR");
        // A few at power-up are usual.
        if (total == g.aer->end() || total->second < 100) continue;
        Finding x;
        x.id = "link-errors";
        x.severity = Severity::Warning;
        x.subject = g.bdf;
        x.cause = fmt::format(
            "The link of this GPU had {} corrected errors since boot: each costs a retransmission.",
            total->second);
        x.remedy =
            "Reseat the card and replace the riser; lowering the slot to PCIe Gen 3 in the "
            "firmware is a test.";
        x.evidence.push_back({g.aer.path, fmt::format("TOTAL_ERR_COR {}", total->second)});
        all.push_back(x);
    }
    return all;
}

Findings displayAttached(const Facts& f, const GpuRun* run) {
    Findings all;
    // 570 and 575 put the peer window behind the console's memory, off the 512 MiB grid that
    // peers need, and refuse; 580 aligns it again, 565 and older keep it at 0.
    const int major = driverMajor(f);
    const bool refused = major >= 570 && major < 580;
    for (const Gpu* g : usableGpus(f)) {
        bool active = false;
        if (run)
            for (const GpuInfo& i : run->gpus)
                active = active || (i.bdf == g->bdf && i.display_active.value_or(false));
        const bool monitor = g->connected && !g->connected->empty();
        if (!active && !monitor && !g->framebuffer) continue;
        Finding x;
        x.id = "display-attached";
        x.severity = refused ? Severity::Block : Severity::Warning;
        x.subject = g->bdf;
        x.cause = refused ? fmt::format(
                                "A console or desktop uses this GPU, and driver branch {} then "
                                "refuses peer-to-peer for it.",
                                major)
                          : "A console or desktop uses this GPU, which takes a part of the memory "
                            "that peers map.";
        x.remedy =
            "Move the monitor to another card or the processor's graphics, or use a headless "
            "setup.";
        if (active) x.evidence.push_back({"NVML display active", "yes"});
        if (monitor)
            x.evidence.push_back(
                {g->connected.path, fmt::format("{} connected", fmt::join(*g->connected, ", "))});
        if (g->framebuffer) x.evidence.push_back({g->framebuffer.path, *g->framebuffer});
        all.push_back(x);
    }
    return all;
}

// --- what is there at all
// --------------------------------------------------------------------------

Findings guestView(const Facts& f, const GpuRun*) {
    if (!f.hypervisor || f.gpus.empty()) return {};
    Finding x = host("guest-view", Severity::Inconclusive);
    x.cause =
        "This is a virtual machine: bridges, ACS and the IOMMU of the real one are out of sight, "
        "and the driver does not "
        "know a guest's host bridge as one that carries peer traffic.";
    x.remedy =
        "Run p2p-verify --level env on the host, and --level data here: only data tells.  Where "
        "the guest config sets "
        "x-nv-gpudirect-clique, be suspicious of copies that pass.";
    x.evidence.push_back({f.hypervisor.path, *f.hypervisor});
    if (f.host_bridge) x.evidence.push_back({f.host_bridge.path, *f.host_bridge});
    return {x};
}

Findings mixedGpus(const Facts& f, const GpuRun*) {
    const auto usable = usableGpus(f);
    std::map<Generation, std::vector<std::string>> by;
    for (const Gpu* g : usable) by[generationOf(g->device)].push_back(g->bdf);
    if (by.size() < 2) return {};
    Finding x = host("mixed-generations", Severity::Warning);
    x.cause =
        "GPUs of different generations are mixed; CUDA gives no peer access between generations.";
    x.remedy =
        "Expect peer-to-peer inside each group only, and set CUDA_VISIBLE_DEVICES to one group.";
    for (const auto& [g, bdfs] : by)
        x.evidence.push_back(
            {"PCI device ids", fmt::format("{}: {}", generationName(g), fmt::join(bdfs, ", "))});
    return {x};
}

Findings unsupportedGpu(const Facts& f, const GpuRun*) {
    Findings all;
    if (!oursInstalled(f) && !oursLoaded(f)) return all;
    const int major = driverMajor(f);
    for (const Gpu* g : usableGpus(f)) {
        const Generation gen = generationOf(g->device);
        if (covered(gen, keyInForce(f, g->bdf), major)) continue;
        Finding x;
        x.id = "gpu-not-covered";
        x.severity = gen == Generation::Hopper || gen == Generation::Blackwell ? Severity::Info
                                                                               : Severity::Block;
        x.subject = g->bdf;
        x.cause = fmt::format(
            "{} is {}; this driver's change covers Ada{}, and treats other GPUs as NVIDIA's "
            "does.",
            g->name, generationName(gen),
            gen == Generation::Ampere ? ", and Ampere where it is asked for from branch 580 on"
                                      : " only");
        x.remedy = "Use Ada cards, or rely on what NVIDIA's driver does for this one.";
        if (gen == Generation::Ampere && major >= 580)
            x.remedy =
                "NvP2pBar1=5 in NVreg_RegistryDwords takes Ampere boards too (not tried on "
                "hardware); then reboot and p2p-verify --level data.";
        x.evidence.push_back(
            {"/sys/bus/pci/devices/" + g->bdf + "/device", fmt::format("{:#06x}", g->device)});
        all.push_back(x);
    }
    return all;
}

Findings hostNotListed(const Facts& f, const GpuRun*) {
    const auto listed = hostListed(f);
    if (!listed || *listed || (!oursInstalled(f) && !oursLoaded(f))) return {};
    const int major = driverMajor(f);
    std::vector<std::string> pairs;
    const auto usable = usableGpus(f);
    const auto asks = [&](const Gpu& g) {
        const std::string key = keyInForce(f, g.bdf);
        return parse::keyEnables(key) && covered(generationOf(g.device), key, major);
    };
    const auto trusts = [&](const Gpu& g) {
        return (parse::dword(keyInForce(f, g.bdf)).value_or(0) & 2) != 0;
    };
    for (std::size_t a = 0; a < usable.size(); ++a)
        for (std::size_t b = a + 1; b < usable.size(); ++b) {
            const Gpu &x = *usable[a], &y = *usable[b];
            if (!asks(x) || !asks(y) || (trusts(x) && trusts(y))) continue;
            if (!belowOneSwitch(f, x, y)) pairs.push_back(x.bdf + "-" + y.bdf);
        }
    if (pairs.empty()) return {};
    Finding x = host("host-not-listed", Severity::Block);
    x.cause = fmt::format(
        "The driver does not know this processor as one that forwards reads between its PCIe root "
        "ports, and then gives {} {} no peer access.",
        pairs.size(), pairs.size() == 1 ? "pair" : "pairs");
    x.remedy =
        "Put the GPUs below one PCIe switch; or vouch for the host: NvP2pBar1=3 in place of =1 in "
        "NVreg_RegistryDwords, reboot, and believe nothing but p2p-verify --level data.";
    x.evidence.push_back(
        {f.processor.path, fmt::format("{} family {} model {}", f.processor->vendor,
                                       f.processor->family, f.processor->model)});
    x.evidence.push_back(
        {"pairs without a common switch", fmt::format("{}", fmt::join(pairs, ", "))});
    return {x};
}

// The driver's own refusals; the last word on each GPU counts, as it may have been loaded again.
Findings driverRefused(const Facts& f, const GpuRun*) {
    if (!f.log) return {};
    std::map<std::string, std::string> last;
    for (const std::string& line : *f.log) {
        const std::size_t at = line.find("nvidia-p2p: GPU");
        if (at == std::string::npos) continue;
        const std::size_t name = at + std::string("nvidia-p2p: ").size();
        last[line.substr(name, line.find(':', name) - name)] = line;
    }
    Findings all;
    for (const auto& [gpu, line] : last) {
        const bool window = line.find("no BAR1 window") != std::string::npos;
        const bool value = line.find("is not known") != std::string::npos;
        if (!window && !value && line.find("not eligible") == std::string::npos) continue;
        Finding x = host("driver-refused", Severity::Block);
        x.cause = window ? "The driver could not make the BAR1 window of " + gpu +
                               ", so this GPU has no peer-to-peer."
                  : value
                      ? "The driver does not know the value of NvP2pBar1 that it was given for " +
                            gpu + ", and left this GPU as it is."
                      : "The driver does not take " + gpu +
                            " (another generation, a virtual function, SR-IOV or SLI), and left "
                            "it as it is.";
        x.remedy = window  ? "See the findings on BAR1 and on a display; without any, report this "
                             "line with the output of p2p-verify gather."
                   : value ? "p2p-bar1 enable, then reboot."
                           : "See gpu-not-covered; switch SR-IOV and SLI off.";
        x.evidence.push_back({f.log.path, line});
        all.push_back(x);
    }
    return all;
}

Findings crossesSockets(const Facts& f, const GpuRun*) {
    std::set<int> nodes;
    for (const Gpu* g : usableGpus(f))
        if (g->numa_node && *g->numa_node >= 0) nodes.insert(*g->numa_node);
    if (nodes.size() < 2) return {};
    Finding x = host("crosses-sockets", Severity::Info);
    x.cause =
        "The GPUs hang on several NUMA nodes: pairs across them go over the link between "
        "processors, which is slower and on "
        "some machines does not carry peer traffic.";
    x.remedy =
        "Put GPUs that talk most on one processor; test the pairs with p2p-verify --level data.";
    for (const Gpu* g : usableGpus(f))
        if (g->numa_node) x.evidence.push_back({g->numa_node.path, std::to_string(*g->numa_node)});
    return {x};
}

Findings manyGpus(const Facts& f, const GpuRun*) {
    const std::size_t n = usableGpus(f).size();
    if (n <= 2) return {};
    Finding x = host("nccl-defaults", Severity::Info);
    x.cause = fmt::format(
        "With {} GPUs on PCIe NCCL by default uses P2P only below a common switch, and vLLM "
        "switches its own "
        "all-reduce off: neither is a fault of the driver.",
        n);
    x.remedy = "Once p2p-verify --level data passes: export NCCL_P2P_LEVEL=SYS";
    x.evidence.push_back({"/sys/bus/pci/devices", fmt::format("{} usable GPUs", n)});
    return {x};
}

Findings unreadFacts(const Facts& f, const GpuRun*) {
    if (f.gpus.empty()) return {};
    std::set<std::string> rooted, odd;
    std::vector<Evidence> evidence;
    const auto note = [&](const auto& fact, const std::string& what) {
        if (fact || fact.unread == kAbsent || fact.unread.empty()) return;
        (fact.needsRoot() ? rooted : odd).insert(what);
        evidence.push_back(unreadEvidence(fact));
    };
    for (const Gpu& g : f.gpus) {
        if (setAside(g)) continue;
        note(g.bar1, "BAR1");
        // Only where the answer would matter.
        const auto memory = g.vram_bytes.valueOr(0);
        if (g.bar1 && (memory == 0 || g.bar1->bytes < memory))
            note(g.bar1_max_bytes, "Resizable BAR");
        if (g.iommu_group) note(g.iommu_type, "IOMMU group type");
    }
    if (usableGpus(f).size() >= 2)
        for (const Bridge& b : f.bridges) note(b.acs, "ACS of the bridges");
    if (f.loaded) note(f.loaded->build_id, "build-id of the loaded module");
    if (evidence.empty()) return {};
    Finding x = host("unread", Severity::Inconclusive);
    const auto& shown = rooted.empty() ? odd : rooted;
    x.cause = fmt::format("Could not read {}: {}.", fmt::join(shown, ", "),
                          rooted.empty() ? "see the evidence" : "needs root");
    x.remedy = rooted.empty() ? "Without the extended configuration space of a PCIe machine "
                                "(firmware table MCFG) the question stays "
                                "open; p2p-verify --level data answers it by doing."
                              : "Run it again as root: sudo p2p-verify --level env";
    x.evidence = std::move(evidence);
    return {x};
}

}  // namespace

std::vector<Rule> busRules() {
    return {
        {"no-gpu", "no NVIDIA GPU on the bus", "PCI ids", noGpu, "", false},
        {"one-gpu", "fewer than two usable GPUs", "PCI ids, driver links", oneGpu, "", false},
        {"unread", "facts that this user cannot read", "all of them", unreadFacts, "", true},
        {"guest-view", "a virtual machine's view", "/proc/cpuinfo, host bridge", guestView,
         "noonghunna/club-3090 PCIE_P2P 4a, NVIDIA/nccl#2335", true},
        {"nouveau-bound", "the kernel's own driver holds the GPU", "driver link", nouveauBound,
         "MrMEEE/ironhide#41, negativo17/nvidia-driver#73", false},
        {"vfio-bound", "GPU set aside for a guest", "driver link", vfioBound,
         "forum.proxmox.com 178461", false},
        {"gpu-not-bound", "driver loaded, GPU not taken", "driver link, kernel log", gpuNotBound,
         "NVIDIA/gpu-operator#492", false},
        {"bar1-unassigned", "BAR1 without an address", "sysfs resource", bar1Unassigned,
         "NVIDIA/gpu-operator#492, ublue-os/bazzite#2612", false},
        {"mmio-window-too-small", "no room for a large BAR1",
         "/proc/iomem, kernel log, Resizable BAR", windowTooSmall,
         "aikitoria/open-gpu-kernel-modules#9", true},
        {"rebar-off", "Resizable BAR offered but not used",
         "Resizable BAR capability, sysfs resource", rebarOff,
         "tinygrad/open-gpu-kernel-modules#13, #16, #19, #5; aikitoria/open-gpu-kernel-modules#22, "
         "#7",
         true},
        {"vbios-limits-bar1", "card firmware without a large BAR1", "Resizable BAR capability",
         vbiosLimit, "noonghunna/club-3090#734", true},
        {"bar1-smaller-than-vram", "BAR1 cannot hold the memory",
         "sysfs resource, NVML or device id", bar1Smaller,
         "aikitoria/open-gpu-kernel-modules#14, #2; tinygrad/open-gpu-kernel-modules#36", true},
        {"iommu-translating", "IOMMU translates transfers", "iommu_group/type, command line",
         iommuTranslating,
         "tinygrad/open-gpu-kernel-modules#18, pytorch/pytorch#84803, "
         "NVIDIA/open-gpu-kernel-modules#1257, NVIDIA/cuda-samples#48, "
         "aikitoria/open-gpu-kernel-modules#8",
         true},
        {"acs-redirect", "bridges that redirect peer traffic",
         "ACS capability of every bridge above a GPU", acsRedirect,
         "NVIDIA/nccl#2079, #304, #606, #523; aikitoria/open-gpu-kernel-modules#6", true},
        {"display-attached", "GPU with console or desktop",
         "DRM connectors, fb0, /proc/iomem, NVML", displayAttached,
         "aikitoria/open-gpu-kernel-modules#11", true},
        {"gpu-not-covered", "GPU outside the driver's change", "PCI device id", unsupportedGpu,
         "tinygrad/open-gpu-kernel-modules#44, #29", true},
        {"host-not-listed", "processor that the driver does not trust to forward reads",
         "/proc/cpuinfo, bridges, NvP2pBar1", hostNotListed, "docs/driver.md H2", true},
        {"driver-refused", "the driver's own no", "kernel log", driverRefused, "", true},
        {"mixed-generations", "GPUs of different generations", "PCI device ids", mixedGpus,
         "tinygrad/open-gpu-kernel-modules#28, aikitoria/open-gpu-kernel-modules#40", false},
        {"link-degraded", "fewer lanes than the card has", "link width on the whole way",
         linkDegraded,
         "aikitoria/open-gpu-kernel-modules#6, tinygrad/open-gpu-kernel-modules#26, #44", false},
        {"link-errors", "corrected link errors", "aer_dev_correctable", linkErrors,
         "noonghunna/club-3090 PCIE_P2P 1", false},
        {"link-idle-speed", "link speed at rest", "current_link_speed", linkIdle,
         "NVIDIA/nccl#1614, tinygrad/open-gpu-kernel-modules#6, janhq/jan#183", false},
        {"crosses-sockets", "GPUs on several NUMA nodes", "numa_node", crossesSockets,
         "aikitoria/open-gpu-kernel-modules#6", false},
        {"nccl-defaults", "more than two GPUs", "PCI ids", manyGpus,
         "NVIDIA/nccl#896, #1358; NVIDIA/nccl-tests#307; vllm-project/vllm#4770", false},
    };
}

}  // namespace p2p::rules_detail
