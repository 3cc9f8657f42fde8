// SPDX-License-Identifier: MIT
#include "lib/gpu/wire.h"

#include <unistd.h>

#include <array>
#include <cerrno>

namespace p2p {

namespace {

constexpr std::array<const char*, 7> kOutcomeNames = {
    "not-run", "ok", "not-delivered", "zeros", "corrupt", "timeout", "refused"};

template <typename T>
void put(nlohmann::json& j, const char* key, const std::optional<T>& v) {
    if (v) j[key] = *v;
}

template <typename T>
void get(const nlohmann::json& j, const char* key, std::optional<T>& v) {
    if (j.contains(key)) v = j.at(key).get<T>();
}

}  // namespace

const char* outcomeName(Outcome o) {
    return kOutcomeNames.at(static_cast<std::size_t>(o));
}

void to_json(nlohmann::json& j, const TestResult& r) {
    j = {{"test", r.test},           {"outcome", static_cast<int>(r.outcome)},
         {"detail", r.detail},       {"cuda_error", r.cuda_error},
         {"words", r.words},         {"bad_words", r.bad_words},
         {"first_bad", r.first_bad}, {"seconds", r.seconds}};
}

void from_json(const nlohmann::json& j, TestResult& r) {
    j.at("test").get_to(r.test);
    const int outcome = j.at("outcome").get<int>();
    r.outcome = outcome >= 0 && outcome < static_cast<int>(kOutcomeNames.size())
                    ? static_cast<Outcome>(outcome)
                    : Outcome::NotRun;
    j.at("detail").get_to(r.detail);
    j.at("cuda_error").get_to(r.cuda_error);
    j.at("words").get_to(r.words);
    j.at("bad_words").get_to(r.bad_words);
    j.at("first_bad").get_to(r.first_bad);
    j.at("seconds").get_to(r.seconds);
}

void to_json(nlohmann::json& j, const GpuInfo& g) {
    j = {{"bdf", g.bdf},
         {"uuid", g.uuid},
         {"name", g.name},
         {"major", g.compute_major},
         {"minor", g.compute_minor},
         {"vram", g.vram_bytes},
         {"bar1", g.bar1_bytes},
         {"processes", g.compute_processes},
         {"in_cuda", g.in_cuda}};
    put(j, "display", g.display_active);
    put(j, "busy", g.busy_percent);
}

void from_json(const nlohmann::json& j, GpuInfo& g) {
    j.at("bdf").get_to(g.bdf);
    j.at("uuid").get_to(g.uuid);
    j.at("name").get_to(g.name);
    j.at("major").get_to(g.compute_major);
    j.at("minor").get_to(g.compute_minor);
    j.at("vram").get_to(g.vram_bytes);
    j.at("bar1").get_to(g.bar1_bytes);
    j.at("processes").get_to(g.compute_processes);
    j.at("in_cuda").get_to(g.in_cuda);
    get(j, "display", g.display_active);
    get(j, "busy", g.busy_percent);
}

void to_json(nlohmann::json& j, const LocalRates& r) {
    j = {{"bdf", r.bdf}};
    put(j, "h2d", r.host_to_gpu_gbs);
    put(j, "d2h", r.gpu_to_host_gbs);
    put(j, "copy", r.copy_gbs);
    put(j, "latency", r.latency_us);
}

void from_json(const nlohmann::json& j, LocalRates& r) {
    j.at("bdf").get_to(r.bdf);
    get(j, "h2d", r.host_to_gpu_gbs);
    get(j, "d2h", r.gpu_to_host_gbs);
    get(j, "copy", r.copy_gbs);
    get(j, "latency", r.latency_us);
}

bool sendEvent(int fd, const nlohmann::json& event) {
    // Driver strings are not promised to be UTF-8: replace what is not.
    const std::string line =
        event.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    for (std::size_t at = 0; at < line.size();) {
        const ssize_t n = write(fd, line.data() + at, line.size() - at);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        at += static_cast<std::size_t>(n);
    }
    return true;
}

}  // namespace p2p
