/* SPDX-License-Identifier: MIT */
/*
 * Opt-in PCIe BAR1 peer-to-peer for Ada GPUs and, with a bit of its own, Ampere's.
 *
 * The RM already holds a complete BAR1 peer-to-peer implementation, written for
 * Hopper (the _GH100 functions).  Every function of it that matters is a
 * pointer in the KernelBus object, so a GPU that opted in gets those pointers
 * and nothing changes for any other GPU.
 */
#define NVOC_KERN_BUS_H_PRIVATE_ACCESS_ALLOWED
#define NVOC_KERN_GMMU_H_PRIVATE_ACCESS_ALLOWED

#include "core/core.h"
#include "core/system.h"
#include "ctrl/ctrl0000/ctrl0000system.h"
#include "gpu/bif/kernel_bif.h"
#include "gpu/gpu.h"
#include "gpu/mem_mgr/mem_mgr.h"
#include "gpu/mmu/kern_gmmu.h"
#include "gpu_mgr/gpu_mgr.h"
#include "nvrm_registry.h"
#include "os/os.h"
#include "platform/chipset/chipset.h"
#include "platform/sli/sli.h"

#include "gpu/bus/nvp2p_bar1.h"

/*
 * Our own key (NVreg_RegistryDwords, or NVreg_RegistryDwordsPerDevice for one
 * GPU): the values of the stock keys change meaning between releases.
 */
#define NVP2P_KEY "NvP2pBar1"

#if NVP2P_DRIVER_MAJOR < 580
#define NVP2P_SYS_WIDTH(pGpu) gpuGetPhysAddrWidth_HAL(pGpu, ADDR_SYSMEM)
#else
#define NVP2P_SYS_WIDTH(pGpu) gpuarchGetSystemPhysAddrWidth_HAL(gpuGetArch(pGpu))
#endif

static NvBool _nvp2pMappingSupported(OBJGPU *pGpu0, KernelBus *pKernelBus0, OBJGPU *pGpu1,
                                     KernelBus *pKernelBus1);

/* Read each time: a decision is rare, and no state of ours can then go stale. */
static NvU32
_nvp2pReadKey(OBJGPU *pGpu)
{
    NvU32 key = 0;

    if (osReadRegistryDword(pGpu, NVP2P_KEY, &key) != NV_OK)
        return 0;
    return key;
}

/* Our own function in this slot doubles as the mark of a GPU that is ours. */
NvBool
nvp2pIsOurs(KernelBus *pKernelBus)
{
    return (pKernelBus != NULL) &&
           (pKernelBus->__kbusIsPcieBar1P2PMappingSupported__ == &_nvp2pMappingSupported);
}

/* Has this GPU a window that stock code will accept when the mapping is made? */
static NvBool
_nvp2pHasWindow(KernelBus *pKernelBus)
{
    MEMORY_DESCRIPTOR *pDma;

    if (!nvp2pIsOurs(pKernelBus) || !pKernelBus->bar1[GPU_GFID_PF].bStaticBar1Enabled)
        return NV_FALSE;

    /*
     * 570 and 575 put the window right behind a preserved console, off the grid
     * that creating the mapping demands: refuse now, not at the first access.
     */
    pDma = pKernelBus->bar1[GPU_GFID_PF].staticBar1.pDmaMemDesc;
    return (pDma != NULL) && nvp2pAligned(memdescGetPhysAddr(pDma, AT_CPU, 0));
}

static NvBool
_nvp2pMappingSupported
(
    OBJGPU    *pGpu0,
    KernelBus *pKernelBus0,
    OBJGPU    *pGpu1,
    KernelBus *pKernelBus1
)
{
    if ((pGpu0 == pGpu1) || IS_VIRTUAL(pGpu0) || IS_VIRTUAL(pGpu1))
        return NV_FALSE;
    if (!_nvp2pHasWindow(pKernelBus0) || !_nvp2pHasWindow(pKernelBus1))
        return NV_FALSE;

    /* One PCIe protocol at a time between two GPUs: no mailbox is in use. */
    return (pKernelBus0->p2pPcie.peerNumberMask[gpuGetInstance(pGpu1)] == 0) &&
           (pKernelBus1->p2pPcie.peerNumberMask[gpuGetInstance(pGpu0)] == 0);
}

