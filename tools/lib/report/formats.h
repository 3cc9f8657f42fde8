// SPDX-License-Identifier: MIT
// The output formats.  Each is a pure function: same Report, same bytes.
#pragma once
#include <string>

#include "lib/report/report.h"

namespace p2p {

struct TextStyle {
    bool colour = false;
    int columns = 100;
};
std::string toText(const Report& report, const TextStyle& style);

// Schema version 1, described by p2p-verify-1.json; fields are only ever added to it.
std::string toJson(const Report& report);

// One test case per rule, and one per test of each ordered pair.
std::string toJunit(const Report& report);

// Exposition format for node_exporter's textfile collector.  Every series has the label `level`, so
// that an env run and a data run can lie side by side in its folder.
std::string toPrometheus(const Report& report);

// One line and performance data (Monitoring Plugins Development Guidelines); see nagiosStatus().
std::string toNagios(const Report& report);

// One page that needs nothing but itself: no script, no font, no picture from elsewhere.
std::string toHtml(const Report& report);

// PCI tree from host bridge to GPU as an inline SVG element; empty without GPUs.
std::string topologySvg(const Report& report);

}  // namespace p2p
