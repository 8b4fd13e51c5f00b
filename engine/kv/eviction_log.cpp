// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/kv/eviction_log.h"

#include <bit>
#include <utility>

#include "engine/base/check.h"

namespace kvscope::kv {

const char* evictionReasonName(EvictionReason reason) {
    static constexpr const char* kNames[kEvictionReasonCount] = {"admission", "growth", "copy", "replaced"};
    return kNames[static_cast<std::size_t>(reason)];
}

EvictionLog::EvictionLog(std::int32_t capacity)
    : m_ring(static_cast<std::size_t>(capacity))
    , m_newest(std::bit_ceil(static_cast<std::size_t>(capacity) * 2), kNone)
    , m_older(static_cast<std::size_t>(capacity), kNone) {
    KV_CHECK(capacity > 0, "the eviction log needs room for one entry");
}

void EvictionLog::record(const Eviction& eviction) {
    const auto place = static_cast<std::size_t>(m_next);
    if (m_count == static_cast<std::int32_t>(m_ring.size())) {
        std::int32_t* link = &m_newest[home(m_ring[place].key)];
        while (*link != m_next)
            link = &m_older[static_cast<std::size_t>(*link)];
        *link = kNone;
    } else {
        ++m_count;
    }
    m_ring[place] = eviction;
    m_older[place] = std::exchange(m_newest[home(eviction.key)], m_next);
    m_next = (m_next + 1) % static_cast<std::int32_t>(m_ring.size());
    // What the next records will write over.
    const std::size_t ahead = (place + 4) % m_ring.size();
    __builtin_prefetch(&m_ring[ahead], 1);
    prefetch(m_ring[static_cast<std::size_t>(m_next)].key);
}

const Eviction* EvictionLog::find(const BlockKey& key) const {
    std::int32_t place = m_newest[home(key)];
    while (place != kNone && m_ring[static_cast<std::size_t>(place)].key != key)
        place = m_older[static_cast<std::size_t>(place)];
    return place == kNone ? nullptr : &m_ring[static_cast<std::size_t>(place)];
}

} // namespace kvscope::kv
