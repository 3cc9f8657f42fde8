// SPDX-License-Identifier: MIT
// Our addresses through NVIDIA's own page table format code, against the bits of the
// published VER2 entry (dev_mmu.h): valid 0, aperture 2:1, volatile 3, address 53:8.
#define BOOST_TEST_MODULE driver_gmmu_tree
#include "gmmu_shim.h"
#include "gpu/bus/nvp2p_policy.h"

#include <boost/test/unit_test.hpp>

namespace {
constexpr unsigned long long GiB = 1ULL << 30;
constexpr unsigned kPeer = 1, kSysNoncoh = 3;
unsigned long long bits(unsigned long long entry, int high, int low) {
    return (entry >> low) & ((1ULL << (high - low + 1)) - 1);
}
}  // namespace

BOOST_AUTO_TEST_CASE(each_aperture_keeps_its_stock_address_field) {
    BOOST_TEST(gmmuShimField(SHIM_VIDEO) == 0);
    BOOST_TEST(gmmuShimField(SHIM_PEER) == 1);
    BOOST_TEST(gmmuShimField(SHIM_SYS_NONCOH) == 2);
    BOOST_TEST(gmmuShimField(SHIM_SYS_COH) == 2);
}

BOOST_AUTO_TEST_CASE(a_bus_address_of_47_bits_survives) {
    for (int bit = 12; bit < 47; bit++) {
        const auto entry = gmmuShimEncode(SHIM_SYS_NONCOH, 1ULL << bit, 1);
        BOOST_TEST(bits(entry, 0, 0) == 1u);
        BOOST_TEST(bits(entry, 2, 1) == kSysNoncoh);
        BOOST_TEST(bits(entry, 3, 3) == 1u);
        BOOST_TEST(bits(entry, 53, 8) == 1ULL << (bit - 12));
    }
    BOOST_TEST(bits(gmmuShimEncode(SHIM_SYS_NONCOH, 0x7edcba987000ULL, 1), 53, 8) ==
               0x7edcba987ULL);
}

BOOST_AUTO_TEST_CASE(translated_addresses_reach_the_entry) {
    const nvp2p_window window = {0x28800000000ULL, 24 * GiB, 0, (1ULL << 47) - 1};
    nvp2p_u64 a[3] = {0, 2u << 20, 24 * GiB - (2u << 20)};
    const nvp2p_u64 offsets[3] = {a[0], a[1], a[2]};
    BOOST_REQUIRE(nvp2pTranslate(&window, a, 3, 2u << 20));
    for (int i = 0; i < 3; i++)
        BOOST_TEST(bits(gmmuShimEncode(SHIM_SYS_NONCOH, a[i], 1), 53, 8) ==
                   (window.base + offsets[i]) >> 12);
}

// Why a peer entry cannot carry a bus address: its field is 25 bits wide.
BOOST_AUTO_TEST_CASE(a_peer_entry_is_narrow) {
    const auto entry = gmmuShimEncode(SHIM_PEER, 24 * GiB - 4096, 1);
    BOOST_TEST(bits(entry, 2, 1) == kPeer);
    BOOST_TEST(bits(entry, 32, 8) == (24 * GiB - 4096) >> 12);
}

BOOST_AUTO_TEST_CASE(the_stubs_use_the_values_of_this_release) {
    const char* differs = gmmuShimConstants();
    BOOST_TEST(differs == nullptr, (differs ? differs : ""));
}
