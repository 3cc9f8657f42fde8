// SPDX-License-Identifier: MIT
#include "lib/rules/rules.h"

#include <algorithm>
#include <iterator>

#include "lib/rules/parts.h"

namespace p2p {

const std::vector<Rule>& rules() {
    static const std::vector<Rule> all = [] {
        std::vector<Rule> table;
        for (auto part : {rules_detail::runRules(), rules_detail::moduleRules(),
                          rules_detail::busRules(), rules_detail::hostRules()})
            table.insert(table.end(), part.begin(), part.end());
        return table;
    }();
    return all;
}

const std::vector<Unseen>& unseen() {
    static const std::vector<Unseen> all = {
        {"A mirror of the peer's memory in a guest (NVIDIA/nccl#2335): every query and every "
         "round-trip "
         "copy passes.",
         "ce_push and sm_load, checked on the destination"},
        {"A static BAR1 window that the driver refused (aikitoria/open-gpu-kernel-modules#11, "
         "#25): peers "
         "then go through a mailbox that moves nothing.",
         "sm_store and sm_load"},
        {"Silent corruption without any trace in log or registers "
         "(NVIDIA/open-gpu-kernel-modules#1257).",
         "every data test"},
        {"A collective that hangs while copies pass (noonghunna/club-3090#873, "
         "tinygrad/open-gpu-kernel-modules#45).",
         "handshake"},
        {"Enabling that fails in one direction only (aikitoria/open-gpu-kernel-modules#38).",
         "every ordered pair by itself"},
        {"A driver branch without the change for these GPUs (aikitoria/open-gpu-kernel-modules#15, "
         "tinygrad/open-gpu-kernel-modules#30).",
         "every data test; module-not-ours names the commonest reason"},
        {"Custom all-reduce kernels over IPC handles (noonghunna/club-3090#922, "
         "aikitoria/open-gpu-kernel-modules#21).",
         "ipc"},
        {"An NCCL that is too old for the GPUs (NVIDIA/nccl#1637): the driver is not at fault.",
         "all data tests pass while NCCL fails: install a newer NCCL"},
        {"Bandwidth that chipset lanes or a riser take away under load (aikitoria/open-gpu-kernel-"
         "modules#6).",
         "bandwidth against the link limit"},
    };
    return all;
}

std::vector<Finding> assess(const Facts& facts, const GpuRun* run) {
    struct Placed {
        Finding finding;
        std::size_t row;
    };
    std::vector<Placed> all;
    for (std::size_t row = 0; row < rules().size(); ++row) {
        const Rule& rule = rules()[row];
        for (Finding& f : rule.assess(facts, run)) {
            // Measured data beats a forecast: for a GPU its own pairs, else all of them.
            const std::string gpu = facts.gpu(f.subject) ? f.subject : "";
            if (rule.forecast && severityVerdict(f.severity) != Verdict::Proven &&
                rules_detail::provenByData(run, gpu)) {
                f.severity = Severity::Warning;
                f.evidence.push_back({"data tests", "passed all the same"});
            }
            all.push_back({std::move(f), row});
        }
    }
    const auto rank = [](const Finding& f) {
        // In the order in which verdicts win; then what has no say in it.
        switch (f.severity) {
            case Severity::WrongData:
                return 0;
            case Severity::Hang:
                return 1;
            case Severity::Reload:
                return 2;
            case Severity::Block:
                return 3;
            case Severity::Inconclusive:
                return 4;
            case Severity::Slow:
                return 5;
            case Severity::Warning:
                return 6;
            case Severity::Info:
                break;
        }
        return 7;
    };
    std::stable_sort(all.begin(), all.end(), [&](const Placed& a, const Placed& b) {
        if (rank(a.finding) != rank(b.finding)) return rank(a.finding) < rank(b.finding);
        if (a.row != b.row) return a.row < b.row;
        return a.finding.subject < b.finding.subject;
    });
    std::vector<Finding> findings;
    findings.reserve(all.size());
    for (Placed& p : all) findings.push_back(std::move(p.finding));
    return findings;
}

Verdict verdictOf(const std::vector<Finding>& findings) {
    std::vector<Verdict> all;
    all.reserve(findings.size());
    for (const Finding& f : findings) all.push_back(severityVerdict(f.severity));
    return worst(all);
}

}  // namespace p2p
