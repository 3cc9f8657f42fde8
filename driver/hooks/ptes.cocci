// SPDX-License-Identifier: MIT
// H3 open and encode (up to 575): page table entries for a peer's window.
@open@
identifier V, A;
expression MD, I, C;
@@
 V = nvGpuOpsGetExternalAllocVolatility(MD, A, I, C);
+status = nvp2pOpenWindow(pMappingGpu, MD, dynamicCast(pMemory, FlaMemory) != NULL, &A, &V, &nvp2pWindow);
+if (status != NV_OK)
+    return status;

@open_variable depends on open@
identifier F;
@@
 NvU64 F = NVLINK_INVALID_FABRIC_ADDR;
+NVP2P_WINDOW nvp2pWindow;

@encode depends on open@
expression F;
identifier A, C, K, P;
@@
+status = nvp2pEncode(&nvp2pWindow, P, C, mappingPageSize, isCompressedKind);
+if (status != NV_OK)
+    goto done;
 kgmmuEncodePhysAddrs(K, A, P, F, C);

// H3 check (from 580): stock adds the window's base without a look at its size.
@check@
expression P, B, C;
@@
+status = nvp2pCheckStock(pMappingGpu, pRemoteGpu, B, dmaSize, P, C, mappingPageSize, isCompressedKind);
+if (status != NV_OK)
+    goto done;
 _nvGpuOpsEncodeBar1P2PAddrs(P, B, C);
