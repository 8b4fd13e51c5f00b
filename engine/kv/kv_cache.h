// SPDX-License-Identifier: GPL-3.0-or-later
//
// The cache as the scheduler sees it: tables in, tables out. Everything that can run out of room is one all-or-nothing
// call: either the whole need is met, or nothing has changed and the shortage is told in blocks.
//
//   tokens of a sequence      0 ........ reused ........ computed ........ known
//   its block table          [ matched blocks | blocks being filled ]
//   admit()                  matches as many leading full blocks as possible, allocates the rest up to `known`
//   grow()                   makes room for more slots, copies a tail that others read too
//   advance()                after the step: these tokens are written by all layers; full blocks are sealed, published
//
// Thread: the engine thread only. No call waits.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <tl/expected.hpp>

#include "engine/base/clock.h"
#include "engine/base/ids.h"
#include "engine/kv/allocator.h"
#include "engine/kv/block_key.h"
#include "engine/kv/block_pool.h"
#include "engine/kv/block_table.h"
#include "engine/kv/cost_rates.h"
#include "engine/kv/eviction_log.h"
#include "engine/kv/eviction_policy.h"
#include "engine/kv/host_tier.h"
#include "engine/kv/key_table.h"
#include "engine/kv/miss_cause.h"
#include "engine/kv/owner_memory.h"
#include "engine/kv/sink_window.h"
#include "engine/kv/window_group.h"

