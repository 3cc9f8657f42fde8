// SPDX-License-Identifier: MIT
// Does a release make the window for an RTX 4090 that opted in, and for no other?
#define BOOST_TEST_MODULE driver_window_tree
#include "window_tree.h"

#include <boost/test/unit_test.hpp>

#include "rig.h"

using namespace rig;

namespace {
// As kbusInitRegistryOverrides() leaves it: 565 and 570 have a default for GPU peers, 575 none.
constexpr NvU32 kDefault = NVP2P_DRIVER_MAJOR < 575 ? STATIC_ONLY_GPU : STATIC_DISABLE;

struct One : Machine {
    explicit One(NvU32 key) : Machine(1) {
        g[0].bus.staticBar1ForceType = kDefault;
        g[0].bif.forceP2PType = 0;
        if (key) g[0].key(key);
        g[0].attach();
    }
    bool window(NvU64 console = 0) { return windowStock(&g[0].gpu, &g[0].bus, console) != 0; }
};
}  // namespace

BOOST_AUTO_TEST_CASE(a_4090_that_opted_in_gets_a_window) {
    One m(1);
    BOOST_TEST(m.window());
    BOOST_TEST(m.window(8ULL << 20));  // beside a console
}

BOOST_AUTO_TEST_CASE(a_small_bar1_gets_none) {
    for (NvU64 size : {256ULL << 20, 16 * GiB, 24 * GiB}) {
        One m(1);
        m.g[0].bus.bar1Size = size;
        m.g[0].bus.bar1[0].mappableLength = size - 4096;
        BOOST_TEST(!m.window());
    }
}

BOOST_AUTO_TEST_CASE(without_the_key_there_is_none) {
    One m(0);
    BOOST_TEST(!m.window());
}
