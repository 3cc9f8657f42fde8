// SPDX-License-Identifier: MIT
#include "lib/rules/finding.h"

namespace p2p {

const char* severityName(Severity s) {
    switch (s) {
        case Severity::Info:
            return "info";
        case Severity::Warning:
            return "warning";
        case Severity::Slow:
            return "slow";
        case Severity::Inconclusive:
            return "inconclusive";
        case Severity::Block:
            return "block";
        case Severity::Reload:
            return "reload";
        case Severity::Hang:
            return "hang";
        case Severity::WrongData:
            return "wrong-data";
    }
    return "unknown";
}

Verdict severityVerdict(Severity s) {
    switch (s) {
        case Severity::Info:
        case Severity::Warning:
            break;
        case Severity::Slow:
            return Verdict::Slow;
        case Severity::Inconclusive:
            return Verdict::Inconclusive;
        case Severity::Block:
            return Verdict::Unavailable;
        case Severity::Reload:
            return Verdict::Reload;
        case Severity::Hang:
            return Verdict::Hang;
        case Severity::WrongData:
            return Verdict::WrongData;
    }
    return Verdict::Proven;
}

}  // namespace p2p
