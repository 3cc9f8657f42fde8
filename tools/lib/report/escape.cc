// SPDX-License-Identifier: MIT
#include "lib/report/escape.h"

#include <fmt/format.h>

namespace p2p {

namespace {

constexpr char32_t kReplacement = 0xFFFD;

// Takes one code point off the front; kReplacement for one byte of a malformed sequence
// (RFC 3629: no overlong forms, no surrogates, nothing above 10FFFF).
char32_t take(std::string_view& s) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
    const unsigned char b = byte(0);
    std::size_t n = 0;
    char32_t c = 0;
    char32_t least = 0;
    if (b < 0x80) {
        s.remove_prefix(1);
        return b;
    }
    if ((b & 0xE0U) == 0xC0) {
        n = 2, c = b & 0x1FU, least = 0x80;
    } else if ((b & 0xF0U) == 0xE0) {
        n = 3, c = b & 0x0FU, least = 0x800;
    } else if ((b & 0xF8U) == 0xF0) {
        n = 4, c = b & 0x07U, least = 0x10000;
    }
    bool good = n != 0 && s.size() >= n;
    for (std::size_t i = 1; good && i < n; i++) {
        good = (byte(i) & 0xC0U) == 0x80;
        c = (c << 6U) | (byte(i) & 0x3FU);
    }
    good = good && c >= least && c <= 0x10FFFF && (c < 0xD800 || c > 0xDFFF);
    s.remove_prefix(good ? n : 1);
    return good ? c : kReplacement;
}

void put(std::string& out, char32_t c) {
    if (c < 0x80) {
        out += static_cast<char>(c);
    } else if (c < 0x800) {
        out += static_cast<char>(0xC0U | (c >> 6U));
        out += static_cast<char>(0x80U | (c & 0x3FU));
    } else if (c < 0x10000) {
        out += static_cast<char>(0xE0U | (c >> 12U));
        out += static_cast<char>(0x80U | ((c >> 6U) & 0x3FU));
        out += static_cast<char>(0x80U | (c & 0x3FU));
    } else {
        out += static_cast<char>(0xF0U | (c >> 18U));
        out += static_cast<char>(0x80U | ((c >> 12U) & 0x3FU));
        out += static_cast<char>(0x80U | ((c >> 6U) & 0x3FU));
        out += static_cast<char>(0x80U | (c & 0x3FU));
    }
}

bool isControl(char32_t c) {
    return c < 0x20 || (c >= 0x7F && c <= 0x9F);
}

template <typename F>
std::string each(std::string_view text, F one) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) one(out, take(text));
    return out;
}

void markup(std::string& out, char32_t c) {
    switch (c) {
        case '&':
            out += "&amp;";
            break;
        case '<':
            out += "&lt;";
            break;
        case '>':
            out += "&gt;";
            break;
        case '"':
            out += "&quot;";
            break;
        case '\'':
            out += "&#39;";
            break;
        default:
            put(out, c);
    }
}

}  // namespace

std::string utf8(std::string_view text) {
    return each(text, put);
}

std::string plain(std::string_view text) {
    return each(text, [](std::string& out, char32_t c) {
        if (isControl(c))
            out += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
        else
            put(out, c);
    });
}

std::string xml(std::string_view text) {
    return each(text, [](std::string& out, char32_t c) {
        if (c == '\n' || c == '\t' || c == '\r')
            out += fmt::format("&#{};", static_cast<unsigned>(c));
        else if (isControl(c) || c == 0xFFFE || c == 0xFFFF)  // C1 is legal but discouraged
            put(out, kReplacement);
        else
            markup(out, c);
    });
}

std::string html(std::string_view text) {
    return each(text, [](std::string& out, char32_t c) {
        if (isControl(c) && c != '\n' && c != '\t')
            put(out, kReplacement);
        else
            markup(out, c);
    });
}

std::string label(std::string_view text) {
    return each(text, [](std::string& out, char32_t c) {
        if (c == '\\')
            out += "\\\\";
        else if (c == '"')
            out += "\\\"";
        else if (c == '\n')
            out += "\\n";
        else
            put(out, c);
    });
}

}  // namespace p2p
