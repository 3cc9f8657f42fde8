/* SPDX-License-Identifier: MIT */
/* NVIDIA's page table format code for Turing to Ada, behind plain integers. */
#ifndef GMMU_SHIM_H
#define GMMU_SHIM_H
#ifdef __cplusplus
extern "C" {
#endif

enum { SHIM_VIDEO, SHIM_PEER, SHIM_SYS_NONCOH, SHIM_SYS_COH };

/* The first 64 bits of a valid entry with this aperture, address and volatility. */
unsigned long long gmmuShimEncode(int aperture, unsigned long long address, int vol);

/* 0 vidmem, 1 peer, 2 sysmem: which address field the code picks for the aperture. */
int gmmuShimField(int aperture);

/* Constants of the release that rm_stub.h repeats: NULL, or the first that differs. */
const char* gmmuShimConstants(void);

#ifdef __cplusplus
}
#endif
#endif
