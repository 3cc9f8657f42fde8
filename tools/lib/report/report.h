// SPDX-License-Identifier: MIT
// What one run has to say, as plain data; every output format is a function of it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/gpu/result.h"
#include "lib/rules/finding.h"
#include "lib/util/verdict.h"

namespace p2p {

// PCI Express link of a function (PCIe Base Spec, Link Status and Link Capabilities).  An idle GPU
// lowers the speed to save power; the width does not change.
struct ReportLink {
    std::optional<double> gts;      // GT/s per lane, now
    std::optional<int> width;       // lanes, now
    std::optional<double> max_gts;  // what the device can do
    std::optional<int> max_width;
};

struct ReportGpu {
    std::string bdf;                          // "0000:01:00.0"
    std::string device_id;                    // "10de:2684"
    std::string name;                         // empty if nothing on the machine names it
    std::optional<std::uint64_t> bar1_bytes;  // the window that P2P goes through
    std::optional<std::uint64_t>
        bar1_max_bytes;  // largest size the Resizable BAR capability offers
    std::optional<std::uint64_t> vram_bytes;
    std::string driver;  // kernel driver bound; empty if none
    std::string iommu;   // type of the IOMMU group: "identity", "DMA", "DMA-FQ"; empty = no IOMMU
    std::optional<int> numa_node;
    ReportLink link;
};

// The tree above the GPUs: host bridges and PCI bridges.
struct ReportBridge {
    std::string id;      // BDF, or "pci0000:00" for a host bridge
    std::string parent;  // id of the bridge above; empty for a host bridge
    std::string label;   // "AMD root port", "PLX switch port"; may be empty
    ReportLink link;
    std::optional<bool> acs_redirect;  // ACS sends peer requests up to the root (PCIe 6.12.1.1)
};

struct CheckedRule {
    std::string id, title;
};

struct Report {
    std::string version;    // of the tools
    std::string level;      // "env", "data", "full"
    std::int64_t time = 0;  // seconds since 1970, UTC
    Verdict verdict = Verdict::Proven;
    std::string summary;  // the verdict in one sentence
    std::string kernel;   // release of the running kernel
    std::string module;   // version of the loaded nvidia module; empty if none
    std::string
        marker;  // "UP+p2pN" of the file that it was loaded from; empty if not ours, or unknown
    std::vector<ReportGpu> gpus;
    std::vector<ReportBridge> bridges;
    std::vector<std::string> gpu_parents;  // parallel to gpus: id of the bridge above
    std::vector<PairResult> pairs;
    std::vector<TestResult> single;
    std::vector<LocalRates> local;
    std::vector<Finding> findings;    // strongest first
    std::vector<CheckedRule> rules;   // all that were assessed, with and without a finding
    std::vector<std::string> unread;  // what could not be read, with the reason
};

// What a pair's tests say together.
enum class PairState {
    NotRun,   // nothing was run
    Partial,  // what was run is right, but some tests were not run
    Ok,       // every test that proves data is right
    Refused,  // the driver refused
    Hang,     // a deadline passed
    Wrong,    // data did not arrive intact
};
const char* pairStateName(PairState s);  // "not-run", "partial", "ok", "refused", "hang", "wrong"
PairState pairState(const PairResult& pair);

// Verdict and summary from the findings; sorts the findings, strongest first.
void conclude(Report& report);

// "24 GiB", "256 MiB", "1.5 GiB"; exact multiples without a fraction.
std::string bytesText(std::uint64_t bytes);
// "16 GT/s x8 of 16 GT/s x16", "x16", or "unknown".
std::string linkText(const ReportLink& link);
// "2026-12-01T10:00:00Z" (RFC 3339).
std::string timeText(std::int64_t seconds);

}  // namespace p2p
