// SPDX-License-Identifier: MIT
// Reports that the tests of every format share.
#pragma once
#include "lib/report/report.h"

namespace p2p::sample {

// 2026-12-01T10:00:00Z
constexpr std::int64_t kTime = 1796119200;

inline ReportGpu gpu(const std::string& bdf) {
    constexpr std::uint64_t kGiB = 1ULL << 30U;
    ReportGpu g;
    g.bdf = bdf;
    g.device_id = "10de:2684";
    g.name = "NVIDIA GeForce RTX 4090";
    g.bar1_bytes = 32 * kGiB;
    g.bar1_max_bytes = 32 * kGiB;
    g.vram_bytes = 24 * kGiB;
    g.driver = "nvidia";
    g.iommu = "identity";
    g.numa_node = 0;
    g.link = {2.5, 16, 16, 16};
    return g;
}

inline TestResult test(const std::string& name, Outcome o = Outcome::Ok) {
    TestResult t;
    t.test = name;
    t.outcome = o;
    t.words = 4096;
    t.seconds = 0.25;
    return t;
}

// Four GPUs behind two switches; all pairs right, one of them slow, one GPU's BAR1 a forecast.
inline Report rig() {
    Report r;
    r.version = "1.0.0";
    r.level = "full";
    r.time = kTime;
    r.kernel = "6.1.0-28-amd64";
    r.module = "555.58.02";
    r.marker = "555.58.02+p2p1";
    const std::vector<std::string> bdfs = {"0000:03:00.0", "0000:04:00.0", "0000:43:00.0",
                                           "0000:44:00.0"};
    r.bridges = {
        {"pci0000:00", "", "host bridge", {}, std::nullopt},
        {"pci0000:40", "", "host bridge", {}, std::nullopt},
        {"0000:00:01.0", "pci0000:00", "root port", {16, 16, 16, 16}, false},
        {"0000:40:01.0", "pci0000:40", "root port", {16, 16, 16, 16}, true},
        {"0000:01:00.0", "0000:00:01.0", "switch upstream port", {16, 16, 16, 16}, false},
        {"0000:02:00.0", "0000:01:00.0", "switch downstream port", {16, 16, 16, 16}, false},
        {"0000:02:01.0", "0000:01:00.0", "switch downstream port", {16, 16, 16, 16}, false},
        {"0000:40:02.0", "pci0000:40", "root port", {16, 8, 16, 16}, std::nullopt}};
    r.gpu_parents = {"0000:02:00.0", "0000:02:01.0", "0000:40:01.0", "0000:40:02.0"};
    for (const std::string& b : bdfs) r.gpus.push_back(gpu(b));
    r.gpus[3].link = {16, 8, 16, 16};
    for (std::size_t a = 0; a < bdfs.size(); a++)
        for (std::size_t b = 0; b < bdfs.size(); b++) {
            if (a == b) continue;
            PairResult p;
            p.src = bdfs[a];
            p.dst = bdfs[b];
            p.can_access = true;
            p.path = "pcie-bar1";
            p.path_evidence = "NVML";
            for (const char* t : {"ce_push", "ce_pull", "sm_store", "sm_load", "handshake", "ipc"})
                p.tests.push_back(test(t));
            p.bandwidth_gbs = a == 3 || b == 3 ? 6.25 : 25.5 - static_cast<double>(a);
            p.bidir_gbs = 1.5 * *p.bandwidth_gbs;
            p.limit_gbs = a == 3 || b == 3 ? 13.1 : 26.2;
            p.latency_us = 1.25 + static_cast<double>(b);
            r.pairs.push_back(p);
        }
    r.rules = {{"rebar-off", "Resizable BAR is off"}, {"acs-redirect", "ACS sends peers upstream"}};
    r.findings = {{"rebar-note", Severity::Info, "host", "Resizable BAR is on.", "", {}},
                  {"link-degraded",
                   Severity::Slow,
                   "0000:44:00.0",
                   "The link has 8 of 16 lanes.",
                   "Move the card to a slot with 16 lanes, or replace the riser.",
                   {{"/sys/bus/pci/devices/0000:44:00.0/current_link_width", "8"}}},
                  {"acs-redirect",
                   Severity::Warning,
                   "0000:40:01.0",
                   "ACS redirects peer requests to the root.",
                   "setpci -s 0000:40:01.0 ECAP_ACS+6.w=0",
                   {{"0000:40:01.0 ACS control", "0x001d"}}}};
    r.unread = {"/sys/firmware/efi/efivars: needs root"};
    conclude(r);
    return r;
}

// Every text is an attack on one of the formats.
inline Report hostile() {
    const std::string evil =
        "<script>alert('x')</script>\"&\\ \x1b[31mred\x07 \xff\xfe \n|} ]]> \xc2\x9b";
    Report r;
    r.version = "1.0.0";
    r.level = "data";
    r.time = kTime;
    r.kernel = evil;
    r.module = evil;
    r.gpus = {gpu("0000:01:00.0"), gpu("0000:02:00.0")};
    r.gpus[0].name = evil;
    r.gpus[0].driver = evil;
    r.gpus[0].iommu = evil;
    r.bridges = {{evil, "", evil, {}, true}};
    r.gpu_parents = {evil, "nowhere"};
    PairResult p;
    p.src = "0000:01:00.0";
    p.dst = "0000:02:00.0";
    p.path = evil;
    p.path_evidence = evil;
    p.tests = {test("sm_store", Outcome::Corrupt)};
    p.tests[0].bad_words = 1;
    p.tests[0].first_bad = 17;
    p.tests[0].detail = evil;
    r.pairs = {p};
    r.rules = {{"data-wrong", evil}};
    r.findings = {{"data-wrong", Severity::WrongData, evil, evil, evil, {{evil, evil}}}};
    r.unread = {evil};
    conclude(r);
    return r;
}

}  // namespace p2p::sample
