// SPDX-License-Identifier: MIT
// NVIDIA's own p2pGetCapsStatus() from an unpacked release, stock beside changed, on
// the same stub GPUs and the same answers to every question it asks.
#define BOOST_TEST_MODULE driver_caps_tree
#include "caps_tree.h"
#include "rig.h"

#include <boost/test/unit_test.hpp>
#include <string>

using namespace rig;

namespace {

constexpr NvU8 kOk = NV0000_P2P_CAPS_STATUS_OK, kNo = NV0000_P2P_CAPS_STATUS_NOT_SUPPORTED;
const CapsAnswer kAnswers[] = {
    {NV_OK, kOk, kOk}, {NV_OK, kNo, kNo}, {NV_OK, kOk, kNo}, {NV_ERR_GENERIC, kNo, kNo}};

// Calls f for every combination of answers to the five questions.
template <typename F>
void forEveryScript(F f) {
    for (const auto& c2c : kAnswers)
        for (const auto& nvlink : kAnswers)
            for (const auto& indirect : kAnswers)
                for (const auto& pcie : kAnswers)
                    for (const auto& bar1 : kAnswers)
                        f(CapsScript{c2c, nvlink, indirect, pcie, bar1, kOk});
}

bool same(const CapsResult& a, const CapsResult& b) {
    return a.status == b.status && a.write == b.write && a.read == b.read &&
           a.atomics == b.atomics && a.connectivity == b.connectivity &&
           std::string(a.trace) == b.trace;
}

// MIG, NVLink present, links discovered, switch: of one GPU.
void features(OBJGPU& gpu, unsigned bits) {
    gpu.bMig = bits & 1;
    gpu.bNvlink = (bits >> 1) & 1;
    gpu.bDiscoveredLinks = (bits >> 2) & 1;
    gpu.bNvswitch = (bits >> 3) & 1;
}

}  // namespace

BOOST_AUTO_TEST_CASE(without_the_key_the_changed_function_is_the_stock_function) {
    unsigned long states = 0;
    for (unsigned a = 0; a < 16; a++)
        for (unsigned b = 0; b < 16; b++) {
            Machine m;
            features(m.g[0].gpu, a);
            features(m.g[1].gpu, b);
            for (auto& x : m.g) {
                x.attach();
                x.window();  // as stock has it from 580
                x.bif.p2pOverride = (a & 1) ? 0x11 : BIF_P2P_NOT_OVERRIDEN;
            }
            forEveryScript([&](const CapsScript& script) {
                for (NvU32 mask = 0; mask < 4; mask++)
                    BOOST_REQUIRE(same(capsStock(mask, &script), capsChanged(mask, &script)));
                states++;
            });
        }
    BOOST_TEST(states == 256ul * 1024);
}

// C2C, NVLink, MIG and NVSwitch are decided before us and stay as they are; what would
// go on to the mailbox question ends in ours, and the question is not asked any more.
BOOST_AUTO_TEST_CASE(with_the_key_only_the_pcie_question_is_replaced) {
    for (int usable = 0; usable < 2; usable++)
        for (unsigned bits = 0; bits < 16; bits++) {
            Ready m;
            features(m.g[0].gpu, bits);
            if (!usable) m.g[1].bus.bar1[0].bStaticBar1Enabled = NV_FALSE;
            forEveryScript([&](const CapsScript& script) {
                const CapsResult stock = capsStock(3, &script), changed = capsChanged(3, &script);
                const std::string asked = stock.trace;
                const auto pcie = asked.find('p');
                if (pcie == std::string::npos) {
                    BOOST_REQUIRE(same(stock, changed));
                    return;
                }
                BOOST_REQUIRE(std::string(changed.trace) == asked.substr(0, pcie));
                BOOST_REQUIRE(changed.status == NV_OK);
                BOOST_REQUIRE(changed.write == (usable ? kOk : kNo));
                BOOST_REQUIRE(changed.read == changed.write);
                BOOST_REQUIRE(changed.connectivity ==
                              (usable ? P2P_CONNECTIVITY_PCIE_BAR1 : P2P_CONNECTIVITY_UNKNOWN));
                // Nobody promises atomics across a BAR1.
                BOOST_REQUIRE(changed.atomics == (NVP2P_DRIVER_MAJOR <= 560 ? 0 : kNo));
            });
        }
}

BOOST_AUTO_TEST_CASE(a_single_gpu_is_stocks_with_the_key_too) {
    Ready m;
    forEveryScript([&](const CapsScript& script) {
        for (NvU32 mask : {0u, 1u, 2u})
            BOOST_REQUIRE(same(capsStock(mask, &script), capsChanged(mask, &script)));
    });
}
