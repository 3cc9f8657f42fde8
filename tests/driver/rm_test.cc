// SPDX-License-Identifier: MIT
// The driver's own nvp2p_bar1.c on stub GPUs: what it takes over at start, what it
// answers about pairs, which page table entries it changes.  Built once per family.
#define BOOST_TEST_MODULE driver_rm
#include "rig.h"

#include <boost/test/unit_test.hpp>
#include <initializer_list>
#include <vector>

using namespace rig;

// Every byte of a GPU, padding too: nothing of it may be written.
template <class T>
static bool sameBytes(const T& a, const T& b) {
    return std::memcmp(&a, &b, sizeof a) == 0;  // NOLINT(bugprone-suspicious-memory-comparison)
}

// ---- start of a GPU ----------------------------------------------------------

BOOST_AUTO_TEST_SUITE(attach)

BOOST_AUTO_TEST_CASE(takes_the_hopper_functions) {
    Machine m(1);
    m.g[0].key(1);
    m.g[0].attach();
    const KernelBus& bus = m.g[0].bus;
    BOOST_TEST(nvp2pIsOurs(&m.g[0].bus));
    BOOST_TEST((bus.__kbusCreateP2PMapping__ == kbusCreateP2PMapping_GH100));
    BOOST_TEST((bus.__kbusRemoveP2PMapping__ == kbusRemoveP2PMapping_GH100));
    BOOST_TEST((bus.__kbusCreateP2PMappingForBar1P2P__ == kbusCreateP2PMappingForBar1P2P_GH100));
    BOOST_TEST((bus.__kbusRemoveP2PMappingForBar1P2P__ == kbusRemoveP2PMappingForBar1P2P_GH100));
    BOOST_TEST((bus.__kbusHasPcieBar1P2PMapping__ == kbusHasPcieBar1P2PMapping_GH100));
    BOOST_TEST((bus.__kbusGetBar1P2PDmaInfo__ == kbusGetBar1P2PDmaInfo_GH100));
    BOOST_TEST((bus.__kbusIsPcieBar1P2PMappingSupported__ != kbusStockPair));
#if NVP2P_DRIVER_MAJOR >= 575
    BOOST_TEST(m.g[0].bif.pcieP2PType == 1u);
    BOOST_TEST(m.g[0].bif.forceP2PType == 0x66u);  // means something else from 575
#else
    BOOST_TEST(m.g[0].bif.forceP2PType == 2u);
#endif
}

BOOST_AUTO_TEST_CASE(nobody_else_is_touched) {
    Machine m(2);
    const Gpu before = m.g[1];
    m.g[0].key(1);
    m.g[0].attach();
    m.g[1].attach();
    BOOST_TEST(sameBytes(before, m.g[1]));
}

// Keys that do not say "on", and GPUs that are not eligible, stay byte for byte.
BOOST_AUTO_TEST_CASE(without_opt_in_not_a_byte_changes) {
    unsigned long states = 0;
    for (int set = 0; set < 2; set++)
        for (NvU32 key = 0; key < 256; key++)
            for (int bits = 0; bits < 64; bits++) {
                Machine m(1);
                Gpu& x = m.g[0];
                x.gpu.bAda = (bits & 1) == 0;
                x.gpu.bVirtual = (bits >> 1) & 1;
                x.gpu.bSriov = (bits >> 2) & 1;
                x.gpu.bSli = (bits >> 3) & 1;
                x.gpu.pBif = (bits & 16) ? nullptr : &x.bif;
                x.gpu.bStaticKeySet = (bits >> 5) & 1;
                x.gpu.staticKey = 1;
                x.gpu.bKeySet = static_cast<NvBool>(set);
                x.gpu.key = key;
                const bool eligible = (bits & 31) == 0;
                const bool on = set && (key & 1) != 0 && key < 8;
                const Gpu before = x;
                x.attach();
                BOOST_REQUIRE(nvp2pIsOurs(&x.bus) == (eligible && on));
                if (!(eligible && on)) BOOST_REQUIRE(sameBytes(before, x));
                states++;
            }
    BOOST_TEST(states == 2ul * 256 * 64);
}

