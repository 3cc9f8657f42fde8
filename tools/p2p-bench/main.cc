// SPDX-License-Identifier: MIT
#include "lib/cli/cli.h"
#include "p2p-bench/app.h"
#include "p2p-bench/bench.h"

int main(int argc, char** argv) {
    p2p::bench::Options options;
    const auto app = p2p::bench::makeApp(options);
    return p2p::cliMain(*app, argc, argv, [&] { return p2p::bench::run(options); });
}
