// SPDX-License-Identifier: MIT
#include "lib/cli/cli.h"
#include "lib/util/verdict.h"
#include "p2p-verify/app.h"

int main(int argc, char** argv) {
    p2p::verify::Options options;
    const auto app = p2p::verify::makeApp(options);
    const int status = p2p::cliMain(*app, argc, argv, [&] { return p2p::verify::run(options); });
    // A monitoring system knows 0 to 3 only.
    const bool failed = status == p2p::kExitUsage || status == p2p::kExitInternal;
    return options.nagios && failed ? p2p::nagiosStatus(p2p::Verdict::Inconclusive) : status;
}
