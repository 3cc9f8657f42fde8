// SPDX-License-Identifier: MIT
// GPUs, the bridges above them and the host bridge: libpci lists functions and walks capability
// lists, sysfs says what the kernel made of them.
extern "C" {
#include <pci/pci.h>
}

#include <algorithm>
#include <csetjmp>
#include <cstdarg>
#include <cstdio>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "lib/facts/collect.h"
#include "lib/facts/parse.h"
#include "lib/facts/pci_caps.h"

namespace p2p {
namespace {

const std::string kDevices = "/sys/bus/pci/devices/";

// libpci's default is to end the process; its callback may not return.
thread_local std::jmp_buf scanFailed;
thread_local char scanError[256];

// clang compares this attribute, as GNU C spells it, when it is assigned to libpci's pointer.
__attribute__((noreturn)) void onError(char* format, ...) {
    va_list args;
    va_start(args, format);
    std::vsnprintf(scanError, sizeof scanError, format, args);
    va_end(args);
    std::longjmp(scanFailed, 1);  // NOLINT(cert-err52-cpp): frames between are libpci's, in C
}
void onWarning(char*, ...) {}

struct Access {
    pci_access* a = pci_alloc();
    Access() = default;
    ~Access() { pci_cleanup(a); }
    Access(const Access&) = delete;
    Access& operator=(const Access&) = delete;
};

// False when libpci gave up; the reason is in scanError.  No object with a destructor lives here.
bool scan(pci_access* a) {
    if (setjmp(scanFailed)) return false;  // NOLINT(cert-err52-cpp)
    pci_init(a);
    pci_scan_bus(a);
    for (pci_dev* d = a->devices; d; d = d->next) pci_fill_info(d, PCI_FILL_IDENT | PCI_FILL_CLASS);
    return true;
}

// Offset of a capability, 0 if the function has none (or its list cannot be read).
unsigned findCap(pci_dev* d, unsigned id, unsigned kind) {
    if (setjmp(scanFailed)) return 0;  // NOLINT(cert-err52-cpp)
    const pci_cap* c = pci_find_cap(d, id, kind);
    return c ? c->addr : 0;
}

std::string bdfOf(const pci_dev* d) {
    char buf[32];
    std::snprintf(buf, sizeof buf, "%04x:%02x:%02x.%d", static_cast<unsigned>(d->domain), d->bus,
                  d->dev, d->func);
    return buf;
}

std::string idText(unsigned vendor, unsigned device) {
    char buf[16];
    std::snprintf(buf, sizeof buf, "%04x:%04x", vendor, device);
    return buf;
}

std::string lookUp(pci_access* a, unsigned vendor, unsigned device) {
    char buf[256];
    const char* name = pci_lookup_name(a, buf, sizeof buf,
                                       PCI_LOOKUP_DEVICE | PCI_LOOKUP_NO_NUMBERS, vendor, device);
    return name && *name ? std::string(name) : idText(vendor, device);
}

// Configuration space of one function and the way to say why a part of it is missing.
class Function {
  public:
    Function(Machine& m, pci_dev* d)
        : dir_(kDevices + bdfOf(d)),
          dev_(d),
          raw_(m.bytes(dir_ + "/config", 4096)),
          config_(raw_.valueOr("")) {
        if (m.recording() && raw_) m.note(dir_ + "/config", {Machine::Entry::File, redacted()});
    }

    const std::string& dir() const { return dir_; }
    const pci::Config& config() const { return config_; }

    // A value of the capability `id` in the list `kind`.
    template <class T>
    Sourced<T> capability(unsigned id, unsigned kind, const char* what,
                          std::optional<T> (*decode)(const pci::Config&, std::size_t)) const {
        const unsigned at = findCap(dev_, id, kind);
        char where[64];
        if (at == 0) {
            std::snprintf(where, sizeof where, "/config (%s)", what);
            return Sourced<T>::missing(dir_ + where, whyNoCap(kind));
        }
        std::snprintf(where, sizeof where, "/config offset 0x%x (%s)", at, what);
        if (auto v = decode(config_, at)) return {dir_ + where, *v};
        return Sourced<T>::missing(dir_ + where, config_.size() <= 64 ? kNeedsRoot : "unreadable");
    }

    Sourced<BridgeWindow> window(const char* what,
                                 std::optional<BridgeWindow> (*decode)(const pci::Config&)) const {
        const std::string where = dir_ + "/config (" + what + ")";
        if (auto v = decode(config_)) return {where, *v};
        return Sourced<BridgeWindow>::missing(where, raw_ ? "unreadable" : raw_.unread);
    }

