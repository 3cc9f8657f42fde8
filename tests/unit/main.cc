// SPDX-License-Identifier: MIT
// main() of every unit test program; its name comes from CMake.
#define BOOST_TEST_MODULE P2P_UNIT_NAME
#include <boost/test/unit_test.hpp>
