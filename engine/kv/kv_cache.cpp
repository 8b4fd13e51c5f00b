// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/kv/kv_cache.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "engine/base/check.h"
#include "engine/kv/record_slots.h"

namespace kvscope::kv {

namespace {

constexpr std::size_t kRememberedOwners = 256;
/// The log outlives several turn-overs of a small pool, and one of a large one.
constexpr std::int32_t kSmallestEvictionLog = 4096;

} // namespace

std::uint64_t CacheCounters::totalEvictions() const {
    return std::accumulate(evictions.begin(), evictions.end(), std::uint64_t(0));
}

// ---- handles ----

std::span<const BlockId> BlockTable::blocks() const {
    return m_own.keeper() ? std::span<const BlockId>(m_own.keeper()->record(*this).blocks) : std::span<const BlockId>();
}
std::span<const BlockId> BlockTable::windowBlocks() const {
    return m_own.keeper() ? std::span<const BlockId>(m_own.keeper()->record(*this).window.blocks)
                          : std::span<const BlockId>();
}
std::int64_t BlockTable::tokens() const {
    return m_own.keeper() ? m_own.keeper()->record(*this).tokens : 0;
}
OwnerId BlockTable::owner() const {
    return m_own.keeper() ? m_own.keeper()->record(*this).owner : OwnerId();
}
std::int32_t BlockTable::tailSlot() const {
    return m_own.keeper() ? m_own.keeper()->record(*this).tailSlot : -1;
}
void BlockTable::giveBack(KvCache& cache, std::int32_t record) noexcept {
    cache.releaseTable(record);
}

const KvCache::TableRecord& KvCache::record(const BlockTable& table) const {
    KV_CHECK(table.m_own.keeper() == this, "a block table of another cache, or an empty one, was used");
    return m_tables[table.m_own.record()];
}
KvCache::TableRecord& KvCache::record(const BlockTable& table) {
    return const_cast<TableRecord&>(std::as_const(*this).record(table));
}

// ---- life ----

KvCache::KvCache(const CacheConfig& config, std::unique_ptr<BlockHasher> hasher,
                 std::unique_ptr<EvictionPolicy> eviction)
    : m_pool(config.numBlocks, config.blockSize,
             eviction ? std::move(eviction)
                      : makeEviction(config.eviction, {config.blockSize, config.attentionPerToken}),
             config.allocator)
    , m_hasher(hasher ? std::move(hasher) : makeBlockHasher(config.keys))
    , m_prefixCaching(config.prefixCaching)
    , m_tailSlots(config.tailSlots)
    , m_sight{config.sinks, config.sinkWindow, config.blockSize}
    , m_index(config.numBlocks)
    , m_evicted(std::max(config.numBlocks, kSmallestEvictionLog))
    , m_memory(kRememberedOwners) {
    KV_CHECK(!contiguous() || !m_prefixCaching, "the contiguous allocator has no prefix cache");
    KV_CHECK(!contiguous() || (config.window == 0 && !m_sight.on()), "the contiguous allocator has no windows");
    KV_CHECK(config.window == 0 || !m_sight.on(), "sinks go with no window group");
    if (config.window > 0)
        m_window.emplace(config.window, config.windowBlocks, config.numBlocks, config.blockSize);
    KV_CHECK((!contiguous() && !m_sight.on()) || config.host.slotCount == 0,
             "the contiguous allocator and sinks go with no host tier");
    if (config.host.slotCount > 0)
        m_host.emplace(config.host, config.blockSize);
    m_match.blocks.reserve(static_cast<std::size_t>(config.numBlocks));
    for (std::int32_t slot = config.tailSlots - 1; slot >= 0; --slot)
        m_freeTails.push_back(slot);
}

KvCache::~KvCache() = default;

BlockTable KvCache::newTable(OwnerId owner, std::uint64_t adapter) {
    const std::int32_t index = takeRecord(m_tables, m_freeTables);
    TableRecord& table = m_tables[static_cast<std::size_t>(index)];
    table.blocks.clear();
    table.passed.clear();
    table.passedFrom = table.passedEnd = 0;
    table.tokens = 0;
    table.owner = owner;
    table.adapter = adapter;
    table.serial = m_nextSerial++;
    table.live = true;
    return {this, index};
}

void KvCache::releaseTable(std::int32_t index) noexcept {
    if (m_abandoned)
        return;
    // Called by destructors: a broken invariant found here is told by the next call that may throw.
    try {
        TableRecord& table = m_tables[static_cast<std::size_t>(index)];
        remember(table);
        closeWindow(table);
        // Last block first, so that of this sequence the least shareable tail is evicted first.
        for (auto block = table.blocks.rbegin(); block != table.blocks.rend(); ++block)
            dropReference(*block);
        table.blocks.clear();
        giveTailSlot(table);
        table.live = false;
        m_freeTables.push_back(index);
    } catch (...) {
        m_broken = std::current_exception();
    }
}

void KvCache::rethrowBroken() const {
    if (m_broken)
        std::rethrow_exception(m_broken);
    if (m_host)
        m_host->rethrowBroken();
}

// ---- room ----

AdmitResult KvCache::admit(const AdmitRequest& request, Nanos now) {
    rethrowBroken();
    const auto total = static_cast<std::int64_t>(request.tokens.size());
    KV_CHECK(total > 0, "a sequence without tokens was admitted");
    if (contiguous())
        return admitContiguous(request, now);

    m_match.assign({});
    findPrefix(request.tokens, request.adapter, m_match.blocks);
    const std::size_t found = m_match.blocks.size();
    std::int64_t reused = request.swapped == nullptr || !*request.swapped
                              ? matchPool(request.tokens, request.adapter, m_match)
                              : matchSwapped(request);
    const std::int64_t forked = forkableTokens(request);
    const bool forks = forked > reused;
    if (forks) {
        m_match.assign(request.forkFrom->blocks().first(static_cast<std::size_t>(blocksFor(forked))));
        reused = forked;
    }

    // Blocks of the prefix that are cached leave the free list too, so they count as needed.
    std::int32_t shared = 0, cached = 0;
    for (const BlockId block : m_match.blocks)
        if (block.valid()) {
            ++shared;
            cached += m_pool.facts(block).count() == 0 ? 1 : 0;
        }
    // Entries without a block are to be loaded; without a host tier a window has passed them.
    const std::int32_t given = m_host ? shared : static_cast<std::int32_t>(m_match.blocks.size());
    const bool copies = reused % blockSize() != 0 && m_match.blocks.back().valid();
    const std::int32_t end = endAtAdmission(total, request.chunk);
    const std::int32_t newBlocks = end - given + (copies ? 1 : 0);
    const std::int32_t needed = newBlocks + cached + request.keepBack;
    if (needed > available())
        return tl::unexpected(Shortage{needed, available()});
    if (hasTails() && m_freeTails.empty())
        return tl::unexpected(Shortage{needed, available(), false, true});

    Admission admission;
    if (request.explain && !forks) // before anything is evicted for this request
        admission.cause = causeOf(request, found);
    admission.table = newTable(request.owner, request.adapter);
    TableRecord& table = record(admission.table);
    takeTailSlot(table);
    share(table, m_match.blocks, reused, now);
    if (forks)
        takePassed(table, record(*request.forkFrom));
    if (m_host)
        admission.loadedBlocks = loadBlocks(table, request, now);
    openWindow(table);
    if (m_host)
        holdLoads(false);
    if (copies)
        copyTail(table, now);
    appendBlocks(table, static_cast<std::int64_t>(end) * blockSize(), EvictionReason::Admission, now);
    admission.reusedTokens = reused;
    admission.newBlocks = newBlocks;
    return admission;
}

/// Tokens that the request can take over from the table that it forks.
std::int64_t KvCache::forkableTokens(const AdmitRequest& request) const {
    if (request.forkFrom == nullptr || record(*request.forkFrom).adapter != request.adapter)
        return 0;
    const std::int64_t most = std::min(
        {request.forkTokens, request.forkFrom->tokens(), static_cast<std::int64_t>(request.tokens.size()) - 1});
    return shareable(request.forkFrom->blocks(), stillHeld(record(*request.forkFrom), most));
}

GrowResult KvCache::grow(BlockTable& handle, std::int64_t upTo, Nanos now) {
    rethrowBroken();
    TableRecord& table = record(handle);
    const auto have = static_cast<std::int32_t>(table.blocks.size());
    const std::int32_t missing = std::max(0, blocksFor(upTo) - have);
    const bool copies = upTo > table.tokens && tailMustBeCopied(table);
    const std::int32_t needed = missing + (copies ? 1 : 0);
    if (needed > available() || (contiguous() && missing > 0)) // an extent does not grow
        return tl::unexpected(Shortage{needed, contiguous() ? 0 : available()});
    if (lacksTailSlot(table))
        return tl::unexpected(Shortage{needed, available(), false, true});
    takeTailSlot(table);
    if (copies)
        copyTail(table, now);
    appendBlocks(table, upTo, EvictionReason::Growth, now);
    growWindow(table, upTo);
    return needed;
}

void KvCache::takeTailSlot(TableRecord& table) {
    if (!hasTails() || table.tailSlot >= 0)
        return;
    KV_CHECK(!m_freeTails.empty(), "a tail slot was taken although all are in use");
    table.tailSlot = m_freeTails.back();
    m_freeTails.pop_back();
}

void KvCache::giveTailSlot(TableRecord& table) {
    if (const std::int32_t slot = std::exchange(table.tailSlot, -1); slot >= 0)
        m_freeTails.push_back(slot);
}

/// The next write goes into a block that is half full, and its content is not this table's alone.
bool KvCache::tailMustBeCopied(const TableRecord& table) const {
    if (table.tokens % blockSize() == 0 || contiguous()) // copies for forks are made before anything is written
        return false;
    const BlockFacts& tail = m_pool.facts(table.blocks[static_cast<std::size_t>(table.tokens / blockSize())]);
    return tail.sealed || tail.count() > 1;
}

BlockId KvCache::take(const TableRecord& table, std::size_t index, EvictionReason reason, Nanos now) {
    const BlockId block = m_pool.freeList().front();
    KV_CHECK(block.valid(), "a block was taken from an empty free list: the need was estimated too low");
    if (m_pool.facts(block).findable) {
        // The next one's entries are fetched while this one is dealt with: memory is what an eviction waits for.
        if (const BlockId next = m_pool.freeList().after(block); next.valid()) {
            m_index.prefetch(m_pool.identity(next).key);
            m_evicted.prefetch(m_pool.identity(next).key);
            if (const BlockId behind = m_pool.freeList().after(next); behind.valid())
                m_pool.prefetch(behind);
        }
        evict(block, reason, table.owner, now);
    }
    const BlockId parent = index == 0 ? BlockId() : table.blocks[index - 1];
    m_pool.take(block, table.owner, static_cast<std::int32_t>(index) * blockSize(), parent, table.adapter, now);
    return block;
}

void KvCache::appendBlocks(TableRecord& table, std::int64_t upTo, EvictionReason reason, Nanos now) {
    const auto wanted = static_cast<std::size_t>(blocksFor(upTo));
    while (table.blocks.size() < wanted)
        table.blocks.push_back(take(table, table.blocks.size(), reason, now));
}

void KvCache::share(TableRecord& table, std::span<const BlockId> blocks, std::int64_t tokens, Nanos now) {
    for (const BlockId block : blocks) {
        if (block.valid()) // else it is about to be loaded, or its window has passed it
            m_pool.addReference(block, table.owner, now);
        table.blocks.push_back(block);
    }
    table.tokens = tokens;
}

void KvCache::copyTail(TableRecord& table, Nanos now) {
    const auto index = static_cast<std::size_t>(table.tokens / blockSize());
    const auto slots = static_cast<std::int32_t>(table.tokens % blockSize());
    const BlockId old = table.blocks[index];
    const BlockId copy = take(table, index, EvictionReason::Copy, now);
    m_pool.write(copy, 0, m_pool.tokens(old).first(static_cast<std::size_t>(slots)), now);
    planCopy(old, copy, slots);
    table.blocks[index] = copy;
    dropReference(old);
}

void KvCache::planCopy(BlockId from, BlockId to, std::int32_t slots) {
    KV_CHECK(!m_window, "with a window group tables share whole blocks only");
    // A block that is itself still to be copied holds nothing yet: copy from where its content lies now.
    BlockId source = from;
    for (const BlockCopy& pending : m_pendingCopies)
        if (pending.to == from) {
            KV_CHECK(slots <= pending.slotCount, "a copy of a copy would read slots that are not there yet");
            source = pending.from;
        }
    m_pool.holdReference(source);
    m_pendingCopies.push_back({source, to, slots});
    ++m_counters.copies;
}

void KvCache::commitCopies() {
    rethrowBroken();
    for (const BlockCopy& copy : m_pendingCopies)
        m_pool.dropReference(copy.from);
    m_pendingCopies.clear();
}

void KvCache::dropReference(BlockId block) {
    if (!block.valid()) // its window has passed it
        return;
    m_pool.dropReference(block);
    forgetCompanion(block);
    if (m_pendingCopies.empty() || m_pool.facts(block).count() > 0)
        return;
    // Nobody wants the copy any more.
    const auto copy = std::find_if(m_pendingCopies.begin(), m_pendingCopies.end(),
                                   [block](const BlockCopy& pending) { return pending.to == block; });
    if (copy == m_pendingCopies.end())
        return;
    const BlockId source = copy->from;
    m_pendingCopies.erase(copy);
    m_pool.dropReference(source);
}

void KvCache::evict(BlockId block, EvictionReason reason, OwnerId by, Nanos now) {
    const BlockFacts& facts = m_pool.facts(block);
    const Eviction eviction{m_pool.identity(block).key, m_pool.owner(block),      by,    now,   now - facts.lastRead,
                            facts.firstPosition,        m_pool.reuse(block).uses, block, reason};
    if (m_host && reason != EvictionReason::Replaced)
        demote(block);
    m_index.erase(eviction.key);
    m_evicted.record(eviction);
    m_pool.forget(block, reason != EvictionReason::Replaced);
    forgetCompanion(block);
    ++m_counters.evictions[static_cast<std::size_t>(reason)];
    m_counters.evictedAge += eviction.age;
    if (m_observer)
        m_observer->evicted(eviction);
}

// ---- after a step ----

void KvCache::advance(BlockTable& handle, std::span<const TokenId> tokens, Nanos now) {
    rethrowBroken();
    TableRecord& table = record(handle);
    KV_CHECK(m_pendingCopies.empty(), "tokens were written while copies were still to be made");
    const std::size_t room = m_window ? table.window.end : table.blocks.size();
    KV_CHECK(table.tokens + static_cast<std::int64_t>(tokens.size()) <= static_cast<std::int64_t>(room) * blockSize(),
             "more tokens were written than room was made for");
    while (!tokens.empty()) {
        const auto index = static_cast<std::size_t>(table.tokens / blockSize());
        const auto slot = static_cast<std::int32_t>(table.tokens % blockSize());
        const std::size_t count = std::min(tokens.size(), static_cast<std::size_t>(blockSize() - slot));
        m_pool.write(table.blocks[index], slot, tokens.first(count), now);
        table.tokens += static_cast<std::int64_t>(count);
        tokens = tokens.subspan(count);
        if (table.tokens % blockSize() == 0)
            seal(table, index, now);
    }
    slideWindow(table);
    slideSinks(table);
    m_pool.markRead(std::span(table.blocks).first(static_cast<std::size_t>(blocksFor(table.tokens))), now);
}

void KvCache::seal(TableRecord& table, std::size_t index, Nanos now) {
    m_pool.seal(table.blocks[index]);
    ++m_counters.sealed;
    if (m_prefixCaching)
        publish(table, index, now);
}

void KvCache::publish(TableRecord& table, std::size_t index, Nanos now) {
    const BlockId block = table.blocks[index];
    const BlockId parent = index == 0 ? BlockId() : table.blocks[index - 1];
    // Behind a block that cannot be found nothing can be found either.
    if (parent.valid() && !m_pool.facts(parent).findable)
        return;
    if (m_sight.on() && static_cast<std::int64_t>(index + 1) * blockSize() > m_sight.unaffected())
        return;
    const auto tokens = m_pool.tokens(block);
    const BlockKey key = m_hasher->block(keyOf(parent, table.adapter), tokens);
    const BlockId known = m_index.find(key) == KeyTable::kNotFound ? BlockId() : BlockId(m_index.find(key));
    if (known.valid() && sameContent(known, tokens, generationOf(parent), table.adapter)) {
        m_pool.addReference(known, table.owner, now);
        table.blocks[index] = known;
        switchCompanion(table, index, block, known);
        dropReference(block);
        ++m_counters.deduplicated;
        return;
    }
    if (known.valid()) {
        // Other content under the same key. Whoever uses it keeps it; else the newer content takes its place.
        ++m_counters.collisions;
        if (m_pool.facts(known).count() > 0)
            return;
        evict(known, EvictionReason::Replaced, table.owner, now);
    }
    if (m_host)
        adoptFromHost(block, key, parent);
    m_index.set(key, block.value());
    m_pool.makeFindable(block, key, parent);
    ++m_counters.published;
}

// ---- sharing ----

BlockTable KvCache::fork(const BlockTable& handle, std::int64_t tokens, OwnerId owner, Nanos now) {
    rethrowBroken();
    const std::uint64_t adapter = record(handle).adapter;
    KV_CHECK(tokens >= 0 && tokens <= record(handle).tokens, "a fork wants more tokens than its source has computed");
    KV_CHECK(!contiguous(), "two tables cannot share an extent");
    tokens = shareable(handle.blocks(), stillHeld(record(handle), tokens));
    BlockTable forked = newTable(owner, adapter);
    const auto blocks = handle.blocks().first(static_cast<std::size_t>(blocksFor(tokens)));
    share(record(forked), blocks, tokens, now);
    takePassed(record(forked), record(handle));
    openWindow(record(forked));
    return forked;
}

void KvCache::truncate(BlockTable& handle, std::int64_t tokens) {
    rethrowBroken();
    TableRecord& table = record(handle);
    KV_CHECK(tokens >= 0 && tokens <= table.tokens, "a sequence can only be cut to fewer tokens than it has");
    tokens = stillHeld(table, tokens);
    if (tokens % blockSize() != 0 && m_pool.facts(table.blocks[static_cast<std::size_t>(tokens / blockSize())]).sealed)
        tokens = shareable(tokens);
    if (contiguous())
        return truncateContiguous(table, tokens);
    if (m_window && m_window->firstSeen(tokens) < table.window.from)
        tokens = shareable(table.blocks, tokens);
    const auto keep = static_cast<std::size_t>(blocksFor(tokens));
    const bool computes = table.window.open;
    closeWindow(table);
    while (table.blocks.size() > keep) {
        const BlockId last = table.blocks.back();
        table.blocks.pop_back();
        dropReference(last);
    }
    table.tokens = tokens;
    takePassed(table, table);
    if (computes)
        openWindow(table);
    if (tokens % blockSize() == 0) {
        giveTailSlot(table);
        return;
    }
    const BlockId tail = table.blocks.back();
    if (!tailMustBeCopied(table))
        m_pool.shorten(tail, static_cast<std::int32_t>(tokens % blockSize()));
}

} // namespace kvscope::kv
