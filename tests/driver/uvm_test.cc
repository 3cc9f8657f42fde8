// SPDX-License-Identifier: MIT
// The guard of driver/src/uvm/nvp2p_uvm.h: UVM's own traffic stays off BAR1 peers.
#define BOOST_TEST_MODULE driver_uvm
#include "nvp2p_uvm.h"

#include <boost/test/unit_test.hpp>
#include <cstring>

unsigned uvmStubAperture[UVM_STUB_PROCESSORS][UVM_STUB_PROCESSORS];

namespace {
struct Pair {
    uvm_parent_gpu_t parents[2] = {{{NV2080_CTRL_MC_ARCH_INFO_ARCHITECTURE_AD100}},
                                   {{NV2080_CTRL_MC_ARCH_INFO_ARCHITECTURE_AD100}}};
    uvm_gpu_t gpu[2] = {{{1}, &parents[0]}, {{2}, &parents[1]}};
    uvm_va_space_t space, before;

    Pair(unsigned id01, unsigned id10) {
        // What enable_peers() has set by then, in both directions, and a third GPU's bits.
        std::memset(&space, 0xff, sizeof space);
        before = space;
        uvmStubAperture[1][2] = UVM_APERTURE_PEER_0 + static_cast<uint8_t>(id01);
        uvmStubAperture[2][1] = UVM_APERTURE_PEER_0 + static_cast<uint8_t>(id10);
    }
    void limit() { nvp2p_uvm_limit_peers(&space, &gpu[0], &gpu[1]); }
    bool untouched() const { return std::memcmp(&space, &before, sizeof space) == 0; }
};
}  // namespace

BOOST_AUTO_TEST_CASE(a_pair_without_peer_id_is_limited_both_ways) {
    for (auto ids : {std::make_pair(0xffffffffu, 0xffffffffu), std::make_pair(0xffffffffu, 0u),
                     std::make_pair(0u, 0xffffffffu)}) {
        Pair p(ids.first, ids.second);
        p.limit();
        uvm_va_space_t want = p.before;
        for (auto* masks : {want.can_access, want.accessible_from, want.can_copy_from}) {
            masks[1].bits &= ~(1u << 2);
            masks[2].bits &= ~(1u << 1);
        }
        BOOST_TEST(std::memcmp(&p.space, &want, sizeof want) == 0);
    }
}

// The opt-in of 580 takes Ampere boards too; where NVLink connects them they have ids.
BOOST_AUTO_TEST_CASE(ampere_pairs_are_limited_alike) {
    for (auto ids : {std::make_pair(0xffffffffu, 0xffffffffu), std::make_pair(0u, 1u)}) {
        Pair p(ids.first, ids.second);
        for (auto& parent : p.parents)
            parent.rm_info.gpuArch = NV2080_CTRL_MC_ARCH_INFO_ARCHITECTURE_GA100;
        p.limit();
        BOOST_TEST(p.untouched() == (ids.first == 0u));
        BOOST_TEST(nvp2p_uvm_no_aperture(&p.gpu[0], &p.gpu[1]) == (ids.first != 0u));
    }
}

BOOST_AUTO_TEST_CASE(pairs_with_peer_ids_are_left_alone) {
    for (unsigned a = 0; a <= 0xff; a++) {
        Pair p(a, 0);
        const bool known = a < UVM_APERTURE_PEER_MAX || a == UVM_APERTURE_VID;
        p.limit();
        BOOST_TEST(p.untouched() == known);
    }
}

// From 590 UVM has system apertures for a BAR1 pair, which the code for Ada cannot write.
BOOST_AUTO_TEST_CASE(pairs_behind_a_system_aperture_are_limited) {
    for (unsigned a : {UVM_APERTURE_SYS, UVM_APERTURE_SYS_NON_COHERENT}) {
        Pair p(0, 0);
        uvmStubAperture[1][2] = a;
        BOOST_TEST(nvp2p_uvm_no_aperture(&p.gpu[0], &p.gpu[1]));
        p.limit();
        BOOST_TEST(!p.untouched());
    }
}

// No BAR1 pair of ours has another architecture: there stock decides, right or wrong.
BOOST_AUTO_TEST_CASE(other_architectures_are_left_alone) {
    for (uint32_t arch :
         {NV2080_CTRL_MC_ARCH_INFO_ARCHITECTURE_TU100, NV2080_CTRL_MC_ARCH_INFO_ARCHITECTURE_GH100})
        for (int which = 0; which < 2; which++) {
            Pair p(0xffffffffu, 0xffffffffu);
            p.parents[which].rm_info.gpuArch = arch;
            p.limit();
            BOOST_TEST(p.untouched());
            BOOST_TEST(!nvp2p_uvm_no_aperture(&p.gpu[0], &p.gpu[1]));
            BOOST_TEST(!nvp2p_uvm_no_aperture(&p.gpu[1], &p.gpu[0]));
        }
}

BOOST_AUTO_TEST_CASE(identity_mappings_ask_per_direction) {
    Pair p(0xffffffffu, 3);
    BOOST_TEST(nvp2p_uvm_no_aperture(&p.gpu[0], &p.gpu[1]));
    BOOST_TEST(!nvp2p_uvm_no_aperture(&p.gpu[1], &p.gpu[0]));
}

BOOST_AUTO_TEST_CASE(partitions_of_one_gpu_are_left_alone) {
    Pair p(0xffffffffu, 0xffffffffu);
    p.gpu[1].parent = p.gpu[0].parent;
    p.limit();
    BOOST_TEST(p.untouched());
}
