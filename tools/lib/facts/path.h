// SPDX-License-Identifier: MIT
// What PCI Express allows between two GPUs.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "lib/facts/facts.h"

namespace p2p {

// GB/s (10^9 bytes) of payload that a link carries in one direction: lane rate and line coding of
// its generation, less the headers of packets of `payload` bytes (Max_Payload_Size).  Nothing for
// a speed that no generation has.
std::optional<double> linkGbs(double gts, int width, int payload);

// GB/s that the slowest link between two GPUs allows.  Speeds are the highest that both ends can
// do, for an idle GPU lowers the present one; widths are the present ones, for a card in a narrow
// slot stays narrow.  Bridges above the first common one are not on the way.  Nothing when a GPU's
// own link cannot be read.
std::optional<double> pathLimitGbs(const Facts& facts, const std::string& src,
                                   const std::string& dst);

// The same for every ordered pair, as GpuOptions::limits_gbs wants it.
std::map<std::pair<std::string, std::string>, double> pathLimits(const Facts& facts);

}  // namespace p2p
