// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/kv/block_pool.h"

#include <algorithm>
#include <utility>

#include "engine/base/check.h"

namespace kvscope::kv {

BlockPool::BlockPool(std::int32_t numBlocks, std::int32_t blockSize, std::unique_ptr<EvictionPolicy> eviction,
                     AllocatorKind allocator)
    : m_blockSize(blockSize)
    , m_facts(static_cast<std::size_t>(numBlocks))
    , m_identities(static_cast<std::size_t>(numBlocks))
    , m_reuse(static_cast<std::size_t>(numBlocks))
    , m_behind(static_cast<std::size_t>(numBlocks))
    , m_tokens(static_cast<std::size_t>(numBlocks) * static_cast<std::size_t>(blockSize))
    , m_eviction(std::move(eviction))
    , m_free(numBlocks)
    , m_turnover(numBlocks) {
    KV_CHECK(numBlocks > 0, "a pool needs at least one block");
    KV_CHECK(blockSize > 0 && blockSize <= 64, "a block has 1 to 64 slots");
    if (allocator == AllocatorKind::Contiguous)
        m_holes.emplace(numBlocks);
    for (std::int32_t i = numBlocks; i > 0; --i)
        m_free.pushFront(BlockId(i - 1));
    m_counts[static_cast<std::size_t>(BlockState::Empty)] = static_cast<std::uint32_t>(numBlocks);
}

std::span<const TokenId> BlockPool::tokens(BlockId block) const {
    return {&m_tokens[at(block) * static_cast<std::size_t>(m_blockSize)], facts(block).fill};
}

/// The only way to change facts: counts, used slots and epoch follow.
template <class Change> void BlockPool::change(BlockId block, Change&& apply) {
    BlockFacts& facts = m_facts[at(block)];
    const BlockState before = drawnState(facts);
    if (facts.count() > 0)
        m_usedSlots -= facts.fill;
    apply(facts);
    if (facts.count() > 0)
        m_usedSlots += facts.fill;
    --m_counts[static_cast<std::size_t>(before)];
    ++m_counts[static_cast<std::size_t>(drawnState(facts))];
    ++m_epoch;
}

void BlockPool::setOwner(BlockFacts& facts, OwnerId owner) {
    if (facts.owner != 0 && m_owners.ownerOf(facts.owner) == owner)
        return;
    const std::uint16_t number = m_owners.acquire(owner);
    m_owners.release(facts.owner);
    facts.owner = number;
}

void BlockPool::take(BlockId block, OwnerId owner, std::int32_t firstPosition, BlockId parent, std::uint64_t adapter,
                     Nanos now) {
    KV_CHECK(block.valid() && m_free.contains(block), "a block was taken that is not free");
    KV_CHECK(state(block) == BlockState::Empty, "a block was taken that still held something findable");
    m_free.remove(block);
    if (m_holes)
        m_holes->take(block);
    change(block, [&](BlockFacts& facts) {
        facts.references = 1;
        facts.firstPosition = firstPosition;
        facts.lastRead = now;
        setOwner(facts, owner);
    });
    m_identities[at(block)] = {{}, m_nextGeneration++, generationOf(parent), parent, adapter};
    m_reuse[at(block)] = ReuseFacts::fresh(m_turnover.ticks());
    m_behind[at(block)] = 0;
}

void BlockPool::addReference(BlockId block, OwnerId owner, Nanos now) {
    holdReference(block);
    change(block, [&](BlockFacts& facts) {
        facts.lastRead = now;
        setOwner(facts, owner);
    });
    m_reuse[at(block)].use(m_turnover.ticks());
}

void BlockPool::holdReference(BlockId block) {
    if (facts(block).count() == 0) {
        KV_CHECK(facts(block).findable, "an empty block was referenced as if it held something");
        m_free.remove(block);
    }
    change(block, [](BlockFacts& facts) { ++facts.references; });
}

void BlockPool::dropReference(BlockId block) {
    KV_CHECK(facts(block).references > 0, "a block lost a reference that nobody held");
    change(block, [](BlockFacts& facts) { --facts.references; });
    if (facts(block).count() == 0)
        enqueue(block);
}

void BlockPool::addPin(BlockId block) {
    KV_CHECK(facts(block).sealed && facts(block).count() > 0, "only a sealed block in use can be pinned");
    change(block, [](BlockFacts& facts) { ++facts.pins; });
}

void BlockPool::dropPin(BlockId block) {
    KV_CHECK(facts(block).pins > 0, "a block lost a pin that nobody held");
    change(block, [](BlockFacts& facts) { --facts.pins; });
    if (facts(block).count() == 0)
        enqueue(block);
}

void BlockPool::enqueue(BlockId block) {
    if (facts(block).findable) {
        cacheByRank(block);
        return;
    }
    change(block, [this](BlockFacts& facts) {
        m_owners.release(facts.owner);
        facts = BlockFacts{};
    });
    m_free.pushFront(block);
    if (m_holes)
        m_holes->give(block);
}

/// Of the blocks of a sequence the last come first (BlockTable::release), so a block knows by now what is cached behind
/// it.
void BlockPool::cacheByRank(BlockId block) {
    ReuseFacts& reuse = m_reuse[at(block)];
    reuse.rest(m_turnover.ticks());
    const std::uint64_t rank = m_eviction->rank({reuse, facts(block).firstPosition / m_blockSize, m_behind[at(block)]});
    m_free.insert(block, rank);
    const BlockIdentity& own = identity(block);
    if (own.parent.valid() && identity(own.parent).generation == own.parentGeneration)
        m_behind[at(own.parent)] = std::max(m_behind[at(own.parent)], rank);
}

void BlockPool::write(BlockId block, std::int32_t slot, std::span<const TokenId> tokens, Nanos now) {
    const BlockFacts& facts = m_facts[at(block)];
    KV_CHECK(!facts.sealed, "a sealed block was written: its content may be read by others");
    KV_CHECK(facts.count() == 1, "a block was written that others read too");
    KV_CHECK(slot >= 0 && slot <= facts.fill, "a block was written behind a gap");
    const auto end = static_cast<std::size_t>(slot) + tokens.size();
    KV_CHECK(end <= static_cast<std::size_t>(m_blockSize), "a block was written beyond its last slot");
    std::copy(tokens.begin(), tokens.end(),
              m_tokens.begin() + static_cast<std::ptrdiff_t>(at(block)) * m_blockSize + slot);
    change(block, [&](BlockFacts& changed) {
        changed.fill = static_cast<std::uint8_t>(end);
        changed.reserved = changed.reserved && end == 0;
        changed.lastRead = now;
    });
}

void BlockPool::shorten(BlockId block, std::int32_t fill) {
    KV_CHECK(!facts(block).sealed && fill <= facts(block).fill, "only an unsealed block can be shortened");
    change(block, [&](BlockFacts& facts) { facts.fill = static_cast<std::uint8_t>(fill); });
}

void BlockPool::rewind(BlockId block, std::int32_t fill) {
    KV_CHECK(m_holes && facts(block).count() > 0 && fill <= facts(block).fill,
             "only what is written in an extent can be taken back");
    change(block, [&](BlockFacts& facts) {
        facts.fill = static_cast<std::uint8_t>(fill);
        facts.sealed = facts.sealed && fill == m_blockSize;
        facts.reserved = fill == 0;
    });
}

void BlockPool::seal(BlockId block) {
    KV_CHECK(!facts(block).sealed && facts(block).fill == m_blockSize,
             "only a full block can be sealed, and only once");
    change(block, [](BlockFacts& facts) { facts.sealed = true; });
}

void BlockPool::makeFindable(BlockId block, const BlockKey& key, BlockId parent) {
    KV_CHECK(facts(block).sealed && !facts(block).findable, "only a sealed block is published, and only once");
    change(block, [](BlockFacts& facts) { facts.findable = true; });
    m_identities[at(block)].key = key;
    m_identities[at(block)].parent = parent;
    m_identities[at(block)].parentGeneration = generationOf(parent);
    if (parent.valid())
        inherit(m_reuse[at(block)], m_reuse[at(parent)], m_turnover.ticks());
}

void BlockPool::adoptGeneration(BlockId block, std::uint64_t generation) {
    KV_CHECK(facts(block).sealed && !facts(block).findable,
             "only a sealed block that cannot be found changes its name");
    m_identities[at(block)].generation = generation;
}

void BlockPool::setInTransfer(BlockId block, bool moves) {
    KV_CHECK(facts(block).references > 0 && facts(block).inTransfer != moves,
             "a block moves without a reference, or was told twice");
    change(block, [moves](BlockFacts& facts) { facts.inTransfer = moves; });
}

void BlockPool::forget(BlockId block, bool forRoom) {
    KV_CHECK(facts(block).count() == 0 && facts(block).findable, "only a cached block can be evicted");
    if (forRoom)
        m_turnover.countEviction();
    m_free.remove(block);
    change(block, [this](BlockFacts& facts) {
        m_owners.release(facts.owner);
        facts = BlockFacts{};
    });
    m_free.pushFront(block);
}

void BlockPool::markRead(std::span<const BlockId> blocks, Nanos now) {
    for (const BlockId block : blocks)
        if (block.valid())
            m_facts[at(block)].lastRead = now;
    ++m_epoch;
}

} // namespace kvscope::kv
