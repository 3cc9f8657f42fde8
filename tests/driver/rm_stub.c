/* SPDX-License-Identifier: MIT */
#include "rm_stub.h"

static NvBool stubGetProperty(OBJSYS *pSys, int property)
{
    return property == PDB_PROP_SYS_NVSWITCH_IS_PRESENT && pSys->bNvswitch;
}

NvBool stubBifProperty(KernelBif *pKernelBif, int property)
{
    return pKernelBif->bDisabled[property];
}

OBJSYS    stubSys = { { 0 }, stubGetProperty, 0 };
OBJGPU   *stubGpu[STUB_GPUS];
NvBool    stubCommonSwitch;
NvBool    stubCapable = NV_TRUE;
NV_STATUS stubEnable, stubDmaStatus;
NvU64     stubDmaBase, stubDmaSize;

void stubPrint(int level, const char *format, ...)
{
    (void)level;
    (void)format;
}

OBJGPU *gpumgrGetNextGpu(NvU32 gpuMask, NvU32 *pInstance)
{
    for (; *pInstance < STUB_GPUS; (*pInstance)++)
        if ((gpuMask & (1u << *pInstance)) != 0 && stubGpu[*pInstance] != NULL)
            return stubGpu[(*pInstance)++];
    return NULL;
}

NV_STATUS osReadRegistryDword(OBJGPU *pGpu, const char *name, NvU32 *pValue)
{
    if (strcmp(name, "NvP2pBar1") == 0 && pGpu->bKeySet)
        *pValue = pGpu->key;
    else if (strcmp(name, "RMForceStaticBar1") == 0 && pGpu->bStaticKeySet)
        *pValue = pGpu->staticKey;
    else
        return NV_ERR_GENERIC;
    return NV_OK;
}

void clFindCommonDownstreamBR(OBJGPU *pGpu0, OBJGPU *pGpu1, void *pCl, NvU8 *pBus)
{
    (void)pGpu0, (void)pGpu1, (void)pCl;
    *pBus = stubCommonSwitch ? 3 : 0xff;
}

void kbusCreateP2PMapping_GH100(void) {}
void kbusRemoveP2PMapping_GH100(void) {}
void kbusCreateP2PMappingForBar1P2P_GH100(void) {}
void kbusRemoveP2PMappingForBar1P2P_GH100(void) {}
void kbusDisableStaticBar1Mapping_GH100(void) {}
void kbusStockVoid(void) {}

NvBool kbusHasPcieBar1P2PMapping_GH100(OBJGPU *g0, KernelBus *b0, OBJGPU *g1, KernelBus *b1)
{
    return b0->bar1PeerRefcount[g1->instance] != 0 && b1->bar1PeerRefcount[g0->instance] != 0;
}

/* AD102's own: no BAR1 peers. */
NvBool kbusStockPair(OBJGPU *g0, KernelBus *b0, OBJGPU *g1, KernelBus *b1)
{
    (void)g0, (void)b0, (void)g1, (void)b1;
    return NV_FALSE;
}

NV_STATUS kbusGetBar1P2PDmaInfo_GH100(OBJGPU *src, OBJGPU *peer, KernelBus *bus, NvU64 *pAddr, NvU64 *pSize)
{
    (void)src, (void)peer, (void)bus;
    *pAddr = stubDmaBase;
    *pSize = stubDmaSize;
    return stubDmaStatus;
}

NV_STATUS kbusStockDmaInfo(OBJGPU *src, OBJGPU *peer, KernelBus *bus, NvU64 *pAddr, NvU64 *pSize)
{
    (void)src, (void)peer, (void)bus, (void)pAddr, (void)pSize;
    return NV_ERR_NOT_SUPPORTED;
}

NV_STATUS kbusEnableStaticBar1Mapping_GH100(OBJGPU *g, KernelBus *b, NvU32 gfid)
{
    (void)g;
    b->bar1[gfid].bStaticBar1Enabled = stubEnable == NV_OK;
    return stubEnable;
}

NV_STATUS kbusStockGfid(OBJGPU *g, KernelBus *b, NvU32 gfid)
{
    (void)g, (void)b, (void)gfid;
    return NV_ERR_NOT_SUPPORTED;
}

NvBool kbusIsBar1P2PCapable_GH100(OBJGPU *g, KernelBus *b, NvU32 gfid)
{
    (void)g, (void)b, (void)gfid;
    return stubCapable;
}

NvBool kbusStockCapable(OBJGPU *g, KernelBus *b, NvU32 gfid)
{
    (void)g, (void)b, (void)gfid;
    return NV_FALSE;
}
