// SPDX-License-Identifier: MIT
// Whole outputs are compared with files in tests/fixtures/golden.  After a wanted change, run the
// test with P2P_UPDATE_GOLDEN=1 and read the difference before committing it.
#pragma once
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace p2p::golden {

inline std::string slurp(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::stringstream s;
    s << in.rdbuf();
    return s.str();
}

inline void compare(const std::string& name, const std::string& text) {
    const std::string path = std::string(P2P_FIXTURES) + "/golden/" + name;
    if (std::getenv("P2P_UPDATE_GOLDEN") != nullptr) {
        std::ofstream(path, std::ios::binary) << text;
        BOOST_ERROR("golden file written, nothing was compared: " << path);
        return;
    }
    const std::string want = slurp(path);
    BOOST_REQUIRE_MESSAGE(!want.empty(), "missing golden file " << path);
    std::stringstream a(want), b(text);
    std::string wa, wb;
    for (int line = 1;; line++) {
        const bool more_a = static_cast<bool>(std::getline(a, wa));
        const bool more_b = static_cast<bool>(std::getline(b, wb));
        if (!more_a && !more_b) break;
        BOOST_REQUIRE_MESSAGE(more_a == more_b && wa == wb, name << ":" << line << "\n  expected: "
                                                                 << wa << "\n  got:      " << wb);
        wa.clear();
        wb.clear();
    }
    BOOST_TEST(want == text);
}

}  // namespace p2p::golden
