// SPDX-License-Identifier: MIT
#include "lib/facts/pci_caps.h"

#include <boost/test/unit_test.hpp>

using namespace p2p;

namespace {
std::string bytes(std::size_t n) {
    return std::string(n, '\0');
}
void put32(std::string& s, std::size_t at, std::uint32_t v) {
    for (int i = 0; i < 4; ++i) s[at + i] = static_cast<char>(v >> (8 * i));
}
}  // namespace

BOOST_AUTO_TEST_CASE(resizable_bar_as_on_ad102) {
    std::string s = bytes(4096);
    put32(s, 0xbb0 + 4, 1U << (4 + 4));  // BAR0: 16 MB only
    put32(s, 0xbb0 + 8, (4U << 8) | (3U << 5) | 0);
    put32(s, 0xbb0 + 12, 0xffc0U << 4);  // BAR1: 64 MB to 32 GB
    put32(s, 0xbb0 + 16, (8U << 8) | 1);
    put32(s, 0xbb0 + 20, 1U << (5 + 4));
    put32(s, 0xbb0 + 24, (5U << 8) | 3);
    const auto r = pci::resizableBars(pci::Config(s), 0xbb0);
    BOOST_REQUIRE(r.has_value());
    BOOST_REQUIRE_EQUAL(r->size(), 3U);
    BOOST_TEST((*r)[1].bar == 1);
    BOOST_TEST((*r)[1].current_bytes == 256ULL << 20);
    BOOST_TEST((*r)[1].maxBytes() == 32ULL << 30);
    BOOST_TEST((*r)[2].bar == 3);
}

BOOST_AUTO_TEST_CASE(sizes_above_128_TB_are_in_the_control_register) {
    std::string s = bytes(0x120);
    put32(s, 0x104, 0);
    put32(s, 0x108, (1U << 5) | (1U << 16));
    const auto r = pci::resizableBars(pci::Config(s), 0x100);
    BOOST_REQUIRE(r.has_value());
    BOOST_TEST((*r)[0].maxBytes() == 256ULL << 40);
}

BOOST_AUTO_TEST_CASE(what_ends_early_is_nothing) {
    std::string s = bytes(64);
    const pci::Config c(s);
    BOOST_TEST(!pci::resizableBars(c, 0xbb0).has_value());
    BOOST_TEST(!pci::resizableBars(c, SIZE_MAX - 3).has_value());
    BOOST_TEST(!pci::acs(c, 0x3c).has_value());
    BOOST_TEST(!pci::linkStatus(c, 0x30).has_value());
    s = bytes(0x110);
    put32(s, 0x108, 7U << 5);  // seven entries, bytes for one
    BOOST_TEST(!pci::resizableBars(pci::Config(s), 0x100).has_value());
}

BOOST_AUTO_TEST_CASE(bridge_windows) {
    std::string s = bytes(64);
    put32(s, 0x24, 0x17f10001);  // low 16 bits: base, high: limit
    put32(s, 0x28, 0x80);
    put32(s, 0x2c, 0x80);
    const auto w = pci::prefetchableWindow(pci::Config(s));
    BOOST_TEST(w->base == 0x8000000000ULL);
    BOOST_TEST(w->bytes == 0x18000000ULL);
    put32(s, 0x24, 0x0001fff1);
    put32(s, 0x2c, 0x7f);
    BOOST_TEST(pci::prefetchableWindow(pci::Config(s))->bytes == 0U);
}

BOOST_AUTO_TEST_CASE(bar1_by_role) {
    std::string s = bytes(64);
    put32(s, 0x10, 0xb8000000);
    BOOST_TEST(pci::bar1Number(pci::Config(s), {}) == 1);
    put32(s, 0x10, 0x0000000c);
    BOOST_TEST(pci::bar1Number(pci::Config(s), {}) == 2);
}

BOOST_AUTO_TEST_CASE(resource_lines) {
    const auto r = pci::regions(
        "0x0000000040000000 0x0000000040ffffff 0x0000000000040200\n"
        "0x0000008000000000 0x000000800fffffff 0x000000000014220c\n"
        "0x0000000000000000 0x00000007ffffffff 0x000000002014220c\n");
    BOOST_REQUIRE_EQUAL(r.size(), 3U);
    BOOST_TEST(r[1].bytes == 256ULL << 20);
    BOOST_TEST(r[1].is64);
    BOOST_TEST(r[1].prefetchable);
    BOOST_TEST(r[2].bytes == 0U);
}

BOOST_AUTO_TEST_CASE(addresses) {
    for (const char* good : {"0000:01:00.0", "ffff:ff:1f.7", "10000:e1:00.0"})
        BOOST_TEST(pci::isBdf(good));
    for (const char* bad : {"", "01:00.0", "0000:01:00.8", "0000-01:00.0", "pci0000:00",
                            "0000:01:00.0x", "x0000:01:00.0"})
        BOOST_TEST(!pci::isBdf(bad));
    BOOST_TEST(pci::linkSpeed("16.0 GT/s PCIe") == 16.0);
    BOOST_TEST(pci::linkSpeed("2.5 GT/s") == 2.5);
    BOOST_TEST(pci::linkSpeed("Unknown") == 0.0);
}
