// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/sched/growth_outlook.h"

#include <algorithm>

namespace kvscope::sched {

/// Blocks beyond the present ones in the step number `step`; the first one is 1.
std::int64_t GrowthOutlook::growth(const Member& member, std::int64_t step) const {
    const std::int64_t drawn = std::clamp<std::int64_t>(step - member.delay - 1, 0, member.steps - 1);
    const std::int64_t all = (member.tokens + drawn + m_blockSize - 1) / m_blockSize;
    return std::max<std::int64_t>(0, std::min(all, member.most) - member.blocks);
}

/// Between two ends it only grows, so the most is needed in the last step of somebody.
std::int64_t GrowthOutlook::most() const {
    const auto end = [](const Member& member) { return member.delay + member.steps; };
    std::int64_t most = 0;
    for (const Member& ending : m_members) {
        const std::int64_t step = end(ending);
        std::int64_t needed = 0;
        for (const Member& member : m_members)
            needed += end(member) < step ? -member.ownBlocks : growth(member, step);
        most = std::max(most, needed);
    }
    return most;
}

} // namespace kvscope::sched
