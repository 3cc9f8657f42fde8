// SPDX-License-Identifier: MIT
#include "p2p-bench/bench.h"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

using namespace p2p;
using bench::judge;
using bench::share;

namespace {

TestResult test(const char* name, Outcome o, const char* detail = "") {
    TestResult t;
    t.test = name;
    t.outcome = o;
    t.detail = detail;
    return t;
}

// Two GPUs, one direction measured, the other refused.
GpuRun twoGpus() {
    GpuRun r;
    r.ran = true;
    PairResult p;
    p.src = "0000:01:00.0";
    p.dst = "0000:02:00.0";
    p.path = "pcie-bar1";
    p.path_evidence = "NVML <says> so";
    p.tests = {test("bandwidth", Outcome::Ok)};
    p.bandwidth_gbs = 21.45;
    p.bidir_gbs = 40;
    p.latency_us = 1.25;
    p.limit_gbs = 28.6;
    r.pairs.push_back(p);
    PairResult back = p;
    std::swap(back.src, back.dst);
    r.pairs.push_back(back);
    for (const char* bdf : {"0000:01:00.0", "0000:02:00.0"}) {
        GpuInfo g;
        g.bdf = bdf;
        g.name = "A & B";
        r.gpus.push_back(g);
    }
    return r;
}

GpuRun oneGpu() {
    GpuRun r;
    r.ran = true;
    r.single = {test("self_rates", Outcome::Ok)};
    LocalRates l;
    l.bdf = "0000:01:00.0";
    l.copy_gbs = 800;
    l.host_to_gpu_gbs = 25;
    l.gpu_to_host_gbs = 26;
    l.latency_us = 0.9;
    r.local.push_back(l);
    return r;
}

}  // namespace

BOOST_AUTO_TEST_CASE(all_measured_is_proven) {
    const auto j = judge(twoGpus(), 0);
    BOOST_TEST((j.verdict == Verdict::Proven));
    BOOST_TEST(j.reason == "");
}

BOOST_AUTO_TEST_CASE(speed_fails_only_when_asked_to) {
    GpuRun r = twoGpus();
    BOOST_TEST(share(r.pairs[0]).value() == 75, boost::test_tools::tolerance(1e-9));
    BOOST_TEST((judge(r, 74).verdict == Verdict::Proven));
    BOOST_TEST((judge(r, 76).verdict == Verdict::Slow));
    BOOST_TEST(judge(r, 76).reason == "0000:01:00.0 -> 0000:02:00.0 reaches 75 % of its limit");
    r.pairs[0].limit_gbs.reset();
    BOOST_TEST(!share(r.pairs[0]));
}

BOOST_AUTO_TEST_CASE(a_share_of_no_limit_is_no_pass) {
    GpuRun r = twoGpus();
    r.pairs[1].limit_gbs.reset();
    BOOST_TEST((judge(r, 0).verdict == Verdict::Proven));
    BOOST_TEST((judge(r, 50).verdict == Verdict::Inconclusive));
    BOOST_TEST(judge(r, 50).reason ==
               "0000:02:00.0 -> 0000:01:00.0: no limit of its path is known, so its share cannot "
               "be judged");
    r.pairs[1].path = "nvlink";
    BOOST_TEST(judge(r, 50).reason.find("NVLink has no limit") != std::string::npos);
    r.pairs[1] = r.pairs[0];
    r.pairs[1].bandwidth_gbs.reset();
    BOOST_TEST(judge(r, 50).reason.find("no bandwidth was measured") != std::string::npos);
    // What was refused is said, not that it has no share.
    r.pairs[1].tests = {test("bandwidth", Outcome::Refused, "no")};
    BOOST_TEST((judge(r, 50).verdict == Verdict::Unavailable));
}

BOOST_AUTO_TEST_CASE(the_worst_of_all_tests_is_the_verdict) {
    GpuRun r = twoGpus();
    r.pairs[1].tests = {test("bandwidth", Outcome::Refused, "no")};
    BOOST_TEST((judge(r, 0).verdict == Verdict::Unavailable));
    r.pairs[0].tests.push_back(test("latency", Outcome::Timeout));
    BOOST_TEST((judge(r, 0).verdict == Verdict::Hang));
    r.pairs[1].tests.push_back(test("bidirectional", Outcome::Corrupt));
    BOOST_TEST((judge(r, 0).verdict == Verdict::WrongData));
}

