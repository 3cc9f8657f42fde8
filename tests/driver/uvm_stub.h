/* SPDX-License-Identifier: MIT */
/* As much of nvidia-uvm as driver/src/uvm/nvp2p_uvm.h touches. */
#ifndef UVM_STUB_H
#define UVM_STUB_H

#include <stdbool.h>
#include <stdint.h>

#define NV2080_CTRL_MC_ARCH_INFO_ARCHITECTURE_TU100 0x160u
#define NV2080_CTRL_MC_ARCH_INFO_ARCHITECTURE_GA100 0x170u
#define NV2080_CTRL_MC_ARCH_INFO_ARCHITECTURE_GH100 0x180u
#define NV2080_CTRL_MC_ARCH_INFO_ARCHITECTURE_AD100 0x190u
#define UVM_STUB_PROCESSORS 4

#ifdef UVM_STUB_APERTURES
#include "uvm_apertures.inc" /* a release's own */
#else
typedef enum {
    UVM_APERTURE_PEER_0,
    UVM_APERTURE_PEER_7 = 7,
    UVM_APERTURE_PEER_MAX,
    UVM_APERTURE_SYS,
    UVM_APERTURE_SYS_NON_COHERENT,
    UVM_APERTURE_VID
} uvm_aperture_t;
#endif
static inline bool uvm_aperture_is_peer(uvm_aperture_t a) {
    return a >= UVM_APERTURE_PEER_0 && a < UVM_APERTURE_PEER_MAX;
}

typedef struct {
    int val;
} uvm_processor_id_t;
typedef struct {
    uint32_t bits;
} uvm_processor_mask_t;
typedef struct {
    struct {
        uint32_t gpuArch;
    } rm_info;
} uvm_parent_gpu_t;
typedef struct {
    uvm_processor_id_t id;
    uvm_parent_gpu_t* parent;
} uvm_gpu_t;
typedef struct {
    uvm_processor_mask_t can_access[UVM_STUB_PROCESSORS], accessible_from[UVM_STUB_PROCESSORS],
        can_copy_from[UVM_STUB_PROCESSORS], has_native_atomics[UVM_STUB_PROCESSORS];
} uvm_va_space_t;

/*
 * What UVM takes a peer's memory for, by local and remote processor: up to 580 PEER_0 and eight
 * bits of the id that RM gave.
 */
extern unsigned uvmStubAperture[UVM_STUB_PROCESSORS][UVM_STUB_PROCESSORS];

static inline int uvm_id_value(uvm_processor_id_t id) {
    return id.val;
}
static inline void uvm_processor_mask_clear(uvm_processor_mask_t* mask, uvm_processor_id_t id) {
    mask->bits &= ~(1u << id.val);
}
static inline uvm_aperture_t uvm_gpu_peer_aperture(uvm_gpu_t* local, uvm_gpu_t* remote) {
    if (local->parent == remote->parent) return UVM_APERTURE_VID;
    return (uvm_aperture_t)uvmStubAperture[local->id.val][remote->id.val];
}
#endif
