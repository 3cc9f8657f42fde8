// SPDX-License-Identifier: MIT
// The parts of collect(), one for each kind of source.
#pragma once
#include "lib/facts/facts.h"
#include "lib/facts/machine.h"

namespace p2p {

Facts collect(Machine& machine, bool names);

void collectPci(Machine& machine, bool names, Facts& facts);
void collectModules(Machine& machine, Facts& facts);   // kernels, nvidia.ko, DKMS, what is loaded
void collectSettings(Machine& machine, Facts& facts);  // modprobe.d, command line, driver params
void collectHost(Machine& machine, Facts& facts);      // log, firmware, libraries, processes

}  // namespace p2p