#if NVP2P_DRIVER_MAJOR <= 565
/* Up to 565 the window takes a console's place at BAR1 0, so it must show the same memory. */
NvBool
nvp2pConsoleAllowsWindow(OBJGPU *pGpu, KernelBus *pKernelBus)
{
    MEMORY_DESCRIPTOR *pConsole;

    if (!nvp2pIsOurs(pKernelBus) || !kbusIsPreserveBar1ConsoleEnabled(pKernelBus))
        return NV_TRUE;
    pConsole = memmgrGetReservedConsoleMemDesc(pGpu, GPU_GET_MEMORY_MANAGER(pGpu));
    return (pConsole != NULL) && (memdescGetPhysAddr(pConsole, AT_GPU, 0) == 0);
}
#endif

#if NVP2P_DRIVER_MAJOR <= 560
static NvBool
_nvp2pIsCapable(OBJGPU *pGpu, KernelBus *pKernelBus, NvU32 gfid)
{
    MemoryManager *pMemoryManager = GPU_GET_MEMORY_MANAGER(pGpu);

    if ((gfid != GPU_GFID_PF) ||
        !nvp2pFits(kbusGetPciBarSize(pKernelBus, 1), pMemoryManager->Ram.fbUsableMemSize) ||
        !nvp2pConsoleAllowsWindow(pGpu, pKernelBus))
        return NV_FALSE;

    return kbusIsBar1P2PCapable_GH100(pGpu, pKernelBus, gfid);
}

/* Stock gives up on the whole GPU when this fails; a GPU without P2P is better. */
static NV_STATUS
_nvp2pEnableStaticBar1(OBJGPU *pGpu, KernelBus *pKernelBus, NvU32 gfid)
{
    NV_STATUS status = kbusEnableStaticBar1Mapping_GH100(pGpu, pKernelBus, gfid);

    if (status != NV_OK)
        NV_PRINTF(LEVEL_ERROR, "nvidia-p2p: GPU%u: no BAR1 window (0x%x), P2P is off\n",
                  gpuGetInstance(pGpu), status);
    return NV_OK;
}
#endif

/*
 * Hopper and later choose for themselves.  Ampere boards have NVLink, which up to
 * 575 the P2P type that the window needs would turn off: there they stay as they
 * are.  From 580 the types are two, and NVLink is asked before PCIe.
 */
static NvBool
_nvp2pCovers(OBJGPU *pGpu, NvU32 key)
{
#if NVP2P_DRIVER_MAJOR >= 580
    if (nvp2pKeyTakesAmpere(key) && IsAMPERE(pGpu) && !IsGA100(pGpu))
        return NV_TRUE;
#else
    (void)key;
#endif
    return IsADA(pGpu);
}

