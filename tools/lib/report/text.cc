// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "lib/report/escape.h"
#include "lib/report/formats.h"

namespace p2p {

namespace {

// Code points, which is what a terminal's columns are for the texts we have.
std::size_t width(const std::string& s) {
    return static_cast<std::size_t>(std::count_if(s.begin(), s.end(), [](char c) {
        return (static_cast<unsigned char>(c) & 0xC0U) != 0x80;
    }));
}

std::string padded(const std::string& s, std::size_t w) {
    const std::size_t have = width(s);
    return have < w ? s + std::string(w - have, ' ') : s;
}

class Writer {
  public:
    explicit Writer(const TextStyle& style) : style_(style) {}

    std::string paint(const char* code, const std::string& text) const {
        return style_.colour ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : text;
    }

    void line(const std::string& text = "") { out_ += text + "\n"; }

    // "  first text that goes on\n        here": wrapped at spaces; a word longer than the line
    // (a path) stays whole.
    void wrapped(const std::string& first, const std::string& text) {
        const std::string indent(width(first), ' ');
        std::stringstream lines(text);
        std::string head = first;
        for (std::string one; std::getline(lines, one);) {
            std::string row = head;
            bool empty = true;
            std::stringstream words(plain(one));
            for (std::string w; words >> w;) {
                if (!empty &&
                    width(row) + 1 + width(w) > static_cast<std::size_t>(style_.columns)) {
                    line(row);
                    row = indent;
                    empty = true;
                }
                row += (empty ? "" : " ") + w;
                empty = false;
            }
            line(row);
            head = indent;
        }
    }

    void table(const std::vector<std::vector<std::string>>& rows) {
        std::vector<std::size_t> w;
        for (const auto& r : rows)
            for (std::size_t i = 0; i < r.size(); i++) {
                if (w.size() <= i) w.push_back(0);
                w[i] = std::max(w[i], width(r[i]));
            }
        for (const auto& r : rows) {
            std::string row = " ";
            for (std::size_t i = 0; i < r.size(); i++)
                row += " " + (i + 1 < r.size() ? padded(r[i], w[i] + 1) : r[i]);
            while (!row.empty() && row.back() == ' ') row.pop_back();
            line(row);
        }
    }

    std::string take() { return std::move(out_); }

