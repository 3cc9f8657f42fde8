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
bool takenByOther(const Gpu& g);
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

// Did the registry value ask for P2P with bits that the driver knows?
bool keyEnables(const std::string& value);

}  // namespace p2p::rules_detail