void
nvp2pAttach(OBJGPU *pGpu, KernelBus *pKernelBus)
{
    KernelBif *pKernelBif = GPU_GET_KERNEL_BIF(pGpu);
    NvU32      key        = _nvp2pReadKey(pGpu);

    if (key == 0)
        return;

    /* LEVEL_ERROR is the only level that a release build prints. */
    if (!nvp2pKeyEnables(key))
    {
        NV_PRINTF(LEVEL_ERROR, "nvidia-p2p: GPU%u: %s=0x%x is not known, left as is\n",
                  gpuGetInstance(pGpu), NVP2P_KEY, key);
        return;
    }

    if (!_nvp2pCovers(pGpu, key) || (pKernelBif == NULL) || IS_VIRTUAL(pGpu) || gpuIsSriovEnabled(pGpu) ||
        IsSLIEnabled(pGpu))
    {
        NV_PRINTF(LEVEL_ERROR, "nvidia-p2p: GPU%u: not eligible, left as is\n",
                  gpuGetInstance(pGpu));
        return;
    }

    /* For this GPU only: the module-wide keys would also turn NVLink off elsewhere. */
#ifdef NV_REG_STR_RM_PCIEP2P_TYPE
    pKernelBif->pcieP2PType = NV_REG_STR_RM_PCIEP2P_TYPE_BAR1;
#else
    pKernelBif->forceP2PType = NV_REG_STR_RM_FORCE_P2P_TYPE_BAR1P2P;
#endif

#if NVP2P_DRIVER_MAJOR >= 570
    /*
     * AUTO looks for room and never fails the GPU; 575 would otherwise make no
     * window at all.  A value that the administrator set stays.  565 makes a window
     * for our P2P type by default, while its AUTO asks for twice the framebuffer.
     */
    {
        NvU32 data32;

        if (osReadRegistryDword(pGpu, NV_REG_STR_RM_FORCE_STATIC_BAR1, &data32) != NV_OK)
            pKernelBus->staticBar1ForceType = NV_REG_STR_RM_FORCE_STATIC_BAR1_AUTO;
    }
#endif

    pKernelBus->__kbusCreateP2PMapping__              = &kbusCreateP2PMapping_GH100;
    pKernelBus->__kbusRemoveP2PMapping__              = &kbusRemoveP2PMapping_GH100;
    pKernelBus->__kbusCreateP2PMappingForBar1P2P__    = &kbusCreateP2PMappingForBar1P2P_GH100;
    pKernelBus->__kbusRemoveP2PMappingForBar1P2P__    = &kbusRemoveP2PMappingForBar1P2P_GH100;
    pKernelBus->__kbusHasPcieBar1P2PMapping__         = &kbusHasPcieBar1P2PMapping_GH100;
    pKernelBus->__kbusGetBar1P2PDmaInfo__             = &kbusGetBar1P2PDmaInfo_GH100;
    pKernelBus->__kbusIsPcieBar1P2PMappingSupported__ = &_nvp2pMappingSupported;
#if NVP2P_DRIVER_MAJOR <= 560
    /* Up to 560 the static window itself is a choice of Hopper only. */
    pKernelBus->__kbusIsBar1P2PCapable__         = &_nvp2pIsCapable;
    pKernelBus->__kbusEnableStaticBar1Mapping__  = &_nvp2pEnableStaticBar1;
    pKernelBus->__kbusDisableStaticBar1Mapping__ = &kbusDisableStaticBar1Mapping_GH100;
#endif

    NV_PRINTF(LEVEL_ERROR, "nvidia-p2p: GPU%u: PCIe BAR1 P2P requested%s\n", gpuGetInstance(pGpu),
              nvp2pKeyTrustsHost(key) ? ", host trusted by the administrator" : "");
}

/* Does the path between the two GPUs forward peer reads?  The hosts stock trusts. */
static NvBool
_nvp2pHostForwardsReads(OBJGPU *pGpu0, OBJGPU *pGpu1)
{
    OBJSYS *pSys = SYS_GET_INSTANCE();
    NvU8    bus  = 0xff;

    if (nvp2pKeyTrustsHost(_nvp2pReadKey(pGpu0)) && nvp2pKeyTrustsHost(_nvp2pReadKey(pGpu1)))
        return NV_TRUE;
    if (pSys->cpuInfo.type == NV0000_CTRL_SYSTEM_CPU_TYPE_RYZEN)
        return NV_TRUE;
#ifdef NV0000_CTRL_SYSTEM_CPU_TYPE_XEON_SPR
    if (pSys->cpuInfo.type == NV0000_CTRL_SYSTEM_CPU_TYPE_XEON_SPR)
        return NV_TRUE;
#endif
    clFindCommonDownstreamBR(pGpu0, pGpu1, SYS_GET_CL(pSys), &bus);
    return bus != 0xff;
}

/* The boards that stock lets talk over PCIe: the same chip, and not one of them a notebook's. */
static NvBool
_nvp2pAlike(OBJGPU *pGpu0, OBJGPU *pGpu1)
{
    return (gpuGetChipArch(pGpu0) == gpuGetChipArch(pGpu1)) &&
           (gpuGetChipImpl(pGpu0) == gpuGetChipImpl(pGpu1)) && (IsMobile(pGpu0) == IsMobile(pGpu1));
}

