// SPDX-License-Identifier: MIT
#include "lib/facts/collect.h"

namespace p2p {

Facts collect(Machine& machine, bool names) {
    Facts facts;
    collectHost(machine, facts);
    collectPci(machine, names, facts);
    collectModules(machine, facts);
    collectSettings(machine, facts);
    return facts;
}

Facts collect(const Options& options) {
    Machine machine(options.root);
    return collect(machine, options.names);
}

}  // namespace p2p
