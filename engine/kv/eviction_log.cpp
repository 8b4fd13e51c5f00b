// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/kv/eviction_log.h"

#include "engine/base/check.h"

namespace kvscope::kv {

const char* evictionReasonName(EvictionReason reason) {
    static constexpr const char* kNames[kEvictionReasonCount] = {"admission", "growth", "copy", "replaced"};
    return kNames[static_cast<std::size_t>(reason)];
}

EvictionLog::EvictionLog(std::int32_t capacity) : m_ring(static_cast<std::size_t>(capacity)), m_places(capacity) {
    KV_CHECK(capacity > 0, "the eviction log needs room for one entry");
}

void EvictionLog::record(const Eviction& eviction) {
    Eviction& slot = m_ring[static_cast<std::size_t>(m_next)];
    if (m_count == static_cast<std::int32_t>(m_ring.size())) {
        // The overwritten key may have been evicted again since; then its newer entry stays.
        if (m_places.find(slot.key) == m_next)
            m_places.erase(slot.key);
    } else {
        ++m_count;
    }
    slot = eviction;
    m_places.set(eviction.key, m_next);
    m_next = (m_next + 1) % static_cast<std::int32_t>(m_ring.size());
}

const Eviction* EvictionLog::find(const BlockKey& key) const {
    const std::int32_t place = m_places.find(key);
    return place == KeyTable::kNotFound ? nullptr : &m_ring[static_cast<std::size_t>(place)];
}

} // namespace kvscope::kv
