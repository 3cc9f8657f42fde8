// SPDX-License-Identifier: MIT
#include <array>
#include <cstdio>

#include "lib/gpu/run.h"

namespace p2p {

std::string normalBdf(const std::string& text) {
    unsigned domain = 0, bus = 0, device = 0, function = 0;
    int end = 0;
    const char* s = text.c_str();
    if (std::sscanf(s, "%8x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &end) != 4 ||
        s[end] != '\0') {
        domain = 0;
        if (std::sscanf(s, "%2x:%2x.%1x%n", &bus, &device, &function, &end) != 3 || s[end] != '\0')
            return "";
    }
    if (device > 31 || function > 7) return "";
    std::array<char, 32> out{};
    std::snprintf(out.data(), out.size(), "%04x:%02x:%02x.%x", domain, bus, device, function);
    return out.data();
}

}  // namespace p2p