BOOST_AUTO_TEST_CASE(one_gpu_is_inconclusive) {
    const auto j = judge(oneGpu(), 0);
    BOOST_TEST((j.verdict == Verdict::Inconclusive));
    BOOST_TEST(j.reason.find("one GPU") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(nothing_to_ask) {
    GpuRun r;
    r.nvml_init = r.cuda_init = -1;
    r.cuda_asked = true;
    r.error = "libcuda.so.1: cannot open shared object file";
    BOOST_TEST((judge(r, 0).verdict == Verdict::Inconclusive));
    BOOST_TEST(judge(r, 0).reason == r.error);
    r.cuda_init = 803;
    BOOST_TEST((judge(r, 0).verdict == Verdict::Reload));
    GpuRun hung;
    hung.timed_out = true;
    hung.error = "cuInit did not return by its deadline";
    BOOST_TEST((judge(hung, 0).verdict == Verdict::Hang));
}

BOOST_AUTO_TEST_CASE(csv_has_one_line_per_ordered_pair) {
    BOOST_TEST(bench::toCsv(twoGpus()) ==
               "source,destination,path,bandwidth_gb_s,bidirectional_gb_s,latency_us,limit_gb_s,"
               "share_percent,result\r\n"
               "0000:01:00.0,0000:02:00.0,pcie-bar1,21.450,40.000,1.250,28.600,75.000,ok\r\n"
               "0000:02:00.0,0000:01:00.0,pcie-bar1,21.450,40.000,1.250,28.600,75.000,ok\r\n");
    const std::string one = bench::toCsv(oneGpu());
    BOOST_TEST(one.find("host,0000:01:00.0,local,25.000,,,,,ok\r\n") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(json_says_the_same_as_the_exit_status) {
    const GpuRun r = twoGpus();
    const auto j = nlohmann::json::parse(bench::toJson(r, judge(r, 90)));
    BOOST_TEST(j.at("exit_code").get<int>() == 10);
    BOOST_TEST(j.at("verdict").get<std::string>() == "slow");
    BOOST_TEST(j.at("pairs").size() == 2U);
    BOOST_TEST(j.at("pairs")[0].at("bandwidth_gbs").get<double>() == 21.45);
}

BOOST_AUTO_TEST_CASE(a_failed_pair_shows_its_word_instead_of_a_number) {
    GpuRun r = twoGpus();
    r.pairs[1].tests = {test("bandwidth", Outcome::Zeros)};
    r.pairs[1].bandwidth_gbs.reset();
    const std::string text = bench::toText(r, judge(r, 0));
    BOOST_TEST(text.find("zeros") != std::string::npos);
    BOOST_TEST(text.find("wrong-data (30)") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(html_is_escaped_and_needs_no_other_file) {
    const GpuRun r = twoGpus();
    const std::string page = bench::toHtml(r, judge(r, 0));
    BOOST_TEST(page.find("A &amp; B") != std::string::npos);
    BOOST_TEST(page.find("NVML &lt;says&gt; so") != std::string::npos);
    for (const char* foreign : {"http", "src=", "href=", "<script"})
        BOOST_TEST(page.find(foreign) == std::string::npos, foreign);
}

BOOST_AUTO_TEST_CASE(command_line) {
    bench::Options o;
    auto app = bench::makeApp(o);
    app->parse("--gpus 01:00.0,0000:C1:00.0 --size 16 --json", false);
    BOOST_TEST(o.gpus.size() == 2U);
    BOOST_TEST(o.gpus[0] == "0000:01:00.0");
    BOOST_TEST(o.gpus[1] == "0000:c1:00.0");
    for (const char* wrong : {"--gpus gpu0", "--size 0", "--json --csv", "--min-share 101"}) {
        bench::Options none;
        auto again = bench::makeApp(none);
        BOOST_CHECK_THROW(again->parse(wrong, false), CLI::ParseError);
    }
}
