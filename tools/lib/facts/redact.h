// SPDX-License-Identifier: MIT
// What names a machine, its owner or its network is taken out of texts.  All of these are fixed
// points: f(f(x)) == f(x), so that a snapshot says the same as the machine.
#pragma once
#include <string>

namespace p2p {

// Any text.  UUIDs, MAC addresses, machine ids, serial numbers, boot parameters that name a disk, a
// host or an address, the host in the name of Ubuntu's module signing key, and `hostname`.
std::string redact(const std::string& text, const std::string& hostname);

// A kernel command line: keeps the values of parameters that say nothing of who and where, for a
// list of the others would never be whole.  What follows "--" is for init and may hold anything.
std::string redactCmdline(const std::string& text);

// A message of the kernel's log: a command line in it, and ids of keys.
std::string redactMessage(const std::string& text);

}  // namespace p2p
