// SPDX-License-Identifier: MIT
// From what was read and tested to what is said.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "lib/facts/facts.h"
#include "lib/gpu/result.h"
#include "lib/report/report.h"
#include "lib/rules/finding.h"

namespace p2p {

// `run` may be null; `time` in seconds since 1970.
Report makeReport(const Facts& facts, const GpuRun* run, std::vector<Finding> findings,
                  const std::string& level, std::int64_t time);

// What could not be read and why, each thing once; files that differ only in the device are one
// line.  A thing that is honestly absent is not in it.
std::vector<std::string> unreadTexts(const Facts& facts);

// A GpuRun without what identifies a machine (UUIDs), for a snapshot, and back.  An unreadable text
// gives a run that did not run.
std::string runToSnapshot(const GpuRun& run);
GpuRun runFromSnapshot(const std::string& text);

}  // namespace p2p
