// SPDX-License-Identifier: MIT
#include "lib/facts/pci_caps.h"

#include <cctype>
#include <cstdlib>
#include <sstream>

namespace p2p::pci {

std::optional<std::uint8_t> Config::u8(std::size_t at) const {
    if (at >= bytes_.size()) return std::nullopt;
    return static_cast<std::uint8_t>(bytes_[at]);
}

std::optional<std::uint16_t> Config::u16(std::size_t at) const {
    auto lo = u8(at), hi = u8(at + 1);
    if (!lo || !hi) return std::nullopt;
    return static_cast<std::uint16_t>(*lo | (*hi << 8));
}

std::optional<std::uint32_t> Config::u32(std::size_t at) const {
    auto lo = u16(at), hi = u16(at + 2);
    if (!lo || !hi) return std::nullopt;
    return *lo | (static_cast<std::uint32_t>(*hi) << 16);
}

std::optional<std::vector<ResizableBar>> resizableBars(const Config& c, std::size_t at) {
    if (at > c.size()) return std::nullopt;  // and the sums below cannot wrap
    auto first = c.u32(at + 8);
    if (!first) return std::nullopt;
    std::vector<ResizableBar> bars;
    // Number of Resizable BARs: bits 7:5 of the first control register only.
    const unsigned count = (*first >> 5) & 7;
    for (unsigned i = 0; i < count; ++i) {
        auto cap = c.u32(at + 4 + std::size_t{8} * i), ctl = c.u32(at + 8 + std::size_t{8} * i);
        if (!cap || !ctl) return std::nullopt;
        ResizableBar b;
        b.bar = static_cast<int>(*ctl & 7);
        // BAR Size, bits 13:8: 0 is 1 MB; 43 (8 EB) is the largest that is defined.
        const unsigned size = (*ctl >> 8) & 0x3f;
        b.current_bytes = size <= 43 ? std::uint64_t{1} << (20 + size) : 0;
        // Capability bits 31:4 are 1 MB to 128 TB, control bits 31:16 are 256 TB to 8 EB.
        b.sizes = (*cap >> 4) | (static_cast<std::uint64_t>(*ctl >> 16) << 28);
        bars.push_back(b);
    }
    return bars;
}

std::optional<Acs> acs(const Config& c, std::size_t at) {
    auto cap = c.u16(at + 4), ctl = c.u16(at + 6);
    if (!cap || !ctl) return std::nullopt;
    return Acs{static_cast<std::uint16_t>(at), *cap, *ctl};
}

std::optional<PortType> portType(const Config& c, std::size_t at) {
    auto flags = c.u16(at + 2);
    if (!flags) return std::nullopt;
    switch ((*flags >> 4) & 0xf) {
        case 0:
            return PortType::Endpoint;
        case 1:
            return PortType::LegacyEndpoint;
        case 4:
            return PortType::RootPort;
        case 5:
            return PortType::UpstreamPort;
        case 6:
            return PortType::DownstreamPort;
        case 7:
        case 8:
            return PortType::Bridge;
        default:
            return PortType::Unknown;
    }
}

std::optional<int> maxPayload(const Config& c, std::size_t at) {
    auto control = c.u16(at + 8);
    if (!control) return std::nullopt;
    // Device Control bits 7:5; 6 and 7 are reserved.
    const int code = (*control >> 5) & 7;
    if (code > 5) return std::nullopt;
    return 128 << code;
}

namespace {
// Supported Link Speeds vector bits in order; the link fields count from 1.
double speedOf(unsigned code) {
    static const double gts[] = {0, 2.5, 5, 8, 16, 32, 64};
    return code < sizeof gts / sizeof *gts ? gts[code] : 0;
}
PcieLink linkOf(std::uint32_t reg) {
    // Both registers: speed in bits 3:0, width in bits 9:4.
    return {speedOf(reg & 0xf), static_cast<int>((reg >> 4) & 0x3f)};
}
}  // namespace

std::optional<PcieLink> linkCapability(const Config& c, std::size_t at) {
    auto reg = c.u32(at + 0x0c);
    return reg ? std::optional<PcieLink>(linkOf(*reg)) : std::nullopt;
}

std::optional<PcieLink> linkStatus(const Config& c, std::size_t at) {
    auto reg = c.u16(at + 0x12);
    return reg ? std::optional<PcieLink>(linkOf(*reg)) : std::nullopt;
}

namespace {
BridgeWindow windowOf(std::uint64_t base, std::uint64_t last) {
    // A base above the limit is how a bridge says "closed".
    if (last <= base) return {};
    return {base, last - base + 1};
}
}  // namespace

std::optional<BridgeWindow> prefetchableWindow(const Config& c) {
    auto base = c.u16(0x24), limit = c.u16(0x26);
    auto baseUpper = c.u32(0x28), limitUpper = c.u32(0x2c);
    if (!base || !limit || !baseUpper || !limitUpper) return std::nullopt;
    const bool is64 = (*base & 0xf) == 1;
    std::uint64_t first = static_cast<std::uint64_t>(*base & 0xfff0) << 16;
    std::uint64_t last = (static_cast<std::uint64_t>(*limit & 0xfff0) << 16) | 0xfffff;
    if (is64) {
        first |= static_cast<std::uint64_t>(*baseUpper) << 32;
        last |= static_cast<std::uint64_t>(*limitUpper) << 32;
    }
    return windowOf(first, last);
}

std::optional<BridgeWindow> memoryWindow(const Config& c) {
    auto base = c.u16(0x20), limit = c.u16(0x22);
    if (!base || !limit) return std::nullopt;
    return windowOf(static_cast<std::uint64_t>(*base & 0xfff0) << 16,
                    (static_cast<std::uint64_t>(*limit & 0xfff0) << 16) | 0xfffff);
}

int bar1Number(const Config& c, const std::vector<PciRegion>& all) {
    // The header first: it is readable for everyone and right even when the kernel gave up on BAR0.
    // Bits 2:1 of a memory BAR are its type, 2 is 64-bit (PCI 3.0, 6.2.5.1).
    if (auto bar0 = c.u32(0x10); bar0 && *bar0 != 0) return (*bar0 & 7) == 4 ? 2 : 1;
    return !all.empty() && all[0].is64 ? 2 : 1;
}

double linkSpeed(const std::string& text) {
    char* end = nullptr;
    const double v = std::strtod(text.c_str(), &end);
    return end != text.c_str() && v > 0 && v < 1000 ? v : 0;
}

std::vector<PciRegion> regions(const std::string& text) {
    // include/linux/ioport.h
    constexpr std::uint64_t kPrefetch = 0x2000, kMem64 = 0x100000, kUnset = 0x20000000;
    std::vector<PciRegion> all;
    std::istringstream lines(text);
    std::string line;
    for (int bar = 0; bar < 6 && std::getline(lines, line); ++bar) {
        const char* p = line.c_str();
        char* end = nullptr;
        const std::uint64_t start = std::strtoull(p, &end, 16);
        const std::uint64_t last = std::strtoull(end, &end, 16);
        PciRegion r;
        r.bar = bar;
        r.flags = std::strtoull(end, &end, 16);
        r.is64 = (r.flags & kMem64) != 0;
        r.prefetchable = (r.flags & kPrefetch) != 0;
        // An unset resource shows a size at address 0: it has no address.
        if (start != 0 && last > start && !(r.flags & kUnset)) {
            r.start = start;
            r.bytes = last - start + 1;
        }
        all.push_back(r);
    }
    return all;
}

bool isBdf(const std::string& t) {
    static const char shape[] = "xxxx:xx:xx.f";
    // Domains may be longer than four digits (VMD: 10000:e1:00.0).
    const std::size_t extra = t.size() > 12 ? t.size() - 12 : 0;
    if (t.size() < 12 || extra > 4) return false;
    for (std::size_t i = 0; i < extra; ++i)
        if (!std::isxdigit(static_cast<unsigned char>(t[i]))) return false;
    for (std::size_t i = 0; i < 12; ++i) {
        const char ch = t[extra + i];
        if (shape[i] == 'x' && !std::isxdigit(static_cast<unsigned char>(ch))) return false;
        if (shape[i] == 'f' && (ch < '0' || ch > '7')) return false;
        if ((shape[i] == ':' || shape[i] == '.') && ch != shape[i]) return false;
    }
    return true;
}

}  // namespace p2p::pci