#if NVP2P_DRIVER_MAJOR >= 565
// Automatic asks for twice the framebuffer in 565, whose default makes the window for our type.
BOOST_AUTO_TEST_CASE(static_bar1_is_automatic_from_570_unless_the_administrator_chose) {
    Machine m(2);
    m.g[0].key(1);
    m.g[0].attach();
    BOOST_TEST(m.g[0].bus.staticBar1ForceType == (NVP2P_DRIVER_MAJOR >= 570 ? 2u : 0x77u));
    m.g[1].key(1);
    m.g[1].gpu.bStaticKeySet = NV_TRUE;
    m.g[1].attach();
    BOOST_TEST(m.g[1].bus.staticBar1ForceType == 0x77u);
}
#else
BOOST_AUTO_TEST_CASE(window_needs_room_and_the_consoles_memory_at_0) {
    Machine m(1);
    Gpu& x = m.g[0];
    x.key(1);
    x.attach();
    auto capable = [&](NvU32 gfid = 0) {
        return x.bus.__kbusIsBar1P2PCapable__(&x.gpu, &x.bus, gfid) != 0;
    };
    BOOST_TEST(capable());
    BOOST_TEST(!capable(1));
    stubCapable = NV_FALSE;
    BOOST_TEST(!capable());
    stubCapable = NV_TRUE;
    x.bus.bar1Size = 256ULL << 20;
    BOOST_TEST(!capable());
    x.bus.bar1Size = 24 * GiB;
    BOOST_TEST(!capable());
    x.bus.bar1Size = 32 * GiB;
    x.bus.bPreserveConsole = NV_TRUE;
    BOOST_TEST(!capable());  // no description of the console
    x.mm.pConsole = &x.console;
    BOOST_TEST(capable());
    x.console.address = 8ULL << 20;
    BOOST_TEST(!capable());
}

BOOST_AUTO_TEST_CASE(a_window_that_fails_does_not_fail_the_gpu) {
    Ready m;
    Gpu& x = m.g[0];
    stubEnable = NV_ERR_GENERIC;
    BOOST_TEST(x.bus.__kbusEnableStaticBar1Mapping__(&x.gpu, &x.bus, 0) == NV_OK);
    BOOST_TEST(Caps(3).no(NV0000_P2P_CAPS_STATUS_NOT_SUPPORTED));
    stubEnable = NV_OK;
    BOOST_TEST(x.bus.__kbusEnableStaticBar1Mapping__(&x.gpu, &x.bus, 0) == NV_OK);
    BOOST_TEST(Caps(3).yes());
    BOOST_TEST((x.bus.__kbusDisableStaticBar1Mapping__ == kbusDisableStaticBar1Mapping_GH100));
}
#endif

#if NVP2P_DRIVER_MAJOR <= 565
BOOST_AUTO_TEST_CASE(a_console_gives_way_only_where_the_window_shows_the_same_memory) {
    Machine m(2);
    for (int ours = 0; ours < 2; ours++) {
        Gpu& x = m.g[ours];
        if (ours) x.key(1);
        x.attach();
        const auto allows = [&] { return nvp2pConsoleAllowsWindow(&x.gpu, &x.bus) != 0; };
        BOOST_TEST(allows());
        x.bus.bPreserveConsole = NV_TRUE;
        BOOST_TEST(allows() == (ours == 0));  // no description of the console
        x.mm.pConsole = &x.console;
        BOOST_TEST(allows());
        x.console.address = 8ULL << 20;
        BOOST_TEST(allows() == (ours == 0));
    }
}
#endif

BOOST_AUTO_TEST_CASE(the_window_is_hidden_from_the_rest_of_the_rm_up_to_575) {
    Machine m(2);
    m.g[0].key(1);
    m.g[0].attach();
    BOOST_TEST(RIG_HIDES(&m.g[0].bus) == (NVP2P_DRIVER_MAJOR < 580));
    BOOST_TEST(!RIG_HIDES(&m.g[1].bus));
    BOOST_TEST(!nvp2pIsOurs(nullptr));
}

BOOST_AUTO_TEST_SUITE_END()

// ---- what is answered about pairs ---------------------------------------------

BOOST_AUTO_TEST_SUITE(caps)

BOOST_AUTO_TEST_CASE(a_pair_with_windows_on_a_trusted_host) {
    Ready m;
    BOOST_TEST(Caps(3).yes());
    BOOST_TEST(Caps(3).yes());  // asking changes nothing
}

