/* SPDX-License-Identifier: MIT */
/*
 * Opt-in PCIe BAR1 peer-to-peer for Ada (and Ampere) GPUs: what the hooks call.
 */
#ifndef NVP2P_BAR1_H
#define NVP2P_BAR1_H

#include "gpu/bus/nvp2p_config.h"
#include "gpu/bus/nvp2p_policy.h"

#include "gpu/bus/kern_bus.h"
#include "gpu/gpu.h"
#include "gpu/mem_mgr/mem_desc.h"
#include "mmu/gmmu_fmt.h"
#include "platform/p2p/p2p_caps.h"

/* State of one call of the page table entry builder. */
typedef struct NVP2P_WINDOW
{
    NvBool              bActive; /* NV_FALSE: leave the caller's addresses alone */
    struct nvp2p_window win;
} NVP2P_WINDOW;

/* At engine construction: take over this GPU's BAR1 functions if it opted in. */
void nvp2pAttach(OBJGPU *pGpu, KernelBus *pKernelBus);

/* Did nvp2pAttach() take this GPU? */
NvBool nvp2pIsOurs(KernelBus *pKernelBus);

/* NV_TRUE: the answer is final.  NV_FALSE: stock decides, nothing was written. */
NvBool nvp2pDecideCaps(NvU32 gpuMask, NvU8 *pWrite, NvU8 *pRead, P2P_CONNECTIVITY *pConn);

#if NVP2P_DRIVER_MAJOR <= 565
/* May a window take the place of this GPU's console?  NV_TRUE for GPUs that are not ours. */
NvBool nvp2pConsoleAllowsWindow(OBJGPU *pGpu, KernelBus *pKernelBus);
#endif

#if NVP2P_DRIVER_MAJOR < 580
/*
 * For an entry that maps a peer's memory through BAR1: find the window and
 * change aperture and volatility to match.  Other entries are left alone.
 */
NV_STATUS nvp2pOpenWindow(OBJGPU *pMappingGpu, MEMORY_DESCRIPTOR *pMemDesc, NvBool bFla,
                          GMMU_APERTURE *pAperture, NvBool *pVol, NVP2P_WINDOW *pWindow);

/* Turn FB offsets into bus addresses; all or nothing. */
NV_STATUS nvp2pEncode(const NVP2P_WINDOW *pWindow, NvU64 *pAddrs, NvU64 count, NvU64 pageSize,
                      NvBool bCompressed);
#else
/* From 580 stock adds the window's base itself, but checks neither its size nor the kind. */
NV_STATUS nvp2pCheckStock(OBJGPU *pMappingGpu, OBJGPU *pOwner, NvU64 base, NvU64 size,
                          const NvU64 *pAddrs, NvU64 count, NvU64 pageSize, NvBool bCompressed);
#endif

/*
 * Up to 575 no GeForce runs with a static BAR1, so the rest of the RM is not
 * prepared for one: show the window to peers only.
 */
#if NVP2P_DRIVER_MAJOR < 580
#define nvp2pHidesWindow(pKernelBus) nvp2pIsOurs(pKernelBus)
#endif

#endif
