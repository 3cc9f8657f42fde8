// SPDX-License-Identifier: MIT
#include "lib/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <ctime>
#include <set>

namespace p2p {

const char* pairStateName(PairState s) {
    switch (s) {
        case PairState::NotRun:
            return "not-run";
        case PairState::Partial:
            return "partial";
        case PairState::Ok:
            return "ok";
        case PairState::Refused:
            return "refused";
        case PairState::Hang:
            return "hang";
        case PairState::Wrong:
            return "wrong";
    }
    return "not-run";
}

PairState pairState(const PairResult& pair) {
    // As in worst(): harm outranks a refusal.
    PairState state = PairState::NotRun;
    bool ok = false;
    bool missing = false;
    for (const TestResult& t : pair.tests) {
        switch (t.outcome) {
            case Outcome::NotDelivered:
            case Outcome::Zeros:
            case Outcome::Corrupt:
                state = std::max(state, PairState::Wrong);
                break;
            case Outcome::Timeout:
                state = std::max(state, PairState::Hang);
                break;
            case Outcome::Refused:
                state = std::max(state, PairState::Refused);
                break;
            case Outcome::Ok:
                ok = true;
                break;
            case Outcome::NotRun:
                missing = true;
                break;
        }
    }
    if (state != PairState::NotRun) return state;
    if (!ok) return PairState::NotRun;
    return missing ? PairState::Partial : PairState::Ok;
}

namespace {

std::string sentence(std::string text) {
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    if (!text.empty() && text.back() != '.' && text.back() != '!' && text.back() != '?')
        text += '.';
    return text;
}

std::string lowerFirst(std::string text) {
    // "The module ..." and "A GPU ..." read on after a colon; "BAR1 ..." keeps its capitals.
    if (text.size() > 1 && std::isupper(static_cast<unsigned char>(text[0])) &&
        (text[1] == ' ' || std::islower(static_cast<unsigned char>(text[1]))))
        text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
    return text;
}

std::string provenText(const Report& r) {
    const std::size_t n = r.gpus.size();
    if (r.level == "env")
        return fmt::format(
            "Nothing was found that stands in the way of P2P between the {} GPUs; no data was "
            "moved (level env).",
            n);
    return fmt::format(
        "P2P is proven: on all {} ordered pairs every word arrived on the GPU it was sent to.",
        r.pairs.size());
}

const char* lead(Verdict v) {
    switch (v) {
        case Verdict::Proven:
            return "";
        case Verdict::Slow:
            return "P2P works, but slower than the link allows";
        case Verdict::Unavailable:
            return "P2P is unavailable";
        case Verdict::Reload:
            return "A reload or reboot is due";
        case Verdict::WrongData:
            return "P2P delivers WRONG DATA; do not use it";
        case Verdict::Hang:
            return "P2P HANGS; do not use it";
        case Verdict::Inconclusive:
            return "No conclusion";
    }
    return "";
}

}  // namespace

void conclude(Report& r) {
    std::vector<Verdict> all;
    for (const Finding& f : r.findings) all.push_back(severityVerdict(f.severity));
    r.verdict = worst(all);
    auto rank = [](const Finding& f) {
        constexpr std::array<Severity, 8> order = {
            Severity::WrongData,    Severity::Hang, Severity::Reload,  Severity::Block,
            Severity::Inconclusive, Severity::Slow, Severity::Warning, Severity::Info};
        return std::find(order.begin(), order.end(), f.severity) - order.begin();
    };
    std::stable_sort(r.findings.begin(), r.findings.end(),
                     [&](const Finding& a, const Finding& b) { return rank(a) < rank(b); });
    if (r.verdict == Verdict::Proven) {
        r.summary = provenText(r);
        return;
    }
    std::set<std::string> others;
    const Finding* first = nullptr;
    for (const Finding& f : r.findings) {
        if (severityVerdict(f.severity) != r.verdict) continue;
        if (first == nullptr)
            first = &f;
        else if (f.id != first->id)
            others.insert(f.id);
    }
    if (first == nullptr) return;
    r.summary = fmt::format("{}: {}", lead(r.verdict), sentence(lowerFirst(first->cause)));
    if (!others.empty()) {
        r.summary.pop_back();
        r.summary += fmt::format(" (and {} more {}).", others.size(),
                                 others.size() == 1 ? "cause" : "causes");
    }
}

std::string bytesText(std::uint64_t bytes) {
    constexpr std::array<const char*, 6> units = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    std::size_t u = 0;
    auto value = static_cast<double>(bytes);
    while (value >= 1024 && u + 1 < units.size()) {
        value /= 1024;
        u++;
    }
    const bool whole = value == static_cast<double>(static_cast<std::uint64_t>(value));
    return whole ? fmt::format("{:.0f} {}", value, units[u])
                 : fmt::format("{:.1f} {}", value, units[u]);
}

namespace {

std::string linkHalf(const std::optional<double>& gts, const std::optional<int>& width) {
    std::string out;
    if (gts) out = fmt::format("{:g} GT/s", *gts);
    if (width) out += fmt::format("{}x{}", out.empty() ? "" : " ", *width);
    return out;
}

}  // namespace

std::string linkText(const ReportLink& link) {
    std::string now = linkHalf(link.gts, link.width);
    const std::string most = linkHalf(link.max_gts, link.max_width);
    if (now.empty() && most.empty()) return "unknown";
    if (now.empty()) return "up to " + most;
    if (most.empty() || most == now) return now;
    return fmt::format("{} of {}", now, most);
}

std::string timeText(std::int64_t seconds) {
    const auto t = static_cast<std::time_t>(seconds);
    std::tm tm{};
    gmtime_r(&t, &tm);
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", tm.tm_year + 1900, tm.tm_mon + 1,
                       tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
}

}  // namespace p2p