namespace kvscope::kv {

struct CacheConfig {
    std::int32_t numBlocks = 0;
    std::int32_t blockSize = 16; ///< slots per block: 8, 16, 32 or 64
    bool prefixCaching = true;   ///< false: nothing is published, nothing is found
    /// Contiguous: never with prefix caching. Each table is one extent, so forks copy all that they share.
    AllocatorKind allocator = AllocatorKind::Paged;
    EvictionKind eviction = EvictionKind::Lru;
    double attentionPerToken = 0; ///< see RecomputeCost; matters to EvictionKind::Cost only
    /// Quantized KV: blocks that are being filled lie as f16 in one of so many tail slots, one a table. A sealed
    /// block's f16 is gone, so tables share whole blocks only, and nothing is ever copied. 0 = blocks keep their form.
    std::int32_t tailSlots = 0;
    /// Layers that look back over `window` tokens only have blocks of their own, `windowBlocks` of them: enough
    /// for what all tables that compute hold at a time. Then tables share whole blocks only, and a prefix counts as far
    /// as the last window before its end is there. 0 = all layers keep everything. Paged only.
    std::int32_t window = 0;
    std::int32_t windowBlocks = 0;
    /// All layers attend to the first `sinks` and the last `sinkWindow` tokens only: blocks between them are given
    /// back, and what lies behind the first sinks + sinkWindow tokens is not published. So everything in the index is
    /// what a model without a window computes, and no key has to tell the two numbers. 0 = all is kept. Paged only, not
    /// with a window group.
    std::int64_t sinks = 0, sinkWindow = 0;
    /// The host tier: what is evicted goes there, and comes back where loading is estimated cheaper. Paged only.
    HostConfig host;
    KeyContext keys;
};

/// Not an error: there is no room now. Both in blocks; `needed` includes what must stay back. Contiguous: `available`
/// is the longest free extent.
struct Shortage {
    std::int32_t needed = 0;
    std::int32_t available = 0;
    bool fragmented = false; ///< contiguous: enough blocks are free, but not in one piece
    bool tailSlot = false;   ///< what lacks is a tail slot
};

/// Copy the first `slotCount` slots of `from` to `to`, all layers, before anything is written in the step.
struct BlockCopy {
    BlockId from;
    BlockId to;
    std::int32_t slotCount = 0;
};

struct AdmitRequest {
    std::span<const TokenId> tokens; ///< everything known of the sequence; at least one
    OwnerId owner;
    std::uint64_t adapter = 0;
    /// Blocks that must still be available afterwards (watermark). Paged only: an extent never needs more later.
    std::int32_t keepBack = 0;
    /// A table to fork from, and how many leading tokens of `tokens` equal that table's; used when that saves more than
    /// the prefix index does. The shared tail is copied when it ends inside a block.
    const BlockTable* forkFrom = nullptr;
    std::int64_t forkTokens = 0;
    /// Contiguous: the tokens that it may come to hold; its extent has room for as many, or is the whole pool.
    std::int64_t longest = 0;
    std::int64_t chunk = 1; ///< sinks: most tokens of it in a step
    /// What the sequence left in the host tier when it was preempted: its first tokens are these. Null = nothing.
    const SwappedTable* swapped = nullptr;
    bool explain = false; ///< find out why less than possible was reused (walks the pool once)
};

struct Admission {
    /// Room for all tokens, or, with sinks, as many blocks as it may come to have; table.tokens() = reusedTokens.
    BlockTable table;
    std::int64_t reusedTokens = 0; ///< at most tokens - 1: the last one is computed for its logits
    std::int32_t newBlocks = 0;    ///< taken empty or by eviction
    std::int32_t loadedBlocks = 0; ///< of those, filled from the host tier
    MissCause cause;               ///< filled when asked to explain
};

using AdmitResult = tl::expected<Admission, Shortage>;
using GrowResult = tl::expected<std::int32_t, Shortage>; ///< blocks taken

/// What it would take to move a table to the host tier and back, and what to read its tokens again instead. Blocks at
/// its beginning that others read too are expected to be there still: they are stored, but neither loaded nor read.
struct SwapEstimate {
    bool possible = false; ///< the host tier has room
    std::int32_t blocks = 0;
    double storeNanos = 0; ///< of everything that the tier does not have
    double loadNanos = 0;  ///< of everything but what stays, in case it is all evicted
    // Without a swap:
    double readNanos = 0;   ///< to load what can be found again, and to read the rest
    double demoteNanos = 0; ///< before that: to store, as it is evicted, what can be found again
    double lossNanos = 0;   ///< that may be lost after all, while what is swapped is held until it comes back
    double swapNanos() const { return storeNanos + loadNanos; }
    double withoutNanos() const { return readNanos + demoteNanos + lossNanos; }
};

/// Cumulative since the pool was made.
struct CacheCounters {
    std::array<std::uint64_t, kEvictionReasonCount> evictions{}; ///< by EvictionReason
    Nanos evictedAge = 0;                                        ///< sum of the ages of what was evicted
    std::uint64_t copies = 0;                                    ///< copy-on-write copies planned
    std::uint64_t sealed = 0;                                    ///< blocks that became full
    std::uint64_t published = 0;                                 ///< of those, entered in the prefix index
    std::uint64_t deduplicated = 0; ///< of those, given up for an equal block that was there first
    std::uint64_t collisions = 0;   ///< of those, whose key already led to other content
    std::uint64_t totalEvictions() const;
};

/// What the hover card shows.
struct BlockDetail {
    BlockState state = BlockState::Empty;
    BlockFacts facts;
    std::vector<OwnerId> owners; ///< of the tables that list it, each once; none: the one that used it last
    std::vector<TokenId> tokens; ///< (fill)
    bool hasKey = false;
    BlockKey key;
};

/// The blocks of an owner's newest sequence in order, live or ended.
struct OwnerBlocks {
    std::int64_t tokens = 0;
    bool live = false;
    std::vector<BlockId> blocks; ///< invalid id = its content is no longer there
};

/// An owner without a live table: what its last sequence had went back to the cache, findable until it is evicted.
struct IdleOwner {
    OwnerId owner;
    std::int64_t tokens = 0;
    std::int32_t blocks = 0;     ///< full ones; the slots behind them are given up at the end
    std::int32_t stillThere = 0; ///< of those, from the first on without a gap: what the next turn can find
};

class KvCache {
public:
    /// `hasher` and `eviction` default to XXH3 over `config.keys` and to the policy of the configuration.
    explicit KvCache(const CacheConfig& config, std::unique_ptr<BlockHasher> hasher = nullptr,
                     std::unique_ptr<EvictionPolicy> eviction = nullptr);
    ~KvCache();
    KvCache(const KvCache&) = delete;
    KvCache& operator=(const KvCache&) = delete;
    KvCache(KvCache&&) = delete; // tables point to their cache
    KvCache& operator=(KvCache&&) = delete;

    /// Matches and allocates in one call. Shortage: nothing has changed.
    AdmitResult admit(const AdmitRequest& request, Nanos now);
    /// Makes sure that slots [tokens, upTo) of the table can be written: allocates blocks, and replaces a shared or
    /// sealed tail by a copy (see pendingCopies). Shortage: nothing has changed. With a window group it comes before
    /// every step, also the first after admit: blocks of that group are taken as they are written.
    GrowResult grow(BlockTable& table, std::int64_t upTo, Nanos now);

    /// Copies that the next step must do first. They stay pending, their sources untouched, until `commitCopies`: a
    /// step that was aborted has to do them again.
    std::span<const BlockCopy> pendingCopies() const { return m_pendingCopies; }
    /// The step that did all pending copies is through.
    void commitCopies();

