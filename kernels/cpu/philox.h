// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <cstdint>

namespace kvscope::kernels {

/// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC11): a counter-based generator. The
/// numbers are a pure function of counter and key, so a token's draw does not depend on what was drawn before it.
constexpr std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                                  std::array<std::uint32_t, 2> key) {
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t a = std::uint64_t(0xD2511F53u) * counter[0];
        const std::uint64_t b = std::uint64_t(0xCD9E8D57u) * counter[2];
        counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
                   static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
        key[0] += 0x9E3779B9u;
        key[1] += 0xBB67AE85u;
    }
    return counter;
}

/// The uniform number in [0, 1) that draws the token `tokenIndex` of an answer: 53 bits of Philox(seed, tokenIndex).
constexpr double philoxUniform(std::uint64_t seed, std::uint64_t tokenIndex) {
    const std::array<std::uint32_t, 4> r =
        philox4x32({static_cast<std::uint32_t>(tokenIndex), static_cast<std::uint32_t>(tokenIndex >> 32), 0, 0},
                   {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
    const std::uint64_t bits = (std::uint64_t(r[0]) << 32 | r[1]) >> 11;
    return static_cast<double>(bits) * 0x1.0p-53;
}

} // namespace kvscope::kernels
