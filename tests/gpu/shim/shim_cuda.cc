// SPDX-License-Identifier: MIT
// A libcuda.so.1 in front of the real one: real hardware, with a fault put in between.
//
//   LD_LIBRARY_PATH=shim P2P_SHIM=swap P2P_SHIM_REAL=/usr/lib/.../libcuda.so.1 p2p-verify ...
//
// P2P_SHIM: swap  device-to-device copies land in another buffer of the destination's GPU
//           flip  one bit of each copy is flipped after it
//           late  the first side of a handshake starts 3 seconds late
//           none  nothing is changed (the control)
#include <dlfcn.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "lib/gpu/cuda_api.h"

namespace {

using namespace p2p::cu;

const Api& real() {
    static const Api api = [] {
        Api a;
        const char* path = std::getenv("P2P_SHIM_REAL");
        void* lib = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
        if (!lib) {
            std::fprintf(stderr, "shim: P2P_SHIM_REAL: %s\n", path ? dlerror() : "not set");
            std::abort();
        }
// NOLINTNEXTLINE(bugprone-macro-parentheses): args is a parameter list
#define X(name, args) a.name = reinterpret_cast<Result(*) args>(dlsym(lib, #name));
        P2P_CU_FUNCTIONS(X)
#undef X
        return a;
    }();
    return api;
}

bool mode(const char* name) {
    const char* m = std::getenv("P2P_SHIM");
    return m && std::string(m) == name;
}

std::mutex lock;
std::map<Function, std::string> names;
Ptr elsewhere = 0;
std::size_t elsewhere_bytes = 0;

// A buffer that nobody looks at, on the GPU of the current context.
Ptr scratch(std::size_t bytes) {
    const std::lock_guard<std::mutex> guard(lock);
    if (bytes > elsewhere_bytes) {
        if (real().cuMemAlloc_v2(&elsewhere, bytes) != kOk) return 0;
        elsewhere_bytes = bytes;
    }
    return elsewhere;
}

Result flipAfter(Result r, Ptr d, std::size_t bytes) {
    if (r != kOk || !mode("flip")) return r;
    std::uint32_t word = 0;
    const Ptr at = d + bytes / 3 / 4 * 4;
    real().cuCtxSynchronize();
    if (const Result e = real().cuMemcpyDtoH_v2(&word, at, 4)) return e;
    word ^= 0x10U;
    return real().cuMemcpyHtoD_v2(at, &word, 4);
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

// Forwarded as they are.  One macro per number of arguments keeps the types in one place.
#define FORWARD0(f)        \
    Result f(void) {       \
        return real().f(); \
    }
#define FORWARD1(f, A)      \
    Result f(A a) {         \
        return real().f(a); \
    }
#define FORWARD2(f, A, B)      \
    Result f(A a, B b) {       \
        return real().f(a, b); \
    }
#define FORWARD3(f, A, B, C)      \
    Result f(A a, B b, C c) {     \
        return real().f(a, b, c); \
    }
#define FORWARD4(f, A, B, C, D)      \
    Result f(A a, B b, C c, D d) {   \
        return real().f(a, b, c, d); \
    }
#define FORWARD5(f, A, B, C, D, E)      \
    Result f(A a, B b, C c, D d, E e) { \
        return real().f(a, b, c, d, e); \
    }

FORWARD1(cuInit, unsigned)
FORWARD1(cuDriverGetVersion, int*)
FORWARD2(cuGetErrorName, Result, const char**)
FORWARD1(cuDeviceGetCount, int*)
FORWARD2(cuDeviceGet, Device*, int)
FORWARD3(cuDeviceGetName, char*, int, Device)
FORWARD3(cuDeviceGetPCIBusId, char*, int, Device)
FORWARD2(cuDeviceTotalMem_v2, std::size_t*, Device)
FORWARD3(cuDeviceGetAttribute, int*, int, Device)
FORWARD3(cuDeviceCanAccessPeer, int*, Device, Device)
FORWARD4(cuDeviceGetP2PAttribute, int*, int, Device, Device)
FORWARD2(cuDevicePrimaryCtxRetain, Ctx*, Device)
FORWARD1(cuDevicePrimaryCtxRelease_v2, Device)
FORWARD1(cuCtxSetCurrent, Ctx)
FORWARD0(cuCtxSynchronize)
FORWARD2(cuCtxEnablePeerAccess, Ctx, unsigned)
FORWARD1(cuCtxDisablePeerAccess, Ctx)
FORWARD2(cuMemAlloc_v2, Ptr*, std::size_t)
FORWARD1(cuMemFree_v2, Ptr)
FORWARD3(cuMemHostAlloc, void**, std::size_t, unsigned)
FORWARD1(cuMemFreeHost, void*)
FORWARD3(cuMemcpyHtoD_v2, Ptr, const void*, std::size_t)
FORWARD3(cuMemcpyDtoH_v2, void*, Ptr, std::size_t)
FORWARD4(cuMemcpyHtoDAsync_v2, Ptr, const void*, std::size_t, Stream)
FORWARD4(cuMemcpyDtoHAsync_v2, void*, Ptr, std::size_t, Stream)
FORWARD2(cuStreamCreate, Stream*, unsigned)
FORWARD1(cuStreamSynchronize, Stream)
FORWARD1(cuStreamDestroy_v2, Stream)
FORWARD2(cuEventCreate, Event*, unsigned)
FORWARD2(cuEventRecord, Event, Stream)
FORWARD1(cuEventSynchronize, Event)
FORWARD3(cuEventElapsedTime, float*, Event, Event)
FORWARD1(cuEventDestroy_v2, Event)
FORWARD5(cuModuleLoadDataEx, Module*, const void*, unsigned, int*, void**)
FORWARD2(cuIpcGetMemHandle, IpcMem*, Ptr)
FORWARD3(cuIpcOpenMemHandle_v2, Ptr*, IpcMem, unsigned)
FORWARD1(cuIpcCloseMemHandle, Ptr)

Result cuModuleGetFunction(Function* f, Module m, const char* name) {
    const Result r = real().cuModuleGetFunction(f, m, name);
    const std::lock_guard<std::mutex> guard(lock);
    if (r == kOk) names[*f] = name;
    return r;
}

Result cuMemcpyDtoDAsync_v2(Ptr d, Ptr s, std::size_t n, Stream stream) {
    if (mode("swap"))
        if (const Ptr other = scratch(n)) d = other;
    return flipAfter(real().cuMemcpyDtoDAsync_v2(d, s, n, stream), d, n);
}

Result cuMemcpyPeerAsync(Ptr d, Ctx dc, Ptr s, Ctx sc, std::size_t n, Stream stream) {
    if (mode("swap")) {
        // Back into a buffer of the GPU that issues the copy: the peer sees none of it.
        if (const Ptr other = scratch(n)) return real().cuMemcpyDtoDAsync_v2(other, s, n, stream);
    }
    return flipAfter(real().cuMemcpyPeerAsync(d, dc, s, sc, n, stream), d, n);
}

Result cuLaunchKernel(Function f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                      unsigned bz, unsigned shared, Stream stream, void** args, void** extra) {
    std::string name;
    {
        const std::lock_guard<std::mutex> guard(lock);
        name = names[f];
    }
    if (mode("late") && name == "p2p_handshake") {
        const auto rounds = *static_cast<std::uint32_t*>(args[2]);
        const auto first = *static_cast<std::uint32_t*>(args[4]);
        if (rounds && first) std::this_thread::sleep_for(std::chrono::seconds(3));
    }
    return real().cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, stream, args, extra);
}

}  // extern "C"
#pragma GCC visibility pop
