// SPDX-License-Identifier: MIT
#include "lib/gpu/cuda_api.h"

#include <dlfcn.h>

namespace p2p::cu {

std::string load(Api& api) {
    void* lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!lib) return dlerror();
// NOLINTBEGIN(bugprone-macro-parentheses): args is a parameter list
#define X(name, args)                                               \
    api.name = reinterpret_cast<Result(*) args>(dlsym(lib, #name)); \
    if (!api.name) return "libcuda.so.1 has no " #name "; update the NVIDIA driver";
    P2P_CU_FUNCTIONS(X)
#undef X
    // NOLINTEND(bugprone-macro-parentheses)
    return "";
}

std::string errorText(const Api& api, Result r) {
    const char* name = nullptr;
    if (api.cuGetErrorName && api.cuGetErrorName(r, &name) == kOk && name)
        return std::string(name) + " (" + std::to_string(r) + ")";
    return "CUDA error " + std::to_string(r);
}

bool isSticky(Result r) {
    // "CUresult" in the Driver API reference: after these the process must be ended.
    return r == 214 || r == 220 || r == kIllegalAddress || r == 702 || r == kUnknown ||
           (r >= 714 && r <= kLaunchFailed);
}

}  // namespace p2p::cu
