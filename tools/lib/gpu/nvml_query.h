// SPDX-License-Identifier: MIT
// What NVML says of each GPU and of the way between two of them.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/gpu/nvml_api.h"
#include "lib/gpu/result.h"

namespace p2p {

class Nvml {
  public:
    // Return code of nvmlInit_v2, or -1 with `error` when the library is missing.
    int open(std::string& error);
    std::string driverVersion() const;
    std::vector<GpuInfo> gpus();  // remembers the handles for the calls below

    struct Path {
        std::string path;      // "nvlink", "pcie-bar1", "unknown"
        std::string evidence;  // the queries and their answers
    };
    // How the driver says that `a` reaches `b` when peer access is granted.
    std::optional<Path> path(const std::string& a, const std::string& b) const;

    // GB/s leaving (`tx`) or entering the GPU over PCIe, averaged by the driver over 20 ms.
    std::optional<double> pcieGbs(const std::string& bdf, bool tx) const;

  private:
    nvml::Api api_;
    std::map<std::string, nvml::Device> handles_;
};

}  // namespace p2p