BOOST_AUTO_TEST_CASE(one_gpu_alone_is_left_to_stock) {
    Ready m;
    BOOST_TEST(Caps(0).untouched());
    BOOST_TEST(Caps(1).untouched());
    BOOST_TEST(Caps(2).untouched());
    // and the mapping question itself knows no loopback
    BOOST_TEST(!m.g[0].bus.__kbusIsPcieBar1P2PMappingSupported__(&m.g[0].gpu, &m.g[0].bus,
                                                                 &m.g[0].gpu, &m.g[0].bus));
}

BOOST_AUTO_TEST_CASE(opt_in_on_one_only_is_a_final_no) {
    for (int other = 0; other < 2; other++) {
        Machine m(2);
        m.g[other].key(1);
        m.g[other].attach();
        m.g[other].window();
        m.g[1 - other].attach();
        // Even where ForceP2P would have made stock answer "mailbox".
        for (NvU32 override : {BIF_P2P_NOT_OVERRIDEN, 0x11u}) {
            m.g[0].bif.p2pOverride = m.g[1].bif.p2pOverride = override;
            BOOST_TEST(Caps(3).no(NV0000_P2P_CAPS_STATUS_NOT_SUPPORTED));
        }
    }
}

// Ampere needs its own bit and a release that keeps NVLink apart from the PCIe type.
BOOST_AUTO_TEST_CASE(ampere_only_where_it_was_asked_for_and_nvlink_stays) {
    for (NvU32 key = 0; key < 8; key++)
        for (int ga100 = 0; ga100 < 2; ga100++) {
            Machine m(1);
            Gpu& x = m.g[0];
            x.gpu.bAda = NV_FALSE;
            x.gpu.bAmpere = NV_TRUE;
            x.gpu.bGa100 = static_cast<NvBool>(ga100);
            x.key(key);
            const Gpu before = x;
            x.attach();
            const bool ours = NVP2P_DRIVER_MAJOR >= 580 && (key & 5) == 5 && !ga100;
            BOOST_TEST(nvp2pIsOurs(&x.bus) == ours);
            // The type that also governs NVLink is never touched.
            BOOST_TEST(x.bif.forceP2PType == before.bif.forceP2PType);
            if (!ours) BOOST_TEST(sameBytes(before, x));
        }
}

BOOST_AUTO_TEST_CASE(mixed_generations_are_a_final_no) {
    Machine m(2);
    m.g[1].gpu.bAda = NV_FALSE;
    for (auto& x : m.g) {
        x.key(1);
        x.attach();
        x.window();
    }
    BOOST_TEST(!nvp2pIsOurs(&m.g[1].bus));
    BOOST_TEST(Caps(3).no(NV0000_P2P_CAPS_STATUS_NOT_SUPPORTED));
}

// As stock asks before any question about BAR1: a 4090 and a 4080, a board and a notebook's.
BOOST_AUTO_TEST_CASE(boards_that_differ_are_a_final_no) {
    for (int which = 0; which < 3; which++) {
        Ready m;
        OBJGPU& x = m.g[1].gpu;
        if (which == 0) x.chipArch++;
        if (which == 1) x.chipImpl++;
        if (which == 2) x.bMobile = NV_TRUE;
        BOOST_TEST(Caps(3).no(NV0000_P2P_CAPS_STATUS_NOT_SUPPORTED));
        m.g[0].gpu.chipArch = x.chipArch;
        m.g[0].gpu.chipImpl = x.chipImpl;
        m.g[0].gpu.bMobile = x.bMobile;
        BOOST_TEST(Caps(3).yes());
    }
}

BOOST_AUTO_TEST_CASE(a_gpu_whose_reads_or_writes_stock_disabled_has_no_peers) {
    for (int bad = 0; bad < 2; bad++)
        for (int what = 0; what < 2; what++) {
            Ready m;
            m.g[bad].bif.bDisabled[what] = NV_TRUE;
            BOOST_TEST(Caps(3).no(NV0000_P2P_CAPS_STATUS_NOT_SUPPORTED));
            // ForceP2P sets the same properties, and is what decides where it is set.
            m.g[bad].bif.p2pOverride = 0x11;
            BOOST_TEST(Caps(3).yes());
            m.g[bad].bif.p2pOverride = 0x22;
            BOOST_TEST(Caps(3).no(NV0000_P2P_CAPS_STATUS_DISABLED_BY_REGKEY));
        }
}

