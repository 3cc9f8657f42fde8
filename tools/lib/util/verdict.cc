// SPDX-License-Identifier: MIT
#include "lib/util/verdict.h"

#include <algorithm>
#include <array>

namespace p2p {

std::string_view verdictName(Verdict v) {
    switch (v) {
        case Verdict::Proven:
            return "proven";
        case Verdict::Slow:
            return "slow";
        case Verdict::Unavailable:
            return "unavailable";
        case Verdict::Reload:
            return "reload";
        case Verdict::WrongData:
            return "wrong-data";
        case Verdict::Hang:
            return "hang";
        case Verdict::Inconclusive:
            return "inconclusive";
    }
    return "internal";
}

Verdict worst(const std::vector<Verdict>& all) {
    // Strongest first: evidence of harm outranks a refusal, a refusal a doubt.
    constexpr std::array<Verdict, 7> order = {
        Verdict::WrongData,    Verdict::Hang, Verdict::Reload, Verdict::Unavailable,
        Verdict::Inconclusive, Verdict::Slow, Verdict::Proven};
    for (Verdict v : order)
        if (std::find(all.begin(), all.end(), v) != all.end()) return v;
    return Verdict::Proven;
}

int nagiosStatus(Verdict v) {
    switch (v) {
        case Verdict::Proven:
            return 0;
        case Verdict::Slow:
        case Verdict::Reload:
            return 1;
        case Verdict::Unavailable:
        case Verdict::WrongData:
        case Verdict::Hang:
            return 2;
        case Verdict::Inconclusive:
            return 3;
    }
    return 3;
}

}  // namespace p2p
