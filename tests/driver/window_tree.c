/* SPDX-License-Identifier: MIT */
#include "window_tree.h"

/* What the function uses, with the figures of an RTX 4090. */
#define RM_PAGE_SIZE                                   4096ULL
#define RM_PAGE_SIZE_2M                                (2ULL << 20)
#define RM_PAGE_SIZE_512M                              (512ULL << 20)
#define RM_ALIGN_DOWN(v, a)                            ((v) & ~((a) - 1))
#define RM_ALIGN_UP(v, a)                              RM_ALIGN_DOWN((v) + (a) - 1, a)
#define LEVEL_INFO                                     2
#define DBG_BREAKPOINT()                               ((void)0)
#define NV_ERR_INVALID_REGISTRY_KEY                    0x3du
#define NV_REG_STR_RM_FORCE_STATIC_BAR1_DISABLE        STATIC_DISABLE
#define NV_REG_STR_RM_FORCE_STATIC_BAR1_ENABLE         STATIC_ENABLE
#undef NV_REG_STR_RM_FORCE_STATIC_BAR1_AUTO
#define NV_REG_STR_RM_FORCE_STATIC_BAR1_AUTO           STATIC_AUTO
#define NV_REG_STR_RM_FORCE_STATIC_BAR1_ONLY_GPU       STATIC_ONLY_GPU
typedef OBJGPU KernelFifo;
#define GPU_GET_KERNEL_FIFO(p)                         (p)
#define kfifoGetMaxChannelsInSystem(p, f)              0x4000u
#define kfifoGetUserdSizeAlign_HAL(f, pSize, pAlign)   (*(pSize) = 512)
#define memmgrGetClientFbAddrSpaceSize(p, m)           ((m)->Ram.fbUsableMemSize)
#define hypervisorIsVgxHyper()                         NV_FALSE
#define gpuIsCCFeatureEnabled(p)                       NV_FALSE

#include "window.inc"

#if NVP2P_DRIVER_MAJOR < 570
int windowStock(OBJGPU *pGpu, KernelBus *pKernelBus, NvU64 console)
{
    (void)console; /* the window takes its place */
    return kbusIsStaticBar1Supported_TU102(pGpu, pKernelBus, GPU_GFID_PF) != NV_FALSE;
}
#else
int windowStock(OBJGPU *pGpu, KernelBus *pKernelBus, NvU64 console)
{
    return kbusIsStaticBar1Supported_TU102(pGpu, pKernelBus, GPU_GFID_PF, console, 0) == NV_OK;
}
#endif
