// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/kv/free_list.h"

#include <algorithm>

#include "engine/base/check.h"

namespace kvscope::kv {

FreeList::FreeList(std::int32_t numBlocks)
    : m_next(static_cast<std::size_t>(numBlocks), kOutside)
    , m_previous(static_cast<std::size_t>(numBlocks), kOutside)
    , m_rank(static_cast<std::size_t>(numBlocks), kEmptyRank)
    , m_lastOfRank(RankSet::kSize, kNone) {}

/// `behind` invalid = at the front.
void FreeList::link(BlockId behind, BlockId block) {
    KV_CHECK(isBlock(block), "something entered the free list that is no block of the pool");
    KV_CHECK(!contains(block), "a block entered the free list twice");
    const std::int32_t id = block.value();
    const std::int32_t previous = behind.value();
    const std::int32_t next = behind.valid() ? m_next[at(behind)] : m_head;
    m_next[at(block)] = next;
    m_previous[at(block)] = previous;
    (previous == kNone ? m_head : m_next[static_cast<std::size_t>(previous)]) = id;
    (next == kNone ? m_tail : m_previous[static_cast<std::size_t>(next)]) = id;
    ++m_size;
}

void FreeList::pushFront(BlockId block) {
    link(BlockId(), block);
    m_rank[at(block)] = kEmptyRank;
    if (m_lastEmpty == kNone)
        m_lastEmpty = block.value();
}

BlockId FreeList::firstCached() const {
    return BlockId(m_lastEmpty == kNone ? m_head : m_next[static_cast<std::size_t>(m_lastEmpty)]);
}

/// The block behind which this rank queues up. Marks are ranks modulo the span, so the search goes down from the
/// rank's mark to that of the lowest rank in the list, round the end of the set where that lies above.
BlockId FreeList::placeOf(std::uint64_t rank) const {
    const BlockId first = firstCached();
    if (!first.valid())
        return BlockId(m_lastEmpty);
    const std::uint64_t lowest = m_rank[at(first)];
    const std::uint64_t highest = m_rank[static_cast<std::size_t>(m_tail)];
    KV_CHECK(std::max(rank, highest) - std::min(rank, lowest) < kRankSpan,
             "the eviction policy gave a rank too far from the others");
    if (rank < lowest)
        return BlockId(m_lastEmpty);
    if (rank >= highest)
        return BlockId(m_tail);
    std::int32_t found = m_marks.floor(mark(rank));
    if (found == RankSet::kNone)
        found = m_marks.floor(RankSet::kSize - 1);
    return BlockId(m_lastOfRank[static_cast<std::size_t>(found)]);
}

void FreeList::insert(BlockId block, std::uint64_t rank) {
    KV_CHECK(rank != kEmptyRank, "the eviction policy gave a cached block the rank of empty ones");
    link(placeOf(rank), block);
    m_rank[at(block)] = rank;
    m_lastOfRank[static_cast<std::size_t>(mark(rank))] = block.value();
    m_marks.insert(mark(rank));
}

void FreeList::remove(BlockId block) {
    KV_CHECK(contains(block), "a block left the free list that was not in it");
    const std::int32_t next = m_next[at(block)];
    const std::int32_t previous = m_previous[at(block)];
    const std::uint64_t rank = m_rank[at(block)];
    if (rank == kEmptyRank) {
        if (m_lastEmpty == block.value())
            m_lastEmpty = previous;
    } else if (m_lastOfRank[static_cast<std::size_t>(mark(rank))] == block.value()) {
        if (previous != kNone && m_rank[static_cast<std::size_t>(previous)] == rank)
            m_lastOfRank[static_cast<std::size_t>(mark(rank))] = previous;
        else
            m_marks.erase(mark(rank));
    }
    (previous == kNone ? m_head : m_next[static_cast<std::size_t>(previous)]) = next;
    (next == kNone ? m_tail : m_previous[static_cast<std::size_t>(next)]) = previous;
    m_next[at(block)] = kOutside;
    m_previous[at(block)] = kOutside;
    --m_size;
}

void FreeList::checkMarks() const {
    std::int32_t length = 0;
    std::int32_t lastEmpty = kNone;
    std::uint64_t before = 0;
    for (BlockId block = front(); block.valid(); block = after(block)) {
        KV_CHECK(++length <= m_size, "the free list has a cycle");
        const std::uint64_t own = m_rank[at(block)];
        if (own == kEmptyRank) {
            lastEmpty = block.value();
            continue;
        }
        KV_CHECK(own >= before, "cached blocks do not stand in the order of their ranks");
        before = own;
        const BlockId next = after(block);
        if (!next.valid() || m_rank[at(next)] != own)
            KV_CHECK(m_marks.contains(mark(own)) && m_lastOfRank[static_cast<std::size_t>(mark(own))] == block.value(),
                     "the mark of a rank does not lead to its last block");
    }
    KV_CHECK(lastEmpty == m_lastEmpty, "empty blocks do not stand before all cached ones");
}

} // namespace kvscope::kv
