// SPDX-License-Identifier: MIT
// Built once per program: prints its man page or its bash completion.
#include <cstdio>
#include <cstring>
#include <exception>

#include P2P_APP_HEADER
#include "lib/cli/cli.h"
#include "lib/cli/clidoc.h"

int main(int argc, char** argv) {
    try {
        P2P_APP_NAMESPACE::Options options;
        const auto app = P2P_APP_NAMESPACE::makeApp(options);
        p2p::addVersionFlag(*app);
        const bool man = argc == 2 && std::strcmp(argv[1], "man") == 0;
        const bool bash = argc == 2 && std::strcmp(argv[1], "bash") == 0;
        if (!man && !bash) {
            std::fputs("usage: PROGRAM-doc man|bash\n", stderr);
            return 64;
        }
        const std::string text =
            man ? p2p::manText(*app, P2P_APP_NAMESPACE::manPage(), p2p::toolsVersion())
                : p2p::bashCompletion(*app);
        std::fputs(text.c_str(), stdout);
        return std::fflush(stdout) == 0 ? 0 : 70;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "cannot make the page: %s\n", e.what());
        return 70;
    }
}
