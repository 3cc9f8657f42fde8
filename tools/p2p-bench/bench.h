// SPDX-License-Identifier: MIT
// What p2p-bench says of a measured run.
#pragma once
#include <optional>
#include <string>

#include "lib/gpu/result.h"
#include "lib/util/verdict.h"
#include "p2p-bench/app.h"

namespace p2p::bench {

struct Judged {
    Verdict verdict = Verdict::Proven;
    std::string reason;  // one sentence; empty when all was measured
};

// Wrong data, a passed deadline or a refusal anywhere outranks the speeds; `min_share` in percent
// of a pair's limit, 0 for none.
Judged judge(const GpuRun& run, double min_share);

// Unidirectional bandwidth in percent of the limit.
std::optional<double> share(const PairResult& p);

std::string toText(const GpuRun& run, const Judged& judged);
std::string toJson(const GpuRun& run, const Judged& judged);
std::string toCsv(const GpuRun& run);  // RFC 4180
std::string toHtml(const GpuRun& run, const Judged& judged);

// Measures, writes what was asked for, returns the exit status.  Throws Failure (one
// line) when a file cannot be written.
int run(const Options& options);

}  // namespace p2p::bench
