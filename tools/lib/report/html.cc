// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "lib/report/escape.h"
#include "lib/report/formats.h"

namespace p2p {

namespace {

// Colours: steps of one hue (told apart by lightness, so also without colour vision), each with a
// text colour of at least 4.5:1; states carry their word, never colour alone.
constexpr const char* kStyle = R"css(
:root{color-scheme:light dark;--bg:#fff;--fg:#1b1f24;--dim:#57606a;--line:#d0d7de;--card:#f6f8fa;
--ok:#116329;--okb:#dafbe1;--bad:#a40e26;--badb:#ffebe9;--warn:#7d4e00;--warnb:#fff8c5;--info:#0550ae;--infob:#ddf4ff;
--h0:#eff3ff;--h1:#c6dbef;--h2:#9ecae1;--h3:#4a90c4;--h4:#08519c;--t0:#1b1f24;--t3:#000;--t4:#fff}
@media(prefers-color-scheme:dark){:root{--bg:#0d1117;--fg:#e6edf3;--dim:#9aa4af;--line:#30363d;--card:#161b22;
--ok:#7ee787;--okb:#12261e;--bad:#ffa198;--badb:#331a1d;--warn:#f2cc60;--warnb:#2b2312;--info:#a5d6ff;--infob:#12233a;
--h0:#16202e;--h1:#173a5e;--h2:#1f5a92;--h3:#58a6ff;--h4:#cae8ff;--t0:#e6edf3;--t3:#000;--t4:#000}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:72rem;padding:1rem;background:var(--bg);color:var(--fg);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
h1{font-size:1.2rem;margin:0 0 .75rem}h2{font-size:1.1rem;margin:2rem 0 .5rem}
.verdict{border-left:.5rem solid;border-radius:.4rem;padding:.8rem 1rem;font-size:1.05rem}
.verdict strong{display:block;font-size:1.5rem;line-height:1.3;text-transform:uppercase;letter-spacing:.03em}
.ok{color:var(--ok);background:var(--okb)}.bad{color:var(--bad);background:var(--badb)}
.warn{color:var(--warn);background:var(--warnb)}.info{color:var(--info);background:var(--infob)}
.meta{color:var(--dim);font-size:.875rem;margin:.5rem 0}
.scroll{overflow-x:auto;border:1px solid var(--line);border-radius:.4rem}
table{border-collapse:collapse;width:100%;font-size:.875rem;font-variant-numeric:tabular-nums}
th,td{padding:.4rem .6rem;text-align:left;border-bottom:1px solid var(--line);white-space:nowrap}
tr:last-child>*{border-bottom:0}th{background:var(--card)}
table.matrix{width:auto}.matrix td{text-align:center;min-width:4rem;border:1px solid var(--bg)}
.why{white-space:normal;min-width:18rem}
.matrix td.self{color:var(--dim)}
.s0{background:var(--h0);color:var(--t0)}.s1{background:var(--h1);color:var(--t0)}.s2{background:var(--h2);color:var(--t0)}
.s3{background:var(--h3);color:var(--t3)}.s4{background:var(--h4);color:var(--t4)}
article{border:1px solid var(--line);border-radius:.4rem;padding:.75rem 1rem;margin:.75rem 0}
article h3{font-size:1rem;margin:0 0 .4rem;overflow-wrap:anywhere}
article p{margin:.3rem 0;overflow-wrap:anywhere;white-space:pre-line}
.tag{display:inline-block;border-radius:.3rem;padding:0 .5rem;margin-right:.5rem;font-size:.8rem;font-weight:600}
.subject{color:var(--dim);font-weight:400}
code,.remedy{font-family:ui-monospace,"SFMono-Regular","DejaVu Sans Mono",monospace;font-size:.85rem}
.remedy{background:var(--card);border-radius:.3rem;padding:.4rem .6rem}
details{font-size:.875rem}summary{cursor:pointer;color:var(--dim)}
details ul{margin:.3rem 0;padding-left:1.2rem;overflow-wrap:anywhere}
svg.topology{display:block;font-size:13px}
svg .box rect{fill:var(--card);stroke:var(--line);stroke-width:1.5}svg .gpu rect{stroke:var(--ok)}
svg .bad rect{stroke:var(--bad);stroke-width:2}svg .bad{background:none}
svg text{fill:var(--dim)}svg .id{fill:var(--fg);font-weight:600}svg .bad text:last-child{fill:var(--bad)}
svg .speed{font-size:11px}svg .edge{fill:none;stroke:var(--dim)}
@media print{body{max-width:none}.scroll{overflow:visible}}
)css";

const char* cssOf(Verdict v) {
    switch (v) {
        case Verdict::Proven:
            return "ok";
        case Verdict::Slow:
        case Verdict::Inconclusive:
            return "warn";
        default:
            return "bad";
    }
}

const char* cssOf(Severity s) {
    switch (s) {
        case Severity::Info:
            return "info";
        case Severity::Warning:
        case Severity::Slow:
        case Severity::Inconclusive:
            return "warn";
        default:
            return "bad";
    }
}

const char* cssOf(PairState s) {
    switch (s) {
        case PairState::Ok:
            return "ok";
        case PairState::NotRun:
        case PairState::Partial:
            return "warn";
        default:
            return "bad";
    }
}

void findings(std::string& out, const Report& r) {
    constexpr std::size_t kShown = 8;  // beyond it evidence is folded away, or the page gets long
    out += fmt::format("<h2>Findings ({})</h2>\n", r.findings.size());
    if (r.findings.empty())
        out +=
            fmt::format("<p class=\"meta\">None of {} rules found anything.</p>\n", r.rules.size());
    for (const Finding& f : r.findings) {
        out += fmt::format(
            "<article><h3><span class=\"tag {}\">{}</span>{} <span "
            "class=\"subject\">{}</span></h3>\n<p>{}</p>\n",
            cssOf(f.severity), severityName(f.severity), html(f.id), html(f.subject),
            html(f.cause));
        if (!f.remedy.empty())
            out += fmt::format("<p class=\"remedy\"><b>Remedy:</b> {}</p>\n", html(f.remedy));
        if (!f.evidence.empty()) {
            out += fmt::format("<details{}><summary>What was read</summary><ul>\n",
                               r.findings.size() <= kShown ? " open" : "");
            for (const Evidence& e : f.evidence)
                out += fmt::format("<li><code>{}</code>: <code>{}</code></li>\n", html(e.path),
                                   html(e.value));
            out += "</ul></details>\n";
        }
        out += "</article>\n";
    }
}

std::string bytes(const std::optional<std::uint64_t>& v) {
    return v ? bytesText(*v) : "unknown";
}

void gpuTable(std::string& out, const Report& r) {
    out += fmt::format("<h2>GPUs ({})</h2>\n", r.gpus.size());
    if (r.gpus.empty()) return;
    out += "<div class=\"scroll\" tabindex=\"0\"><table><thead><tr>";
    for (const char* h :
         {"Address", "Device", "Memory", "BAR1", "BAR1 offered", "Driver", "IOMMU", "NUMA", "Link"})
        out += fmt::format("<th scope=\"col\">{}</th>", h);
    out += "</tr></thead><tbody>\n";
    for (const ReportGpu& g : r.gpus) {
        const bool small = g.bar1_bytes && g.vram_bytes && *g.bar1_bytes < *g.vram_bytes;
        out += fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td>", html(g.bdf),
                           html(g.name.empty() ? g.device_id : g.name), bytes(g.vram_bytes));
        out += fmt::format("<td{}>{}{}</td><td>{}</td>", small ? " class=\"bad\"" : "",
                           bytes(g.bar1_bytes), small ? " (smaller than memory)" : "",
                           bytes(g.bar1_max_bytes));
        out += fmt::format(
            "<td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
            g.driver.empty() ? "none" : html(g.driver), g.iommu.empty() ? "off" : html(g.iommu),
            g.numa_node ? std::to_string(*g.numa_node) : "?", html(linkText(g.link)));
    }
    out += "</tbody></table></div>\n";
}

struct Cell {
    std::string css, text, title;
};

template <typename F>
void matrix(std::string& out, const Report& r, const std::string& title, F cell) {
    std::map<std::pair<std::string, std::string>, const PairResult*> pairs;
    std::vector<std::string> names;
    for (const PairResult& p : r.pairs) {
        pairs[{p.src, p.dst}] = &p;
        for (const std::string& n : {p.src, p.dst})
            if (std::find(names.begin(), names.end(), n) == names.end()) names.push_back(n);
    }
    std::sort(names.begin(), names.end());
    out += fmt::format(
        "<h2>{}</h2>\n<div class=\"scroll\" tabindex=\"0\"><table "
        "class=\"matrix\"><thead><tr><th>from \\ to</th>",
        html(title));
    for (const std::string& n : names) out += fmt::format("<th scope=\"col\">{}</th>", html(n));
    out += "</tr></thead><tbody>\n";
    for (const std::string& a : names) {
        out += fmt::format("<tr><th scope=\"row\">{}</th>", html(a));
        for (const std::string& b : names) {
            const auto p = pairs.find({a, b});
            if (a == b) {
                out += "<td class=\"self\">\xE2\x80\x93</td>";
            } else if (p == pairs.end()) {
                out += "<td>?</td>";
            } else {
                const Cell c = cell(*p->second);
                out += fmt::format("<td class=\"{}\" title=\"{}\">{}</td>", c.css, html(c.title),
                                   html(c.text));
            }
        }
        out += "</tr>\n";
    }
    out += "</tbody></table></div>\n";
}

// 0..4 from 0 to 1.
std::string step(double share) {
    if (!std::isfinite(share)) return "";
    return fmt::format("s{}", std::clamp(static_cast<int>(share * 5), 0, 4));
}

template <typename F>
void numbers(std::string& out, const Report& r, const std::string& title, bool against_limit,
             F value) {
    double most = 0;
    for (const PairResult& p : r.pairs)
        if (const std::optional<double> v = value(p)) most = std::max(most, *v);
    if (most <= 0) return;
    matrix(out, r, title, [&](const PairResult& p) -> Cell {
        const std::optional<double> v = value(p);
        if (!v) return {"", "?", "not measured"};
        Cell c{step(*v / most), fmt::format("{:.1f}", *v),
               fmt::format("{} to {}: {:.2f}", p.src, p.dst, *v)};
        if (against_limit && p.limit_gbs && *p.limit_gbs > 0) {
            c.css = step(*v / *p.limit_gbs);
            c.text += fmt::format(" ({:.0f}%)", 100 * *v / *p.limit_gbs);
            c.title += fmt::format(" GB/s of {:.2f}", *p.limit_gbs);
        }
        return c;
    });
}

void tests(std::string& out, const Report& r) {
    std::string rows;
    auto add = [&](const std::string& where, const TestResult& t) {
        if (t.outcome == Outcome::Ok) return;
        rows += fmt::format(
            "<tr><td>{}</td><td>{}</td><td class=\"{}\">{}</td><td class=\"why\">{}</td></tr>\n",
            html(where), html(t.test), t.outcome == Outcome::NotRun ? "warn" : "bad",
            outcomeName(t.outcome), html(t.detail));
    };
    for (const PairResult& p : r.pairs)
        for (const TestResult& t : p.tests) add(p.src + " to " + p.dst, t);
    for (const TestResult& t : r.single) add("one GPU", t);
    if (!rows.empty())
        out +=
            "<h2>Tests that did not pass</h2>\n<div class=\"scroll\" "
            "tabindex=\"0\"><table><thead><tr><th>Pair</th><th>Test"
            "</th><th>Outcome</th><th>Detail</th></tr></thead><tbody>\n" +
            rows + "</tbody></table></div>\n";
}

}  // namespace

std::string toHtml(const Report& r) {
    std::string out;
    out += "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
    // Nothing may be loaded or run, whatever a hostile name in the data tries.
    out +=
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
        "'unsafe-inline'\">\n";
    out += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
    out += fmt::format("<title>P2P {}: {} GPUs</title>\n<style>{}</style>\n</head>\n<body>\n",
                       html(verdictName(r.verdict)), r.gpus.size(), kStyle);
    out += "<h1>GPU peer-to-peer over PCI Express</h1>\n";
    out += fmt::format("<div class=\"verdict {}\" role=\"status\"><strong>{}</strong>{}</div>\n",
                       cssOf(r.verdict), html(verdictName(r.verdict)), html(r.summary));
    out +=
        fmt::format("<p class=\"meta\">p2p-verify {}, level {}, {}, exit status {}",
                    html(r.version), html(r.level), timeText(r.time), static_cast<int>(r.verdict));
    if (!r.kernel.empty()) out += ", kernel " + html(r.kernel);
    if (!r.module.empty()) out += ", nvidia " + html(r.module);
    out += fmt::format(", {} rules</p>\n", r.rules.size());
    findings(out, r);
    if (!r.pairs.empty())
        matrix(out, r, "Did data arrive? (row sends, column receives)",
               [](const PairResult& p) -> Cell {
                   const PairState s = pairState(p);
                   return {cssOf(s), pairStateName(s),
                           fmt::format("{} to {} over {}", p.src, p.dst, p.path)};
               });
    numbers(out, r, "Bandwidth, GB/s (share of what the slowest link allows)", true,
            [](const PairResult& p) { return p.bandwidth_gbs; });
    numbers(out, r, "Both directions at once, GB/s", false,
            [](const PairResult& p) { return p.bidir_gbs; });
    numbers(out, r, "Latency, microseconds", false,
            [](const PairResult& p) { return p.latency_us; });
    tests(out, r);
    gpuTable(out, r);
    const std::string svg = topologySvg(r);
    if (!svg.empty())
        out += "<h2>PCI topology</h2>\n<div class=\"scroll\" tabindex=\"0\">\n" + svg + "</div>\n";
    if (!r.unread.empty()) {
        out += "<h2>Could not be read</h2>\n<ul>\n";
        for (const std::string& u : r.unread) out += fmt::format("<li>{}</li>\n", html(u));
        out += "</ul>\n";
    }
    return out + "</body>\n</html>\n";
}

}  // namespace p2p
