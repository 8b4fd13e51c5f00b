// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/kv/reuse_facts.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

namespace kvscope::kv {

namespace {

constexpr std::uint32_t kMost = std::numeric_limits<std::uint32_t>::max();

/// 2^32 x 2^(-i / 64), by repeated multiplication with the first step.
constexpr auto kFade = [] {
    constexpr std::uint64_t kStep = 4248701965; // 2^32 x 2^(-1 / 64)
    std::array<std::uint64_t, TurnoverClock::kTicksPerHalfLife> table{};
    table[0] = std::uint64_t(1) << 32;
    for (std::size_t i = 1; i < table.size(); ++i)
        table[i] = (table[i - 1] * kStep + (std::uint64_t(1) << 31)) >> 32;
    return table;
}();

std::uint32_t faded(std::uint32_t value, std::uint32_t ticks) {
    const std::uint32_t halvings = ticks / TurnoverClock::kTicksPerHalfLife;
    if (halvings >= 32)
        return 0;
    return static_cast<std::uint32_t>((value * kFade[ticks % TurnoverClock::kTicksPerHalfLife]) >> 32 >> halvings);
}

std::uint32_t plusOneUse(std::uint32_t value) {
    return value > kMost - kOneUse ? kMost : value + kOneUse;
}

} // namespace

void ReuseFacts::fade(std::uint32_t now) {
    const std::uint32_t ticks = now - clock;
    if (ticks == 0)
        return;
    fame = faded(fame, ticks);
    expected = faded(expected, ticks);
    followers = faded(followers, ticks);
    clock = now;
}

void ReuseFacts::use(std::uint32_t now) {
    fade(now);
    uses += uses == kMost ? 0 : 1;
    fame = plusOneUse(fame);
    expected = plusOneUse(expected);
}

void ReuseFacts::rest(std::uint32_t now) {
    fade(now);
    fame = std::max(fame, kOneUse);
    expected = std::max(expected, kOneUse);
}

void inherit(ReuseFacts& next, ReuseFacts& previous, std::uint32_t now) {
    next.fade(now);
    previous.fade(now);
    previous.followers = plusOneUse(previous.followers);
    const std::uint64_t share = (static_cast<std::uint64_t>(previous.expected) << 16) / previous.followers;
    next.expected =
        static_cast<std::uint32_t>(std::max<std::uint64_t>(next.expected, std::min<std::uint64_t>(share, kMost)));
}

std::uint32_t octaves(std::uint64_t value) {
    const auto whole = static_cast<std::uint32_t>(std::bit_width(value)) - 1;
    // The rest as 1 <= m < 2 with 31 binary places; squaring it shows one more binary digit of the logarithm each time.
    std::uint64_t m = whole >= 31 ? value >> (whole - 31) : value << (31 - whole);
    std::uint32_t fraction = 0;
    for (int digit = 0; digit < 6; ++digit) {
        m = (m * m) >> 31;
        const auto carries = static_cast<std::uint32_t>(m >> 32);
        fraction = 2 * fraction + carries;
        m >>= carries;
    }
    return 64 * whole + fraction;
}

} // namespace kvscope::kv
