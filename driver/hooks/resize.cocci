// SPDX-License-Identifier: MIT
// H6 resize: pci_resize_resource() got a fourth argument.  A release with a
// conftest of its own keeps it: only the old form of the call is routed.
@@
expression D, B, S;
@@
-pci_resize_resource(D, B, S)
+nvp2p_pci_resize_resource(D, B, S)
