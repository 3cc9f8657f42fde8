/* SPDX-License-Identifier: MIT */
/*
 * Keep UVM's own traffic (managed memory) off peers that are reachable only
 * through BAR1.
 *
 * Up to 580 UVM knows peers by a peer id.  For a BAR1 pair the RM has none and
 * reports 0xffffffff, of which UVM keeps eight bits.  From 590 it knows BAR1
 * pairs, by an aperture that only the entry and copy code of Hopper and later
 * can write.  Either aperture is outside PEER_0..PEER_7; the assertions that would
 * catch it are not compiled into release builds, and the entry makers start
 * from "local video memory", so such an entry would silently address the wrong GPU.
 *
 * Only Ada and Ampere pairs are looked at: there, only our opt-in makes a BAR1
 * pair, so nothing else changes; a pair on NVLink has a peer id, partitions of one
 * GPU have its own memory.  Mappings of memory that the RM owns (cudaMalloc,
 * cudaIpc) are unaffected: the RM builds their entries.
 */
#ifndef NVP2P_UVM_H
#define NVP2P_UVM_H

#include "ctrl2080mc.h"
#include "uvm_gpu.h"
#include "uvm_hal_types.h"
#include "uvm_processors.h"
#include "uvm_va_space.h"

static inline bool nvp2p_uvm_may_be_ours(uvm_gpu_t *gpu)
{
    return gpu->parent->rm_info.gpuArch == NV2080_CTRL_MC_ARCH_INFO_ARCHITECTURE_AD100 ||
           gpu->parent->rm_info.gpuArch == NV2080_CTRL_MC_ARCH_INFO_ARCHITECTURE_GA100;
}

/* Is the peer's memory out of reach for UVM in this direction: neither a peer id nor its own? */
static inline bool nvp2p_uvm_no_aperture(uvm_gpu_t *local, uvm_gpu_t *remote)
{
    uvm_aperture_t aperture;

    if (!nvp2p_uvm_may_be_ours(local) || !nvp2p_uvm_may_be_ours(remote))
        return false;
    aperture = uvm_gpu_peer_aperture(local, remote);
    return !uvm_aperture_is_peer(aperture) && aperture != UVM_APERTURE_VID;
}

/* UVM may neither map nor copy between the two; enabled_peers is left to the caller. */
static inline void nvp2p_uvm_limit_peers(uvm_va_space_t *va_space, uvm_gpu_t *gpu0, uvm_gpu_t *gpu1)
{
    const int i0 = uvm_id_value(gpu0->id);
    const int i1 = uvm_id_value(gpu1->id);

    if (!nvp2p_uvm_no_aperture(gpu0, gpu1) && !nvp2p_uvm_no_aperture(gpu1, gpu0))
        return;

    uvm_processor_mask_clear(&va_space->can_access[i0], gpu1->id);
    uvm_processor_mask_clear(&va_space->can_access[i1], gpu0->id);
    uvm_processor_mask_clear(&va_space->accessible_from[i0], gpu1->id);
    uvm_processor_mask_clear(&va_space->accessible_from[i1], gpu0->id);
    uvm_processor_mask_clear(&va_space->can_copy_from[i0], gpu1->id);
    uvm_processor_mask_clear(&va_space->can_copy_from[i1], gpu0->id);
}

#endif
