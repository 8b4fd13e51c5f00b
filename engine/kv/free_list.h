// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/ids.h"
#include "engine/kv/rank_set.h"

namespace kvscope::kv {

/// The blocks without references in the order in which they will be taken: empty ones first, then cached ones by rank,
/// the lowest in front, equal ranks in the order in which they came. Doubly linked through two arrays, so that a cached
/// block that is hit leaves the middle in O(1); beside it stands the last block of each rank that occurs, so that a
/// block finds its place in a handful of operations, however long the list is. Nothing is allocated after construction.
class FreeList {
public:
    /// The ranks in the list at one time differ by less than this. Only their differences matter: they may grow for
    /// ever.
    static constexpr std::uint64_t kRankSpan = RankSet::kSize;

    /// Nothing is in the list at first.
    explicit FreeList(std::int32_t numBlocks);

    std::int32_t size() const { return m_size; }
    bool contains(BlockId block) const { return isBlock(block) && m_next[at(block)] != kOutside; }
    /// Invalid when empty.
    BlockId front() const { return BlockId(m_head); }
    /// The block behind `block`; invalid at the end.
    BlockId after(BlockId block) const { return BlockId(m_next[at(block)]); }
    BlockId before(BlockId block) const { return BlockId(m_previous[at(block)]); }
    /// Of a cached block that is, or was last, in the list.
    std::uint64_t rank(BlockId block) const { return m_rank[at(block)]; }
    bool isCached(BlockId block) const { return contains(block) && m_rank[at(block)] != kEmptyRank; }

    /// An empty block: the next to be taken.
    void pushFront(BlockId block);
    /// A cached block, behind all cached ones whose rank is not higher.
    void insert(BlockId block, std::uint64_t rank);
    void remove(BlockId block);

    /// The marks of the last block of each rank, by recount; throws BrokenInvariant.
    void checkMarks() const;

private:
    static constexpr std::int32_t kOutside = -2;
    static constexpr std::int32_t kNone = -1; ///< the value of an invalid BlockId
    static constexpr std::uint64_t kEmptyRank = ~std::uint64_t(0);
    bool isBlock(BlockId block) const { return static_cast<std::size_t>(block.value()) < m_next.size(); }
    static std::size_t at(BlockId block) { return static_cast<std::size_t>(block.value()); }
    static std::int32_t mark(std::uint64_t rank) { return static_cast<std::int32_t>(rank % kRankSpan); }

    void link(BlockId behind, BlockId block);
    BlockId placeOf(std::uint64_t rank) const;
    BlockId firstCached() const;

    std::vector<std::int32_t> m_next;
    std::vector<std::int32_t> m_previous;
    std::vector<std::uint64_t> m_rank;      ///< kEmptyRank = an empty block
    std::vector<std::int32_t> m_lastOfRank; ///< by mark; valid where m_marks has it
    RankSet m_marks;                        ///< of the ranks in the list
    std::int32_t m_head = kNone;
    std::int32_t m_tail = kNone;
    std::int32_t m_lastEmpty = kNone;
    std::int32_t m_size = 0;
};

} // namespace kvscope::kv
