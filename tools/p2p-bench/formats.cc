// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "lib/report/escape.h"
#include "p2p-bench/bench.h"

namespace p2p::bench {

namespace {

using Number = std::optional<double>;

struct Column {
    const char* title;
    const char* unit;
    Number (*value)(const PairResult&);
    bool more_is_better;
};
const Column kColumns[] = {
    {"One direction", "GB/s", [](const PairResult& p) { return p.bandwidth_gbs; }, true},
    {"Both directions, sum", "GB/s", [](const PairResult& p) { return p.bidir_gbs; }, true},
    {"Latency, one way", "us", [](const PairResult& p) { return p.latency_us; }, false},
    {"Limit of the path, one direction", "GB/s", [](const PairResult& p) { return p.limit_gbs; },
     true},
    {"Share of the limit", "%", [](const PairResult& p) { return share(p); }, true},
};

std::string number(const Number& v, const char* none) {
    if (!v) return none;
    return *v < 10 ? fmt::format("{:.2f}", *v) : fmt::format("{:.1f}", *v);
}

std::vector<std::string> addresses(const GpuRun& run) {
    std::vector<std::string> all;
    for (const PairResult& p : run.pairs)
        for (const std::string& n : {p.src, p.dst})
            if (std::find(all.begin(), all.end(), n) == all.end()) all.push_back(n);
    std::sort(all.begin(), all.end());
    return all;
}

const PairResult* find(const GpuRun& run, const std::string& src, const std::string& dst) {
    for (const PairResult& p : run.pairs)
        if (p.src == src && p.dst == dst) return &p;
    return nullptr;
}

bool anyValue(const GpuRun& run, const Column& c) {
    return std::any_of(run.pairs.begin(), run.pairs.end(),
                       [&](const PairResult& p) { return c.value(p).has_value(); });
}

std::string head(const Judged& j) {
    return fmt::format("{} ({}){}{}", verdictName(j.verdict), static_cast<int>(j.verdict),
                       j.reason.empty() ? "" : ": ", j.reason);
}

// The one word that a matrix cell shows when there is no number.
std::string trouble(const PairResult& p) {
    for (const TestResult& t : p.tests)
        if (t.outcome != Outcome::Ok) return outcomeName(t.outcome);
    return "-";
}

// The ways of one GPU alone: name, from, to, value.
struct Way {
    std::string from, to;
    Number gbs;
};
std::vector<Way> ways(const LocalRates& l) {
    return {{"host", l.bdf, l.host_to_gpu_gbs},
            {l.bdf, "host", l.gpu_to_host_gbs},
            {l.bdf, l.bdf, l.copy_gbs}};
}

}  // namespace

std::string toText(const GpuRun& run, const Judged& judged) {
    std::string out = "p2p-bench: " + plain(head(judged)) + "\n";
    for (const GpuInfo& g : run.gpus) out += fmt::format("  {}  {}\n", plain(g.bdf), plain(g.name));
    const auto names = addresses(run);
    for (const Column& c : kColumns) {
        if (names.empty() || !anyValue(run, c)) continue;
        out += fmt::format("\n{} ({}), from row to column\n{:14}", c.title, c.unit, "");
        for (const std::string& n : names) out += fmt::format(" {:>14}", n);
        out += "\n";
        for (const std::string& a : names) {
            out += fmt::format("{:14}", a);
            for (const std::string& b : names) {
                const PairResult* p = find(run, a, b);
                out += fmt::format(" {:>14}", !p ? "." : number(c.value(*p), trouble(*p).c_str()));
            }
            out += "\n";
        }
    }
    if (!run.pairs.empty()) out += "\nPaths\n";
    for (const PairResult& p : run.pairs) {
        out += fmt::format("  {} -> {}: {} ({})\n", p.src, p.dst, p.path, plain(p.path_evidence));
        for (const TestResult& t : p.tests)
            if (t.outcome != Outcome::Ok)
                out += fmt::format("    {}: {}: {}\n", t.test, outcomeName(t.outcome),
                                   plain(t.detail));
    }
    for (const LocalRates& l : run.local) {
        out += "\nOne GPU alone (GB/s)\n";
        for (const Way& w : ways(l))
            out += fmt::format("  {:>14} -> {:14} {:>8}\n", w.from, w.to, number(w.gbs, "-"));
        if (l.latency_us)
            out += fmt::format("  flag between two of its kernels, one way: {:.2f} us\n",
                               *l.latency_us);
    }
    return out;
}

std::string toJson(const GpuRun& run, const Judged& judged) {
    using nlohmann::json;
    auto put = [](json& j, const char* key, const Number& v) {
        if (v) j[key] = *v;
    };
    json gpus = json::array(), pairs = json::array(), local = json::array();
    for (const GpuInfo& g : run.gpus) gpus.push_back({{"bdf", g.bdf}, {"name", g.name}});
    auto tests = [](const std::vector<TestResult>& all) {
        json out = json::array();
        for (const TestResult& t : all) {
            json j = {
                {"test", t.test}, {"outcome", outcomeName(t.outcome)}, {"seconds", t.seconds}};
            if (!t.detail.empty()) j["detail"] = t.detail;
            if (t.cuda_error) j["cuda_error"] = t.cuda_error;
            out.push_back(j);
        }
        return out;
    };
    for (const PairResult& p : run.pairs) {
        json j = {{"src", p.src},
                  {"dst", p.dst},
                  {"can_access", p.can_access},
                  {"path", p.path},
                  {"path_evidence", p.path_evidence},
                  {"tests", tests(p.tests)}};
        put(j, "bandwidth_gbs", p.bandwidth_gbs);
        put(j, "bidirectional_gbs", p.bidir_gbs);
        put(j, "latency_us", p.latency_us);
        put(j, "limit_gbs", p.limit_gbs);
        put(j, "share_percent", share(p));
        pairs.push_back(j);
    }
    for (const LocalRates& l : run.local) {
        json j = {{"bdf", l.bdf}, {"tests", tests(run.single)}};
        put(j, "host_to_gpu_gbs", l.host_to_gpu_gbs);
        put(j, "gpu_to_host_gbs", l.gpu_to_host_gbs);
        put(j, "copy_gbs", l.copy_gbs);
        put(j, "latency_us", l.latency_us);
        local.push_back(j);
    }
    const json all = {{"schema", 1},
                      {"program", "p2p-bench"},
                      {"verdict", verdictName(judged.verdict)},
                      {"exit_code", static_cast<int>(judged.verdict)},
                      {"reason", judged.reason},
                      {"driver", run.driver_version},
                      {"gpus", gpus},
                      {"pairs", pairs},
                      {"local", local}};
    return all.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string toCsv(const GpuRun& run) {
    std::string out =
        "source,destination,path,bandwidth_gb_s,bidirectional_gb_s,latency_us,limit_gb_s,share_"
        "percent,result\r\n";
    auto field = [](const Number& v) { return v ? fmt::format("{:.3f}", *v) : std::string(); };
    for (const PairResult& p : run.pairs) {
        const std::string result = trouble(p);
        out += fmt::format("{},{},{},{},{},{},{},{},{}\r\n", p.src, p.dst, p.path,
                           field(p.bandwidth_gbs), field(p.bidir_gbs), field(p.latency_us),
                           field(p.limit_gbs), field(share(p)), result == "-" ? "ok" : result);
    }
    for (const LocalRates& l : run.local) {
        const bool ok = std::all_of(run.single.begin(), run.single.end(),
                                    [](const TestResult& t) { return t.outcome == Outcome::Ok; });
        for (const Way& w : ways(l))
            out += fmt::format("{},{},local,{},,{},,,{}\r\n", w.from, w.to, field(w.gbs),
                               w.from == w.to ? field(l.latency_us) : "", ok ? "ok" : "failed");
    }
    return out;
}

std::string toHtml(const GpuRun& run, const Judged& judged) {
    std::string out =
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta "
        "charset=\"utf-8\"><title>p2p-bench</title>\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><style>\n"
        "body{font:16px/1.4 sans-serif;margin:2em;color:#222;background:#fff}\n"
        "table{border-collapse:collapse;margin:1em 0}caption{text-align:left;font-weight:bold}\n"
        "th,td{padding:.4em .7em;border:1px solid "
        "#ccc;text-align:right;font-variant-numeric:tabular-nums}\n"
        "</style></head><body>\n<h1>GPU to GPU rates</h1>\n";
    out += fmt::format("<p>{}</p>\n<ul>\n", html(head(judged)));
    for (const GpuInfo& g : run.gpus)
        out += fmt::format("<li>{} {}</li>\n", html(g.bdf), html(g.name));
    out += "</ul>\n";
    const auto names = addresses(run);
    for (const Column& c : kColumns) {
        if (names.empty() || !anyValue(run, c)) continue;
        double top = 0;
        for (const PairResult& p : run.pairs) top = std::max(top, c.value(p).value_or(0));
        out += fmt::format("<table><caption>{} ({}), from row to column</caption>\n<tr><th></th>",
                           c.title, c.unit);
        for (const std::string& n : names) out += fmt::format("<th scope=\"col\">{}</th>", html(n));
        out += "</tr>\n";
        for (const std::string& a : names) {
            out += fmt::format("<tr><th scope=\"row\">{}</th>", html(a));
            for (const std::string& b : names) {
                const PairResult* p = find(run, a, b);
                const Number v = p ? c.value(*p) : std::nullopt;
                if (!v) {
                    out += fmt::format("<td>{}</td>", p ? html(trouble(*p)) : "");
                    continue;
                }
                // Pale (poor) to blue (good): dark text stays readable on every step.
                const double part = top > 0 ? *v / top : 0;
                const double good = c.more_is_better ? part : 1 - part;
                out += fmt::format("<td style=\"background:hsl(210,70%,{:.0f}%)\">{}</td>",
                                   95 - 30 * good, number(v, ""));
            }
            out += "</tr>\n";
        }
        out += "</table>\n";
    }
    for (const LocalRates& l : run.local) {
        out +=
            "<table><caption>One GPU alone "
            "(GB/s)</caption>\n<tr><th>from</th><th>to</th><th>rate</th></tr>\n";
        for (const Way& w : ways(l))
            out += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td></tr>\n", html(w.from),
                               html(w.to), number(w.gbs, "-"));
        out += "</table>\n";
    }
    if (!run.pairs.empty()) out += "<h2>Paths</h2>\n<ul>\n";
    for (const PairResult& p : run.pairs)
        out += fmt::format("<li>{} to {}: {} ({})</li>\n", html(p.src), html(p.dst), html(p.path),
                           html(p.path_evidence));
    if (!run.pairs.empty()) out += "</ul>\n";
    return out + "</body></html>\n";
}

}  // namespace p2p::bench
