// SPDX-License-Identifier: MIT
// H4 hide (up to 575): CPU mappings and compressible memory stay as in stock.
@hide@
identifier gf;
@@
- pKernelBus->bar1[gf].bStaticBar1Enabled
+ pKernelBus->bar1[gf].bStaticBar1Enabled && !nvp2pHidesWindow(pKernelBus)

// H4b hide_uvm (565 to 575): do not offer the window to UVM as page-backed memory.
@hide_uvm@
expression B, Q;
identifier gf;
@@
- Q->bStaticBar1Enabled = B->bar1[gf].bStaticBar1Enabled;
+ Q->bStaticBar1Enabled = (B->bar1[gf].bStaticBar1Enabled && !nvp2pHidesWindow(B));