BOOST_AUTO_TEST_CASE(any_missing_or_unusable_window_is_a_no) {
    for (int bad = 0; bad < 2; bad++) {
        Ready m;
        BOOST_REQUIRE(Caps(3).yes());
        m.g[bad].bus.bar1[0].bStaticBar1Enabled = NV_FALSE;  // BAR1 was too small
        BOOST_TEST(Caps(3).no(NV0000_P2P_CAPS_STATUS_NOT_SUPPORTED));
        m.g[bad].window();
        m.g[bad].bus.bar1[0].staticBar1.pDmaMemDesc = nullptr;
        BOOST_TEST(Caps(3).no(NV0000_P2P_CAPS_STATUS_NOT_SUPPORTED));
        m.g[bad].window();
        m.g[bad].dma.address += 4ULL << 20;  // behind a console (570 and 575)
        BOOST_TEST(Caps(3).no(NV0000_P2P_CAPS_STATUS_NOT_SUPPORTED));
        m.g[bad].dma.address -= 4ULL << 20;
        m.g[bad].bus.p2pPcie.peerNumberMask[1 - bad] = 1;  // a mailbox is in use
        BOOST_TEST(Caps(3).no(NV0000_P2P_CAPS_STATUS_NOT_SUPPORTED));
        m.g[bad].bus.p2pPcie.peerNumberMask[1 - bad] = 0;
        m.g[bad].gpu.bVirtual = NV_TRUE;
        BOOST_TEST(Caps(3).no(NV0000_P2P_CAPS_STATUS_NOT_SUPPORTED));
        m.g[bad].gpu.bVirtual = NV_FALSE;
        BOOST_TEST(Caps(3).yes());
    }
}

BOOST_AUTO_TEST_CASE(host_trust) {
    for (NvU32 keyA : {1u, 3u})
        for (NvU32 keyB : {1u, 3u})
            for (NvU32 cpu :
                 {NV0000_CTRL_SYSTEM_CPU_TYPE_UNKNOWN, NV0000_CTRL_SYSTEM_CPU_TYPE_XEON_SPR,
                  NV0000_CTRL_SYSTEM_CPU_TYPE_RYZEN})
                for (int common = 0; common < 2; common++) {
                    Ready m;
                    m.g[0].gpu.key = keyA;
                    m.g[1].gpu.key = keyB;
                    stubSys.cpuInfo.type = cpu;
                    stubCommonSwitch = static_cast<NvBool>(common);
                    const bool trusted = cpu != NV0000_CTRL_SYSTEM_CPU_TYPE_UNKNOWN ||
                                         common != 0 || (keyA == 3 && keyB == 3);
                    const Caps c(3);
                    BOOST_TEST(
                        (trusted ? c.yes() : c.no(NV0000_P2P_CAPS_STATUS_CHIPSET_NOT_SUPPORTED)));
                }
}

// ForceP2P: reads in bits 1:0, writes in 5:4, 1 is on.  Both must be on, on every GPU.
BOOST_AUTO_TEST_CASE(registry_overrides) {
    for (NvU32 a = 0; a < 0x40; a++)
        for (NvU32 b : {BIF_P2P_NOT_OVERRIDEN, 0x11u, 0x10u, 0x01u, 0x00u, 0x22u}) {
            Ready m;
            stubSys.cpuInfo.type =
                NV0000_CTRL_SYSTEM_CPU_TYPE_UNKNOWN;  // an override beats the list
            m.g[0].bif.p2pOverride = a;
            m.g[1].bif.p2pOverride = b;
            const bool on = (a & 0x33) == 0x11 && (b == BIF_P2P_NOT_OVERRIDEN || b == 0x11);
            const Caps c(3);
            BOOST_TEST((on ? c.yes() : c.no(NV0000_P2P_CAPS_STATUS_DISABLED_BY_REGKEY)));
        }
}

// Four GPUs, every subset, every choice of which opted in and which has a window.
BOOST_AUTO_TEST_CASE(every_subset_of_four) {
    for (NvU32 ours = 0; ours < 16; ours++)
        for (NvU32 windows = 0; windows < 16; windows++) {
            Machine m(4);
            for (NvU32 i = 0; i < 4; i++) {
                if (ours & (1u << i)) m.g[i].key(1);
                m.g[i].attach();
                if (windows & (1u << i)) m.g[i].window();
            }
            for (NvU32 mask = 0; mask < 16; mask++) {
                const Caps c(mask);
                if (__builtin_popcount(mask) < 2 || (mask & ours) == 0)
                    BOOST_TEST(c.untouched());
                else if ((mask & ours) == mask && (mask & windows) == mask)
                    BOOST_TEST(c.yes());
                else
                    BOOST_TEST(c.no(NV0000_P2P_CAPS_STATUS_NOT_SUPPORTED));
            }
        }
}

