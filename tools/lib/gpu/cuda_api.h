// SPDX-License-Identifier: MIT
// The part of the CUDA driver API that the tests use, declared here so that neither building nor
// running needs a toolkit.  Names carry the suffix of the exported symbol (cuMemAlloc_v2 is what
// cuda.h calls cuMemAlloc).  Source: "CUDA Driver API" reference; unchanged since CUDA 11.
#pragma once
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace p2p::cu {

using Result = int;
using Device = int;
using Ptr = unsigned long long;
using Ctx = struct CtxOpaque*;
using Module = struct ModuleOpaque*;
using Function = struct FunctionOpaque*;
using Stream = struct StreamOpaque*;
using Event = struct EventOpaque*;

// CUresult values that the tests tell apart.
enum : Result {
    kOk = 0,
    kInvalidValue = 1,
    kOutOfMemory = 2,
    kNoDevice = 100,
    kMapFailed = 205,
    kPeerUnsupported = 217,
    kInvalidPtx = 218,
    kJitNotFound = 221,
    kNotReady = 600,
    kIllegalAddress = 700,
    kPeerAlready = 704,
    kTooManyPeers = 711,
    kLaunchFailed = 719,
    kNotSupported = 801,
    kVersionMismatch = 803,
    kUnknown = 999,
};
// CUdevice_attribute
enum : int { kComputeMajor = 75, kComputeMinor = 76 };
// CUdevice_P2PAttribute
enum : int { kPerformanceRank = 1 };
// CUstream_flags, CUevent_flags, CUipcMem_flags
enum : unsigned { kNonBlocking = 1, kEventDefault = 0, kIpcLazyPeer = 1 };
// CUjit_option
enum : int { kJitErrorLog = 5, kJitErrorLogBytes = 6 };

struct IpcMem {
    char reserved[64];
};
static_assert(sizeof(IpcMem) == 64, "CU_IPC_HANDLE_SIZE");
static_assert(sizeof(Ptr) == 8 && sizeof(Ctx) == 8, "CUdeviceptr and handles are 64-bit");

// clang-format off
#define P2P_CU_FUNCTIONS(X)                                                                   \
    X(cuInit, (unsigned))                                                                     \
    X(cuDriverGetVersion, (int*))                                                             \
    X(cuGetErrorName, (Result, const char**))                                                 \
    X(cuDeviceGetCount, (int*))                                                               \
    X(cuDeviceGet, (Device*, int))                                                            \
    X(cuDeviceGetName, (char*, int, Device))                                                  \
    X(cuDeviceGetPCIBusId, (char*, int, Device))                                              \
    X(cuDeviceTotalMem_v2, (std::size_t*, Device))                                            \
    X(cuDeviceGetAttribute, (int*, int, Device))                                              \
    X(cuDeviceCanAccessPeer, (int*, Device, Device))                                          \
    X(cuDeviceGetP2PAttribute, (int*, int, Device, Device))                                   \
    X(cuDevicePrimaryCtxRetain, (Ctx*, Device))                                               \
    X(cuDevicePrimaryCtxRelease_v2, (Device))                                                 \
    X(cuCtxSetCurrent, (Ctx))                                                                 \
    X(cuCtxSynchronize, (void))                                                               \
    X(cuCtxEnablePeerAccess, (Ctx, unsigned))                                                 \
    X(cuCtxDisablePeerAccess, (Ctx))                                                          \
    X(cuMemAlloc_v2, (Ptr*, std::size_t))                                                     \
    X(cuMemFree_v2, (Ptr))                                                                    \
    X(cuMemHostAlloc, (void**, std::size_t, unsigned))                                        \
    X(cuMemFreeHost, (void*))                                                                 \
    X(cuMemcpyHtoD_v2, (Ptr, const void*, std::size_t))                                       \
    X(cuMemcpyDtoH_v2, (void*, Ptr, std::size_t))                                             \
    X(cuMemcpyHtoDAsync_v2, (Ptr, const void*, std::size_t, Stream))                          \
    X(cuMemcpyDtoHAsync_v2, (void*, Ptr, std::size_t, Stream))                                \
    X(cuMemcpyDtoDAsync_v2, (Ptr, Ptr, std::size_t, Stream))                                  \
    X(cuMemcpyPeerAsync, (Ptr, Ctx, Ptr, Ctx, std::size_t, Stream))                           \
    X(cuStreamCreate, (Stream*, unsigned))                                                    \
    X(cuStreamSynchronize, (Stream))                                                          \
    X(cuStreamDestroy_v2, (Stream))                                                           \
    X(cuEventCreate, (Event*, unsigned))                                                      \
    X(cuEventRecord, (Event, Stream))                                                         \
    X(cuEventSynchronize, (Event))                                                            \
    X(cuEventElapsedTime, (float*, Event, Event))                                             \
    X(cuEventDestroy_v2, (Event))                                                             \
    X(cuModuleLoadDataEx, (Module*, const void*, unsigned, int*, void**))                     \
    X(cuModuleGetFunction, (Function*, Module, const char*))                                  \
    X(cuLaunchKernel, (Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,  \
                       unsigned, Stream, void**, void**))                                     \
    X(cuIpcGetMemHandle, (IpcMem*, Ptr))                                                      \
    X(cuIpcOpenMemHandle_v2, (Ptr*, IpcMem, unsigned))                                        \
    X(cuIpcCloseMemHandle, (Ptr))
// clang-format on

struct Api {
// NOLINTNEXTLINE(bugprone-macro-parentheses): they name a function and its parameters
#define X(name, args) Result(*name) args = nullptr;
    P2P_CU_FUNCTIONS(X)
#undef X
};

// Loads libcuda.so.1 by the usual search order.  Returns "" and fills `api`, or says in one line
// which library or symbol is missing.  The library is never unloaded.
std::string load(Api& api);

// "CUDA_ERROR_MAP_BUFFER_OBJECT_FAILED (205)"; works without a loaded library.
std::string errorText(const Api& api, Result r);

// True when the context can do nothing more after this error (a new process can).
bool isSticky(Result r);

// A failed call: what() is "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY (2)".
class Error : public std::runtime_error {
  public:
    Error(const Api& api, const char* call, Result r)
        : std::runtime_error(std::string(call) + ": " + errorText(api, r)), code(r) {}
    const Result code;
};

}  // namespace p2p::cu
