// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/kv/free_list.h"

#include "engine/base/check.h"

namespace kvscope::kv {

FreeList::FreeList(std::int32_t numBlocks)
    : m_next(static_cast<std::size_t>(numBlocks), kOutside)
    , m_previous(static_cast<std::size_t>(numBlocks), kOutside) {}

void FreeList::insertBefore(BlockId position, BlockId block) {
    KV_CHECK(!contains(block), "a block entered the free list twice");
    KV_CHECK(!position.valid() || contains(position), "a block queues up before one that is not in the free list");
    const std::int32_t id = block.value();
    const std::int32_t next = position.valid() ? position.value() : kNone;
    const std::int32_t previous = position.valid() ? m_previous[at(position)] : m_tail;
    m_next[at(block)] = next;
    m_previous[at(block)] = previous;
    (previous == kNone ? m_head : m_next[static_cast<std::size_t>(previous)]) = id;
    (next == kNone ? m_tail : m_previous[static_cast<std::size_t>(next)]) = id;
    ++m_size;
}

void FreeList::remove(BlockId block) {
    KV_CHECK(contains(block), "a block left the free list that was not in it");
    const std::int32_t next = m_next[at(block)];
    const std::int32_t previous = m_previous[at(block)];
    (previous == kNone ? m_head : m_next[static_cast<std::size_t>(previous)]) = next;
    (next == kNone ? m_tail : m_previous[static_cast<std::size_t>(next)]) = previous;
    m_next[at(block)] = kOutside;
    m_previous[at(block)] = kOutside;
    --m_size;
}

} // namespace kvscope::kv
