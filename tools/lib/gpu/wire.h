// SPDX-License-Identifier: MIT
// What the child tells the parent: one JSON object per line, written whole, so that everything
// said before a crash or a kill is kept.
//
//   {"ev":"phase","what":"cuInit","limit":60}      entering something that can block
//   {"ev":"nvml","code":0,"driver":"580.65"}       {"ev":"cuda","code":0}
//   {"ev":"gpu",...GpuInfo}                        replaces what is known of this BDF
//   {"ev":"plan","pairs":[[src,dst],...],"steps":[["ce_push",0],...]}   pair -1: a single GPU
//   {"ev":"begin","steps":[3],"limit":20}          {"ev":"result","step":3,...TestResult}
//   {"ev":"pair","pair":0,...what is known of the pair}   {"ev":"local",...LocalRates}
//   {"ev":"fatal","text":"..."}                    {"ev":"done"}
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "lib/gpu/result.h"

namespace p2p {

void to_json(nlohmann::json& j, const TestResult& r);
void from_json(const nlohmann::json& j, TestResult& r);
void to_json(nlohmann::json& j, const GpuInfo& g);
void from_json(const nlohmann::json& j, GpuInfo& g);
void to_json(nlohmann::json& j, const LocalRates& r);
void from_json(const nlohmann::json& j, LocalRates& r);

// Writes `event` and a newline to `fd`; false when the parent is gone.
bool sendEvent(int fd, const nlohmann::json& event);

}  // namespace p2p
