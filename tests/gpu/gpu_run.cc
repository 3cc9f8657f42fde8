// SPDX-License-Identifier: MIT
// Runs the GPU tests of tools/lib/gpu and prints all that came of it as JSON: the tests without
// rules and reports around them.   gpu-run env|data|full|rates [BDF...]
// Exit status: 0 when every test that ran is ok, 1 otherwise,
// 64 for a wrong command line, 70 for a failure of the program.
#include <chrono>
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>

#include "lib/gpu/progress_line.h"
#include "lib/gpu/run.h"
#include "lib/gpu/wire.h"

namespace {
int measure(int argc, char** argv) {
    using nlohmann::json;
    p2p::GpuOptions o;
    const std::string level = argc > 1 ? argv[1] : "data";
    if (level == "env") {
        o.level = p2p::GpuLevel::Env;
    } else if (level == "data") {
        o.level = p2p::GpuLevel::Data;
    } else if (level == "full") {
        o.level = p2p::GpuLevel::Full;
    } else if (level == "rates") {
        o.level = p2p::GpuLevel::Rates;
    } else {
        std::cerr << "gpu-run: " << level << ": no such level; say env, data, full or rates\n";
        return 64;
    }
    for (int i = 2; i < argc; i++) o.bdfs.emplace_back(argv[i]);
    o.progress = p2p::progressLine("gpu-run");
    const auto t0 = std::chrono::steady_clock::now();
    const p2p::GpuRun r = p2p::runGpu(o);
    o.progress = nullptr;
    json pairs = json::array();
    bool ok = r.ran;
    auto judge = [&](const std::vector<p2p::TestResult>& tests) {
        json all = json::array();
        for (const auto& t : tests) {
            json j = t;
            j["outcome"] = p2p::outcomeName(t.outcome);
            all.push_back(j);
            ok = ok && t.outcome == p2p::Outcome::Ok;
        }
        return all;
    };
    for (const auto& p : r.pairs) {
        json j = {{"src", p.src},
                  {"dst", p.dst},
                  {"path", p.path},
                  {"path_evidence", p.path_evidence},
                  {"tests", judge(p.tests)}};
        if (p.bandwidth_gbs) j["bandwidth_gbs"] = *p.bandwidth_gbs;
        if (p.bidir_gbs) j["bidir_gbs"] = *p.bidir_gbs;
        if (p.latency_us) j["latency_us"] = *p.latency_us;
        pairs.push_back(j);
    }
    json gpus = r.gpus;
    for (json& g : gpus) g.erase("uuid");
    const json all = {
        {"ran", r.ran},
        {"timed_out", r.timed_out},
        {"error", r.error},
        {"nvml_init", r.nvml_init},
        {"cuda_init", r.cuda_init},
        {"driver", r.driver_version},
        {"gpus", gpus},
        {"pairs", pairs},
        {"single", judge(r.single)},
        {"local", r.local},
        {"seconds", std::chrono::duration<double>(std::chrono::steady_clock::now() - t0).count()}};
    std::cout << all.dump(2, ' ', false, json::error_handler_t::replace) << "\n";
    return ok ? 0 : 1;
}
}  // namespace

int main(int argc, char** argv) {
    try {
        return measure(argc, argv);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "gpu-run: %s\n", e.what());
        return 70;
    }
}
