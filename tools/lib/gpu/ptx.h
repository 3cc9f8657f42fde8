// SPDX-License-Identifier: MIT
// The kernels of kernels/p2p.cl as PTX text, zero-terminated; made at build time.
#pragma once

namespace p2p {
extern const char kPtx[];
}  // namespace p2p
