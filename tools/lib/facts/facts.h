// SPDX-License-Identifier: MIT
// Facts: what a machine says about itself, as plain data.  Filled by collect() from the live system
// or from a snapshot; rules and reports read nothing else.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace p2p {

// Why a value is missing.  Other texts are the system's own words (strerror).
inline constexpr const char* kAbsent = "absent";         // not there: the honest "no"
inline constexpr const char* kNeedsRoot = "needs root";  // there, but not for this user

// A value, where it comes from, and when there is none: why.  Paths are as on the machine that was
// looked at, without the prefix of --root, so that a live run and its snapshot say the same.
template <class T>
struct Sourced {
    std::optional<T> value;
    std::string path;    // file, register or query
    std::string unread;  // empty when value holds something

    Sourced() = default;
    Sourced(std::string from, T v) : value(std::move(v)), path(std::move(from)) {}
    // NOLINTNEXTLINE(performance-unnecessary-value-param): both are moved from
    static Sourced missing(std::string from, std::string why) {
        Sourced s;
        s.path = std::move(from);
        s.unread = std::move(why);
        return s;
    }
    explicit operator bool() const { return value.has_value(); }
    const T& operator*() const { return *value; }
    const T* operator->() const { return &*value; }
    T valueOr(T fallback) const { return value ? *value : std::move(fallback); }
    bool needsRoot() const { return !value && unread == kNeedsRoot; }
};

// One line of /sys/bus/pci/devices/BDF/resource: a base address register as the kernel placed it.
struct PciRegion {
    int bar = 0;              // number as in the PCI header, 0..5
    std::uint64_t start = 0;  // CPU physical address; 0 if unassigned
    std::uint64_t bytes = 0;  // 0 if unassigned or unused
    std::uint64_t flags = 0;  // IORESOURCE_* of include/linux/ioport.h
    bool is64 = false;
    bool prefetchable = false;
};

// One entry of a Resizable BAR capability (PCIe 6.0, 7.8.6).
struct ResizableBar {
    int bar = 0;
    std::uint64_t current_bytes = 0;
    std::uint64_t sizes = 0;         // bit n set: 2^(20+n) bytes is supported
    std::uint64_t maxBytes() const;  // largest supported size, 0 if none
};

// Access Control Services (PCIe 6.0, 7.7.11).
struct Acs {
    std::uint16_t offset = 0;  // of the capability in configuration space
    std::uint16_t capability = 0;
    std::uint16_t control = 0;
    // P2P Request Redirect or P2P Completion Redirect is on: peer traffic detours upstream.
    bool redirects() const { return (control & 0x0c) != 0; }
};

struct PcieLink {
    double gts = 0;  // GT/s per lane: 2.5, 5, 8, 16, 32, 64; 0 if unknown
    int width = 0;   // lanes; 0 if unknown
};

// Memory window of a bridge (PCI-to-PCI Bridge 1.2, 3.2.5).
struct BridgeWindow {
    std::uint64_t base = 0;
    std::uint64_t bytes = 0;  // 0: closed
};

// PCI Express Capabilities register, Device/Port Type (PCIe 6.0, 7.5.3.2).
enum class PortType {
    Unknown,
    Endpoint,
    LegacyEndpoint,
    RootPort,
    UpstreamPort,
    DownstreamPort,
    Bridge
};
const char* portTypeName(PortType t);

// A bridge above a GPU.
struct Bridge {
    std::string bdf;
    std::uint16_t vendor = 0, device = 0;
    std::string name;  // from pci.ids, or "VVVV:DDDD"
    Sourced<PortType> port;
    Sourced<Acs> acs;
    Sourced<PcieLink> link, link_max;
    Sourced<int> max_payload;               // bytes, as programmed
    Sourced<BridgeWindow> prefetch_window;  // 64-bit prefetchable
    Sourced<BridgeWindow> window;           // 32-bit non-prefetchable
};