  private:
    TextStyle style_;
    std::string out_;
};

const char* colourOf(Severity s) {
    switch (s) {
        case Severity::Info:
            return "36";  // cyan
        case Severity::Warning:
        case Severity::Slow:
        case Severity::Inconclusive:
            return "33";  // yellow
        default:
            return "31";  // red
    }
}

const char* colourOf(Verdict v) {
    switch (v) {
        case Verdict::Proven:
            return "1;32";
        case Verdict::Slow:
        case Verdict::Inconclusive:
            return "1;33";
        default:
            return "1;31";
    }
}

// Findings that differ only in their subject are shown together: ten GPUs with one cause are one
// thing to do.
struct Group {
    const Finding* first;
    std::vector<const Finding*> all;
};

std::vector<Group> grouped(const std::vector<Finding>& findings) {
    std::vector<Group> groups;
    for (const Finding& f : findings) {
        auto same = std::find_if(groups.begin(), groups.end(), [&](const Group& g) {
            return g.first->id == f.id && g.first->severity == f.severity &&
                   g.first->remedy == f.remedy;
        });
        if (same == groups.end())
            groups.push_back({&f, {&f}});
        else
            same->all.push_back(&f);
    }
    return groups;
}

void findings(Writer& w, const Report& r) {
    for (const Group& g : grouped(r.findings)) {
        w.line();
        std::string subjects = g.first->subject;
        if (g.all.size() > 1) subjects = fmt::format("{} times", g.all.size());
        w.line(fmt::format("{} {} ({})",
                           w.paint(colourOf(g.first->severity),
                                   fmt::format("[{}]", severityName(g.first->severity))),
                           plain(g.first->id), plain(subjects)));
        for (const Finding* f : g.all) {
            w.wrapped(g.all.size() > 1 ? fmt::format("  {}: ", plain(f->subject)) : "  cause:  ",
                      f->cause);
            for (const Evidence& e : f->evidence)
                w.wrapped("  seen:   ", fmt::format("{}: {}", e.path, e.value));
        }
        if (!g.first->remedy.empty()) w.wrapped("  remedy: ", g.first->remedy);
    }
}

void gpuTable(Writer& w, const Report& r) {
    if (r.gpus.empty()) return;
    w.line();
    w.line(fmt::format("GPUs ({})", r.gpus.size()));
    std::vector<std::vector<std::string>> rows = {
        {"address", "device", "memory", "BAR1", "driver", "IOMMU", "link"}};
    auto bytes = [](const std::optional<std::uint64_t>& v) {
        return v ? bytesText(*v) : std::string("?");
    };
    for (const ReportGpu& g : r.gpus) {
        std::string bar1 = bytes(g.bar1_bytes);
        if (g.bar1_max_bytes && g.bar1_max_bytes != g.bar1_bytes)
            bar1 += " of " + bytesText(*g.bar1_max_bytes);
        std::string name = plain(g.name.empty() ? g.device_id : g.name);
        if (name.rfind("NVIDIA ", 0) == 0) name.erase(0, 7);
        rows.push_back({plain(g.bdf), name, bytes(g.vram_bytes), bar1,
                        g.driver.empty() ? "none" : plain(g.driver),
                        g.iommu.empty() ? "off" : plain(g.iommu), linkText(g.link)});
    }
    w.table(rows);
}

using PairMap = std::map<std::pair<std::string, std::string>, const PairResult*>;

// Row sends, column receives.
template <typename F>
void matrix(Writer& w, const Report& r, const std::string& title, F cell) {
    PairMap pairs;
    std::vector<std::string> names;
    for (const PairResult& p : r.pairs) {
        pairs[{p.src, p.dst}] = &p;
        for (const std::string& n : {p.src, p.dst})
            if (std::find(names.begin(), names.end(), n) == names.end()) names.push_back(n);
    }
    std::sort(names.begin(), names.end());
    w.line();
    w.line(title);
    // Without the domain, when all are in the first, so that ten columns fit.
    const bool shorten = std::all_of(names.begin(), names.end(),
                                     [](const std::string& n) { return n.rfind("0000:", 0) == 0; });
    auto brief = [&](const std::string& n) { return plain(shorten ? n.substr(5) : n); };
    std::vector<std::vector<std::string>> rows(1, {"from\\to"});
    for (const std::string& n : names) rows[0].push_back(brief(n));
    for (const std::string& a : names) {
        std::vector<std::string> row = {brief(a)};
        for (const std::string& b : names) {
            const auto p = pairs.find({a, b});
            row.push_back(a == b ? "-" : p == pairs.end() ? "?" : cell(*p->second));
        }
        rows.push_back(row);
    }
    w.table(rows);
}

template <typename F>
bool any(const Report& r, F has) {
    return std::any_of(r.pairs.begin(), r.pairs.end(), has);
}

void pairTables(Writer& w, const Report& r) {
    if (!r.pairs.empty()) {
        matrix(w, r, "Pairs: did data arrive (row sends, column receives)",
               [](const PairResult& p) { return std::string(pairStateName(pairState(p))); });
        auto number = [](const std::optional<double>& v) {
            return v ? fmt::format("{:.1f}", *v) : std::string("?");
        };
        if (any(r, [](const PairResult& p) { return p.bandwidth_gbs.has_value(); }))
            matrix(w, r, "Bandwidth, GB/s",
                   [&](const PairResult& p) { return number(p.bandwidth_gbs); });
        if (any(r, [](const PairResult& p) { return p.bandwidth_gbs && p.limit_gbs; }))
            matrix(w, r, "Bandwidth, % of what the slowest link allows", [](const PairResult& p) {
                return p.bandwidth_gbs && p.limit_gbs && *p.limit_gbs > 0
                           ? fmt::format("{:.0f}", 100 * *p.bandwidth_gbs / *p.limit_gbs)
                           : std::string("?");
            });
        if (any(r, [](const PairResult& p) { return p.latency_us.has_value(); }))
            matrix(w, r, "Latency, microseconds",
                   [&](const PairResult& p) { return number(p.latency_us); });
        bool head = false;
        for (const PairResult& p : r.pairs)
            for (const TestResult& t : p.tests) {
                if (t.outcome == Outcome::Ok) continue;
                if (!head) {
                    w.line();
                    w.line("Tests that did not pass");
                }
                head = true;
                w.wrapped(fmt::format("  {} -> {} {}: ", plain(p.src), plain(p.dst), plain(t.test)),
                          fmt::format("{}; {}", outcomeName(t.outcome), t.detail));
            }
    }
    if (!r.single.empty()) {
        w.line();
        w.line("Tests on one GPU");
        for (const TestResult& t : r.single)
            w.wrapped(fmt::format("  {}: ", padded(plain(t.test), 15)),
                      t.detail.empty() || t.outcome == Outcome::Ok
                          ? outcomeName(t.outcome)
                          : fmt::format("{}; {}", outcomeName(t.outcome), t.detail));
    }
}

}  // namespace

std::string toText(const Report& r, const TextStyle& style) {
    Writer w(style);
    const std::string head =
        fmt::format("{} ({}): ", verdictName(r.verdict), static_cast<int>(r.verdict));
    Writer first({false, style.columns});
    first.wrapped(head, r.summary);
    std::string top = first.take();
    // Painted after wrapping: escape sequences have no width.
    if (style.colour)
        top.replace(0, head.size() - 2,
                    w.paint(colourOf(r.verdict), head.substr(0, head.size() - 2)));
    findings(w, r);
    gpuTable(w, r);
    pairTables(w, r);
    if (!r.unread.empty()) {
        w.line();
        w.line("Could not be read");
        for (const std::string& u : r.unread) w.wrapped("  ", u);
    }
    w.line();
    std::string foot =
        fmt::format("p2p-verify {}, level {}, {}", r.version, r.level, timeText(r.time));
    if (!r.rules.empty()) foot += fmt::format(", {} rules", r.rules.size());
    if (!r.kernel.empty()) foot += ", kernel " + plain(r.kernel);
    if (!r.module.empty()) foot += ", nvidia " + plain(r.module);
    w.line(foot);
    return top + w.take();
}

}  // namespace p2p
