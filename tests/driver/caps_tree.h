/* SPDX-License-Identifier: MIT */
/* NVIDIA's p2pGetCapsStatus(), as it is and as we change it, behind one call. */
#ifndef CAPS_TREE_H
#define CAPS_TREE_H

#include "rm_stub.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What one of the questions that p2pGetCapsStatus() asks will be answered. */
typedef struct {
    NV_STATUS status;
    NvU8 write, read;
} CapsAnswer;

typedef struct {
    CapsAnswer c2c, nvlink, indirect, pcie, bar1;
    NvU8 bar1Atomics;
} CapsScript;

typedef struct {
    NV_STATUS status;
    NvU8 write, read, atomics;
    P2P_CONNECTIVITY connectivity;
    char trace[16]; /* the questions asked, in order: c n i p b */
} CapsResult;

CapsResult capsStock(NvU32 gpuMask, const CapsScript* script);
CapsResult capsChanged(NvU32 gpuMask, const CapsScript* script);

#ifdef __cplusplus
}
#endif
#endif
