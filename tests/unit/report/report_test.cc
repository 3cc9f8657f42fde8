// SPDX-License-Identifier: MIT
#include "lib/report/report.h"

#include <boost/test/unit_test.hpp>

#include "sample.h"

using namespace p2p;

BOOST_AUTO_TEST_SUITE(report)

BOOST_AUTO_TEST_CASE(strongest_finding_gives_verdict_and_sentence) {
    Report r;
    r.findings = {{"a", Severity::Info, "host", "Fine.", "", {}},
                  {"b", Severity::Block, "host", "BAR1 is small", "", {}},
                  {"c", Severity::Reload, "host", "The module on disk is newer.", "", {}}};
    conclude(r);
    BOOST_TEST((r.verdict == Verdict::Reload));
    BOOST_TEST(r.summary == "A reload or reboot is due: the module on disk is newer.");
    BOOST_TEST(r.findings[0].id == "c");
    BOOST_TEST(r.findings[1].id == "b");
}

BOOST_AUTO_TEST_CASE(several_causes_are_counted_by_id) {
    Report r;
    r.findings = {{"b", Severity::Block, "x", "BAR1 is small.", "", {}},
                  {"b", Severity::Block, "y", "BAR1 is small.", "", {}},
                  {"d", Severity::Block, "z", "No driver.", "", {}}};
    conclude(r);
    BOOST_TEST(r.summary == "P2P is unavailable: BAR1 is small (and 1 more cause).");
}

BOOST_AUTO_TEST_CASE(env_never_claims_a_proof) {
    Report r;
    r.level = "env";
    r.gpus.resize(2);
    conclude(r);
    BOOST_TEST((r.verdict == Verdict::Proven));
    BOOST_TEST(r.summary.find("no data was moved") != std::string::npos);
    BOOST_TEST(r.summary.find("proven") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(pair_state_is_its_worst_test) {
    PairResult p;
    BOOST_TEST(std::string(pairStateName(pairState(p))) == "not-run");
    p.tests = {sample::test("a"), sample::test("b")};
    BOOST_TEST(std::string(pairStateName(pairState(p))) == "ok");
    p.tests.push_back(sample::test("c", Outcome::NotRun));
    BOOST_TEST(std::string(pairStateName(pairState(p))) == "partial");
    p.tests.push_back(sample::test("d", Outcome::Refused));
    BOOST_TEST(std::string(pairStateName(pairState(p))) == "refused");
    p.tests.push_back(sample::test("e", Outcome::Timeout));
    BOOST_TEST(std::string(pairStateName(pairState(p))) == "hang");
    for (Outcome o : {Outcome::NotDelivered, Outcome::Zeros, Outcome::Corrupt}) {
        PairResult q = p;
        q.tests.push_back(sample::test("f", o));
        BOOST_TEST(std::string(pairStateName(pairState(q))) == "wrong");
    }
}

BOOST_AUTO_TEST_CASE(sizes_links_and_times_as_text) {
    BOOST_TEST(bytesText(0) == "0 B");
    BOOST_TEST(bytesText(256ULL << 20U) == "256 MiB");
    BOOST_TEST(bytesText(24ULL << 30U) == "24 GiB");
    BOOST_TEST(bytesText(1610612736) == "1.5 GiB");
    BOOST_TEST(linkText({}) == "unknown");
    BOOST_TEST(linkText({16, 8, 16, 16}) == "16 GT/s x8 of 16 GT/s x16");
    BOOST_TEST(linkText({16, 16, 16, 16}) == "16 GT/s x16");
    BOOST_TEST(linkText({std::nullopt, 4, std::nullopt, std::nullopt}) == "x4");
    BOOST_TEST(timeText(sample::kTime) == "2026-12-01T10:00:00Z");
    BOOST_TEST(timeText(0) == "1970-01-01T00:00:00Z");
}

BOOST_AUTO_TEST_SUITE_END()
