// SPDX-License-Identifier: MIT
// The table of rules: each turns Facts and the result of the GPU tests into findings.
#pragma once
#include <string>
#include <vector>

#include "lib/facts/facts.h"
#include "lib/gpu/result.h"
#include "lib/rules/finding.h"

namespace p2p {

struct Rule {
    const char* id;     // stable; findings of the rule carry it
    const char* title;  // what it looks for, one line
    const char* reads;  // where from, for the documentation
    // `run` is null when no GPU program ran (env level without NVML).  Pure: no input but these
    // two.
    std::vector<Finding> (*assess)(const Facts& facts, const GpuRun* run);
    // Field failures that it covers or that only the data test can tell, as in "see" below.
    const char* see;
    // A forecast ("this will not work") that a passed data test on the same GPU refutes: then its
    // findings become warnings.
    bool forecast;
};

// In the order in which a person should read them.
const std::vector<Rule>& rules();

// Field failures that leave no trace before data moves: text for the documentation and the test
// that tells them.
struct Unseen {
    const char* what;
    const char* told_by;  // test of TestResult, or what a person does
};
const std::vector<Unseen>& unseen();

// Findings of all rules, most severe first, then in table order, then by subject.
std::vector<Finding> assess(const Facts& facts, const GpuRun* run = nullptr);

// The verdict of all findings together.
Verdict verdictOf(const std::vector<Finding>& findings);

}  // namespace p2p
