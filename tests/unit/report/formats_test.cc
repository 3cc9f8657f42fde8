// SPDX-License-Identifier: MIT
#include "lib/report/formats.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "golden.h"
#include "sample.h"
#include "schema.h"

using namespace p2p;
using nlohmann::json;

namespace {

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

json schemaFile() {
    return json::parse(golden::slurp(std::string(P2P_FIXTURES) + "/schema/p2p-verify-1.json"));
}

void fitsSchema(const Report& r) {
    for (const std::string& e : schema::errorsOf(schemaFile(), json::parse(toJson(r))))
        BOOST_ERROR(e);
}

std::size_t count(const std::string& text, const std::string& part) {
    std::size_t n = 0;
    for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size())
        n++;
    return n;
}

// A small well-formedness check: elements nest, attributes are quoted, nothing raw is left over.
bool wellFormed(const std::string& xml) {
    static const std::regex tag(R"(<(/?)([A-Za-z][\w-]*)((?:\s+[\w:-]+="[^"<]*")*)\s*(/?)>)");
    std::vector<std::string> open;
    std::size_t at = xml.find("?>");
    at = at == std::string::npos ? 0 : at + 2;
    for (;;) {
        const std::size_t lt = xml.find('<', at);
        const std::string text =
            xml.substr(at, lt == std::string::npos ? std::string::npos : lt - at);
        if (text.find("]]>") != std::string::npos) return false;
        for (std::size_t i = text.find('&'); i != std::string::npos; i = text.find('&', i + 1))
            if (!std::regex_search(text.substr(i), std::regex("^&(amp|lt|gt|quot|#[0-9]+);")))
                return false;
        if (lt == std::string::npos) return open.empty();
        std::smatch m;
        const std::string rest = xml.substr(lt);
        if (!std::regex_search(rest, m, tag, std::regex_constants::match_continuous)) return false;
        if (m[1].length() != 0) {
            if (open.empty() || open.back() != m[2]) return false;
            open.pop_back();
        } else if (m[4].length() == 0) {
            open.push_back(m[2]);
        }
        at = lt + m[0].length();
    }
}