/* Boards that stock found faulty: a GPU without working reads or writes has no peers. */
static NvBool
_nvp2pDisabled(KernelBif *pKernelBif)
{
    return pKernelBif->getProperty(pKernelBif, PDB_PROP_KBIF_P2P_READS_DISABLED) ||
           pKernelBif->getProperty(pKernelBif, PDB_PROP_KBIF_P2P_WRITES_DISABLED);
}

/* ForceP2P of one GPU, in the form nvp2pVerdict() wants: bit 0 reads, bit 1 writes. */
static int
_nvp2pOverride(KernelBif *pKernelBif)
{
    int override = 0;

    if (FLD_TEST_DRF(_REG_STR, _CL_FORCE_P2P, _READ, _ENABLE, pKernelBif->p2pOverride))
        override |= 1;
    if (FLD_TEST_DRF(_REG_STR, _CL_FORCE_P2P, _WRITE, _ENABLE, pKernelBif->p2pOverride))
        override |= 2;
    return override;
}

NvBool
nvp2pDecideCaps(NvU32 gpuMask, NvU8 *pWrite, NvU8 *pRead, P2P_CONNECTIVITY *pConn)
{
    OBJGPU *pGpu0;
    OBJGPU *pGpu1;
    NvU32   instance0 = 0;
    NvU32   instance1;
    int     total     = 0;
    int     ours      = 0;
    int     windows   = 1;
    int     host      = 1;
    int     override  = -1;
    NvU8    status;

    while ((pGpu0 = gpumgrGetNextGpu(gpuMask, &instance0)) != NULL)
    {
        KernelBif *pKernelBif = GPU_GET_KERNEL_BIF(pGpu0);

        total++;
        if (!nvp2pIsOurs(GPU_GET_KERNEL_BUS(pGpu0)))
            continue;
        ours++;

        if (pKernelBif->p2pOverride != BIF_P2P_NOT_OVERRIDEN)
            override = (override < 0) ? _nvp2pOverride(pKernelBif)
                                      : (override & _nvp2pOverride(pKernelBif));
        /* ForceP2P sets these properties too; then it is what decides, as in stock. */
        else if (_nvp2pDisabled(pKernelBif))
            windows = 0;

        instance1 = instance0;
        while ((pGpu1 = gpumgrGetNextGpu(gpuMask, &instance1)) != NULL)
        {
            if (!_nvp2pAlike(pGpu0, pGpu1) ||
                !_nvp2pMappingSupported(pGpu0, GPU_GET_KERNEL_BUS(pGpu0),
                                        pGpu1, GPU_GET_KERNEL_BUS(pGpu1)))
                windows = 0;
            if (!_nvp2pHostForwardsReads(pGpu0, pGpu1))
                host = 0;
        }
    }

    switch (nvp2pVerdict(total, ours, windows, host, override))
    {
        case NVP2P_STOCK:
            return NV_FALSE;
        case NVP2P_YES:
            status = NV0000_P2P_CAPS_STATUS_OK;
            *pConn = P2P_CONNECTIVITY_PCIE_BAR1;
            break;
        case NVP2P_NO_HOST:
            status = NV0000_P2P_CAPS_STATUS_CHIPSET_NOT_SUPPORTED;
            break;
        case NVP2P_NO_REGKEY:
            status = NV0000_P2P_CAPS_STATUS_DISABLED_BY_REGKEY;
            break;
        default:
            status = NV0000_P2P_CAPS_STATUS_NOT_SUPPORTED;
            break;
    }
    *pWrite = status;
    *pRead  = status;
    return NV_TRUE;
}

/*
 * The bus addresses that the mapping GPU can put into an entry.  Up to 565 the
 * encoder subtracts the start of the GPU's DMA window, so nothing below it can
 * be expressed; from 570 there is no such window.
 */
static void
_nvp2pReach(OBJGPU *pMappingGpu, struct nvp2p_window *pWin)
{
#if NVP2P_DRIVER_MAJOR < 570
    pWin->minAddr = GPU_GET_KERNEL_GMMU(pMappingGpu)->sysmemBaseAddress;
#else
    pWin->minAddr = 0;
#endif
    pWin->maxAddr = pWin->minAddr + (NVBIT64(NVP2P_SYS_WIDTH(pMappingGpu)) - 1);
}

