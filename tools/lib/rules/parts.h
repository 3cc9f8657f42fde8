// SPDX-License-Identifier: MIT
// Shared between the files that hold the rules; not part of the library's interface.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/rules/rules.h"

namespace p2p::rules_detail {

using Findings = std::vector<Finding>;

// A finding on the machine as a whole; cause, remedy and evidence are to follow.
Finding host(const char* id, Severity severity);

// Rules of each file, in order.
std::vector<Rule> busRules();
std::vector<Rule> moduleRules();
std::vector<Rule> hostRules();
std::vector<Rule> runRules();

// "256 MiB", "32 GiB"
std::string size(std::uint64_t bytes);
std::string hex(std::uint64_t v);

// Evidence of a value: its path, and what it held or why it could not be read.
template <class T>
Evidence unreadEvidence(const Sourced<T>& s) {
    return {s.path, "could not read: " + s.unread};
}
Evidence evidence(const Sourced<std::string>& s);

// GPUs that the nvidia driver has or could have: not given to a guest, not held by another driver.
std::vector<const Gpu*> usableGpus(const Facts& f);
// Bound to vfio-pci or pci-stub, for a virtual machine: what it is like is no matter here.
bool setAside(const Gpu& g);

// NVIDIA's generations by device id, as the driver's own tables group them.
enum class Generation { Older, Turing, Ampere, Hopper, Ada, Blackwell };
Generation generationOf(std::uint16_t device);
const char* generationName(Generation g);

// Memory of a GPU: what NVML said, else the table of device ids.
Sourced<std::uint64_t> memoryOf(const Gpu& g, const GpuRun* run);
// BAR1 that P2P over all of the memory needs.  The changed driver keeps 256 MiB of BAR1 for other
// mappings.
std::uint64_t bar1Needed(std::uint64_t memory, Generation g);

// Is the changed driver what runs, or what would run next?
bool oursInstalled(
    const Facts& f);                // the file modprobe takes for the running kernel has the marker
bool oursLoaded(const Facts& f);    // the loaded module is a file with the marker
bool oursAnywhere(const Facts& f);  // some installed kernel has one

// First number of a version, 0 if there is none.
int majorOf(const std::string& version);
// The driver's branch: of what is loaded, else of the file that would be.
int driverMajor(const Facts& f);

// The first log line that holds all of `parts`, or null.
const std::string* logLine(const Facts& f, std::initializer_list<const char*> parts);

// Every pair of this GPU (all pairs for "") moved data, and all of it was right.
bool provenByData(const GpuRun* run, const std::string& bdf);

// NvP2pBar1 as two registry strings give it to one GPU; one of its own wins over that for all.
// Empty where neither holds the key.
std::string keyOf(const std::string& all, const std::string& perDevice, const std::string& bdf);
// Values of modprobe's files, and of what the loaded driver took; empty where there are none.
std::string optionValue(const Facts& f, const char* name);
std::string param(const Facts& f, const char* name);
// The key that the files give this GPU, the one that the loaded driver took, and the one that
// counts: what was taken, else what the files hold.
std::string keyOfFiles(const Facts& f, const std::string& bdf);
std::string keyTaken(const Facts& f, const std::string& bdf);
std::string keyInForce(const Facts& f, const std::string& bdf);

// Is this generation one that the changed driver covers with this key (docs/driver.md)?
bool covered(Generation g, const std::string& key, int major);

// Does the driver by itself trust this processor to forward reads between root ports?  None where
// that cannot be told: in a guest, or where /proc/cpuinfo says nothing.
std::optional<bool> hostListed(const Facts& f);
// Are both below one switch?  If not they meet at the host only.
bool belowOneSwitch(const Facts& f, const Gpu& a, const Gpu& b);

}  // namespace p2p::rules_detail
