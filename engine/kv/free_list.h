// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/ids.h"

namespace kvscope::kv {

/// The blocks without references in the order in which they will be taken: empty ones first, then cached ones, the next
/// to be evicted in front. Doubly linked through two arrays, so that a cached block that is hit leaves the middle in
/// O(1) and nothing is ever allocated.
class FreeList {
public:
    explicit FreeList(std::int32_t numBlocks);

    std::int32_t size() const { return m_size; }
    bool contains(BlockId block) const { return m_next[at(block)] != kOutside; }
    /// Invalid when empty.
    BlockId front() const { return BlockId(m_head); }
    /// The block behind `block`; invalid at the end.
    BlockId after(BlockId block) const { return BlockId(m_next[at(block)]); }
    BlockId before(BlockId block) const { return BlockId(m_previous[at(block)]); }

    void pushFront(BlockId block) { insertBefore(BlockId(m_head), block); }
    /// `position` invalid = at the end.
    void insertBefore(BlockId position, BlockId block);
    void remove(BlockId block);

private:
    static constexpr std::int32_t kOutside = -2;
    static constexpr std::int32_t kNone = -1; ///< the value of an invalid BlockId
    static std::size_t at(BlockId block) { return static_cast<std::size_t>(block.value()); }

    std::vector<std::int32_t> m_next;
    std::vector<std::int32_t> m_previous;
    std::int32_t m_head = kNone;
    std::int32_t m_tail = kNone;
    std::int32_t m_size = 0;
};

} // namespace kvscope::kv
