// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/kv/window_group.h"

#include <algorithm>

#include "engine/base/check.h"

namespace kvscope::kv {

namespace {

// Ranks in the free list: the lower goes first, equal ones in the order in which they came.
constexpr std::uint64_t kPassed = 0;
constexpr std::uint64_t kReleased = 1;

} // namespace

WindowGroup::WindowGroup(std::int32_t window, std::int32_t numBlocks, std::int32_t poolBlocks, std::int32_t blockSize)
    : m_window(window)
    , m_blockSize(blockSize)
    , m_companions(static_cast<std::size_t>(poolBlocks))
    , m_owners(static_cast<std::size_t>(std::min(numBlocks, poolBlocks)))
    , m_references(m_owners.size(), 0)
    , m_free(static_cast<std::int32_t>(m_owners.size())) {
    KV_CHECK(window > 0 && numBlocks > 0, "a window group needs a window and blocks");
    for (std::int32_t i = this->numBlocks() - 1; i >= 0; --i)
        m_free.pushFront(BlockId(i));
}

BlockId WindowGroup::take(BlockId block) {
    KV_CHECK(!companion(block).valid(), "a block was to get a second companion");
    const BlockId taken = m_free.front();
    KV_CHECK(taken.valid(), "the window group has no room: its size was estimated too low");
    m_free.remove(taken);
    if (const BlockId before = m_owners[at(taken)]; before.valid()) {
        m_companions[at(before)] = BlockId();
        --m_cached;
        ++m_evictions;
    }
    m_companions[at(block)] = taken;
    m_owners[at(taken)] = block;
    m_references[at(taken)] = 1;
    return taken;
}

BlockId WindowGroup::hold(BlockId block) {
    const BlockId held = companion(block);
    KV_CHECK(held.valid(), "a companion was to be read that is not there any more");
    if (m_references[at(held)]++ == 0) {
        m_free.remove(held);
        --m_cached;
    }
    return held;
}

void WindowGroup::drop(BlockId block, bool passed) {
    const BlockId dropped = companion(block);
    KV_CHECK(dropped.valid() && m_references[at(dropped)] > 0, "a companion was given back that nobody held");
    if (--m_references[at(dropped)] > 0)
        return;
    m_free.insert(dropped, passed ? kPassed : kReleased);
    ++m_cached;
}

void WindowGroup::move(BlockId from, BlockId to) {
    const BlockId moved = companion(from);
    KV_CHECK(moved.valid() && !companion(to).valid(), "a companion moved to a block that has one, or from none");
    m_companions[at(from)] = BlockId();
    m_companions[at(to)] = moved;
    m_owners[at(moved)] = to;
}

void WindowGroup::forget(BlockId block) {
    const BlockId forgotten = companion(block);
    if (!forgotten.valid())
        return;
    KV_CHECK(m_references[at(forgotten)] == 0, "a block lost its content while its companion is read");
    m_companions[at(block)] = BlockId();
    m_owners[at(forgotten)] = BlockId();
    m_free.remove(forgotten);
    m_free.pushFront(forgotten);
    --m_cached;
}

void WindowGroup::checkInvariants() const {
    std::int32_t cachedBlocks = 0, length = 0;
    for (std::int32_t i = 0; i < numBlocks(); ++i) {
        const BlockId block(i), owner = ownerOf(block);
        KV_CHECK(m_free.contains(block) == (references(block) == 0),
                 "a companion is in the free list although it is held, or the other way round");
        KV_CHECK(owner.valid() || references(block) == 0, "a companion of no block is held");
        KV_CHECK(!owner.valid() || companion(owner) == block, "a companion and its block do not know each other");
        KV_CHECK(references(block) > 0 || m_free.isCached(block) == owner.valid(),
                 "a companion queues up as something else than it is");
        cachedBlocks += owner.valid() && references(block) == 0 ? 1 : 0;
    }
    for (BlockId block = m_free.front(); block.valid(); block = m_free.after(block))
        KV_CHECK(++length <= m_free.size(), "the free list of the window group has a cycle");
    KV_CHECK(length == m_free.size() && cachedBlocks == m_cached,
             "the window group's counts are not those of a recount");
    m_free.checkMarks();
    for (std::size_t i = 0; i < m_companions.size(); ++i)
        KV_CHECK(!m_companions[i].valid() || m_owners[at(m_companions[i])] == BlockId(static_cast<std::int32_t>(i)),
                 "a block names a companion that is another's");
}

} // namespace kvscope::kv
