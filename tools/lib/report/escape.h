// SPDX-License-Identifier: MIT
// Texts come from hardware, logs and other people's snapshots: each format takes them through here.
#pragma once
#include <string>
#include <string_view>

namespace p2p {

// Valid UTF-8: every byte that is not part of a well-formed sequence becomes U+FFFD.
std::string utf8(std::string_view text);

// For a terminal or a one-line format: control characters (C0, DEL, C1) become "\xNN", so that no
// text can move the cursor or forge a line.
std::string plain(std::string_view text);

// For XML 1.0 text and attribute values: markup escaped; characters that XML cannot hold become
// U+FFFD; line ends and tabs become character references, which attributes keep.
std::string xml(std::string_view text);

// For HTML text and double- or single-quoted attribute values.
std::string html(std::string_view text);

// For a Prometheus label value: backslash, double quote and line feed (exposition format 0.0.4).
std::string label(std::string_view text);

}  // namespace p2p