#if NVP2P_DRIVER_MAJOR < 580
NV_STATUS
nvp2pOpenWindow
(
    OBJGPU            *pMappingGpu,
    MEMORY_DESCRIPTOR *pMemDesc,
    NvBool             bFla,
    GMMU_APERTURE     *pAperture,
    NvBool            *pVol,
    NVP2P_WINDOW      *pWindow
)
{
    OBJGPU   *pOwner = pMemDesc->pGpu;
    NvU64     base   = 0;
    NvU64     size   = 0;
    NV_STATUS status;

    pWindow->bActive = NV_FALSE;

    /* Fabric, FLA and EGM memory never goes through a BAR1. */
    if ((*pAperture != GMMU_APERTURE_PEER) || bFla || (pOwner == NULL) ||
        (pOwner == pMappingGpu) || (memdescGetAddressSpace(pMemDesc) != ADDR_FBMEM) ||
        memdescIsEgm(pMemDesc))
        return NV_OK;

    /* Peer aperture between other GPUs (NVLink, mailbox): untouched. */
    if (!nvp2pIsOurs(GPU_GET_KERNEL_BUS(pMappingGpu)) || !nvp2pIsOurs(GPU_GET_KERNEL_BUS(pOwner)))
        return NV_OK;

    /* Ours, but no P2P object: a peer entry would point at whatever peer 0 is. */
    if (!kbusHasPcieBar1P2PMapping_HAL(pMappingGpu, GPU_GET_KERNEL_BUS(pMappingGpu),
                                       pOwner, GPU_GET_KERNEL_BUS(pOwner)))
        return NV_ERR_INVALID_STATE;

    status = kbusGetBar1P2PDmaInfo_HAL(pMappingGpu, pOwner, GPU_GET_KERNEL_BUS(pOwner),
                                       &base, &size);
    if (status != NV_OK)
        return status;
    if ((base == NV_U64_MAX) || (size == 0))
        return NV_ERR_INVALID_STATE;

    _nvp2pReach(pMappingGpu, &pWindow->win);
    pWindow->win.base = base;
    pWindow->win.size = size;
    pWindow->bActive  = NV_TRUE;
    *pAperture        = GMMU_APERTURE_SYS_NONCOH;
    *pVol             = NV_TRUE; /* nobody keeps this GPU's L2 coherent with a peer's memory */
    return NV_OK;
}

NV_STATUS
nvp2pEncode
(
    const NVP2P_WINDOW *pWindow,
    NvU64              *pAddrs,
    NvU64               count,
    NvU64               pageSize,
    NvBool              bCompressed
)
{
    if (!pWindow->bActive)
        return NV_OK;

    /* The window shows raw memory: compressed data read through it is garbage. */
    if (bCompressed)
        return NV_ERR_NOT_SUPPORTED;

    return nvp2pTranslate(&pWindow->win, pAddrs, count, pageSize) ? NV_OK
                                                                  : NV_ERR_INVALID_ADDRESS;
}
#else
NV_STATUS
nvp2pCheckStock
(
    OBJGPU      *pMappingGpu,
    OBJGPU      *pOwner,
    NvU64        base,
    NvU64        size,
    const NvU64 *pAddrs,
    NvU64        count,
    NvU64        pageSize,
    NvBool       bCompressed
)
{
    struct nvp2p_window win;

    if (!nvp2pIsOurs(GPU_GET_KERNEL_BUS(pMappingGpu)) && !nvp2pIsOurs(GPU_GET_KERNEL_BUS(pOwner)))
        return NV_OK;

    /* The window shows raw memory: compressed data read through it is garbage. */
    if (bCompressed)
        return NV_ERR_NOT_SUPPORTED;

    _nvp2pReach(pMappingGpu, &win);
    win.base = base;
    win.size = size;
    return nvp2pInWindow(&win, pAddrs, count, pageSize) ? NV_OK : NV_ERR_INVALID_ADDRESS;
}
#endif
