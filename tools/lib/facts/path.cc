// SPDX-License-Identifier: MIT
#include "lib/facts/path.h"

#include <algorithm>

namespace p2p {

std::optional<double> linkGbs(double gts, int width, int payload) {
    // 8b/10b up to 5 GT/s, 128b/130b up to 32, 242 of 256 flit bytes at 64, of which the headers
    // take their part as before (PCIe 6.0, 4.2).
    double coding = 0;
    if (gts == 2.5 || gts == 5)
        coding = 8.0 / 10;
    else if (gts == 8 || gts == 16 || gts == 32)
        coding = 128.0 / 130;
    else if (gts == 64)
        coding = 242.0 / 256;
    if (coding == 0 || width <= 0 || payload <= 0) return std::nullopt;
    // Framing 4 (2 before 8 GT/s gave the same within a percent), sequence, 16 header, 4 LCRC.
    constexpr double kOverhead = 26;
    return gts / 8 * coding * width * payload / (payload + kOverhead);
}

namespace {

struct Link {
    const Sourced<PcieLink>* now;
    const Sourced<PcieLink>* most;
    const Sourced<int>* payload;
};

// The part of the way that one link stands for; what is unknown does not limit.
void take(const Link& link, double& gts, int& width, int& payload) {
    if (*link.most && (*link.most)->gts > 0)
        gts = gts == 0 ? (*link.most)->gts : std::min(gts, (*link.most)->gts);
    if (*link.now && (*link.now)->width > 0)
        width = width == 0 ? (*link.now)->width : std::min(width, (*link.now)->width);
    if (*link.payload && **link.payload > 0)
        payload = payload == 0 ? **link.payload : std::min(payload, **link.payload);
}

}  // namespace

std::optional<double> pathLimitGbs(const Facts& facts, const std::string& src,
                                   const std::string& dst) {
    const Gpu* a = facts.gpu(src);
    const Gpu* b = facts.gpu(dst);
    if (a == nullptr || b == nullptr || a == b) return std::nullopt;
    std::optional<double> limit;
    int payload = 0;
    for (const Gpu* g : {a, b})
        if (g->max_payload && *g->max_payload > 0)
            payload = payload == 0 ? *g->max_payload : std::min(payload, *g->max_payload);
    const Gpu* const ends[2] = {a, b};
    for (int side = 0; side < 2; side++) {
        const Gpu& gpu = *ends[side];
        const auto& other = ends[1 - side]->upstream;
        // A link has two ends: the GPU's and that of the port above it; so has the link above a
        // switch.  Both say the same width, and the slower end decides the speed.
        double gts = 0;
        int width = 0;
        take({&gpu.link, &gpu.link_max, &gpu.max_payload}, gts, width, payload);
        if (gts == 0 || width == 0) return std::nullopt;
        std::vector<std::pair<double, int>> links;
        for (const std::string& id : gpu.upstream) {
            if (std::find(other.begin(), other.end(), id) != other.end()) break;
            const Bridge* bridge = facts.bridge(id);
            if (bridge == nullptr) break;
            if (bridge->port && *bridge->port == PortType::UpstreamPort) {
                links.emplace_back(gts, width);
                gts = 0, width = 0;
            }
            take({&bridge->link, &bridge->link_max, &bridge->max_payload}, gts, width, payload);
        }
        links.emplace_back(gts, width);
        for (const auto& [speed, lanes] : links) {
            // 128 bytes is what every port must support.
            const std::optional<double> one = linkGbs(speed, lanes, payload == 0 ? 128 : payload);
            if (one) limit = limit ? std::min(*limit, *one) : *one;
        }
    }
    return limit;
}

std::map<std::pair<std::string, std::string>, double> pathLimits(const Facts& facts) {
    std::map<std::pair<std::string, std::string>, double> all;
    for (const Gpu& a : facts.gpus)
        for (const Gpu& b : facts.gpus)
            if (const auto limit = pathLimitGbs(facts, a.bdf, b.bdf)) all[{a.bdf, b.bdf}] = *limit;
    return all;
}

}  // namespace p2p