    /// All layers have written these tokens behind the table's tokens; room was made by admit or grow. Blocks that
    /// became full are sealed and published; where an equal block was published before, the table switches to it. With
    /// sinks, blocks that no token from here on sees are given back.
    /// (Safe: no step is in flight, and equal content is bit-identical.) Marks all blocks of the table as read.
    void advance(BlockTable& table, std::span<const TokenId> tokens, Nanos now);

    /// A second table over the first `tokens` tokens (at most table.tokens()), with tails over the whole blocks of
    /// them. With a window group it may fall back to an earlier border of a block, before which the last window is
    /// there; where its window has passed what the fork would see, to the end of the sinks. Never short of room. Paged
    /// only: where forks copy, they are admitted (AdmitRequest::forkFrom).
    BlockTable fork(const BlockTable& table, std::int64_t tokens, OwnerId owner, Nanos now);
    /// Forgets everything behind the first `tokens` tokens and gives blocks back that are no longer needed. With tails
    /// a cut inside a sealed block falls back to its beginning. At a block's border the tail slot is given back. With a
    /// window group, or sinks, it falls back further, as `fork` does.
    void truncate(BlockTable& table, std::int64_t tokens);
    // ---- the host tier (CacheConfig::host) ----

    /// Null = there is none.
    const HostTier* host() const { return m_host ? &*m_host : nullptr; }
    /// From now on; before it is told anything, loading is taken to be cheaper than computing.
    void setCostRates(const CostRates& rates) {
        m_rates = rates;
        ++m_ratesVersion;
    }
    std::uint64_t ratesVersion() const { return m_ratesVersion; } ///< moves with every call of it
    const CostRates& costRates() const { return m_rates; }
    SwapEstimate estimateSwap(const BlockTable& table) const;
    /// Copies all that the table has computed to the host tier and holds it there; the table stays. Empty: there was no
    /// room after all.
    SwappedTable swapOut(const BlockTable& table);

    /// The table is kept to be forked from, and writes no more: its blocks of the window group become cached.
    void rest(BlockTable& table);
    /// Pins the first `blocks` blocks, as far as no window has passed them; all must be sealed. Contiguous: pins
    /// nothing, as nothing could be found later.
    PinnedBlocks pin(const BlockTable& table, std::int32_t blocks);

    const BlockPool& pool() const { return m_pool; }
    const CacheCounters& counters() const { return m_counters; }
    std::int32_t blockSize() const { return m_pool.blockSize(); }
    std::int32_t numBlocks() const { return m_pool.numBlocks(); }
    std::int32_t available() const { return m_pool.available(); }
    std::int32_t blocksFor(std::int64_t tokens) const {
        return static_cast<std::int32_t>((tokens + blockSize() - 1) / blockSize());
    }
    bool prefixCaching() const { return m_prefixCaching; }
    bool contiguous() const { return m_pool.holes() != nullptr; }
    /// Blocks that can be had at once: the longest free extent, or, paged, all that are available.
    std::int32_t largestExtent() const { return contiguous() ? m_pool.holes()->largest() : available(); }
    /// Contiguous: blocks of the extent of a sequence of `tokens` tokens that may come to hold `longest`.
    std::int32_t extentFor(std::int64_t tokens, std::int64_t longest) const;
    const SinkWindow& sight() const { return m_sight; }
    /// Most blocks that a sequence of so many tokens has at a time, computed in chunks of at most `chunk`.
    std::int32_t mostBlocks(std::int64_t tokens, std::int64_t chunk) const;
    std::int64_t longestTable() const; ///< tokens that one table may come to have in this pool
    bool hasTails() const { return m_tailSlots > 0; }
    /// Null = all layers keep everything.
    const WindowGroup* window() const { return m_window ? &*m_window : nullptr; }
    std::int32_t freeTailSlots() const { return static_cast<std::int32_t>(m_freeTails.size()); }
    /// Leading tokens of a prompt that `admit` would find now (always whole blocks). Changes nothing.
    std::int64_t lookup(std::span<const TokenId> tokens, std::uint64_t adapter = 0) const;
    /// The same with what it would load from the host tier; that takes new blocks.
    std::int64_t reusable(std::span<const TokenId> tokens, std::uint64_t adapter = 0) const;

