// SPDX-License-Identifier: MIT
// Hooks in nvidia-uvm.  It knows BAR1 peers by itself from 590, but writes their apertures
// for Hopper and later only.

// H5 limit: no managed memory between peers that have no peer id.
@limit@
identifier VS;
@@
+nvp2p_uvm_limit_peers(VS, gpu0, gpu1);
 UVM_ASSERT(va_space_check_processors_masks(VS));

// H5b identity: uvm_peer_copy=virt maps all of each peer's memory up front.
@identity@
identifier GPU, PEER, A;
@@
+if (nvp2p_uvm_no_aperture(GPU, PEER))
+    return NV_OK;
 A = uvm_gpu_peer_aperture(GPU, PEER);

// The same from 590.
@identity_address@
expression GPU, PEER, A;
@@
+if (nvp2p_uvm_no_aperture(GPU, PEER))
+    return NV_OK;
 A = uvm_gpu_peer_phys_address(PEER, 0, GPU);
