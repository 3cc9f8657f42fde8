// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <set>

#include "lib/report/escape.h"
#include "lib/report/formats.h"

namespace p2p {

namespace {

using Labels = std::vector<std::pair<const char*, std::string>>;

// One metric family: HELP and TYPE once, then its series; nothing at all without a series.
class Family {
  public:
    Family(const char* name, const char* help) : name_(name), help_(help) {}

    void add(const Labels& labels, double value) {
        std::string set;
        for (const auto& [key, v] : labels)
            set += fmt::format("{}{}=\"{}\"", set.empty() ? "" : ",", key, label(v));
        // The same series twice would make the whole file unreadable.
        if (!seen_.insert(set).second) return;
        series_ += fmt::format("{}{{{}}} {}\n", name_, set, value);
    }

    std::string text() const {
        if (series_.empty()) return "";
        return fmt::format("# HELP {0} {1}\n# TYPE {0} gauge\n{2}", name_, help_, series_);
    }

  private:
    const char* name_;
    const char* help_;
    std::set<std::string> seen_;
    std::string series_;
};

constexpr double kGiga = 1e9;

}  // namespace

std::string toPrometheus(const Report& r) {
    const std::string& level = r.level;
    Family verdict("nvidia_p2p_verdict",
                   "Exit status of p2p-verify: 0 proven, 10 slow, 20 unavailable, 21 reload, 30 "
                   "wrong data, 31 hang, "
                   "40 inconclusive.");
    verdict.add({{"level", level}}, static_cast<int>(r.verdict));
    Family info("nvidia_p2p_info",
                "Versions of the tools, the loaded nvidia module, its marker and the kernel.");
    info.add({{"level", level},
              {"version", r.version},
              {"module", r.module},
              {"marker", r.marker},
              {"kernel", r.kernel}},
             1);
    Family last("nvidia_p2p_last_run_timestamp_seconds",
                "When p2p-verify ran, seconds since 1970.");
    last.add({{"level", level}}, static_cast<double>(r.time));
    Family finding("nvidia_p2p_finding", "1 for each finding of the last run.");
    for (const Finding& f : r.findings)
        finding.add({{"level", level},
                     {"id", f.id},
                     {"severity", severityName(f.severity)},
                     {"subject", f.subject}},
                    1);
    Family unread("nvidia_p2p_unread", "Number of things that the last run could not read.");
    unread.add({{"level", level}}, static_cast<double>(r.unread.size()));
    Family bar1("nvidia_p2p_gpu_bar1_bytes",
                "Size of the GPU's BAR1, the window that peers write through.");
    Family bar1_max("nvidia_p2p_gpu_bar1_max_bytes",
                    "Largest BAR1 that the Resizable BAR capability offers.");
    Family vram("nvidia_p2p_gpu_vram_bytes", "Memory of the GPU.");
    for (const ReportGpu& g : r.gpus) {
        const Labels l = {{"level", level}, {"gpu", g.bdf}, {"name", g.name}};
        if (g.bar1_bytes) bar1.add(l, static_cast<double>(*g.bar1_bytes));
        if (g.bar1_max_bytes) bar1_max.add(l, static_cast<double>(*g.bar1_max_bytes));
        if (g.vram_bytes) vram.add(l, static_cast<double>(*g.vram_bytes));
    }
    Family outcome(
        "nvidia_p2p_pair_outcome",
        "1 for the outcome of each ordered pair: ok, partial, refused, hang, wrong or not-run.");
    Family bandwidth("nvidia_p2p_pair_bandwidth_bytes_per_second",
                     "Measured bandwidth from src to dst.");
    Family limit("nvidia_p2p_pair_limit_bytes_per_second",
                 "What the slowest link between src and dst allows.");
    Family latency("nvidia_p2p_pair_latency_seconds", "Measured one-way latency from src to dst.");
    for (const PairResult& p : r.pairs) {
        const Labels l = {{"level", level}, {"src", p.src}, {"dst", p.dst}};
        Labels with = l;
        with.emplace_back("outcome", pairStateName(pairState(p)));
        outcome.add(with, 1);
        if (p.bandwidth_gbs) bandwidth.add(l, *p.bandwidth_gbs * kGiga);
        if (p.limit_gbs) limit.add(l, *p.limit_gbs * kGiga);
        if (p.latency_us) latency.add(l, *p.latency_us / 1e6);
    }
    std::string out;
    for (const Family* f : {&verdict, &info, &last, &finding, &unread, &bar1, &bar1_max, &vram,
                            &outcome, &bandwidth, &limit, &latency})
        out += f->text();
    return out;
}

}  // namespace p2p