    BlockDetail detail(BlockId block) const;
    /// Empty when the owner was never seen, or too many others were since.
    OwnerBlocks ownerBlocks(OwnerId owner) const;
    /// Those that were used last, latest first. Cost: blocks of so many sequences.
    void idleOwners(std::size_t most, std::vector<IdleOwner>& out) const;
    /// How many of a table's blocks other tables list too.
    std::int32_t sharedBlocks(const BlockTable& table) const;

    /// Every invariant of the contract that concerns the cache, by recount; throws BrokenInvariant. Cost: pool size.
    void checkInvariants() const;

    /// Null = nobody; it outlives the cache or is taken away first.
    void observe(CacheObserver* observer) { m_observer = observer; }

    /// After a broken invariant: no handle walks this cache any more, releasing one only forgets it. The cache may then
    /// be destroyed, handles first, and nothing else may be asked of it.
    void abandon() noexcept {
        m_abandoned = true;
        if (m_host)
            m_host->abandon();
    }

private:
    friend class BlockTable;
    friend class PinnedBlocks;

    struct WindowTable {
        std::vector<BlockId> blocks;   ///< (end) companions; invalid before `from`
        std::size_t from = 0, end = 0; ///< of the table's blocks whose companions it holds
        bool open = false;             ///< it computes
    };
    struct TableRecord {
        std::vector<BlockId> blocks;
        WindowTable window;
        std::size_t passedFrom = 0, passedEnd = 0; ///< hole in `blocks`; none while passedEnd is 0
        std::vector<TokenId> passed;               ///< tokens of the blocks that were there
        std::size_t passedBlocks() const { return passedEnd - passedFrom; }
        std::int64_t tokens = 0;
        OwnerId owner;
        std::uint64_t adapter = 0;
        std::uint64_t serial = 0; ///< the newest table of an owner has the greatest
        std::int32_t tailSlot = -1;
        bool live = false;
    };
    struct PinRecord {
        std::vector<BlockId> blocks;
        bool live = false;
    };
    /// The beginning of a prompt as an admission found it.
    struct Match {
        std::vector<BlockId> blocks; ///< invalid = to be loaded from the slot
        /// By block, kNone = none: where its content, or only its companion, lies in the host tier. Empty without one.
        std::vector<std::int32_t> hostSlots;
        std::int32_t declined = 0; ///< more blocks that the host tier has, but computing is cheaper
        void assign(std::span<const BlockId> found) {
            blocks.assign(found.begin(), found.end());
            hostSlots.clear();
            declined = 0;
        }
    };
    /// Where a prefix ends.
    struct PrefixEnd {
        std::size_t blocks = 0;
        BlockKey key;
        std::uint64_t generation = 0; ///< 0 = at the beginning
    };

    const TableRecord& record(const BlockTable& table) const;
    TableRecord& record(const BlockTable& table);
    BlockTable newTable(OwnerId owner, std::uint64_t adapter);
    void releaseTable(std::int32_t index) noexcept;
    void releasePins(std::int32_t index) noexcept;

    void remember(const TableRecord& table);
    bool stillThere(const BlockMemory& was) const;
    void rethrowBroken() const;

    BlockKey keyOf(BlockId parent, std::uint64_t adapter) const;
    std::uint64_t generationOf(BlockId block) const { return block.valid() ? m_pool.identity(block).generation : 0; }
    bool sameContent(BlockId block, std::span<const TokenId> tokens, std::uint64_t parentGeneration,
                     std::uint64_t adapter) const;
    void findPrefix(std::span<const TokenId> tokens, std::uint64_t adapter, std::vector<BlockId>& found) const;
    PrefixEnd endOf(const Match& match, std::uint64_t adapter) const;
    MissCause causeOf(const AdmitRequest& request, std::size_t found) const;
    MissCause explainMiss(const AdmitRequest& request, const PrefixEnd& found) const;
    std::int64_t commonWithChildren(const PrefixEnd& found, const AdmitRequest& request) const;

