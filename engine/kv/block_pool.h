// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/ids.h"
#include "engine/kv/allocator.h"
#include "engine/kv/block_facts.h"
#include "engine/kv/block_key.h"
#include "engine/kv/eviction_policy.h"
#include "engine/kv/free_list.h"
#include "engine/kv/hole_list.h"
#include "engine/kv/owner_numbers.h"
#include "engine/kv/reuse_facts.h"

namespace kvscope::kv {

/// What content a block holds.
struct BlockIdentity {
    BlockKey key; ///< only while findable
    /// Never used twice in a pool: a block gets a new one whenever it is taken for new content. So "the same block with
    /// the same generation" means "the same content", with no hash involved.
    std::uint64_t generation = 0;
    std::uint64_t parentGeneration = 0; ///< generation of the block before it in the sequence; 0 = it is the first
    BlockId parent;                     ///< which held that generation; it may hold something else by now
    std::uint64_t adapter = 0;          ///< what its content was computed with
};

/// How many blocks are in each drawn state, by BlockState.
using StateCounts = std::array<std::uint32_t, kBlockStateCount>;

/// The fixed array of blocks: facts, tokens, free list and incremental counts. Knows nothing of tables or the index;
/// every change goes through it, so that the counts cannot drift. Allocates nothing after construction, except when an
/// owner is new.
///
/// Thread: the engine thread.
class BlockPool {
public:
    BlockPool(std::int32_t numBlocks, std::int32_t blockSize, std::unique_ptr<EvictionPolicy> eviction,
              AllocatorKind allocator = AllocatorKind::Paged);

    std::int32_t numBlocks() const { return static_cast<std::int32_t>(m_facts.size()); }
    std::int32_t blockSize() const { return m_blockSize; }
    const BlockFacts& facts(BlockId block) const { return m_facts[at(block)]; }
    std::span<const BlockFacts> allFacts() const { return m_facts; } ///< by block id
    const BlockIdentity& identity(BlockId block) const { return m_identities[at(block)]; }
    BlockState state(BlockId block) const { return drawnState(facts(block)); }
    std::span<const TokenId> tokens(BlockId block) const; ///< (fill)
    /// A hint: this block is asked for soon.
    void prefetch(BlockId block) const {
        __builtin_prefetch(&m_facts[at(block)]);
        __builtin_prefetch(&m_identities[at(block)]);
        __builtin_prefetch(&m_reuse[at(block)]);
        __builtin_prefetch(&m_tokens[at(block) * static_cast<std::size_t>(m_blockSize)]);
    }
    OwnerId owner(BlockId block) const { return m_owners.ownerOf(facts(block).owner); }
    const OwnerNumbers& owners() const { return m_owners; }
    const EvictionPolicy& eviction() const { return *m_eviction; }
    const ReuseFacts& reuse(BlockId block) const { return m_reuse[at(block)]; }
    const TurnoverClock& turnover() const { return m_turnover; }

    std::int32_t available() const { return m_free.size(); } ///< empty + cached
    const FreeList& freeList() const { return m_free; }
    /// The same blocks as extents; null unless the allocator is the contiguous one.
    const HoleList* holes() const { return m_holes ? &*m_holes : nullptr; }
    const StateCounts& counts() const { return m_counts; }
    std::int32_t referencedBlocks() const { return numBlocks() - m_free.size(); }
    std::uint64_t usedSlots() const { return m_usedSlots; } ///< filled slots of referenced blocks, each block once
    /// Moves with every change of any block; equal epoch = equal map.
    std::uint64_t epoch() const { return m_epoch; }

    // ---- changes ----

    /// Takes an empty block for new content; it has one reference then.
    void take(BlockId block, OwnerId owner, std::int32_t firstPosition, BlockId parent, std::uint64_t adapter,
              Nanos now);
    /// One more reader; takes a cached block out of the free list. The owner becomes the one drawn.
    void addReference(BlockId block, OwnerId owner, Nanos now);
    /// A reference that is no reader (a copy to be made): the owner stays.
    void holdReference(BlockId block);
    /// Without references and pins: a findable block becomes cached, any other becomes empty.
    void dropReference(BlockId block);
    void addPin(BlockId block);
    void dropPin(BlockId block);
    /// Writes tokens from `slot` on; the fill ends behind them. The block must be unsealed, with one reference.
    void write(BlockId block, std::int32_t slot, std::span<const TokenId> tokens, Nanos now);
    /// Forgets the slots from `fill` on (unsealed blocks).
    void shorten(BlockId block, std::int32_t fill);
    /// Back to `fill` slots whatever was written behind them, sealed or not (contiguous allocator, where nothing is
    /// findable); with none it is only reserved.
    void rewind(BlockId block, std::int32_t fill);
    void seal(BlockId block);
    /// The index leads here from now on; `parent` invalid = it is the first of its sequence.
    void makeFindable(BlockId block, const BlockKey& key, BlockId parent);
    /// Its content is that of `generation`, which was here before and lies in a tier below. Before it is made findable.
    void adoptGeneration(BlockId block, std::uint64_t generation);
    /// While a tier's bytes come in or go out; the block has a reference.
    void setInTransfer(BlockId block, bool moves);
    /// An unreferenced findable block loses its content and is the next to be taken. The index must have dropped it.
    /// `forRoom`: it was the next to go, because somebody needs its room; this moves the turnover clock.
    void forget(BlockId block, bool forRoom);
    /// Invalid ids are passed over.
    void markRead(std::span<const BlockId> blocks, Nanos now);

private:
    static std::size_t at(BlockId block) { return static_cast<std::size_t>(block.value()); }
    template <class Change> void change(BlockId block, Change&& apply);
    void setOwner(BlockFacts& facts, OwnerId owner);
    void enqueue(BlockId block);
    void cacheByRank(BlockId block);
    std::uint64_t generationOf(BlockId parent) const { return parent.valid() ? identity(parent).generation : 0; }

    std::int32_t m_blockSize;
    std::vector<BlockFacts> m_facts;
    std::vector<BlockIdentity> m_identities;
    std::vector<ReuseFacts> m_reuse;
    std::vector<std::uint64_t> m_behind; ///< see EvictionFacts
    std::vector<TokenId> m_tokens;       ///< (numBlocks, blockSize)
    std::unique_ptr<EvictionPolicy> m_eviction;
    FreeList m_free;
    std::optional<HoleList> m_holes;
    TurnoverClock m_turnover;
    OwnerNumbers m_owners;
    StateCounts m_counts{};
    std::uint64_t m_usedSlots = 0;
    std::uint64_t m_epoch = 0;
    std::uint64_t m_nextGeneration = 1;
};

} // namespace kvscope::kv
