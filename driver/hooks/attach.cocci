// SPDX-License-Identifier: MIT
// H1 attach: take over the BAR1 functions once the registry keys were read.
@attach@
expression G, B;
@@
 kbusInitRegistryOverrides(G, B);
+nvp2pAttach(G, B);
