// SPDX-License-Identifier: MIT
// The pure decisions of driver/src/rm/nvp2p_policy.h.
#define BOOST_TEST_MODULE driver_policy
#include "gpu/bus/nvp2p_policy.h"

#include <boost/test/unit_test.hpp>
#include <vector>

namespace {
constexpr nvp2p_u64 KiB = 1ULL << 10, MiB = 1ULL << 20, GiB = 1ULL << 30;
constexpr nvp2p_u64 kBase = 0x28800000000ULL, kReach = (1ULL << 47) - 1;
const nvp2p_window kWindow = {kBase, 24 * GiB, 0, kReach};

// Translate, and check that a refusal changed nothing.
bool translate(const nvp2p_window& window, std::vector<nvp2p_u64>& addresses, nvp2p_u64 page) {
    const auto before = addresses;
    const bool ok = nvp2pTranslate(&window, addresses.data(), addresses.size(), page) != 0;
    if (!ok) BOOST_TEST(addresses == before);
    return ok;
}
bool translateOne(const nvp2p_window& window, nvp2p_u64 address, nvp2p_u64 page) {
    std::vector<nvp2p_u64> a = {address};
    return translate(window, a, page);
}
}  // namespace

BOOST_AUTO_TEST_CASE(key_bits) {
    for (unsigned key = 0; key < 256; key++) {
        const bool on = (key & 1) != 0 && key < 8;
        BOOST_TEST(nvp2pKeyEnables(key) == on);
        BOOST_TEST(nvp2pKeyTrustsHost(key) == (on && (key & 2) != 0));
        BOOST_TEST(nvp2pKeyTakesAmpere(key) == (on && (key & 4) != 0));
    }
    BOOST_TEST(!nvp2pKeyEnables(0x80000001u));
}

BOOST_AUTO_TEST_CASE(bar1_must_hold_the_framebuffer_and_room_beside_it) {
    BOOST_TEST(nvp2pFits(32 * GiB, 24 * GiB));
    BOOST_TEST(nvp2pFits(24 * GiB + 256 * MiB, 24 * GiB));
    BOOST_TEST(!nvp2pFits(24 * GiB + 256 * MiB - 1, 24 * GiB));
    BOOST_TEST(!nvp2pFits(16 * GiB, 16 * GiB));
    BOOST_TEST(!nvp2pFits(256 * MiB, 24 * GiB));
    BOOST_TEST(!nvp2pFits(0, 24 * GiB));
    BOOST_TEST(!nvp2pFits(32 * GiB, 0));
    BOOST_TEST(!nvp2pFits(0, 0));
}

BOOST_AUTO_TEST_CASE(window_must_be_on_the_512M_grid) {
    BOOST_TEST(nvp2pAligned(kBase));
    BOOST_TEST(nvp2pAligned(512 * MiB));
    BOOST_TEST(!nvp2pAligned(256 * MiB));
    BOOST_TEST(!nvp2pAligned(kBase + 4 * MiB));
    BOOST_TEST(!nvp2pAligned(0));
}

BOOST_AUTO_TEST_CASE(addresses_are_moved_by_the_base) {
    std::vector<nvp2p_u64> a = {0, 2 * MiB, 24 * GiB - 2 * MiB};
    BOOST_TEST(translate(kWindow, a, 2 * MiB));
    BOOST_TEST(a == (std::vector<nvp2p_u64>{kBase, kBase + 2 * MiB, kBase + 24 * GiB - 2 * MiB}));
    std::vector<nvp2p_u64> none;
    BOOST_TEST(translate(kWindow, none, 4096));
}

BOOST_AUTO_TEST_CASE(one_bad_page_refuses_all) {
    std::vector<nvp2p_u64> beyond = {0, 24 * GiB};
    BOOST_TEST(!translate(kWindow, beyond, 2 * MiB));
    std::vector<nvp2p_u64> straddles = {0, 24 * GiB - 4096};
    BOOST_TEST(!translate(kWindow, straddles, 64 * KiB));
    std::vector<nvp2p_u64> unaligned = {0, 4096};
    BOOST_TEST(!translate(kWindow, unaligned, 64 * KiB));
    BOOST_TEST(!translateOne(kWindow, ~0ULL - 4095, 4096));
    BOOST_TEST(translateOne(kWindow, 24 * GiB - 4096, 4096));
}

BOOST_AUTO_TEST_CASE(page_size_must_make_sense) {
    BOOST_TEST(!translateOne(kWindow, 0, 0));
    BOOST_TEST(!translateOne(kWindow, 0, 12 * KiB));
    BOOST_TEST(!translateOne({kBase, 4096, 0, kReach}, 0, 64 * KiB));
    BOOST_TEST(translateOne({kBase, 512 * MiB, 0, kReach}, 0, 512 * MiB));
    BOOST_TEST(!translateOne({kBase + 4096, 24 * GiB, 0, kReach}, 0, 64 * KiB));
}

BOOST_AUTO_TEST_CASE(window_must_be_within_reach) {
    BOOST_TEST(!translateOne({0, 24 * GiB, 0, kReach}, 0, 4096));
    BOOST_TEST(!translateOne({~0ULL - 4095, 24 * GiB, 0, ~0ULL}, 0, 4096));
    BOOST_TEST(!translateOne({kReach + 1 - GiB, 24 * GiB, 0, kReach}, 0, 4096));
    BOOST_TEST(translateOne({kReach + 1 - 24 * GiB, 24 * GiB, 0, kReach}, 0, 4096));
    BOOST_TEST(!translateOne({kBase, 24 * GiB, kBase + 1, kReach}, 0, 4096));
    BOOST_TEST(translateOne({kBase, 24 * GiB, kBase, kReach}, 0, 4096));
    BOOST_TEST(!translateOne({kBase, 24 * GiB, 0, kBase + 24 * GiB - 2}, 0, 4096));
    BOOST_TEST(translateOne({kBase, 24 * GiB, 0, kBase + 24 * GiB - 1}, 0, 4096));
}

// Every combination against the sentence that describes it.
BOOST_AUTO_TEST_CASE(verdicts) {
    for (int total = 0; total <= 4; total++)
        for (int ours = 0; ours <= total; ours++)
            for (int windows = 0; windows < 2; windows++)
                for (int host = 0; host < 2; host++)
                    for (int over = -1; over < 4; over++) {
                        nvp2p_verdict want = NVP2P_YES;
                        if (total < 2 || ours == 0)
                            want = NVP2P_STOCK;
                        else if (ours < total)
                            want = NVP2P_NO_MIXED;
                        else if (!windows)
                            want = NVP2P_NO_WINDOW;
                        else if (over >= 0 && over != 3)
                            want = NVP2P_NO_REGKEY;
                        else if (over < 0 && !host)
                            want = NVP2P_NO_HOST;
                        BOOST_TEST(nvp2pVerdict(total, ours, windows, host, over) == want);
                    }
}
