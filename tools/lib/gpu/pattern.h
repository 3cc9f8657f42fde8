// SPDX-License-Identifier: MIT
// The test pattern; must equal pattern() in kernels/p2p.cl.
#pragma once
#include <cstdint>

namespace p2p {

// Word `i` of the pattern of `seed`.  For a given `i` it is a bijection of the seed, so two seeds
// never agree on a word, and a word that moved is seen as well as one that changed.
constexpr std::uint32_t pattern(std::uint64_t i, std::uint32_t seed) {
    std::uint32_t x =
        static_cast<std::uint32_t>(i) * 0x9e3779b1U ^ static_cast<std::uint32_t>(i >> 32U) ^ seed;
    x ^= x >> 15U;
    x *= 0x85ebca6bU;
    x ^= x >> 13U;
    x *= 0xc2b2ae35U;
    return x ^ (x >> 16U);
}

}  // namespace p2p
