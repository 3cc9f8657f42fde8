// SPDX-License-Identifier: MIT
// H2 caps: decide for our GPUs before the question about the mailbox is asked.
@caps@
expression M, W, R;
expression list rest;
statement S;
@@
 p2pGetCapsStatus(...)
 {
 ... when any
+if (nvp2pDecideCaps(M, W, R, pConnectivity))
+    return NV_OK;
 if (_kp2pCapsGetStatusOverPcie(M, W, R, rest) == NV_OK) S
 ... when any
 }