bool hasControl(const std::string& text) {
    return std::any_of(text.begin(), text.end(), [](char c) {
        const auto u = static_cast<unsigned char>(c);
        return (u < 0x20 && c != '\n') || u == 0x7F;
    });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(formats)

// ---- text

BOOST_AUTO_TEST_CASE(text_golden) {
    golden::compare("rig.txt", toText(sample::rig(), {}));
}

BOOST_AUTO_TEST_CASE(text_begins_with_the_verdict_and_keeps_to_its_columns) {
    const std::string t = toText(sample::rig(), {});
    BOOST_TEST(t.rfind("slow (10): ", 0) == 0);
    std::stringstream lines(t);
    for (std::string line; std::getline(lines, line);) BOOST_TEST(line.size() <= 100U, line);
}

BOOST_AUTO_TEST_CASE(text_colour_is_only_paint) {
    const std::string coloured = toText(sample::rig(), {true, 100});
    BOOST_TEST(has(coloured, "\x1b[1;33mslow (10)"));
    BOOST_TEST(std::regex_replace(coloured, std::regex("\x1b\\[[0-9;]*m"), "") ==
               toText(sample::rig(), {}));
}

BOOST_AUTO_TEST_CASE(text_of_hostile_names_has_no_control_character) {
    BOOST_TEST(!hasControl(toText(sample::hostile(), {})));
}

BOOST_AUTO_TEST_CASE(text_shows_one_remedy_for_one_cause_on_many_gpus) {
    Report r;
    for (const char* s : {"0000:01:00.0", "0000:02:00.0"})
        r.findings.push_back(
            {"rebar-off", Severity::Block, s, "BAR1 is 256 MiB.", "Turn it on.", {}});
    conclude(r);
    const std::string t = toText(r, {});
    BOOST_TEST(count(t, "Turn it on.") == 1U);
    BOOST_TEST(has(t, "0000:01:00.0: BAR1"));
    BOOST_TEST(has(t, "0000:02:00.0: BAR1"));
}

// ---- JSON

BOOST_AUTO_TEST_CASE(json_golden) {
    golden::compare("rig.json", toJson(sample::rig()));
}

BOOST_AUTO_TEST_CASE(json_fits_its_schema) {
    fitsSchema(sample::rig());
    fitsSchema(sample::hostile());
    Report empty;
    empty.level = "env";
    conclude(empty);
    fitsSchema(empty);
}

// The checker itself must be able to say no.
BOOST_AUTO_TEST_CASE(schema_checker_refuses) {
    const json good = json::parse(toJson(sample::rig()));
    auto refused = [&](const char* pointer, const json& value) {
        json bad = good;
        bad[json::json_pointer(pointer)] = value;
        return !schema::errorsOf(schemaFile(), bad).empty();
    };
    BOOST_TEST(!refused("/exit_code", 10));
    BOOST_TEST(refused("/exit_code", 11));
    BOOST_TEST(refused("/verdict", "fine"));
    BOOST_TEST(refused("/gpus/0/bdf", "01:00.0"));
    BOOST_TEST(refused("/gpus/0/bar1_bytes", "256"));
    BOOST_TEST(refused("/pairs/0/tests/0/outcome", "good"));
    BOOST_TEST(refused("/unknown", 1));
    json missing = good;
    missing.erase("findings");
    BOOST_TEST(!schema::errorsOf(schemaFile(), missing).empty());
}

// ---- JUnit

BOOST_AUTO_TEST_CASE(junit_golden) {
    golden::compare("rig.junit.xml", toJunit(sample::rig()));
}

BOOST_AUTO_TEST_CASE(junit_is_well_formed_whatever_the_names) {
    BOOST_TEST(wellFormed("<a b=\"&lt;\"><c/></a>"));
    BOOST_TEST(!wellFormed("<a><b></a></b>"));
    BOOST_TEST(!wellFormed("<a>x & y</a>"));
    BOOST_TEST(wellFormed(toJunit(sample::rig())));
    const std::string x = toJunit(sample::hostile());
    BOOST_TEST(wellFormed(x));
    BOOST_TEST(!hasControl(x));
    BOOST_TEST(!has(x, "<script"));
}

BOOST_AUTO_TEST_CASE(junit_counts_failures_and_skips) {
    Report r = sample::rig();
    r.findings.push_back({"rebar-off", Severity::Block, "host", "Off.", "On.", {}});
    r.findings.push_back({"extra", Severity::Inconclusive, "host", "One GPU.", "", {}});
    r.pairs[0].tests[0].outcome = Outcome::Zeros;
    r.pairs[0].tests[1].outcome = Outcome::NotRun;
    conclude(r);
    const std::string x = toJunit(r);
    BOOST_TEST(
        has(x, "name=\"environment\" tests=\"5\" failures=\"1\" errors=\"0\" skipped=\"1\""));
    BOOST_TEST(has(x, "name=\"data\" tests=\"72\" failures=\"1\" errors=\"0\" skipped=\"1\""));
    BOOST_TEST(has(x, "<failure type=\"zeros\""));
}

// ---- Prometheus

BOOST_AUTO_TEST_CASE(prometheus_golden) {
    golden::compare("rig.prom", toPrometheus(sample::rig()));
}

BOOST_AUTO_TEST_CASE(prometheus_has_each_series_once) {
    Report r = sample::rig();
    r.findings.push_back(r.findings[0]);
    const std::string p = toPrometheus(r);
    std::set<std::string> seen;
    std::stringstream lines(p);
    for (std::string line; std::getline(lines, line);) {
        if (line[0] == '#') continue;
        BOOST_TEST(seen.insert(line.substr(0, line.rfind(' '))).second, line);
        BOOST_TEST(has(line, "level=\"full\""), line);
    }
    BOOST_TEST(has(p, "nvidia_p2p_verdict{level=\"full\"} 10\n"));
}

BOOST_AUTO_TEST_CASE(prometheus_passes_promtool) {
    if (std::system("command -v promtool >/dev/null 2>&1") != 0) {
        BOOST_TEST_MESSAGE("SKIPPED: promtool is not installed");
        return;
    }
    for (const Report& r : {sample::rig(), sample::hostile()}) {
        FILE* p = popen("promtool check metrics", "w");
        BOOST_REQUIRE(p != nullptr);
        const std::string text = toPrometheus(r);
        std::fwrite(text.data(), 1, text.size(), p);
        BOOST_TEST(pclose(p) == 0);
    }
}

// ---- Nagios

BOOST_AUTO_TEST_CASE(nagios_is_one_line_with_performance_data) {
    BOOST_TEST(toNagios(sample::rig()) ==
               "P2P WARNING - P2P works, but slower than the link allows: the link has 8 of 16 "
               "lanes. | verdict=10 "
               "gpus=4;;;0 findings=3;;;0 pairs_ok=12;;;0;12 min_bandwidth_gbs=6.25;;;0\n");
    const std::string h = toNagios(sample::hostile());
    BOOST_TEST(count(h, "\n") == 1U);
    BOOST_TEST(count(h, "|") == 1U);
    BOOST_TEST(h.rfind("P2P CRITICAL - ", 0) == 0);
}

// ---- HTML

BOOST_AUTO_TEST_CASE(html_golden) {
    golden::compare("rig.html", toHtml(sample::rig()));
}

BOOST_AUTO_TEST_CASE(html_needs_nothing_from_elsewhere) {
    const std::string h = toHtml(sample::rig());
    for (const char* s : {"http:", "https:", "<script", "<link", "<img", "url(", "@import", "src="})
        BOOST_TEST(!has(h, s), s);
    BOOST_TEST(has(h, "Content-Security-Policy"));
    BOOST_TEST(has(h, "<svg"));
}

BOOST_AUTO_TEST_CASE(html_of_hostile_names_holds_no_markup_of_theirs) {
    const std::string h = toHtml(sample::hostile());
    BOOST_TEST(!has(h, "<script"));
    BOOST_TEST(has(h, "&lt;script&gt;"));
    // The only single quotes are those of our own policy and style.
    BOOST_TEST(!has(h, "alert('"));
}

// A snapshot may hold anything: parents that are not there, or that lead in a circle.
BOOST_AUTO_TEST_CASE(topology_of_broken_trees_ends) {
    Report r = sample::rig();
    r.bridges = {{"a", "b", "", {}, std::nullopt},
                 {"b", "a", "", {}, std::nullopt},
                 {"c", "c", "", {}, std::nullopt}};
    r.gpu_parents = {"a", "c", "none"};
    const std::string svg = topologySvg(r);
    BOOST_TEST(wellFormed(svg));
    BOOST_TEST(has(svg, "0000:44:00.0"));
    r.gpus.clear();
    BOOST_TEST(topologySvg(r).empty());
}

BOOST_AUTO_TEST_SUITE_END()
