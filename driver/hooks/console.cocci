// SPDX-License-Identifier: MIT
// H1b console (565): there the window is no choice of a function pointer, and takes the place of
// a console at the start of BAR1.
@console@
expression G, B, F;
identifier S;
@@
- S = kbusIsStaticBar1Supported_HAL(G, B, F);
+ S = kbusIsStaticBar1Supported_HAL(G, B, F) && nvp2pConsoleAllowsWindow(G, B);
