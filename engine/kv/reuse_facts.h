// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

namespace kvscope::kv {

/// The clock by which fame fades: it does not count seconds but evictions. A quiet night forgets nothing, and what a
/// flood of new content is worth is weighed against how often it turned the whole pool over.
class TurnoverClock {
public:
    static constexpr std::uint32_t kTicksPerTurnover = 32; ///< evictions of as many blocks as the pool has
    static constexpr std::uint32_t kTicksPerHalfLife = 64; ///< fame halves with every second turnover

    explicit TurnoverClock(std::int32_t numBlocks) : m_numBlocks(static_cast<std::uint64_t>(numBlocks)) {}
    void countEviction() {
        ++m_evictions;
        m_ticks = static_cast<std::uint32_t>(m_evictions * kTicksPerTurnover / m_numBlocks);
    }
    std::uint32_t ticks() const { return m_ticks; }

private:
    std::uint64_t m_numBlocks;
    std::uint64_t m_evictions = 0;
    std::uint32_t m_ticks = 0;
};

/// One whole use in the fixed-point numbers below.
inline constexpr std::uint32_t kOneUse = 1u << 16;

/// How a block was used; what eviction by worth depends on. All integers, so that the order of eviction is the same on
/// every machine. 20 bytes.
struct ReuseFacts {
    std::uint32_t uses = 0; ///< sequences that took it: the one that computed it, and each that was served from it
    /// The same where each use counts half as much for every half-life since; in 1 / kOneUse.
    std::uint32_t fame = 0;
    /// Fame that began with a share of its predecessor's: a block whose conversation was continued four times is
    /// expected to be continued again, though it was computed only now. In 1 / kOneUse.
    std::uint32_t expected = 0;
    std::uint32_t followers = 0; ///< faded number of blocks published behind this one, in 1 / kOneUse
    std::uint32_t clock = 0;     ///< ticks to which the three are faded

    /// Of a block that was just taken for new content.
    static ReuseFacts fresh(std::uint32_t now) { return {1, kOneUse, kOneUse, 0, now}; }
    /// One more sequence took it.
    void use(std::uint32_t now);
    /// Nobody reads it any more: until now it was in use, so it counts as used once at least.
    void rest(std::uint32_t now);
    void fade(std::uint32_t now);
};

/// `next` was published behind `previous`: it inherits what each follower of `previous` can expect.
void inherit(ReuseFacts& next, ReuseFacts& previous, std::uint32_t now);

/// floor(64 x log2(value)), in integers; value > 0. 64 steps = a factor of two = one half-life of TurnoverClock.
std::uint32_t octaves(std::uint64_t value);

} // namespace kvscope::kv
