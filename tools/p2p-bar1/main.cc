// SPDX-License-Identifier: MIT
#include "lib/cli/cli.h"
#include "p2p-bar1/app.h"

int main(int argc, char** argv) {
    p2p::bar1::Options options;
    const auto app = p2p::bar1::makeApp(options);
    return p2p::cliMain(*app, argc, argv, [&] { return p2p::bar1::run(options); });
}
