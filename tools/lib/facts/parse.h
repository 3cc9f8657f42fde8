// SPDX-License-Identifier: MIT
// Parsers of the kernel's and modprobe's text files: text in, values out.  No input makes them
// fail; what they do not understand they leave out.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/facts/facts.h"

namespace p2p::parse {

std::string trim(const std::string& text);
bool startsWith(const std::string& text, const std::string& head);
// Module names are the same with - and _ (modprobe(8)).
std::string moduleName(std::string name);
std::vector<std::string> lines(const std::string& text);
std::vector<std::string> words(const std::string& text);

// A line of modprobe.d(5) without white space around it; a backslash at the end of one in the file
// joins it with the next.  `number` is its first one's, `count` how many it is made of.
struct ModprobeLine {
    std::string text;
    int number = 0, count = 0;
};
std::vector<ModprobeLine> modprobeLines(const std::string& text);

// NAME=VALUE as the kernel takes it (kernel/params.c: next_arg): quotes may be around the value or
// around all of it.
struct Argument {
    std::string name, value;
};
Argument argument(const std::string& word);

// The words of a kernel command line; double quotes keep spaces (kernel/params.c: next_arg).
std::vector<std::string> cmdline(const std::string& text);
// The last value of NAME=VALUE on a command line; "" for a bare NAME.
std::optional<std::string> cmdlineValue(const std::string& text, const std::string& name);

// modprobe.d(5).  Appends what the file says about any module.
void modprobe(const std::string& text, const std::string& path,
              std::vector<ModprobeOption>& options, std::vector<ModprobeRule>& rules);
// nvidia.NAME=VALUE and modprobe.blacklist= of the kernel command line, as modprobe takes them.
void modprobeCmdline(const std::string& text, std::vector<ModprobeOption>& options,
                     std::vector<ModprobeRule>& rules);

// "Name: value" lines of /proc/driver/nvidia/params; quotes around a value are taken off.
std::map<std::string, std::string> params(const std::string& text);

// "name=value" lines.
std::map<std::string, std::string> settings(const std::string& text);

// NVreg_RegistryDwords: "A=1;B=0x2" in order.
using Dwords = std::vector<std::pair<std::string, std::string>>;
Dwords registryDwords(const std::string& text);
// NVreg_RegistryDwordsPerDevice: "pci=0000:01:00.0;A=1;pci=..." in order.  The driver takes
// bus:slot, domain:bus:slot and domain:bus:slot.func; `bdf` always has the last form, and is ""
// where `address` has none of them, or for what stands before the first "pci=".
struct DeviceDwords {
    std::string address, bdf;
    Dwords dwords;
};
std::vector<DeviceDwords> deviceDwords(const std::string& text);
// The same per BDF, without what is for no device.
std::map<std::string, Dwords> registryDwordsPerDevice(const std::string& text);
// Registry keys are the same in upper and lower case.
bool sameKey(const std::string& a, const std::string& b);
// A registry value as the driver reads it: decimal, 0x hexadecimal or 0 octal.
std::optional<std::uint32_t> dword(const std::string& text);
// Does this value of NvP2pBar1 switch P2P on?  Bit 0 does, bit 1 vouches for the host bridge, bit 2
// takes Ampere boards too (from 580); the driver ignores a value with others
// (driver/src/rm/nvp2p_policy.h).
bool keyEnables(const std::string& value);

// Messages of /dev/kmsg ("6,123,456,-;text") or of dmesg ("[    1.2] text") that speak of PCI,
// IOMMU, NVIDIA or module signatures: the text alone.
std::vector<std::string> kernelLog(const std::string& text);

// /proc/iomem: PCI function -> name of the console frame buffer inside one of its BARs
// ("BOOTFB", "efifb", "simplefb", "vesafb").
std::map<std::string, std::string> consoleRegions(const std::string& text);

// /proc/iomem: what host bridges hand out.  Empty when all addresses are shown as 0, as users
// without rights see them.
std::vector<HostWindow> hostWindows(const std::string& text);

// /proc/cpuinfo: is this a virtual machine's processor?
bool hypervisorFlag(const std::string& text);
// /proc/cpuinfo: the first processor; none where vendor, family or model is missing.
std::optional<Processor> processor(const std::string& text);
// /proc/mounts: size= of /dev/shm in bytes.
std::optional<std::uint64_t> shmLimit(const std::string& text);
// "none [integrity] confidentiality" -> "integrity"
std::string selected(const std::string& text);
// "NVRM version: NVIDIA UNIX ... 550.54.15 ..." -> "550.54.15"; "" if there is none.
std::string driverVersion(const std::string& text);
// "libcuda.so.550.54.15" -> "550.54.15" for `library` "libcuda.so"; "" for sonames like ".1".
std::string libraryVersion(const std::string& file, const std::string& library);

}  // namespace p2p::parse