    AdmitResult admitContiguous(const AdmitRequest& request, Nanos now);
    void copyForked(const TableRecord& source, std::int64_t tokens, TableRecord& table, Nanos now);
    void truncateContiguous(TableRecord& table, std::int64_t tokens);
    std::int64_t forkableTokens(const AdmitRequest& request) const;
    bool lacksTailSlot(const TableRecord& table) const {
        return hasTails() && table.tailSlot < 0 && m_freeTails.empty();
    }
    /// Of so many leading tokens those that two tables may have in common.
    std::int64_t shareable(std::int64_t tokens) const {
        return hasTails() || m_window ? tokens / blockSize() * blockSize() : tokens;
    }
    std::int64_t shareable(std::span<const BlockId> blocks, std::int64_t tokens) const;
    std::int64_t foundAgain(const TableRecord& table) const;
    std::size_t heldByWindow(std::span<const BlockId> blocks, std::span<const std::int32_t> hostSlots = {}) const;
    void openWindow(TableRecord& table);
    void growWindow(TableRecord& table, std::int64_t upTo);
    void slideWindow(TableRecord& table);
    void closeWindow(TableRecord& table);
    void slideSinks(TableRecord& table);
    std::int64_t stillHeld(const TableRecord& table, std::int64_t tokens) const;
    void takePassed(TableRecord& table, const TableRecord& source);
    std::int32_t endAtAdmission(std::int64_t total, std::int64_t chunk) const;
    void checkSinks(const TableRecord& table) const;
    void switchCompanion(TableRecord& table, std::size_t index, BlockId block, BlockId known);
    std::int64_t matchPool(std::span<const TokenId> tokens, std::uint64_t adapter, Match& match) const;
    std::int64_t matchHost(std::span<const TokenId> tokens, std::uint64_t adapter, Match& match) const;
    void findInHost(std::span<const TokenId> tokens, std::uint64_t adapter, Match& match) const;
    std::int64_t matchSwapped(const AdmitRequest& request);
    bool needsCompanion(const Match& match, std::size_t index, std::int64_t tokens) const;
    double loadNanos(const Match& match, std::int64_t tokens) const;
    BlockContent contentOf(BlockId block) const;
    DeviceBlock bytesOf(const TableRecord& table, std::size_t index) const;
    std::int32_t inHost(BlockId block) const;
    std::int32_t inHost(const TableRecord& table, std::size_t index) const;
    std::size_t computedOf(const TableRecord& table, std::size_t index) const;
    void holdLoads(bool hold);
    std::int32_t loadBlocks(TableRecord& table, const AdmitRequest& request, Nanos now);
    void publishLoaded(const TableRecord& table, std::size_t index, std::int32_t slot);
    BlockId loadCompanion(const TableRecord& table, std::size_t index);
    void demote(BlockId block);
    void adoptFromHost(BlockId block, const BlockKey& key, BlockId parent);
    void takeTailSlot(TableRecord& table);
    void giveTailSlot(TableRecord& table);
    bool tailMustBeCopied(const TableRecord& table) const;
    BlockId take(const TableRecord& table, std::size_t index, EvictionReason reason, Nanos now);
    void appendBlocks(TableRecord& table, std::int64_t upTo, EvictionReason reason, Nanos now);
    void share(TableRecord& table, std::span<const BlockId> blocks, std::int64_t tokens, Nanos now);
    void copyTail(TableRecord& table, Nanos now);
    void planCopy(BlockId from, BlockId to, std::int32_t slots);
    void dropReference(BlockId block);
    void dropPin(BlockId block);
    void forgetCompanion(BlockId block);
    void evict(BlockId block, EvictionReason reason, OwnerId by, Nanos now);
    void seal(TableRecord& table, std::size_t index, Nanos now);
    void publish(TableRecord& table, std::size_t index, Nanos now);

    void checkTables(std::vector<std::int32_t>& references) const;
    void checkTails() const;
    void checkWindow() const;
    void checkFreeList() const;
    void checkCounts() const;
    void checkIndex() const;
    void checkExtents() const;
    void checkHost() const;

    BlockPool m_pool;
    std::unique_ptr<BlockHasher> m_hasher;
    bool m_prefixCaching;
    std::int32_t m_tailSlots;
    std::vector<std::int32_t> m_freeTails;
    std::optional<WindowGroup> m_window;
    SinkWindow m_sight;
    KeyTable m_index; ///< key -> block
    EvictionLog m_evicted;
    OwnerMemory m_memory;
    std::deque<TableRecord> m_tables; ///< slots are reused, so that a new sequence allocates nothing
    std::vector<std::int32_t> m_freeTables;
    std::deque<PinRecord> m_pins;
    std::vector<std::int32_t> m_freePins;
    std::vector<BlockCopy> m_pendingCopies; ///< each holds a reference on its source
    Match m_match;                          ///< scratch of admit
    std::optional<HostTier> m_host;
    CostRates m_rates;
    std::uint64_t m_ratesVersion = 0;
    std::uint64_t m_nextSerial = 1;
    CacheCounters m_counters;
    CacheObserver* m_observer = nullptr;
    std::exception_ptr m_broken; ///< found while a handle was released
    bool m_abandoned = false;
};

} // namespace kvscope::kv
