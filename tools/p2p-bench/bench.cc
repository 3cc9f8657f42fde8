// SPDX-License-Identifier: MIT
#include "p2p-bench/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "lib/cli/cli.h"
#include "lib/facts/path.h"
#include "lib/gpu/progress_line.h"
#include "lib/gpu/run.h"

namespace p2p::bench {

namespace {

Verdict verdictOf(const TestResult& t) {
    switch (t.outcome) {
        case Outcome::Ok:
            return Verdict::Proven;
        case Outcome::NotDelivered:
        case Outcome::Zeros:
        case Outcome::Corrupt:
            return Verdict::WrongData;
        case Outcome::Timeout:
            return Verdict::Hang;
        case Outcome::Refused:
            return Verdict::Unavailable;
        case Outcome::NotRun:
            break;
    }
    return Verdict::Inconclusive;
}

void writeFile(const std::string& path, const std::string& text) {
    std::ofstream f(path, std::ios::binary | std::ios::trunc);
    f << text;
    f.close();
    if (!f)
        throw Failure(
            fmt::format("{}: cannot write: {}; choose another file", path, std::strerror(errno)),
            kExitInternal);
}

}  // namespace

std::optional<double> share(const PairResult& p) {
    if (!p.bandwidth_gbs || !p.limit_gbs || *p.limit_gbs <= 0) return std::nullopt;
    return 100 * *p.bandwidth_gbs / *p.limit_gbs;
}

Judged judge(const GpuRun& run, double min_share) {
    Judged worst_seen;
    auto consider = [&](Verdict v, const std::string& reason) {
        if (v == Verdict::Proven || worst({worst_seen.verdict, v}) == worst_seen.verdict) return;
        worst_seen = {v, reason};
    };
    if (run.nvml_init == 18 || run.cuda_init == 803)
        consider(Verdict::Reload,
                 run.error + ": the loaded module and the libraries differ; reboot");
    else if (run.timed_out && run.pairs.empty() && run.single.empty())
        consider(Verdict::Hang, run.error);
    else if (!run.ran && run.pairs.empty())
        consider(Verdict::Inconclusive, run.error.empty() ? "nothing was measured" : run.error);
    for (const PairResult& p : run.pairs) {
        for (const TestResult& t : p.tests)
            consider(verdictOf(t), fmt::format("{} {} -> {}: {}", t.test, p.src, p.dst, t.detail));
        if (min_share <= 0) continue;
        if (const auto s = share(p); !s)
            consider(Verdict::Inconclusive,
                     fmt::format("{} -> {}: {}, so its share cannot be judged", p.src, p.dst,
                                 !p.bandwidth_gbs     ? "no bandwidth was measured"
                                 : p.path == "nvlink" ? "NVLink has no limit here"
                                                      : "no limit of its path is known"));
        else if (*s < min_share)
            consider(Verdict::Slow,
                     fmt::format("{} -> {} reaches {:.0f} % of its limit", p.src, p.dst, *s));
    }
    for (const TestResult& t : run.single)
        consider(verdictOf(t), fmt::format("{}: {}", t.test, t.detail));
    if (run.pairs.empty() && !run.single.empty())
        consider(Verdict::Inconclusive, "one GPU: there is no pair to measure");
    return worst_seen;
}

int run(const Options& options) {
    GpuOptions o;
    o.level = GpuLevel::Rates;
    o.bdfs = options.gpus;
    o.timeout_s = options.timeout_s;
    o.rate_seconds = options.seconds;
    o.rate_bytes = static_cast<std::uint64_t>(options.size_mib) << 20U;
    o.step_timeout_s = std::max(20.0, 8 * options.seconds);
    o.limits_gbs = pathLimits(collect({}));
    o.progress = progressLine("p2p-bench");
    const GpuRun result = runGpu(o);
    o.progress = nullptr;  // clears its line before anything is written
    const Judged judged = judge(result, options.min_share);
    const std::string text = options.json  ? toJson(result, judged)
                             : options.csv ? toCsv(result)
                                           : toText(result, judged);
    std::fwrite(text.data(), 1, text.size(), stdout);
    if (options.csv && !judged.reason.empty())
        std::fprintf(stderr, "p2p-bench: %s\n", judged.reason.c_str());
    // Last: when the file cannot be written, what was measured has been shown.
    if (!options.html.empty()) writeFile(options.html, toHtml(result, judged));
    return static_cast<int>(judged.verdict);
}

}  // namespace p2p::bench
