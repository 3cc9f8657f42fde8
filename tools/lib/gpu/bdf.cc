// SPDX-License-Identifier: MIT
#include <fmt/core.h>

#include <charconv>
#include <optional>
#include <string_view>

#include "lib/gpu/run.h"

namespace p2p {
namespace {
// The hexadecimal number that all of `digits` is, or none: no sign, no blank, no 0x.
std::optional<unsigned> hex(std::string_view digits, std::size_t most, unsigned limit) {
    unsigned n = 0;
    const char* end = digits.data() + digits.size();
    if (digits.empty() || digits.size() > most) return std::nullopt;
    const auto [at, error] = std::from_chars(digits.data(), end, n, 16);
    if (error != std::errc() || at != end || n > limit) return std::nullopt;
    return n;
}
}  // namespace

std::string normalBdf(const std::string& text) {
    std::string_view rest = text;
    // What stands behind the last `mark`, which goes with it.
    const auto last = [&rest](char mark) {
        const std::size_t at = rest.rfind(mark);
        if (at == std::string_view::npos) return std::string_view();
        const std::string_view part = rest.substr(at + 1);
        rest = rest.substr(0, at);
        return part;
    };
    const auto function = hex(last('.'), 1, 7);
    const auto device = hex(last(':'), 2, 31);
    const bool short_form = rest.find(':') == std::string_view::npos;
    const auto bus = hex(short_form ? rest : last(':'), 2, 0xff);
    const auto domain = short_form ? 0 : hex(rest, 8, 0xffffffff);
    if (!domain || !bus || !device || !function) return "";
    return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", *domain, *bus, *device, *function);
}

}  // namespace p2p
