// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace kvscope::sched {

/// How many more blocks a batch comes to need if nobody joins it and everybody writes all that they may: some grow on
/// while others end and give back what is theirs alone. Steps are the clock, one token a step for whoever writes.
class GrowthOutlook {
public:
    struct Member {
        std::int64_t tokens = 0;    ///< known
        std::int64_t steps = 1;     ///< tokens that it may still draw, at least one; the last one is never computed
        std::int64_t delay = 0;     ///< steps until it draws the next one: what it has to read before
        std::int64_t blocks = 0;    ///< in its table
        std::int64_t ownBlocks = 0; ///< of those, not shared: they come back when it ends
        /// It never has more, because it gives others back (sinks); else it has one for each of its tokens.
        std::int64_t most = std::numeric_limits<std::int64_t>::max();
    };

    explicit GrowthOutlook(std::int32_t blockSize) : m_blockSize(blockSize) {}
    void add(const Member& member) { m_members.push_back(member); }
    /// The most blocks needed at one time beyond those that the members have now; at least 0. Quadratic in members.
    std::int64_t most() const;

private:
    std::int64_t growth(const Member& member, std::int64_t step) const;

    std::int64_t m_blockSize;
    std::vector<Member> m_members;
};

} // namespace kvscope::sched
