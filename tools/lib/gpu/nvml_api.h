// SPDX-License-Identifier: MIT
// The part of NVML that the tools use, declared here; names carry the suffix of the exported
// symbol.  Source: "NVML API Reference Guide".
#pragma once
#include <cstdint>
#include <string>

namespace p2p::nvml {

using Return = int;
using Device = struct DeviceOpaque*;

// nvmlReturn_t
enum : Return {
    kOk = 0,
    kNotSupported = 3,
    kInsufficientSize = 7,
    kGpuLost = 15,
    kVersionMismatch = 18,
    kUnknown = 999,
};
// nvmlGpuP2PCapsIndex_t
enum : int { kCapsRead = 0, kCapsWrite = 1, kCapsNvlink = 2, kCapsPci = 4 };
// nvmlGpuP2PStatus_t: 0 OK, 1 chipset, 2 GPU, 3 IOH topology, 4 disabled by regkey, 5 not
// supported, 6 unknown
enum : int { kP2pOk = 0 };
constexpr unsigned kMaxNvlinks = 36;  // NVML_NVLINK_MAX_LINKS is 18; later releases may raise it

struct PciInfo {  // nvmlPciInfo_t
    char bus_id_legacy[16];
    unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[32];
};
static_assert(sizeof(PciInfo) == 68, "nvmlPciInfo_t");
struct Memory {  // nvmlMemory_t
    unsigned long long total, free, used;
};
static_assert(sizeof(Memory) == 24, "nvmlMemory_t");
struct Bar1Memory {  // nvmlBAR1Memory_t
    unsigned long long total, free, used;
};
static_assert(sizeof(Bar1Memory) == 24, "nvmlBAR1Memory_t");
struct Utilization {  // nvmlUtilization_t
    unsigned gpu, memory;
};
static_assert(sizeof(Utilization) == 8, "nvmlUtilization_t");

// Required first, then those that may be missing in some release (left null).
// clang-format off
#define P2P_NVML_FUNCTIONS(X)                                             \
    X(nvmlInit_v2, (void))                                                \
    X(nvmlShutdown, (void))                                               \
    X(nvmlSystemGetDriverVersion, (char*, unsigned))                      \
    X(nvmlDeviceGetCount_v2, (unsigned*))                                 \
    X(nvmlDeviceGetHandleByIndex_v2, (unsigned, Device*))                 \
    X(nvmlDeviceGetPciInfo_v3, (Device, PciInfo*))                        \
    X(nvmlDeviceGetUUID, (Device, char*, unsigned))                       \
    X(nvmlDeviceGetName, (Device, char*, unsigned))                       \
    X(nvmlDeviceGetMemoryInfo, (Device, Memory*))                         \
    X(nvmlDeviceGetBAR1MemoryInfo, (Device, Bar1Memory*))
#define P2P_NVML_OPTIONAL(X)                                              \
    X(nvmlDeviceGetCudaComputeCapability, (Device, int*, int*))           \
    X(nvmlDeviceGetDisplayActive, (Device, int*))                         \
    X(nvmlDeviceGetUtilizationRates, (Device, Utilization*))              \
    X(nvmlDeviceGetComputeRunningProcesses_v3, (Device, unsigned*, void*)) \
    X(nvmlDeviceGetNvLinkState, (Device, unsigned, int*))                 \
    X(nvmlDeviceGetP2PStatus, (Device, Device, int, int*))                \
    X(nvmlDeviceGetPcieThroughput, (Device, int, unsigned*))
// clang-format on

struct Api {
// NOLINTNEXTLINE(bugprone-macro-parentheses): they name a function and its parameters
#define X(name, args) Return(*name) args = nullptr;
    P2P_NVML_FUNCTIONS(X)
    P2P_NVML_OPTIONAL(X)
#undef X
};

// Loads libnvidia-ml.so.1.  Returns "" and fills `api`, or says in one line what is missing.
std::string load(Api& api);

// "driver/library version mismatch (18)": the codes that matter in words, others by number.
std::string errorText(Return r);

}  // namespace p2p::nvml
