/* SPDX-License-Identifier: MIT */
#include "nvtypes.h"
#include "nvmisc.h"
#include "clc6b5.h"
#include "hwref/turing/tu102/dev_mmu.h"

#undef NV2080_CTRL_MC_ARCH_INFO_ARCHITECTURE_AD100
#include "nvp2p_uvm.h"
#include "uvm_tree.h"

unsigned uvmStubAperture[UVM_STUB_PROCESSORS][UVM_STUB_PROCESSORS];

/* What the two functions below use of UVM. */
#define HWMASK64(d, r, f)       DRF_MASK64(NV##d##_##r##_##f)
#define HWSIZE(d, r, f)         DRF_SIZE(NV##d##_##r##_##f)
#define HWCONST(d, r, f, c)     DRF_DEF(d, _##r, _##f, _##c)
#define HWVALUE(d, r, f, v)     DRF_NUM(d, _##r, _##f, (NvU32)(v))
#define HWCONST64(d, r, f, c)   DRF_DEF64(d, _##r, _##f, _##c)
#define HWVALUE64(d, r, f, v)   DRF_NUM64(d, _##r, _##f, (NvU64)(v))
#define UVM_ASSERT(condition)   ((void)0) /* as in a release build */
#define UVM_ASSERT_MSG(...)     ((void)0)
#define BUILD_BUG_ON(condition) ((void)sizeof(char[1 - 2 * !!(condition)]))
#define UVM_APERTURE_PEER_ID(a) ((NvU32)(a))
typedef enum
{
    UVM_PROT_NONE,
    UVM_PROT_READ_ONLY,
    UVM_PROT_READ_WRITE,
    UVM_PROT_READ_WRITE_ATOMIC
} uvm_prot_t;
#define UVM_MMU_PTE_FLAGS_CACHED           1
#define UVM_MMU_PTE_FLAGS_ACCESS_COUNTERS_DISABLED 2
#define UVM_MMU_PTE_FLAGS_MASK             3

#include "uvm_encoders.inc"

int uvmTreeRefused(unsigned aperture)
{
    uvm_parent_gpu_t parents[2] = { { { NV2080_CTRL_MC_ARCH_INFO_ARCHITECTURE_AD100 } },
                                    { { NV2080_CTRL_MC_ARCH_INFO_ARCHITECTURE_AD100 } } };
    uvm_gpu_t        gpus[2]    = { { { 1 }, &parents[0] }, { { 2 }, &parents[1] } };

    uvmStubAperture[1][2] = aperture;
    return nvp2p_uvm_no_aperture(&gpus[0], &gpus[1]);
}

int uvmTreeEntryIsRight(unsigned aperture)
{
    const NvU64 pte   = make_pte_turing((uvm_aperture_t)aperture, 1ULL << 21, UVM_PROT_READ_WRITE, 0);
    const NvU64 where = DRF_VAL64(_MMU_VER2, _PTE, _APERTURE, pte);

    if (aperture < UVM_APERTURE_PEER_MAX)
        return where == NV_MMU_VER2_PTE_APERTURE_PEER_MEMORY &&
               DRF_VAL64(_MMU_VER2, _PTE, _ADDRESS_VID_PEER, pte) == aperture;
    if (aperture == UVM_APERTURE_VID)
        return where == NV_MMU_VER2_PTE_APERTURE_VIDEO_MEMORY;
    return where == NV_MMU_VER2_PTE_APERTURE_SYSTEM_COHERENT_MEMORY ||
           where == NV_MMU_VER2_PTE_APERTURE_SYSTEM_NON_COHERENT_MEMORY;
}

int uvmTreeCopyIsRight(unsigned aperture)
{
    const NvU32 mode  = ce_aperture((uvm_aperture_t)aperture);
    const NvU32 where = DRF_VAL(C6B5, _SET_SRC_PHYS_MODE, _TARGET, mode);

    if (aperture < UVM_APERTURE_PEER_MAX)
        return where == NVC6B5_SET_SRC_PHYS_MODE_TARGET_PEERMEM &&
               DRF_VAL(C6B5, _SET_SRC_PHYS_MODE, _PEER_ID, mode) == aperture;
    if (aperture == UVM_APERTURE_VID)
        return where == NVC6B5_SET_SRC_PHYS_MODE_TARGET_LOCAL_FB;
    return where == NVC6B5_SET_SRC_PHYS_MODE_TARGET_COHERENT_SYSMEM ||
           where == NVC6B5_SET_SRC_PHYS_MODE_TARGET_NONCOHERENT_SYSMEM;
}

unsigned uvmTreeApertures(void)
{
    return UVM_APERTURE_MAX;
}