  private:
    std::string whyNoCap(unsigned kind) const {
        if (!raw_) return raw_.unread;
        // The kernel shows 64 bytes to users, 256 where it cannot reach the extended space, else
        // 4096.  Only the last is an honest "no".
        if (config_.size() <= 64) return kNeedsRoot;
        if (kind == PCI_CAP_EXTENDED && config_.size() <= 256)
            return "no extended configuration space";
        return kAbsent;
    }

    // Device Serial Number (PCIe 6.0, 7.9.3) blanked.
    std::string redacted() const {
        std::string bytes = config_.bytes();
        const unsigned at = findCap(dev_, pci::kExtSerial, PCI_CAP_EXTENDED);
        for (unsigned i = at ? at + 4 : 0; at && i < at + 12 && i < bytes.size(); ++i) bytes[i] = 0;
        return bytes;
    }

    std::string dir_;
    pci_dev* dev_;
    Sourced<std::string> raw_;
    pci::Config config_;
};

Sourced<PcieLink> sysfsLink(Machine& m, const Function& f, const char* which,
                            Sourced<PcieLink> fromConfig) {
    // sysfs first: it needs no rights.
    const auto speed = m.line(f.dir() + "/" + which + "_link_speed");
    const auto width = m.number(f.dir() + "/" + which + "_link_width");
    if (!speed || !width) return fromConfig;
    PcieLink l;
    l.gts = pci::linkSpeed(*speed);
    // 255: the kernel's "unknown" (PCIE_LNK_WIDTH_UNKNOWN).
    l.width = *width > 0 && *width <= 32 ? *width : 0;
    if (l.gts == 0 || l.width == 0)
        return Sourced<PcieLink>::missing(speed.path, "the device does not say");
    return {speed.path, l};
}

// What libpci itself reads of a function; noted, so that a snapshot has it.
void noteIdentity(Machine& m, const std::string& dir) {
    if (!m.recording()) return;
    for (const char* f : {"vendor", "device", "class", "revision", "irq", "subsystem_vendor",
                          "subsystem_device", "resource"})
        m.text(dir + "/" + f);
}

template <class T>
void readExpress(Machine& m, const Function& f, T& out) {
    out.link =
        sysfsLink(m, f, "current",
                  f.capability(pci::kCapExpress, PCI_CAP_NORMAL, "Link Status", &pci::linkStatus));
    out.link_max = sysfsLink(
        m, f, "max",
        f.capability(pci::kCapExpress, PCI_CAP_NORMAL, "Link Capabilities", &pci::linkCapability));
    out.max_payload =
        f.capability(pci::kCapExpress, PCI_CAP_NORMAL, "Device Control", &pci::maxPayload);
    out.acs = f.capability(pci::kExtAcs, PCI_CAP_EXTENDED, "ACS", &pci::acs);
}

Bridge readBridge(Machine& m, pci_access* a, pci_dev* d, bool names) {
    const Function f(m, d);
    noteIdentity(m, f.dir());
    Bridge b;
    b.bdf = bdfOf(d);
    b.vendor = d->vendor_id;
    b.device = d->device_id;
    b.name = names ? lookUp(a, b.vendor, b.device) : idText(b.vendor, b.device);
    readExpress(m, f, b);
    b.port =
        f.capability(pci::kCapExpress, PCI_CAP_NORMAL, "PCI Express Capabilities", &pci::portType);
    b.prefetch_window = f.window("prefetchable window", &pci::prefetchableWindow);
    b.window = f.window("memory window", &pci::memoryWindow);
    return b;
}

// Frame buffer sizes that the vendor's product pages state, where one device id means one size.
// Anything else (4090 with 48 GB from a workshop included) must come from NVML.
struct KnownMemory {
    std::uint16_t device;
    unsigned mib;  // as nvidia-smi shows it where known, else the nominal size
};
constexpr KnownMemory kKnownMemory[] = {
    {0x2204, 24576},  // GeForce RTX 3090
    {0x2230, 49140},  // RTX A6000
    {0x2684, 24564},  // GeForce RTX 4090
    {0x2685, 24564},  // GeForce RTX 4090 D
    {0x26b1, 49140},  // RTX 6000 Ada Generation
    {0x26b5, 46068},  // L40
    {0x26b9, 46068},  // L40S
    {0x2704, 16376},  // GeForce RTX 4080
    {0x2b85, 32607},  // GeForce RTX 5090
};

Sourced<std::uint64_t> knownMemory(std::uint16_t device) {
    const std::string from = "table of device ids";
    for (const KnownMemory& k : kKnownMemory)
        if (k.device == device) return {from, std::uint64_t{k.mib} << 20};
    return Sourced<std::uint64_t>::missing(from, "no entry for this device id");
}

Sourced<bool> flag(Machine& m, const std::string& path) {
    const auto n = m.number(path);
    if (!n) return Sourced<bool>::missing(path, n.unread);
    return {path, *n != 0};
}

Sourced<std::vector<std::string>> connectedOutputs(Machine& m, const std::string& dir) {
    using Result = Sourced<std::vector<std::string>>;
    const auto cards = m.list(dir + "/drm");
    if (!cards) return Result::missing(dir + "/drm", cards.unread);
    std::vector<std::string> on;
    for (const std::string& card : *cards) {
        if (card.compare(0, 4, "card") != 0) continue;
        const auto outputs = m.list(dir + "/drm/" + card);
        for (const std::string& output : outputs.valueOr({})) {
            if (output.compare(0, card.size() + 1, card + "-") != 0) continue;
            const auto status = m.line(dir + "/drm/" + card + "/" + output + "/status");
            if (status && *status == "connected") on.push_back(output);
        }
    }
    return {dir + "/drm", std::move(on)};
}

Sourced<std::string> framebuffer(Machine& m, const std::string& dir, const std::string& bdf,
                                 const Sourced<std::map<std::string, std::string>>& consoles) {
    const auto names = m.list(dir + "/graphics");
    for (const std::string& n : names.valueOr({}))
        if (n.compare(0, 2, "fb") == 0) return {dir + "/graphics", n};
    if (!consoles) return Sourced<std::string>::missing(consoles.path, consoles.unread);
    auto it = consoles->find(bdf);
    if (it == consoles->end()) return Sourced<std::string>::missing(consoles.path, kAbsent);
    return {consoles.path, it->second};
}

Sourced<std::map<std::string, std::uint64_t>> readAer(Machine& m, const std::string& path) {
    using Result = Sourced<std::map<std::string, std::uint64_t>>;
    const auto text = m.text(path);
    if (!text) return Result::missing(path, text.unread);
    std::map<std::string, std::uint64_t> counts;
    for (const std::string& l : parse::lines(*text)) {
        const auto w = parse::words(l);
        if (w.size() == 2) counts[w[0]] = std::strtoull(w[1].c_str(), nullptr, 10);
    }
    return {path, std::move(counts)};
}

// The driver's own name for a GPU ("Model:" of its information file).
std::string driverName(Machine& m, const std::string& bdf) {
    const auto text = m.text("/proc/driver/nvidia/gpus/" + bdf + "/information");
    for (const std::string& l : parse::lines(text.valueOr("")))
        if (l.compare(0, 6, "Model:") == 0) return parse::trim(l.substr(6));
    return "";
}

Gpu readGpu(Machine& m, pci_access* a, pci_dev* d, bool names,
            const Sourced<std::map<std::string, std::string>>& consoles) {
    const Function f(m, d);
    noteIdentity(m, f.dir());
    Gpu g;
    g.bdf = bdfOf(d);
    g.vendor = d->vendor_id;
    g.device = d->device_id;
    g.subsystem_vendor = f.config().u16(0x2c).value_or(0);
    g.subsystem_device = f.config().u16(0x2e).value_or(0);
    g.name = driverName(m, g.bdf);
    if (g.name.empty()) g.name = names ? lookUp(a, g.vendor, g.device) : idText(g.vendor, g.device);
    g.config_bytes = static_cast<int>(f.config().size());

    const std::string resource = f.dir() + "/resource";
    const auto text = m.text(resource);
    if (text)
        g.regions = {resource, pci::regions(*text)};
    else
        g.regions = Sourced<std::vector<PciRegion>>::missing(resource, text.unread);
    g.bar1_number = pci::bar1Number(f.config(), g.regions.valueOr({}));
    const auto n = static_cast<std::size_t>(g.bar1_number);
    if (g.regions && g.regions->size() > n)
        g.bar1 = {resource, (*g.regions)[n]};
    else
        g.bar1 = Sourced<PciRegion>::missing(resource, text ? "too short" : text.unread);

    g.rebar = f.capability(pci::kExtRebar, PCI_CAP_EXTENDED, "Resizable BAR", &pci::resizableBars);
    g.vf_rebar =
        f.capability(pci::kExtVfRebar, PCI_CAP_EXTENDED, "VF Resizable BAR", &pci::resizableBars);
    g.bar1_max_bytes = Sourced<std::uint64_t>::missing(g.rebar.path, g.rebar.unread);
    if (g.rebar) {
        g.bar1_max_bytes.unread = "no entry for BAR1";
        for (const ResizableBar& r : *g.rebar)
            if (r.bar == g.bar1_number) g.bar1_max_bytes = {g.rebar.path, r.maxBytes()};
    }
    g.vram_bytes = knownMemory(g.device);

    readExpress(m, f, g);
    g.numa_node = m.number(f.dir() + "/numa_node");
    g.driver = m.linkName(f.dir() + "/driver");
    g.iommu_group = m.linkName(f.dir() + "/iommu_group");
    g.iommu_type = m.line(f.dir() + "/iommu_group/type");
    if (!g.iommu_type && g.iommu_group) {
        // The link leads to the group; a folder that was copied by hand may hold the group only.
        const auto type = m.line("/sys/kernel/iommu_groups/" + *g.iommu_group + "/type");
        if (type) g.iommu_type = type;
    }
    g.boot_vga = flag(m, f.dir() + "/boot_vga");
    g.framebuffer = framebuffer(m, f.dir(), g.bdf, consoles);
    g.connected = connectedOutputs(m, f.dir());
    g.aer = readAer(m, f.dir() + "/aer_dev_correctable");

    // "../../../devices/pci0000:00/0000:00:01.1/0000:01:00.0": the way down to the GPU.
    const auto way = m.link(kDevices + g.bdf);
    std::string rest = way.valueOr("");
    std::vector<std::string> parts;
    for (std::size_t at = 0; at < rest.size();) {
        const std::size_t slash = std::min(rest.find('/', at), rest.size());
        parts.push_back(rest.substr(at, slash - at));
        at = slash + 1;
    }
    for (auto it = parts.rbegin(); it != parts.rend(); ++it)
        if (pci::isBdf(*it) && *it != g.bdf) g.upstream.push_back(*it);
    for (const std::string& p : parts)
        if (p.compare(0, 3, "pci") == 0 && p.find(':') != std::string::npos && g.root_bus.empty())
            g.root_bus = p.substr(3);
    return g;
}

// libpci opens these itself, and would wait for ever at the end of a pipe.
void checkFiles(Machine& m, const std::string& top) {
    const auto functions = m.list(top);
    for (const std::string& f : functions.valueOr({}))
        for (const char* name : {"vendor", "device", "class", "revision", "irq", "subsystem_vendor",
                                 "subsystem_device", "resource", "config"}) {
            const std::string path = top + "/" + f + "/" + name;
            if (!m.regular(path))
                throw std::runtime_error(m.host(path) +
                                         ": not a regular file, so this is no copy of /sys; take "
                                         "it out or make the snapshot again");
        }
}

}  // namespace

void collectPci(Machine& m, bool names, Facts& facts) {
    const std::string top = kDevices.substr(0, kDevices.size() - 1);
    if (!m.list(top)) {  // no PCI at all: libpci would call that an error
        facts.host_bridge = Sourced<std::string>::missing(top, kAbsent);
        return;
    }
    if (!m.live()) checkFiles(m, top);
    const Access access;
    pci_access* a = access.a;
    a->method = PCI_ACCESS_SYS_BUS_PCI;
    a->error = onError;
    a->warning = onWarning;
    std::string sysfs = m.host("/sys/bus/pci"), key = "sysfs.path";
    pci_set_param(a, key.data(), sysfs.data());
    if (!scan(a)) {
        facts.host_bridge = Sourced<std::string>::missing(top, scanError);
        return;
    }

    std::vector<pci_dev*> all;
    for (pci_dev* d = a->devices; d; d = d->next) all.push_back(d);
    std::sort(all.begin(), all.end(),
              [](const pci_dev* x, const pci_dev* y) { return bdfOf(x) < bdfOf(y); });

    facts.host_bridge = Sourced<std::string>::missing(kDevices + "0000:00:00.0", kAbsent);
    const std::string iomem = "/proc/iomem";
    const auto map = m.text(iomem);
    using Consoles = Sourced<std::map<std::string, std::string>>;
    const Consoles consoles =
        map ? Consoles(iomem, parse::consoleRegions(*map)) : Consoles::missing(iomem, map.unread);
    using Windows = Sourced<std::vector<HostWindow>>;
    facts.host_windows = Windows::missing(iomem, map.unread);
    if (map) {
        auto windows = parse::hostWindows(*map);
        // Addresses are zeros for users without rights.
        facts.host_windows = windows.empty() ? Windows::missing(iomem, kNeedsRoot)
                                             : Windows(iomem, std::move(windows));
    }
    std::set<std::string> above;
    for (pci_dev* d : all) {
        const std::string bdf = bdfOf(d);
        if (bdf == "0000:00:00.0") {
            facts.host_bridge = {kDevices + bdf, idText(d->vendor_id, d->device_id)};
            m.link(kDevices + bdf);
            noteIdentity(m, kDevices + bdf);
        }
        // Display controllers: class 03xx (PCI Code and ID Assignment 1.11, 1.4).
        if (d->vendor_id != 0x10de || (d->device_class >> 8) != 0x03) continue;
        facts.gpus.push_back(readGpu(m, a, d, names, consoles));
        above.insert(facts.gpus.back().upstream.begin(), facts.gpus.back().upstream.end());
    }
    for (pci_dev* d : all) {
        if (!above.count(bdfOf(d))) continue;
        m.link(kDevices + bdfOf(d));
        facts.bridges.push_back(readBridge(m, a, d, names));
    }
}

}  // namespace p2p
