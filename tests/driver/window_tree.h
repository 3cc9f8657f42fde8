/* SPDX-License-Identifier: MIT */
/* NVIDIA's kbusIsStaticBar1Supported_TU102(): does a release make a window for this GPU? */
#ifndef WINDOW_TREE_H
#define WINDOW_TREE_H

#include "rm_stub.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Force types by the names of nvrm_registry.h. */
enum { STATIC_DISABLE, STATIC_ENABLE, STATIC_AUTO, STATIC_ONLY_GPU };

/* 0: no window, 1: a window.  console: bytes that a preserved console takes (from 570). */
int windowStock(OBJGPU* pGpu, KernelBus* pKernelBus, NvU64 console);

#ifdef __cplusplus
}
#endif
#endif
