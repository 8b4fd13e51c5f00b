// SPDX-License-Identifier: GPL-3.0-or-later
//
// The invariants of the cache, by recount from tables, pins and copies still to be made.
#include <algorithm>
#include <string>

#include "engine/base/check.h"
#include "engine/kv/kv_cache.h"

namespace kvscope::kv {

namespace {

std::string named(BlockId block, const char* sentence) {
    return "block " + std::to_string(block.value()) + ": " + sentence;
}

} // namespace

void KvCache::checkInvariants() const {
    rethrowBroken();
    std::vector<std::int32_t> references(static_cast<std::size_t>(numBlocks()), 0);
    std::vector<std::int32_t> pins(static_cast<std::size_t>(numBlocks()), 0);
    checkTables(references);
    for (const PinRecord& record : m_pins)
        for (const BlockId block : record.blocks)
            ++pins[static_cast<std::size_t>(block.value())];
    for (const BlockCopy& copy : m_pendingCopies) {
        ++references[static_cast<std::size_t>(copy.from.value())];
        KV_CHECK(m_pool.facts(copy.to).count() > 0, named(copy.to, "a copy is to be made for nobody"));
    }
    for (std::int32_t i = 0; i < numBlocks(); ++i) {
        const BlockFacts& facts = m_pool.facts(BlockId(i));
        KV_CHECK(facts.references == references[static_cast<std::size_t>(i)] &&
                     facts.pins == pins[static_cast<std::size_t>(i)],
                 named(BlockId(i), "its references are not its table entries, pins and copies"));
    }
    checkTails();
    if (m_window)
        checkWindow();
    checkFreeList();
    checkCounts();
    checkIndex();
    if (contiguous())
        checkExtents();
    if (m_host)
        checkHost();
}

void KvCache::checkTails() const {
    std::vector<std::int32_t> holders(static_cast<std::size_t>(m_tailSlots), 0);
    for (const std::int32_t slot : m_freeTails)
        ++holders[static_cast<std::size_t>(slot)];
    for (const TableRecord& table : m_tables) {
        if (table.tailSlot >= 0)
            ++holders[static_cast<std::size_t>(table.tailSlot)];
        KV_CHECK(table.live || table.tailSlot < 0, "a released table still has a tail slot");
        KV_CHECK(!hasTails() || table.tokens % blockSize() == 0 || !table.live || table.tailSlot >= 0,
                 "a table has a half filled block but no tail slot");
    }
    KV_CHECK(std::all_of(holders.begin(), holders.end(), [](std::int32_t count) { return count == 1; }),
             "a tail slot is lost, or has two tables");
    for (const BlockCopy& copy : m_pendingCopies)
        KV_CHECK(!hasTails() || copy.slotCount == blockSize(), "a copy is to be made of a block that lies in a tail");
}

void KvCache::checkTables(std::vector<std::int32_t>& references) const {
    for (const TableRecord& table : m_tables) {
        if (!table.live) {
            KV_CHECK(table.blocks.empty(), "a released table still lists blocks");
            continue;
        }
        checkSinks(table);
        KV_CHECK(table.tokens <= static_cast<std::int64_t>(table.blocks.size()) * blockSize(),
                 "a sequence has more tokens than its blocks have slots");
        std::int64_t left = table.tokens;
        for (std::size_t i = 0; i < table.blocks.size(); ++i) {
            const BlockId block = table.blocks[i];
            const std::int64_t here = std::min<std::int64_t>(left, blockSize());
            left -= here;
            if (!block.valid())
                continue;
            ++references[static_cast<std::size_t>(block.value())];
            const BlockFacts& facts = m_pool.facts(block);
            KV_CHECK(facts.fill >= here, named(block, "it holds fewer tokens than its table counts"));
            KV_CHECK(facts.firstPosition == static_cast<std::int32_t>(i) * blockSize(),
                     named(block, "it stands at another place of the table than it was filled for"));
            KV_CHECK(here < blockSize() || facts.sealed, named(block, "it is full but not sealed"));
            KV_CHECK(here > 0 || facts.count() == 1, named(block, "room for later tokens is shared"));
            KV_CHECK(std::count(table.blocks.begin(), table.blocks.end(), block) == 1 || numBlocks() > 4096,
                     named(block, "it is listed twice in one table"));
        }
    }
}

void KvCache::checkFreeList() const {
    const FreeList& list = m_pool.freeList();
    std::int32_t length = 0;
    bool cachedSeen = false;
    BlockId previous;
    for (BlockId block = list.front(); block.valid(); block = list.after(block)) {
        KV_CHECK(++length <= list.size(), "the free list has a cycle");
        KV_CHECK(list.before(block) == previous, named(block, "its links in the free list disagree"));
        KV_CHECK(m_pool.facts(block).count() == 0, named(block, "it is in the free list although it is referenced"));
        cachedSeen |= m_pool.facts(block).findable;
        KV_CHECK(list.isCached(block) == m_pool.facts(block).findable,
                 named(block, "it queues up as something else than it is"));
        KV_CHECK(cachedSeen == m_pool.facts(block).findable, named(block, "it is empty but queues behind cached ones"));
        previous = block;
    }
    KV_CHECK(length == list.size(), "the free list is not as long as it is counted");
    list.checkMarks();
    for (std::int32_t i = 0; i < numBlocks(); ++i)
        KV_CHECK(list.contains(BlockId(i)) == (m_pool.facts(BlockId(i)).count() == 0),
                 named(BlockId(i), "it has no references but is not in the free list"));
}

void KvCache::checkCounts() const {
    StateCounts counts{};
    std::uint64_t usedSlots = 0;
    for (const BlockFacts& facts : m_pool.allFacts()) {
        ++counts[static_cast<std::size_t>(drawnState(facts))];
        if (facts.count() > 0)
            usedSlots += facts.fill;
    }
    KV_CHECK(counts == m_pool.counts(), "the counted states are not those of a recount");
    KV_CHECK(usedSlots == m_pool.usedSlots(), "the counted slots are not those of a recount");
    KV_CHECK(static_cast<std::int32_t>(counts[static_cast<std::size_t>(BlockState::Empty)] +
                                       counts[static_cast<std::size_t>(BlockState::Cached)]) == available(),
             "available is not empty + cached");
}

void KvCache::checkIndex() const {
    std::int32_t findable = 0;
    for (std::int32_t i = 0; i < numBlocks(); ++i) {
        const BlockFacts& facts = m_pool.facts(BlockId(i));
        if (!facts.findable)
            continue;
        ++findable;
        KV_CHECK(facts.sealed, named(BlockId(i), "it can be found but is not sealed"));
        KV_CHECK(m_index.find(m_pool.identity(BlockId(i)).key) == i,
                 named(BlockId(i), "it counts as findable but the index leads elsewhere"));
    }
    KV_CHECK(findable == m_index.size(), "the index has entries that no block carries");
    KV_CHECK(m_prefixCaching || findable == 0, "something was published although prefix caching is off");
}

void KvCache::checkExtents() const {
    for (const TableRecord& table : m_tables)
        for (std::size_t i = 1; i < table.blocks.size(); ++i)
            KV_CHECK(table.blocks[i].value() == table.blocks[i - 1].value() + 1,
                     named(table.blocks[i], "it does not lie behind the block before it in its extent"));
    std::vector<Extent> holes;
    for (std::int32_t i = 0; i < numBlocks(); ++i) {
        const BlockFacts& facts = m_pool.facts(BlockId(i));
        KV_CHECK(facts.reserved == (facts.count() > 0 && facts.fill == 0),
                 named(BlockId(i), "it counts as reserved although it is not, or the other way round"));
        if (facts.count() > 0)
            continue;
        if (holes.empty() || holes.back().first + holes.back().count < i)
            holes.push_back({i, 0});
        ++holes.back().count;
    }
    KV_CHECK(holes == m_pool.holes()->holes(), "the holes are not those of a recount");
    KV_CHECK(m_pool.holes()->total() == available(), "the holes do not sum to what is available");
}

} // namespace kvscope::kv
