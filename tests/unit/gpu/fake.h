// SPDX-License-Identifier: MIT
// Runs the GPU tests on the fake libraries of tests/fixtures/fake-cuda.
#pragma once
#include <dlfcn.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "lib/gpu/run.h"

namespace fake {

// A library that is loaded already is found by its soname, here and in the forked children.
inline void load() {
    for (const char* name : {"/fake-cuda/libcuda.so.1", "/fake-cuda/libnvidia-ml.so.1"})
        if (!dlopen((std::string(P2P_BUILD_DIR) + name).c_str(), RTLD_NOW))
            throw std::runtime_error(dlerror());
}

inline p2p::GpuOptions options(p2p::GpuLevel level = p2p::GpuLevel::Data) {
    p2p::GpuOptions o;
    o.level = level;
    o.bytes = 64 << 10;
    o.rate_bytes = 1 << 20;
    o.rate_seconds = 0.02;
    o.handshake_rounds = 50;
    // Generous: what works must pass on a machine that is busy with other things, too.
    o.handshake_deadline_s = 10;
    o.step_timeout_s = 30;
    o.init_timeout_s = 30;
    o.timeout_s = 120;
    return o;
}

// For faults that end at a deadline.
inline p2p::GpuOptions impatient() {
    p2p::GpuOptions o = options();
    o.handshake_rounds = 5;
    o.handshake_deadline_s = 0.5;
    o.step_timeout_s = 2;
    return o;
}

inline p2p::GpuRun run(const char* rig, const p2p::GpuOptions& o = options()) {
    load();
    setenv("P2P_FAKE", rig, 1);
    return p2p::runGpu(o);
}

inline const p2p::PairResult& pair(const p2p::GpuRun& r, int a, int b) {
    for (const auto& p : r.pairs)
        if (p.src == "0000:0" + std::to_string(a + 1) + ":00.0" &&
            p.dst == "0000:0" + std::to_string(b + 1) + ":00.0")
            return p;
    throw std::runtime_error("no such pair");
}

inline const p2p::TestResult& test(const p2p::GpuRun& r, int a, int b, const std::string& name) {
    for (const auto& t : pair(r, a, b).tests)
        if (t.test == name) return t;
    throw std::runtime_error("no such test: " + name);
}

inline std::string outcome(const p2p::GpuRun& r, int a, int b, const std::string& name) {
    return p2p::outcomeName(test(r, a, b, name).outcome);
}

// "ce_push=ok ce_pull=zeros ..." of one ordered pair.
inline std::string story(const p2p::GpuRun& r, int a, int b) {
    std::string s;
    for (const auto& t : pair(r, a, b).tests)
        s += (s.empty() ? "" : " ") + t.test + "=" + p2p::outcomeName(t.outcome);
    return s;
}

}  // namespace fake
