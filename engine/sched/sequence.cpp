// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/sched/sequence.h"

#include <algorithm>

namespace kvscope::sched {

const char* endReasonName(EndReason reason) {
    switch (reason) {
    case EndReason::Stopped:
        return "stopped";
    case EndReason::MaxTokens:
        return "max_tokens";
    case EndReason::MaxLength:
        return "max_length";
    case EndReason::PoolFull:
        return "pool_full";
    case EndReason::TooLong:
        return "too_long";
    case EndReason::Cancelled:
        return "cancelled";
    case EndReason::Failed:
        return "failed";
    }
    return "failed";
}

std::optional<EndReason> endReasonOf(std::string_view name) {
    for (std::size_t i = 0; i < kEndReasonCount; ++i)
        if (name == endReasonName(static_cast<EndReason>(i)))
            return static_cast<EndReason>(i);
    return std::nullopt;
}

void TokenIntervals::add(Nanos interval) {
    Nanos& slot = m_ring[m_count % m_ring.size()];
    m_sum += interval - slot;
    slot = interval;
    ++m_count;
}

Nanos TokenIntervals::mean() const {
    return m_count == 0 ? -1 : m_sum / static_cast<Nanos>(std::min<std::size_t>(m_count, m_ring.size()));
}

} // namespace kvscope::sched