BOOST_AUTO_TEST_SUITE_END()

// ---- page table entries --------------------------------------------------------

BOOST_AUTO_TEST_SUITE(entries)

#if NVP2P_DRIVER_MAJOR < 580
namespace {
MEMORY_DESCRIPTOR vidmem(Machine& m, int owner) {
    return {&m.g[owner].gpu, ADDR_FBMEM, 0, NV_FALSE};
}

struct Opened {
    GMMU_APERTURE aperture;
    NvBool vol;
    NVP2P_WINDOW window;
    NV_STATUS status;

    Opened(Machine& m, MEMORY_DESCRIPTOR& md, GMMU_APERTURE a, NvBool v = NV_FALSE,
           NvBool fla = NV_FALSE)
        : aperture(a), vol(v) {
        std::memset(&window, 0xee, sizeof window);
        status = nvp2pOpenWindow(&m.g[0].gpu, &md, fla, &aperture, &vol, &window);
    }
    bool untouched(GMMU_APERTURE a, NvBool v = NV_FALSE) const {
        return status == NV_OK && aperture == a && vol == v && window.bActive == NV_FALSE;
    }
};
}  // namespace

BOOST_AUTO_TEST_CASE(peer_memory_becomes_uncached_bus_memory) {
    Mapped m;
    auto md = vidmem(m, 1);
    Opened o(m, md, GMMU_APERTURE_PEER);
    BOOST_TEST(o.status == NV_OK);
    BOOST_TEST(o.window.bActive == NV_TRUE);
    BOOST_TEST(o.aperture == GMMU_APERTURE_SYS_NONCOH);
    BOOST_TEST(o.vol == NV_TRUE);
    BOOST_TEST(o.window.win.base == kWindowBase);
    BOOST_TEST(o.window.win.size == 24 * GiB);
    BOOST_TEST(o.window.win.minAddr == 0u);
    BOOST_TEST(o.window.win.maxAddr == (1ULL << 47) - 1);
}

BOOST_AUTO_TEST_CASE(everything_else_is_left_alone) {
    Mapped m;
    auto md = vidmem(m, 1);
    for (auto a : {GMMU_APERTURE_INVALID, GMMU_APERTURE_VIDEO, GMMU_APERTURE_SYS_NONCOH,
                   GMMU_APERTURE_SYS_COH})
        for (NvBool v : {NV_FALSE, NV_TRUE}) BOOST_TEST(Opened(m, md, a, v).untouched(a, v));
    BOOST_TEST(
        Opened(m, md, GMMU_APERTURE_PEER, NV_FALSE, NV_TRUE).untouched(GMMU_APERTURE_PEER));  // FLA
    md.bEgm = NV_TRUE;
    BOOST_TEST(Opened(m, md, GMMU_APERTURE_PEER).untouched(GMMU_APERTURE_PEER));
    md.bEgm = NV_FALSE;
    for (auto space : {ADDR_UNKNOWN, ADDR_SYSMEM, ADDR_FABRIC_V2, ADDR_EGM}) {
        md.space = space;
        BOOST_TEST(Opened(m, md, GMMU_APERTURE_PEER).untouched(GMMU_APERTURE_PEER));
    }
    md.space = ADDR_FBMEM;
    md.pGpu = &m.g[0].gpu;  // its own memory
    BOOST_TEST(Opened(m, md, GMMU_APERTURE_PEER).untouched(GMMU_APERTURE_PEER));
    md.pGpu = nullptr;
    BOOST_TEST(Opened(m, md, GMMU_APERTURE_PEER).untouched(GMMU_APERTURE_PEER));
}

BOOST_AUTO_TEST_CASE(pairs_that_are_not_both_ours_are_left_alone) {
    for (int ours = 0; ours < 2; ours++) {
        Machine m(2);
        m.g[ours].key(1);
        m.g[ours].attach();
        m.g[ours].window();
        m.g[0].bus.bar1PeerRefcount[1] = m.g[1].bus.bar1PeerRefcount[0] = 1;
        auto md = vidmem(m, 1);
        BOOST_TEST(Opened(m, md, GMMU_APERTURE_PEER).untouched(GMMU_APERTURE_PEER));
    }
}

