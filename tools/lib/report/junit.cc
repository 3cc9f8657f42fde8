// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <map>
#include <set>

#include "lib/report/escape.h"
#include "lib/report/formats.h"

namespace p2p {

namespace {

struct Case {
    std::string cls, name;
    double seconds = 0;
    std::string kind;  // "", "failure", "skipped"
    std::string type, message, body;
};

std::string findingText(const Finding& f) {
    std::string t = fmt::format("{}: {}\nremedy: {}\n", f.subject, f.cause, f.remedy);
    for (const Evidence& e : f.evidence) t += fmt::format("seen: {}: {}\n", e.path, e.value);
    return t;
}

Case ruleCase(const std::string& id, const std::vector<const Finding*>& found) {
    Case c{"p2p.environment", id, 0, "", "", "", ""};
    // Findings are sorted: the first is the strongest.
    for (const Finding* f : found) {
        if (c.body.empty()) {
            const Verdict v = severityVerdict(f->severity);
            if (v == Verdict::Inconclusive)
                c.kind = "skipped";
            else if (v != Verdict::Proven && v != Verdict::Slow)
                c.kind = "failure";
            c.type = severityName(f->severity);
            c.message = f->cause;
        }
        c.body += findingText(*f);
    }
    return c;
}

Case testCase(const std::string& cls, const TestResult& t) {
    Case c{cls, t.test, t.seconds, "", outcomeName(t.outcome), t.detail, t.detail};
    if (t.outcome == Outcome::NotRun)
        c.kind = "skipped";
    else if (t.outcome != Outcome::Ok)
        c.kind = "failure";
    else
        c.body.clear();
    if (t.bad_words != 0)
        c.body += fmt::format("\n{} of {} words wrong, first at word {}", t.bad_words, t.words,
                              t.first_bad);
    if (t.cuda_error != 0) c.body += fmt::format("\nCUresult {}", t.cuda_error);
    return c;
}

std::string suite(const std::string& name, const std::string& time,
                  const std::vector<Case>& cases) {
    int failures = 0;
    int skipped = 0;
    double seconds = 0;
    std::string out;
    for (const Case& c : cases) {
        failures += c.kind == "failure" ? 1 : 0;
        skipped += c.kind == "skipped" ? 1 : 0;
        seconds += c.seconds;
        out += fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"{:.3f}\"", xml(c.cls),
                           xml(c.name), c.seconds);
        if (c.kind.empty() && c.body.empty()) {
            out += "/>\n";
            continue;
        }
        out += ">\n";
        if (c.kind == "failure")
            out += fmt::format("      <failure type=\"{}\" message=\"{}\">{}</failure>\n",
                               xml(c.type), xml(c.message), xml(c.body));
        else if (c.kind == "skipped")
            out += fmt::format("      <skipped message=\"{}\"/>\n", xml(c.message));
        else
            out += fmt::format("      <system-out>{}</system-out>\n", xml(c.body));
        out += "    </testcase>\n";
    }
    return fmt::format(
               "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\" "
               "time=\"{:.3f}\" "
               "timestamp=\"{}\">\n",
               xml(name), cases.size(), failures, skipped, seconds, xml(time)) +
           out + "  </testsuite>\n";
}

}  // namespace

std::string toJunit(const Report& r) {
    // ISO 8601 without a zone, as the common schema of JUnit reports asks for.
    const std::string time = timeText(r.time).substr(0, 19);
    std::map<std::string, std::vector<const Finding*>> by_id;
    for (const Finding& f : r.findings) by_id[f.id].push_back(&f);
    std::vector<Case> environment;
    std::set<std::string> known;
    for (const CheckedRule& rule : r.rules) {
        known.insert(rule.id);
        environment.push_back(ruleCase(rule.id, by_id[rule.id]));
    }
    for (const auto& [id, found] : by_id)
        if (known.insert(id).second) environment.push_back(ruleCase(id, found));

    std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
    out += fmt::format("<testsuites name=\"p2p-verify {}\">\n", xml(r.level));
    out += suite("environment", time, environment);
    std::vector<Case> tests;
    for (const PairResult& p : r.pairs)
        for (const TestResult& t : p.tests)
            tests.push_back(testCase(fmt::format("p2p.pair.{}->{}", p.src, p.dst), t));
    for (const TestResult& t : r.single) tests.push_back(testCase("p2p.single", t));
    if (!tests.empty()) out += suite("data", time, tests);
    return out + "</testsuites>\n";
}

}  // namespace p2p
