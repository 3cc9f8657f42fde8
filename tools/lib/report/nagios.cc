// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lib/report/escape.h"
#include "lib/report/formats.h"

namespace p2p {

std::string toNagios(const Report& r) {
    constexpr std::array<const char*, 4> names = {"OK", "WARNING", "CRITICAL", "UNKNOWN"};
    // "|" begins the performance data, so the text must not hold one.
    std::string text = plain(r.summary);
    std::replace(text.begin(), text.end(), '|', '/');
    std::string out = fmt::format("P2P {} - {} | verdict={} gpus={};;;0 findings={};;;0",
                                  names.at(static_cast<std::size_t>(nagiosStatus(r.verdict))), text,
                                  static_cast<int>(r.verdict), r.gpus.size(), r.findings.size());
    std::size_t ok = 0;
    std::optional<double> slowest;
    for (const PairResult& p : r.pairs) {
        ok += pairState(p) == PairState::Ok ? 1 : 0;
        if (p.bandwidth_gbs)
            slowest = std::min(slowest.value_or(*p.bandwidth_gbs), *p.bandwidth_gbs);
    }
    if (!r.pairs.empty()) out += fmt::format(" pairs_ok={};;;0;{}", ok, r.pairs.size());
    if (slowest) out += fmt::format(" min_bandwidth_gbs={:.2f};;;0", *slowest);
    return out + "\n";
}

}  // namespace p2p
