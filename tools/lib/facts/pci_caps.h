// SPDX-License-Identifier: MIT
// Decoding of PCI configuration space: bytes in, values out.  Offsets of capabilities come from a
// walk of the capability lists, never from a constant.  Nothing when the bytes end too early.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/facts/facts.h"

namespace p2p::pci {

// Capability ids (PCI Code and ID Assignment 1.11).
inline constexpr unsigned kCapExpress = 0x10;
inline constexpr unsigned kExtSerial = 0x0003;
inline constexpr unsigned kExtAcs = 0x000d;
inline constexpr unsigned kExtRebar = 0x0015;
inline constexpr unsigned kExtVfRebar = 0x0024;

// The readable part of a function's configuration space, little endian.
class Config {
  public:
    explicit Config(std::string bytes) : bytes_(std::move(bytes)) {}
    std::size_t size() const { return bytes_.size(); }
    const std::string& bytes() const { return bytes_; }
    std::optional<std::uint8_t> u8(std::size_t at) const;
    std::optional<std::uint16_t> u16(std::size_t at) const;
    std::optional<std::uint32_t> u32(std::size_t at) const;

  private:
    std::string bytes_;
};

// Resizable BAR Extended Capability (PCIe 6.0, 7.8.6) at `at`; VF Resizable BAR (7.8.7) has the
// same layout.
std::optional<std::vector<ResizableBar>> resizableBars(const Config& c, std::size_t at);
// Access Control Services (PCIe 6.0, 7.7.11) at `at`.
std::optional<Acs> acs(const Config& c, std::size_t at);
// PCI Express Capability (PCIe 6.0, 7.5.3) at `at`.
std::optional<PortType> portType(const Config& c, std::size_t at);        // 7.5.3.2
std::optional<int> maxPayload(const Config& c, std::size_t at);           // 7.5.3.4, bytes
std::optional<PcieLink> linkCapability(const Config& c, std::size_t at);  // 7.5.3.6
std::optional<PcieLink> linkStatus(const Config& c, std::size_t at);      // 7.5.3.8
// Type 1 header (PCI-to-PCI Bridge 1.2, 3.2.5.9 and 3.2.5.8).
std::optional<BridgeWindow> prefetchableWindow(const Config& c);
std::optional<BridgeWindow> memoryWindow(const Config& c);

// Which PCI BAR plays the role that NVIDIA calls BAR1: the second one, and that is number 2 where
// BAR0 is a 64-bit BAR (data-centre GPUs).
int bar1Number(const Config& c, const std::vector<PciRegion>& regions);

// "16.0 GT/s PCIe" (sysfs current_link_speed) -> 16; 0 for "Unknown".
double linkSpeed(const std::string& text);
// /sys/bus/pci/devices/BDF/resource: the six BARs.
std::vector<PciRegion> regions(const std::string& text);
// "0000:01:00.0"
bool isBdf(const std::string& text);

}  // namespace p2p::pci
