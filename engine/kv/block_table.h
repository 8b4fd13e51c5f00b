// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "engine/base/ids.h"

namespace kvscope::kv {

class KvCache;

/// A sequence's list of blocks. The handle owns one reference on each of them and gives them back when it dies, last
/// block first, so that the least shareable tail is evicted first. It can be moved but not copied: freeing twice cannot
/// be written down.
///
/// Thread: the engine thread. Must not outlive its KvCache.
class BlockTable {
public:
    BlockTable() = default;
    BlockTable(BlockTable&& other) noexcept
        : m_cache(std::exchange(other.m_cache, nullptr))
        , m_record(std::exchange(other.m_record, -1)) {}
    BlockTable& operator=(BlockTable&& other) noexcept {
        if (this != &other) {
            release();
            m_cache = std::exchange(other.m_cache, nullptr);
            m_record = std::exchange(other.m_record, -1);
        }
        return *this;
    }
    BlockTable(const BlockTable&) = delete;
    BlockTable& operator=(const BlockTable&) = delete;
    ~BlockTable() { release(); }

    explicit operator bool() const { return m_cache != nullptr; }
    /// In order of position; invalid where the window has passed them (CacheConfig::sinkWindow). Valid until the next
    /// call on the cache.
    std::span<const BlockId> blocks() const;
    std::int32_t heldBlocks() const; ///< of these, the valid ones
    /// With a window group: the companions of the leading blocks, invalid where the window has passed them or none is
    /// needed yet. Valid until the next call on the cache.
    std::span<const BlockId> windowBlocks() const;
    /// Tokens whose K/V is in the blocks. The blocks may have room for more (`KvCache::grow`).
    std::int64_t tokens() const;
    OwnerId owner() const;
    /// Where the block being filled lies while it is filled (CacheConfig::tailSlots); -1 = the table has none.
    std::int32_t tailSlot() const;
    /// Gives everything back now; the handle is empty afterwards. Does nothing on an empty handle.
    void release() noexcept;

private:
    friend class KvCache;
    BlockTable(KvCache* cache, std::int32_t record) : m_cache(cache), m_record(record) {}
    KvCache* m_cache = nullptr;
    std::int32_t m_record = -1;
};

/// Keeps blocks from being evicted as long as it lives. Independent of any table.
class PinnedBlocks {
public:
    PinnedBlocks() = default;
    PinnedBlocks(PinnedBlocks&& other) noexcept
        : m_cache(std::exchange(other.m_cache, nullptr))
        , m_record(std::exchange(other.m_record, -1)) {}
    PinnedBlocks& operator=(PinnedBlocks&& other) noexcept {
        if (this != &other) {
            release();
            m_cache = std::exchange(other.m_cache, nullptr);
            m_record = std::exchange(other.m_record, -1);
        }
        return *this;
    }
    PinnedBlocks(const PinnedBlocks&) = delete;
    PinnedBlocks& operator=(const PinnedBlocks&) = delete;
    ~PinnedBlocks() { release(); }

    explicit operator bool() const { return m_cache != nullptr; }
    std::span<const BlockId> blocks() const;
    void release() noexcept;

private:
    friend class KvCache;
    PinnedBlocks(KvCache* cache, std::int32_t record) : m_cache(cache), m_record(record) {}
    KvCache* m_cache = nullptr;
    std::int32_t m_record = -1;
};

} // namespace kvscope::kv
