/* SPDX-License-Identifier: MIT */
/* Compiled with the release's own headers and flags. */
#include "core/core.h"
#include "ctrl/ctrl0000/ctrl0000system.h"
#include "mmu/gmmu_fmt.h"
#include "nvrm_registry.h"
#include "nvstatus.h"
#include "platform/p2p/p2p_caps.h"

#include "gmmu_shim.h"

struct KernelGmmu;
void kgmmuFmtInitPte_GP10X(struct KernelGmmu *, GMMU_FMT_PTE *, const NvU32, const NV_FIELD_ENUM_ENTRY *,
                           const NvBool);
void kgmmuFmtInitPeerPteFld_TU10X(struct KernelGmmu *, GMMU_FMT_PTE *, const NvU32);
void kgmmuFmtInitPteComptagLine_TU10X(struct KernelGmmu *, GMMU_FMT_PTE *, const NvU32);
void kgmmuFmtInitPteApertures_GM10X(struct KernelGmmu *, NV_FIELD_ENUM_ENTRY *);

#ifdef SHIM_PEER_TYPE
#define FIELD(pte, aperture) gmmuFmtPtePhysAddrFld(pte, aperture, GMMU_PEER_TYPE_LEGACY)
#else
#define FIELD(pte, aperture) gmmuFmtPtePhysAddrFld(pte, aperture)
#endif

static const GMMU_APERTURE gApertures[] = { GMMU_APERTURE_VIDEO, GMMU_APERTURE_PEER, GMMU_APERTURE_SYS_NONCOH,
                                            GMMU_APERTURE_SYS_COH };

static GMMU_FMT_PTE *format(void)
{
    static GMMU_FMT_PTE        pte;
    static NV_FIELD_ENUM_ENTRY apertures[GMMU_APERTURE__COUNT];

    __builtin_memset(&pte, 0, sizeof pte);
    __builtin_memset(apertures, 0, sizeof apertures);
    kgmmuFmtInitPteApertures_GM10X(0, apertures);
    kgmmuFmtInitPte_GP10X(0, &pte, GMMU_FMT_VERSION_2, apertures, NV_FALSE);
    kgmmuFmtInitPteComptagLine_TU10X(0, &pte, GMMU_FMT_VERSION_2);
    kgmmuFmtInitPeerPteFld_TU10X(0, &pte, GMMU_FMT_VERSION_2);
    return &pte;
}

unsigned long long gmmuShimEncode(int aperture, unsigned long long address, int vol)
{
    GMMU_FMT_PTE    *pte   = format();
    GMMU_ENTRY_VALUE value = { { 0 } };

    nvFieldSetBool(&pte->fldValid, NV_TRUE, value.v8);
    gmmuFieldSetAperture(&pte->fldAperture, gApertures[aperture], value.v8);
    nvFieldSetBool(&pte->fldVolatile, vol ? NV_TRUE : NV_FALSE, value.v8);
    gmmuFieldSetAddress(FIELD(pte, gApertures[aperture]), address, value.v8);
    return value.v64[0];
}

int gmmuShimField(int aperture)
{
    GMMU_FMT_PTE             *pte   = format();
    const GMMU_FIELD_ADDRESS *field = FIELD(pte, gApertures[aperture]);

    return field == &pte->fldAddrVidmem ? 0 : field == &pte->fldAddrPeer ? 1 : field == &pte->fldAddrSysmem ? 2 : -1;
}

#define SAME(name, value)                       \
    if ((unsigned)(name) != (unsigned)(value))  \
    return #name

const char *gmmuShimConstants(void)
{
    SAME(NV_ERR_INVALID_ADDRESS, 0x1e);
    SAME(NV_ERR_INVALID_STATE, 0x40);
    SAME(NV_ERR_NOT_SUPPORTED, 0x56);
    SAME(NV0000_P2P_CAPS_STATUS_OK, 0);
    SAME(NV0000_P2P_CAPS_STATUS_CHIPSET_NOT_SUPPORTED, 1);
    SAME(NV0000_P2P_CAPS_STATUS_DISABLED_BY_REGKEY, 4);
    SAME(NV0000_P2P_CAPS_STATUS_NOT_SUPPORTED, 5);
    SAME(NV0000_CTRL_SYSTEM_CPU_TYPE_RYZEN, 0x38);
#ifdef NV0000_CTRL_SYSTEM_CPU_TYPE_XEON_SPR
    SAME(NV0000_CTRL_SYSTEM_CPU_TYPE_XEON_SPR, 0x14);
#endif
    SAME(P2P_CONNECTIVITY_PCIE_BAR1, 2);
    SAME(NV_REG_STR_CL_FORCE_P2P_READ_ENABLE, 1);
    SAME(NV_REG_STR_CL_FORCE_P2P_WRITE_ENABLE, 1);
    SAME(DRF_SHIFT(NV_REG_STR_CL_FORCE_P2P_READ), 0);
    SAME(DRF_SHIFT(NV_REG_STR_CL_FORCE_P2P_WRITE), 4);
#ifdef NV_REG_STR_RM_PCIEP2P_TYPE
    SAME(NV_REG_STR_RM_PCIEP2P_TYPE_BAR1, 1);
#else
    SAME(NV_REG_STR_RM_FORCE_P2P_TYPE_BAR1P2P, 2);
#endif
#ifdef NV_REG_STR_RM_FORCE_STATIC_BAR1
    SAME(NV_REG_STR_RM_FORCE_STATIC_BAR1_AUTO, 2);
#endif
    /* The sources tell releases apart by these: they must exist where rm_stub.h says. */
#if defined(NV_REG_STR_RM_PCIEP2P_TYPE) != (SHIM_MAJOR >= 575)
    return "NV_REG_STR_RM_PCIEP2P_TYPE";
#elif defined(NV_REG_STR_RM_FORCE_STATIC_BAR1) != (SHIM_MAJOR >= 565)
    return "NV_REG_STR_RM_FORCE_STATIC_BAR1";
#endif
    return 0;
}

/* What the format code calls when something is wrong. */
void nvAssertFailed(NV_ASSERT_FAILED_FUNC_TYPE)
{
    __builtin_abort();
}
#undef nvAssertFailedNoLog
void nvAssertFailedNoLog(NV_ASSERT_FAILED_FUNC_TYPE)
{
    __builtin_abort();
}
NvBool nvDbgBreakpointEnabled(void)
{
    return NV_FALSE;
}
void os_dbg_breakpoint(void) {}
