// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <span>

#include "engine/base/ids.h"
#include "engine/kv/record_slots.h"

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
    explicit operator bool() const { return m_own.keeper() != nullptr; }
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
    void release() noexcept { m_own.release(); }

private:
    friend class KvCache;
    friend class RecordOwner<KvCache, BlockTable>;
    BlockTable(KvCache* cache, std::int32_t record) : m_own(cache, record) {}
    static void giveBack(KvCache& cache, std::int32_t record) noexcept;
    RecordOwner<KvCache, BlockTable> m_own;
};

/// Keeps blocks from being evicted as long as it lives. Independent of any table.
class PinnedBlocks {
public:
    PinnedBlocks() = default;
    explicit operator bool() const { return m_own.keeper() != nullptr; }
    std::span<const BlockId> blocks() const;
    void release() noexcept { m_own.release(); }

private:
    friend class KvCache;
    friend class RecordOwner<KvCache, PinnedBlocks>;
    PinnedBlocks(KvCache* cache, std::int32_t record) : m_own(cache, record) {}
    static void giveBack(KvCache& cache, std::int32_t record) noexcept;
    RecordOwner<KvCache, PinnedBlocks> m_own;
};

} // namespace kvscope::kv