BOOST_AUTO_TEST_CASE(no_p2p_object_no_entry) {
    Ready m;
    auto md = vidmem(m, 1);
    Opened o(m, md, GMMU_APERTURE_PEER);
    BOOST_TEST(o.status == NV_ERR_INVALID_STATE);
    BOOST_TEST(o.aperture == GMMU_APERTURE_PEER);
}

BOOST_AUTO_TEST_CASE(a_window_without_address_or_size_is_refused) {
    Mapped m;
    auto md = vidmem(m, 1);
    stubDmaBase = NV_U64_MAX;
    BOOST_TEST(Opened(m, md, GMMU_APERTURE_PEER).status == NV_ERR_INVALID_STATE);
    stubDmaBase = kWindowBase;
    stubDmaSize = 0;
    BOOST_TEST(Opened(m, md, GMMU_APERTURE_PEER).status == NV_ERR_INVALID_STATE);
    stubDmaSize = GiB;
    stubDmaStatus = NV_ERR_GENERIC;
    Opened o(m, md, GMMU_APERTURE_PEER);
    BOOST_TEST(o.status == NV_ERR_GENERIC);
    BOOST_TEST(o.window.bActive == NV_FALSE);
}

BOOST_AUTO_TEST_CASE(reach_follows_the_gpus_address_width) {
    Mapped m;
    auto md = vidmem(m, 1);
    m.g[0].gpu.width = 40;
    m.g[0].gmmu.sysmemBaseAddress = 4 * GiB;
    Opened o(m, md, GMMU_APERTURE_PEER);
    const NvU64 low = NVP2P_DRIVER_MAJOR < 570 ? 4 * GiB : 0;
    BOOST_TEST(o.window.win.minAddr == low);
    BOOST_TEST(o.window.win.maxAddr == low + (1ULL << 40) - 1);
    // The window lies beyond 40 bits: refused, not truncated.
    NvU64 address = 0;
    BOOST_TEST(nvp2pEncode(&o.window, &address, 1, 4096, NV_FALSE) == NV_ERR_INVALID_ADDRESS);
    BOOST_TEST(address == 0u);
}

BOOST_AUTO_TEST_CASE(encoding) {
    Mapped m;
    auto md = vidmem(m, 1);
    Opened o(m, md, GMMU_APERTURE_PEER);
    NvU64 a[2] = {0, 2u << 20};
    BOOST_TEST(nvp2pEncode(&o.window, a, 2, 2u << 20, NV_TRUE) == NV_ERR_NOT_SUPPORTED);
    BOOST_TEST((a[0] == 0u && a[1] == 2u << 20));
    BOOST_TEST(nvp2pEncode(&o.window, a, 2, 2u << 20, NV_FALSE) == NV_OK);
    BOOST_TEST((a[0] == kWindowBase && a[1] == kWindowBase + (2u << 20)));
    NvU64 beyond[2] = {0, 24 * GiB};
    BOOST_TEST(nvp2pEncode(&o.window, beyond, 2, 4096, NV_FALSE) == NV_ERR_INVALID_ADDRESS);
    BOOST_TEST((beyond[0] == 0u && beyond[1] == 24 * GiB));
    // Inactive: nothing is looked at, compressed or not.
    o.window.bActive = NV_FALSE;
    for (NvBool compressed : {NV_FALSE, NV_TRUE}) {
        BOOST_TEST(nvp2pEncode(&o.window, beyond, 2, 4096, compressed) == NV_OK);
        BOOST_TEST((beyond[0] == 0u && beyond[1] == 24 * GiB));
    }
}
#else
BOOST_AUTO_TEST_CASE(stock_addresses_are_bounded) {
    Mapped m;
    OBJGPU *mapper = &m.g[0].gpu, *owner = &m.g[1].gpu;
    const NvU64 last[1] = {24 * GiB - 4096}, beyond[1] = {24 * GiB};
    BOOST_TEST(nvp2pCheckStock(mapper, owner, kWindowBase, 24 * GiB, last, 1, 4096, NV_FALSE) ==
               NV_OK);
    BOOST_TEST(nvp2pCheckStock(mapper, owner, kWindowBase, 24 * GiB, beyond, 1, 4096, NV_FALSE) ==
               NV_ERR_INVALID_ADDRESS);
    BOOST_TEST(nvp2pCheckStock(mapper, owner, kWindowBase, 24 * GiB, last, 1, 4096, NV_TRUE) ==
               NV_ERR_NOT_SUPPORTED);
    m.g[0].gpu.width = 40;
    BOOST_TEST(nvp2pCheckStock(mapper, owner, kWindowBase, 24 * GiB, last, 1, 4096, NV_FALSE) ==
               NV_ERR_INVALID_ADDRESS);
}

