// SPDX-License-Identifier: MIT
// Snapshot archives: what read() takes, write() gives back the same, and nothing leads out.
#include <cstdint>
#include <stdexcept>
#include <string>

#include "lib/facts/tar.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace p2p;
    const std::string bytes(reinterpret_cast<const char*>(data), size);
    std::vector<tar::Entry> entries;
    try {
        entries = tar::read(bytes);
    } catch (const std::runtime_error&) {
        return 0;
    }
    for (const tar::Entry& e : entries)
        if (e.path.empty() || e.path[0] == '/' ||
            ("/" + e.path + "/").find("/../") != std::string::npos)
            __builtin_trap();
    const auto again = tar::read(tar::write(entries, 0));
    if (again.size() != entries.size()) __builtin_trap();
    for (std::size_t i = 0; i < again.size(); ++i)
        if (again[i].path != entries[i].path || again[i].kind != entries[i].kind) __builtin_trap();
    return 0;
}
