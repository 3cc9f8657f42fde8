// SPDX-License-Identifier: MIT
#include <nlohmann/json.hpp>

#include "lib/report/formats.h"

namespace p2p {

namespace {

// Keeps the order of insertion, so that a person finds the verdict first.
using Json = nlohmann::ordered_json;

template <typename T>
Json orNull(const std::optional<T>& v) {
    return v ? Json(*v) : Json(nullptr);
}

Json orNull(const std::string& s) {
    return s.empty() ? Json(nullptr) : Json(s);
}

Json link(const ReportLink& l) {
    return {{"speed_gts", orNull(l.gts)},
            {"width", orNull(l.width)},
            {"max_speed_gts", orNull(l.max_gts)},
            {"max_width", orNull(l.max_width)}};
}

Json test(const TestResult& t) {
    return {{"test", t.test},
            {"outcome", outcomeName(t.outcome)},
            {"detail", t.detail},
            {"cuda_error", t.cuda_error},
            {"words", t.words},
            {"bad_words", t.bad_words},
            {"first_bad", t.bad_words != 0 ? Json(t.first_bad) : Json(nullptr)},
            {"seconds", t.seconds}};
}

Json tests(const std::vector<TestResult>& all) {
    Json list = Json::array();
    for (const TestResult& t : all) list.push_back(test(t));
    return list;
}

}  // namespace

std::string toJson(const Report& r) {
    Json j;
    j["schema"] = 1;
    j["verdict"] = verdictName(r.verdict);
    j["exit_code"] = static_cast<int>(r.verdict);
    j["level"] = r.level;
    j["summary"] = r.summary;
    j["time"] = timeText(r.time);
    j["tool"] = {{"name", "p2p-verify"}, {"version", r.version}};
    j["kernel"] = orNull(r.kernel);
    j["module"] = orNull(r.module);
    j["gpus"] = Json::array();
    for (std::size_t i = 0; i < r.gpus.size(); i++) {
        const ReportGpu& g = r.gpus[i];
        j["gpus"].push_back(
            {{"bdf", g.bdf},
             {"device_id", g.device_id},
             {"name", orNull(g.name)},
             {"bar1_bytes", orNull(g.bar1_bytes)},
             {"bar1_max_bytes", orNull(g.bar1_max_bytes)},
             {"vram_bytes", orNull(g.vram_bytes)},
             {"driver", orNull(g.driver)},
             {"link", link(g.link)},
             {"iommu", orNull(g.iommu)},
             {"numa_node", orNull(g.numa_node)},
             {"parent", i < r.gpu_parents.size() ? orNull(r.gpu_parents[i]) : Json(nullptr)}});
    }
    j["bridges"] = Json::array();
    for (const ReportBridge& b : r.bridges)
        j["bridges"].push_back({{"id", b.id},
                                {"parent", orNull(b.parent)},
                                {"label", orNull(b.label)},
                                {"link", link(b.link)},
                                {"acs_redirect", orNull(b.acs_redirect)}});
    j["pairs"] = Json::array();
    for (const PairResult& p : r.pairs)
        j["pairs"].push_back({{"src", p.src},
                              {"dst", p.dst},
                              {"state", pairStateName(pairState(p))},
                              {"can_access", p.can_access},
                              {"path", p.path},
                              {"path_evidence", p.path_evidence},
                              {"bandwidth_gbs", orNull(p.bandwidth_gbs)},
                              {"bidir_gbs", orNull(p.bidir_gbs)},
                              {"limit_gbs", orNull(p.limit_gbs)},
                              {"latency_us", orNull(p.latency_us)},
                              {"tests", tests(p.tests)}});
    j["single_gpu_tests"] = tests(r.single);
    j["local_rates"] = Json::array();
    for (const LocalRates& l : r.local)
        j["local_rates"].push_back({{"bdf", l.bdf},
                                    {"host_to_gpu_gbs", orNull(l.host_to_gpu_gbs)},
                                    {"gpu_to_host_gbs", orNull(l.gpu_to_host_gbs)},
                                    {"copy_gbs", orNull(l.copy_gbs)},
                                    {"latency_us", orNull(l.latency_us)}});
    j["findings"] = Json::array();
    for (const Finding& f : r.findings) {
        Json seen = Json::array();
        for (const Evidence& e : f.evidence) seen.push_back({{"path", e.path}, {"value", e.value}});
        j["findings"].push_back({{"id", f.id},
                                 {"severity", severityName(f.severity)},
                                 {"subject", f.subject},
                                 {"cause", f.cause},
                                 {"remedy", f.remedy},
                                 {"evidence", seen}});
    }
    j["rules_checked"] = r.rules.size();
    j["unread"] = r.unread;
    // Text that is no UTF-8 must not cost the whole report.
    return j.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace p2p
