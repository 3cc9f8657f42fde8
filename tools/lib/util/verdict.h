// SPDX-License-Identifier: MIT
// Verdicts and exit codes: the one thing every output format agrees on.
#pragma once
#include <string_view>
#include <vector>

namespace p2p {

// Value = process exit code (docs/exit-codes in the man page).
enum class Verdict : int {
    Proven = 0,         // works at the level asked for
    Slow = 10,          // proven, but well under the link limit
    Unavailable = 20,   // a named cause refuses P2P
    Reload = 21,        // loaded is not what is installed, or a reboot is due
    WrongData = 30,     // data did not arrive intact
    Hang = 31,          // a deadline passed
    Inconclusive = 40,  // cannot tell, with the reason
};
constexpr int kExitUsage = 64;     // EX_USAGE, sysexits.h
constexpr int kExitInternal = 70;  // EX_SOFTWARE, sysexits.h

// "proven", "slow", ... as written in JSON.
std::string_view verdictName(Verdict v);

// The verdict that wins when several hold: 30 > 31 > 21 > 20 > 40 > 10 > 0.
// An empty list is Proven.
Verdict worst(const std::vector<Verdict>& all);

// Nagios plugin exit status (0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN).
int nagiosStatus(Verdict v);

}  // namespace p2p
