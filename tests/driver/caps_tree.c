/* SPDX-License-Identifier: MIT */
#include "caps_tree.h"
#include "gpu/bus/nvp2p_bar1.h"

static const CapsScript *gScript;
static CapsResult       *gResult;

static NV_STATUS answer(char question, const CapsAnswer *a, NvU8 *pWrite, NvU8 *pRead)
{
    size_t n = strlen(gResult->trace);

    if (n + 1 < sizeof(gResult->trace))
        gResult->trace[n] = question;
    *pWrite = a->write;
    *pRead  = a->read;
    return a->status;
}

/* Helpers of p2pGetCapsStatus() as far as some release uses them. */
typedef OBJGPU KernelNvlink;
typedef OBJGPU KernelMIGManager;
typedef OBJGPU NVLINK_BIT_VECTOR;
#define GPU_GET_KERNEL_MIG_MANAGER(p)       (p)
#define kmigmgrIsMIGNvlinkP2PSupported(p, m) (!(p)->bMig)
#define GPU_GET_KERNEL_NVLINK(p)            ((p)->bNvlink ? (p) : NULL)
#define knvlinkGetDiscoveredLinkMask(p, k)  ((p)->bDiscoveredLinks ? (p) : NULL)
#define bitVectorTestAllCleared(v)          (!(v)->bDiscoveredLinks)
#define knvlinkIsNvswitchProxyPresent(p, k) NV_FALSE
#define GPU_IS_NVSWITCH_DETECTED(p)         ((p)->bNvswitch)
#define _kgetP2PCapsStatusOverC2C(m, w, r) answer('c', &gScript->c2c, w, r)
#define _gpumgrGetP2PCapsStatusOverNvLink(m, w, r)    answer('n', &gScript->nvlink, w, r)
#define _kp2pCapsGetStatusIndirectOverNvLink(m, w, r) answer('i', &gScript->indirect, w, r)
#define _kp2pCapsGetStatusOverPcie(m, w, r, common)   ((void)(common), answer('p', &gScript->pcie, w, r))
#if NVP2P_DRIVER_MAJOR <= 560
#define _kp2pCapsGetStatusOverPcieBar1(m, w, r, common) answer('b', &gScript->bar1, w, r)
#else
#define _kp2pCapsGetStatusOverPcieBar1(m, w, r, a, common) \
    (*(a) = gScript->bar1Atomics, answer('b', &gScript->bar1, w, r))
#endif

#include "changed_caps.inc"
#include "stock_caps.inc"

#if NVP2P_DRIVER_MAJOR <= 560
#define ASK(function, r) function(gpuMask, &(r).write, &(r).read, &(r).connectivity)
#else
#define ASK(function, r) function(gpuMask, &(r).write, &(r).read, &(r).atomics, &(r).connectivity)
#endif

CapsResult capsStock(NvU32 gpuMask, const CapsScript *script)
{
    CapsResult r;

    memset(&r, 0, sizeof r);
    gScript = script, gResult = &r;
    r.status = ASK(stockGetCapsStatus, r);
    return r;
}

CapsResult capsChanged(NvU32 gpuMask, const CapsScript *script)
{
    CapsResult r;

    memset(&r, 0, sizeof r);
    gScript = script, gResult = &r;
    r.status = ASK(changedGetCapsStatus, r);
    return r;
}
