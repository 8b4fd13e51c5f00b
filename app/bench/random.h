// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

namespace kvscope::bench {

/// A number that depends on both, as far from either as from any other (two rounds of a 64-bit finalizer): the same on
/// every machine, unlike the distributions of the standard library.
constexpr std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
    std::uint64_t x = a + 0x9E3779B97F4A7C15ull * (b + 1);
    for (int round = 0; round < 2; ++round) {
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
        x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
        x ^= x >> 31;
    }
    return x;
}

/// A stream of such numbers.
class Random {
public:
    explicit Random(std::uint64_t seed) : m_seed(seed) {}
    std::uint64_t next() { return mix(m_seed, m_count++); }
    /// 0 .. n-1, n > 0. (The bias is below n / 2^64.)
    std::uint64_t below(std::uint64_t n) { return next() % n; }

private:
    std::uint64_t m_seed;
    std::uint64_t m_count = 0;
};

} // namespace kvscope::bench
