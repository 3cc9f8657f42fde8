// SPDX-License-Identifier: MIT
#include <nlohmann/json.hpp>

#include "lib/gpu/wire.h"
#include "lib/report/make_report.h"

namespace p2p {

std::string runToSnapshot(const GpuRun& run) {
    nlohmann::json gpus = nlohmann::json::array();
    for (GpuInfo g : run.gpus) {
        g.uuid.clear();
        gpus.push_back(g);
    }
    const nlohmann::json j = {{"ran", run.ran},
                              {"timed_out", run.timed_out},
                              {"error", run.error},
                              {"nvml_init", run.nvml_init},
                              {"driver_version", run.driver_version},
                              {"gpus", gpus}};
    return j.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

GpuRun runFromSnapshot(const std::string& text) {
    GpuRun run;
    const nlohmann::json j = nlohmann::json::parse(text, nullptr, false);
    try {
        j.at("ran").get_to(run.ran);
        j.at("timed_out").get_to(run.timed_out);
        j.at("error").get_to(run.error);
        j.at("nvml_init").get_to(run.nvml_init);
        j.at("driver_version").get_to(run.driver_version);
        for (const auto& g : j.at("gpus")) run.gpus.push_back(g.get<GpuInfo>());
    } catch (const nlohmann::json::exception& e) {
        run = GpuRun();
        run.error = std::string("the snapshot's GPU part cannot be read: ") + e.what();
    }
    return run;
}

}  // namespace p2p
