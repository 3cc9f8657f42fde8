// SPDX-License-Identifier: MIT
#include "lib/gpu/nvml_api.h"

#include <dlfcn.h>

namespace p2p::nvml {

std::string load(Api& api) {
    void* lib = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!lib) return dlerror();
// NOLINTBEGIN(bugprone-macro-parentheses): args is a parameter list
#define X(name, args)                                               \
    api.name = reinterpret_cast<Return(*) args>(dlsym(lib, #name)); \
    if (!api.name) return "libnvidia-ml.so.1 has no " #name "; update the NVIDIA driver";
    P2P_NVML_FUNCTIONS(X)
#undef X
#define X(name, args) api.name = reinterpret_cast<Return(*) args>(dlsym(lib, #name));
    P2P_NVML_OPTIONAL(X)
#undef X
    // NOLINTEND(bugprone-macro-parentheses)
    return "";
}

std::string errorText(Return r) {
    const std::string code = " (" + std::to_string(r) + ")";
    switch (r) {
        case 4:
            return "no permission" + code;
        case 9:
            return "the kernel driver is not loaded" + code;
        case 10:
            return "timeout" + code;
        case kGpuLost:
            return "a GPU fell off the bus" + code;
        case kVersionMismatch:
            return "driver/library version mismatch" + code;
        default:
            return "NVML error" + code;
    }
}

}  // namespace p2p::nvml