// Memory that a host bridge hands out: a top "PCI Bus DDDD:BB" of /proc/iomem.
struct HostWindow {
    std::string bus;  // "0000:00"
    std::uint64_t base = 0;
    std::uint64_t bytes = 0;
};

// What CPUID leaf 1 says of the processor, as /proc/cpuinfo shows it.
struct Processor {
    std::string vendor;  // "AuthenticAMD"
    int family = 0, model = 0;
};

// A VGA or 3D function (class 03xx) of vendor 10de.
struct Gpu {
    std::string bdf;  // "0000:01:00.0"
    std::uint16_t vendor = 0, device = 0;
    std::uint16_t subsystem_vendor = 0, subsystem_device = 0;
    std::string name;  // the driver's, else pci.ids', else "10de:DDDD"
    std::vector<std::string>
        upstream;          // BDFs of the bridges above, nearest first; see Facts::bridge
    std::string root_bus;  // "0000:00": the host bridge's bus
    int config_bytes = 0;  // readable configuration space: 64 without root, 256, 4096

    int bar1_number = 1;      // PCI BAR that plays BAR1's role: 2 where BAR0 is 64-bit
    Sourced<PciRegion> bar1;  // a value of 0 bytes: the kernel left it unassigned
    Sourced<std::vector<PciRegion>> regions;
    Sourced<std::vector<ResizableBar>> rebar;     // capability 0x15
    Sourced<std::vector<ResizableBar>> vf_rebar;  // capability 0x24: of virtual functions only
    Sourced<std::uint64_t> bar1_max_bytes;        // what rebar offers for BAR1
    Sourced<std::uint64_t> vram_bytes;            // from the device id; NVML knows better

    Sourced<PcieLink> link, link_max;  // at this moment; an idle GPU lowers its speed
    Sourced<int> max_payload;          // bytes, as programmed
    Sourced<Acs> acs;
    Sourced<int> numa_node;            // -1: firmware did not say
    Sourced<std::string> driver;       // "nvidia", "nouveau", "vfio-pci"; absent: none bound
    Sourced<std::string> iommu_group;  // group number; absent: no IOMMU for this device
    Sourced<std::string> iommu_type;   // "DMA", "DMA-FQ", "identity"
    Sourced<bool> boot_vga;            // firmware's primary display
    Sourced<std::string> framebuffer;  // console frame buffer on this GPU: "fb0" or the iomem name
    Sourced<std::vector<std::string>> connected;  // DRM connectors with a monitor, "card0-HDMI-A-1"
    Sourced<std::map<std::string, std::uint64_t>> aer;  // aer_dev_correctable: name -> count

    // Held by another driver than NVIDIA's, as far as can be seen.
    bool takenByOther() const { return driver && *driver != "nvidia"; }
};

// A kernel module file on disk.
struct ModuleFile {
    std::string path;
    std::string kernel;            // release of the /lib/modules folder it lies in
    bool chosen = false;           // the one modprobe takes for that kernel
    Sourced<std::string> version;  // modinfo fields
    Sourced<std::string> vermagic;
    Sourced<std::string> marker;  // field nvidia_p2p, "UP+p2pN": ours; absent: not ours
    Sourced<std::string> license;
    Sourced<std::string> signer;    // absent: unsigned
    Sourced<std::string> build_id;  // hex of .note.gnu.build-id
};

struct LoadedModule {
    std::string name;
    std::string version;
    Sourced<std::string> build_id;
    Sourced<std::string> taint;  // "OE": out of tree, unsigned
};

struct Kernel {
    std::string release;
    bool running = false;
    bool headers = false;            // /lib/modules/RELEASE/build leads somewhere
    std::vector<ModuleFile> nvidia;  // every nvidia.ko under it; more than one is a conflict
};

// Below /var/lib/dkms.
struct DkmsState {
    std::string module, version, kernel, arch;  // kernel and arch empty when only added
    std::string state;                          // "added", "built", "installed"
    std::string path;
    std::string log_error;  // first error line of the last make.log, if it was kept
};

