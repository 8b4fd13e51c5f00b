// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/kv/key_table.h"

#include <bit>

#include "engine/base/check.h"

namespace kvscope::kv {

KeyTable::KeyTable(std::int32_t capacity)
    : m_entries(std::bit_ceil(static_cast<std::size_t>(capacity) * 2 + 2))
    , m_capacity(capacity) {}

std::size_t KeyTable::locate(const BlockKey& key) const {
    std::size_t at = home(key);
    while (m_entries[at].value != kNotFound && m_entries[at].key != key)
        at = next(at);
    return at;
}

std::int32_t KeyTable::find(const BlockKey& key) const {
    return m_entries[locate(key)].value;
}

void KeyTable::set(const BlockKey& key, std::int32_t value) {
    KV_CHECK(value >= 0, "a key table holds non-negative numbers only");
    Entry& entry = m_entries[locate(key)];
    if (entry.value == kNotFound) {
        KV_CHECK(m_size < m_capacity, "a key table is full: more keys than blocks");
        ++m_size;
    }
    entry = {key, value};
}

void KeyTable::erase(const BlockKey& key) {
    std::size_t hole = locate(key);
    if (m_entries[hole].value == kNotFound)
        return;
    --m_size;
    // Every following entry of the run moves into the hole unless its home lies behind the hole.
    for (std::size_t at = next(hole); m_entries[at].value != kNotFound; at = next(at)) {
        const std::size_t mask = m_entries.size() - 1;
        const std::size_t distanceFromHome = (at - home(m_entries[at].key)) & mask;
        const std::size_t distanceFromHole = (at - hole) & mask;
        if (distanceFromHome >= distanceFromHole) {
            m_entries[hole] = m_entries[at];
            hole = at;
        }
    }
    m_entries[hole] = Entry{};
}

} // namespace kvscope::kv
