// SPDX-License-Identifier: MIT
// What a rule says: stable id, what was seen and where, cause, remedy.
#pragma once
#include <string>
#include <vector>

#include "lib/util/verdict.h"

namespace p2p {

// Effect of a finding on the verdict.
enum class Severity {
    Info,          // worth knowing, no effect
    Warning,       // no effect on the verdict, shown prominently
    Slow,          // -> Verdict::Slow
    Inconclusive,  // -> Verdict::Inconclusive
    Block,         // -> Verdict::Unavailable
    Reload,        // -> Verdict::Reload
    Hang,          // -> Verdict::Hang
    WrongData,     // -> Verdict::WrongData
};
const char* severityName(Severity s);  // "info", "warning", "slow", ... as in JSON
Verdict severityVerdict(Severity s);   // Info and Warning give Proven

struct Evidence {
    std::string path;   // file, register or query that was read
    std::string value;  // what it held
};

struct Finding {
    std::string id;  // stable public name, e.g. "rebar-off"
    Severity severity = Severity::Info;
    std::string subject;  // BDF, "A->B" pair of BDFs, kernel release, or "host"
    std::string cause;    // one sentence
    std::string remedy;   // one sentence or a pasteable command
    std::vector<Evidence> evidence;
};

}  // namespace p2p