BOOST_AUTO_TEST_CASE(one_gpu_of_ours_is_enough_to_be_careful) {
    for (int ours = 0; ours < 3; ours++) {
        Machine m(2);
        if (ours < 2) {
            m.g[ours].key(1);
            m.g[ours].attach();
        }
        const NvU64 beyond[1] = {24 * GiB};
        const NV_STATUS want = ours < 2 ? NV_ERR_INVALID_ADDRESS : NV_OK;
        BOOST_TEST(nvp2pCheckStock(&m.g[0].gpu, &m.g[1].gpu, kWindowBase, 24 * GiB, beyond, 1, 4096,
                                   NV_FALSE) == want);
    }
}
#endif

BOOST_AUTO_TEST_SUITE_END()

// ---- stock equality --------------------------------------------------------------

// Without the key, over every state a pair can be in, no decision of ours is made:
// nothing answered, nothing written, no entry changed.
BOOST_AUTO_TEST_CASE(without_the_key_every_decision_is_stocks) {
    const NvU32 overrides[] = {BIF_P2P_NOT_OVERRIDEN, 0x00, 0x01, 0x10, 0x11, 0x22, 0x211};
    unsigned long states = 0;
    // Per GPU: Ada, virtual, SR-IOV, window, window on the grid, mailbox, P2P object, key off.
    for (int a = 0; a < 256; a++)
        for (int b = 0; b < 256; b++) {
            Machine m(2);
            const int bits[2] = {a, b};
            for (int i = 0; i < 2; i++) {
                Gpu& x = m.g[i];
                const int s = bits[i];
                x.gpu.bAda = s & 1;
                x.gpu.bVirtual = (s >> 1) & 1;
                x.gpu.bSriov = (s >> 2) & 1;
                if (s & 8) x.window();
                if (s & 16) x.dma.address += 4096;
                x.bus.p2pPcie.peerNumberMask[1 - i] = (s >> 5) & 1;
                x.bus.bar1PeerRefcount[1 - i] = (s >> 6) & 1;
                if (s & 128) x.key(0);
                x.bif.p2pOverride = overrides[states % 7];
            }
            stubCommonSwitch = static_cast<NvBool>(states & 1);
            const Gpu before[2] = {m.g[0], m.g[1]};
            m.g[0].attach();
            m.g[1].attach();
            for (NvU32 mask = 0; mask < 4; mask++) BOOST_REQUIRE(Caps(mask).untouched());
            BOOST_REQUIRE(!RIG_HIDES(&m.g[0].bus));
            NvU64 address = 48 * GiB + 1;
#if NVP2P_DRIVER_MAJOR < 580
            for (auto aperture :
                 {GMMU_APERTURE_VIDEO, GMMU_APERTURE_PEER, GMMU_APERTURE_SYS_NONCOH}) {
                MEMORY_DESCRIPTOR md = {&m.g[1].gpu, ADDR_FBMEM, 0, NV_FALSE};
                GMMU_APERTURE got = aperture;
                NvBool vol = NV_FALSE;
                NVP2P_WINDOW window;
                std::memset(&window, 0xee, sizeof window);
                BOOST_REQUIRE(nvp2pOpenWindow(&m.g[0].gpu, &md, NV_FALSE, &got, &vol, &window) ==
                              NV_OK);
                BOOST_REQUIRE((got == aperture && vol == NV_FALSE && window.bActive == NV_FALSE));
                BOOST_REQUIRE(nvp2pEncode(&window, &address, 1, 3, NV_TRUE) == NV_OK);
            }
#else
            BOOST_REQUIRE(
                nvp2pCheckStock(&m.g[0].gpu, &m.g[1].gpu, 0, 0, &address, 1, 3, NV_TRUE) == NV_OK);
#endif
            BOOST_REQUIRE(address == 48 * GiB + 1);
            BOOST_REQUIRE((sameBytes(before[0], m.g[0]) && sameBytes(before[1], m.g[1])));
            states++;
        }
    BOOST_TEST(states == 65536ul);
}
