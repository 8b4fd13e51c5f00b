// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <vector>

#include "engine/kv/block_key.h"

namespace kvscope::kv {

/// Hash table from keys to small non-negative numbers, of a capacity fixed at creation: open addressing with linear
/// probing, at most half full, erasing by shifting back, so that it neither allocates nor decays.
class KeyTable {
public:
    static constexpr std::int32_t kNotFound = -1;

    explicit KeyTable(std::int32_t capacity);

    std::int32_t size() const { return m_size; }
    std::int32_t find(const BlockKey& key) const;
    /// A hint: `key` is looked for soon.
    void prefetch(const BlockKey& key) const { __builtin_prefetch(&m_entries[home(key)]); }
    /// Inserts or overwrites.
    void set(const BlockKey& key, std::int32_t value);
    void erase(const BlockKey& key);

private:
    struct Entry {
        BlockKey key;
        std::int32_t value = kNotFound;
    };
    std::size_t home(const BlockKey& key) const { return key.low & (m_entries.size() - 1); }
    std::size_t next(std::size_t at) const { return (at + 1) & (m_entries.size() - 1); }
    /// Where the key stands, or the free entry where it would.
    std::size_t locate(const BlockKey& key) const;

    std::vector<Entry> m_entries;
    std::int32_t m_capacity;
    std::int32_t m_size = 0;
};

} // namespace kvscope::kv