struct ModprobeOption {  // "options MODULE NAME=VALUE", one entry per NAME
    std::string module, name, value;
    std::string path;  // file, or /proc/cmdline
    int line = 0;
};
struct ModprobeRule {  // blacklist, or install/alias that switches a module off
    std::string command, module, text;
    std::string path;
    int line = 0;
};

struct Holder {  // a process that has a /dev/nvidia* file open
    int pid = 0;
    std::string command;
    std::vector<std::string> devices;
};

struct LibraryVersion {
    std::string path;     // of the file that the soname leads to
    std::string library;  // "libcuda.so" or "libnvidia-ml.so"
    std::string version;
};

struct Facts {
    std::vector<Gpu> gpus;             // by BDF
    std::vector<Bridge> bridges;       // by BDF; only those above a GPU
    Sourced<std::string> host_bridge;  // "8086:29c0" of 00:00.0
    Sourced<Processor> processor;      // absent: /proc/cpuinfo does not say

    Sourced<std::vector<HostWindow>> host_windows;

    Sourced<std::string> kernel;          // running release
    Sourced<std::string> kernel_version;  // /proc/version: with the compiler
    Sourced<std::string> cmdline;
    Sourced<std::vector<std::string>> log;     // this boot, lines that speak of PCI, IOMMU, NVIDIA
    Sourced<std::vector<std::string>> iommus;  // /sys/class/iommu

    Sourced<LoadedModule> loaded;       // nvidia
    Sourced<std::string> nvrm_version;  // /proc/driver/nvidia/version, first line
    std::vector<std::string>
        gpu_modules;              // which of nvidia, nouveau, nova_core, vfio_pci are loaded
    std::vector<Kernel> kernels;  // every installed one, by release
    std::vector<DkmsState> dkms;
    Sourced<std::string> compiler;  // what `cc` leads to, "gcc-12"
    std::vector<LibraryVersion> libraries;

    std::vector<ModprobeOption> options;  // in the order in which modprobe applies them
    std::vector<ModprobeRule> modprobe_rules;
    Sourced<std::map<std::string, std::string>> params;  // /proc/driver/nvidia/params

    Sourced<std::vector<Holder>> holders;
    Sourced<bool> secure_boot;      // absent: no EFI
    Sourced<std::string> lockdown;  // "none", "integrity", "confidentiality"
    Sourced<bool> sig_enforce;      // module.sig_enforce

    std::map<std::string, Sourced<std::string>>
        dmi;                               // "sys_vendor", "product_name", "bios_version"..
    Sourced<std::string> hypervisor;       // "kvm", "xen", "unknown"; absent: bare metal
    Sourced<std::string> container;        // "docker", "podman"; absent: none seen
    Sourced<std::uint64_t> shm_bytes;      // size limit of /dev/shm; absent: no limit given
    std::vector<std::string> vllm_caches;  // P2P verdicts that vLLM keeps, "~/.cache/vllm/..."
    // What the package noted of its last build, by kernel: version, status, reason, log.
    std::map<std::string, std::map<std::string, std::string>> package_state;
    Sourced<std::string> reboot_required;  // /run/reboot-required.pkgs

    const Gpu* gpu(const std::string& bdf) const;
    const Bridge* bridge(const std::string& bdf) const;
    const Kernel* runningKernel() const;
    // The nvidia.ko that modprobe takes for the running kernel, or null.
    const ModuleFile* chosenModule() const;
    // The file that was loaded, known by its build-id; null when none matches.
    const ModuleFile* loadedFile() const;
    // The value that wins among `options` for module nvidia, or null.
    const ModprobeOption* option(const std::string& name) const;
};

struct Options {
    std::string root;   // "" = this machine; else a folder laid out like / (see snapshot.h)
    bool names = true;  // look names up in pci.ids
};

// Reads everything it may; never writes, never talks to a GPU, never throws for what it cannot
// read. Throws std::runtime_error (one line) when `root` is no folder.
Facts collect(const Options& options);

}  // namespace p2p
