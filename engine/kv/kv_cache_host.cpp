// SPDX-License-Identifier: GPL-3.0-or-later
//
// The cache and the host tier below it. What the pool evicts is demoted; an admission goes on from the pool's prefix
// into the tier, where loading is estimated cheaper than computing; a preempted table may be swapped out whole.
//
// Content keeps its generation wherever it goes: a block that is loaded, or computed again while the tier has it, gets
// the generation that it had before. So "the parent's generation" means the same in both, and what hangs on a block is
// found again whichever of the two it lies in.
#include <algorithm>

#include "engine/base/check.h"
#include "engine/kv/kv_cache.h"

namespace kvscope::kv {

namespace {

/// Of the time that is lost when what could be found again is found no more: a guess, as it depends on what others do
/// meanwhile. Where moving is far cheaper than computing it holds a sequence's blocks; else it decides nothing.
constexpr double kLossShare = 0.1;

} // namespace

// ---- what is evicted goes down ----

BlockContent KvCache::contentOf(BlockId block) const {
    const BlockIdentity& identity = m_pool.identity(block);
    return {identity.key, m_pool.tokens(block), identity.adapter, identity.parentGeneration, identity.generation};
}

/// The slot with the content of a block that can be found; kNone = there is none.
std::int32_t KvCache::inHost(BlockId block) const {
    return m_pool.facts(block).findable ? m_host->find(contentOf(block)) : BlockStore::kNone;
}

/// Tokens of a table that lie in one of its blocks.
std::size_t KvCache::computedOf(const TableRecord& table, std::size_t index) const {
    const std::int64_t behind = table.tokens - static_cast<std::int64_t>(index) * blockSize();
    return static_cast<std::size_t>(std::min<std::int64_t>(behind, blockSize()));
}

/// The same of a table's block, unless the table has only a part of it.
std::int32_t KvCache::inHost(const TableRecord& table, std::size_t index) const {
    return computedOf(table, index) < static_cast<std::size_t>(blockSize()) ? BlockStore::kNone
                                                                            : inHost(table.blocks[index]);
}

void KvCache::demote(BlockId block) {
    m_host->store(contentOf(block), {block, m_window ? m_window->companion(block) : BlockId()});
}

/// A block that was computed while the tier has the same content: it is that content again.
void KvCache::adoptFromHost(BlockId block, const BlockKey& key, BlockId parent) {
    BlockContent content = contentOf(block);
    content.key = key;
    content.parentGeneration = generationOf(parent);
    if (const std::int32_t slot = m_host->find(content); slot != BlockStore::kNone)
        m_pool.adoptGeneration(block, m_host->content(slot).generation);
}

// ---- what an admission finds ----

/// Leading tokens that the found blocks give; goes on into the host tier if there is one. Cuts `match` to them.
std::int64_t KvCache::matchPool(std::span<const TokenId> tokens, std::uint64_t adapter, Match& match) const {
    if (m_host)
        return matchHost(tokens, adapter, match);
    match.blocks.resize(heldByWindow(match.blocks));
    return static_cast<std::int64_t>(match.blocks.size()) * blockSize();
}

/// All that the tier has is loaded, or nothing: what a block saves grows with its position and what it costs does not,
/// so of all lengths either none or the whole is the cheapest.
std::int64_t KvCache::matchHost(std::span<const TokenId> tokens, std::uint64_t adapter, Match& match) const {
    const std::size_t onDevice = heldByWindow(match.blocks);
    findInHost(tokens, adapter, match);
    const std::size_t whole = heldByWindow(match.blocks, match.hostSlots);
    match.blocks.resize(whole);
    match.hostSlots.resize(whole);
    const auto tokensOf = [this](std::size_t blocks) { return static_cast<std::int64_t>(blocks) * blockSize(); };
    if (whole == onDevice)
        return tokensOf(whole);
    if (!m_rates.known() || loadNanos(match, tokensOf(whole)) < m_rates.toRead(tokensOf(onDevice), tokensOf(whole)))
        return tokensOf(whole);
    match.declined = static_cast<std::int32_t>(whole - onDevice);
    match.blocks.resize(onDevice);
    match.hostSlots.resize(onDevice);
    return tokensOf(onDevice);
}

/// Goes on behind the blocks that were found in the pool. A block of the pool may come again behind one of the tier: it
/// stayed when what it hangs on was evicted.
void KvCache::findInHost(std::span<const TokenId> tokens, std::uint64_t adapter, Match& match) const {
    match.hostSlots.assign(match.blocks.size(), BlockStore::kNone);
    if (!m_prefixCaching)
        return;
    const auto slotBeside = [this](BlockId block) { // only for the companion that is not here any more
        return m_window && !m_window->companion(block).valid() ? inHost(block) : BlockStore::kNone;
    };
    std::transform(match.blocks.begin(), match.blocks.end(), match.hostSlots.begin(), slotBeside);
    const auto size = static_cast<std::size_t>(blockSize());
    const std::size_t limit = (tokens.size() - 1) / size;
    PrefixEnd end = endOf(match, adapter);
    for (; end.blocks < limit; ++end.blocks) {
        const auto own = tokens.subspan(end.blocks * size, size);
        end.key = m_hasher->block(end.key, own);
        if (const std::int32_t known = m_index.find(end.key); known != KeyTable::kNotFound) {
            const BlockId block(known);
            if (!sameContent(block, own, end.generation, adapter))
                return;
            match.blocks.push_back(block);
            match.hostSlots.push_back(slotBeside(block));
            end.generation = generationOf(block);
            continue;
        }
        const std::int32_t slot = m_host->find({end.key, own, adapter, end.generation});
        if (slot == BlockStore::kNone)
            return;
        match.blocks.push_back(BlockId());
        match.hostSlots.push_back(slot);
        end.generation = m_host->content(slot).generation;
    }
}

KvCache::PrefixEnd KvCache::endOf(const Match& match, std::uint64_t adapter) const {
    if (match.blocks.empty())
        return {0, m_hasher->root(adapter), 0};
    if (const BlockId last = match.blocks.back(); last.valid())
        return {match.blocks.size(), m_pool.identity(last).key, generationOf(last)};
    const BlockContent last = m_host->content(match.hostSlots.back());
    return {match.blocks.size(), last.key, last.generation};
}

/// Of a preempted sequence: what is still in the pool, or what its fork source has, then its own slots. All of its
/// tokens but those that it had not computed.
std::int64_t KvCache::matchSwapped(const AdmitRequest& request) {
    const std::int64_t tokens = request.swapped->tokens();
    KV_CHECK(tokens < static_cast<std::int64_t>(request.tokens.size()),
             "a swapped table has more tokens than its sequence");
    const auto slots = m_host->slotsOf(*request.swapped);
    const std::size_t held = heldByWindow(m_match.blocks);
    if (const auto onDevice = static_cast<std::int64_t>(held) * blockSize(); onDevice >= tokens) {
        m_match.blocks.resize(held);
        return onDevice;
    }
    const auto whole = static_cast<std::size_t>(tokens / blockSize());
    const auto forked = static_cast<std::size_t>(forkableTokens(request) / blockSize());
    if (forked > m_match.blocks.size())
        m_match.assign(request.forkFrom->blocks().first(forked));
    m_match.blocks.resize(std::min(m_match.blocks.size(), whole));
    m_match.hostSlots.assign(slots.begin(), slots.begin() + static_cast<std::ptrdiff_t>(m_match.blocks.size()));
    for (std::size_t i = m_match.blocks.size(); i < slots.size(); ++i) {
        const BlockContent content = m_host->content(slots[i]);
        const std::int32_t known = m_host->findable(slots[i]) ? m_index.find(content.key) : KeyTable::kNotFound;
        const bool here = known != KeyTable::kNotFound && generationOf(BlockId(known)) == content.generation;
        m_match.blocks.push_back(here ? BlockId(known) : BlockId());
        m_match.hostSlots.push_back(slots[i]);
    }
    return tokens;
}

std::int64_t KvCache::reusable(std::span<const TokenId> tokens, std::uint64_t adapter) const {
    if (tokens.empty())
        return 0;
    Match match;
    findPrefix(tokens, adapter, match.blocks);
    return matchPool(tokens, adapter, match);
}

// ---- what it would take ----

/// Will a table of so many tokens read a companion of this block that is not in the window group now?
bool KvCache::needsCompanion(const Match& match, std::size_t index, std::int64_t tokens) const {
    return m_window && index >= m_window->firstSeen(tokens) &&
           !(match.blocks[index].valid() && m_window->companion(match.blocks[index]).valid());
}

double KvCache::loadNanos(const Match& match, std::int64_t tokens) const {
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < match.blocks.size(); ++i)
        bytes += (match.blocks[i].valid() ? 0 : m_host->config().blockBytes) +
                 (needsCompanion(match, i, tokens) ? m_host->config().windowBytes : 0);
    return m_rates.nanosPerByteLoaded * static_cast<double>(bytes);
}

/// Leading blocks of a table that an admission will find again, evicted or not: eviction moves them to the tier. As far
/// as their companions are there today; what a window group takes for others is lost.
std::int64_t KvCache::foundAgain(const TableRecord& table) const {
    const auto whole = static_cast<std::size_t>(table.tokens / blockSize());
    const auto end = table.blocks.begin() + static_cast<std::ptrdiff_t>(whole);
    const auto gone = std::find_if_not(table.blocks.begin(), end,
                                       [this](BlockId block) { return block.valid() && m_pool.facts(block).findable; });
    const auto leading = static_cast<std::size_t>(gone - table.blocks.begin());
    return static_cast<std::int64_t>(heldByWindow(std::span(table.blocks).first(leading)));
}

SwapEstimate KvCache::estimateSwap(const BlockTable& handle) const {
    SwapEstimate out;
    const TableRecord& table = record(handle);
    const HostConfig& host = m_host->config();
    out.blocks = blocksFor(table.tokens);
    std::int64_t staying = 0; // leading blocks that others read too
    const std::int64_t found = foundAgain(table);
    std::int32_t newSlots = 0, cachedHere = 0;
    std::uint64_t stored = 0, storedStaying = 0, storedFound = 0, loaded = 0, loadedFound = 0;
    for (std::int32_t i = 0; i < out.blocks; ++i) {
        const BlockId block = table.blocks[static_cast<std::size_t>(i)];
        const bool companion = bytesOf(table, static_cast<std::size_t>(i)).companion.valid();
        const std::int32_t slot = inHost(table, static_cast<std::size_t>(i));
        staying += staying == i && m_pool.facts(block).findable && m_pool.facts(block).references > 1 ? 1 : 0;
        newSlots += slot == BlockStore::kNone ? 1 : 0;
        cachedHere += slot != BlockStore::kNone && !m_host->isHeld(slot) ? 1 : 0;
        stored += slot == BlockStore::kNone ? host.blockBytes : 0;
        stored += companion && (slot == BlockStore::kNone || !m_host->hasCompanion(slot)) ? host.windowBytes : 0;
        if (staying > i)
            storedStaying = stored;
        else
            loaded += host.blockBytes + (companion ? host.windowBytes : 0);
        if (i < found) {
            storedFound = stored;
            loadedFound = loaded;
        }
    }
    if (hasTails() && table.tokens % blockSize() != 0) {
        newSlots += host.tailPieces();
        stored += host.tailBytes;
        loaded += host.tailBytes;
    }
    out.possible = newSlots <= m_host->available() - cachedHere;
    out.storeNanos = m_rates.nanosPerByteStored * static_cast<double>(stored);
    out.loadNanos = m_rates.nanosPerByteLoaded * static_cast<double>(loaded);
    out.readNanos = m_rates.toRead(std::min(staying * blockSize(), table.tokens), table.tokens);
    const double loadAndRead = m_rates.nanosPerByteLoaded * static_cast<double>(loadedFound) +
                               m_rates.toRead(found * blockSize(), table.tokens);
    if (found > staying && loadAndRead < out.readNanos) {
        out.lossNanos = kLossShare * (out.readNanos - loadAndRead);
        out.readNanos = loadAndRead;
        out.demoteNanos = m_rates.nanosPerByteStored * static_cast<double>(storedFound - storedStaying);
    }
    return out;
}

// ---- swapping out ----

/// Where the bytes of a table's block lie now: of a copy that is still to be made, in its source.
DeviceBlock KvCache::bytesOf(const TableRecord& table, std::size_t index) const {
    DeviceBlock bytes{table.blocks[index], BlockId()};
    for (const BlockCopy& copy : m_pendingCopies)
        if (copy.to == bytes.block)
            bytes.block = copy.from;
    if (m_window && index < table.window.blocks.size())
        bytes.companion = table.window.blocks[index];
    return bytes;
}

SwappedTable KvCache::swapOut(const BlockTable& handle) {
    rethrowBroken();
    const TableRecord& table = record(handle);
    const auto count = static_cast<std::size_t>(blocksFor(table.tokens));
    // What the tier has already is held first: room for the rest is not made of it.
    SwappedTable known = m_host->newTable(0);
    for (std::size_t i = 0; i < count; ++i)
        if (const std::int32_t slot = inHost(table, i); slot != BlockStore::kNone)
            m_host->add(known, slot);
    SwappedTable out = m_host->newTable(table.tokens);
    for (std::size_t i = 0; i < count; ++i) {
        const BlockId block = table.blocks[i];
        const DeviceBlock bytes = bytesOf(table, i);
        const std::size_t here = computedOf(table, i);
        const bool whole = here == static_cast<std::size_t>(blockSize()) && m_pool.facts(block).findable;
        m_pool.setInTransfer(block, true);
        const std::int32_t slot = whole ? m_host->store(contentOf(block), bytes) : BlockStore::kNone;
        bool kept = slot != BlockStore::kNone;
        if (kept)
            m_host->add(out, slot);
        else
            kept = m_host->addPrivate(out, m_pool.tokens(block).first(here), bytes);
        m_pool.setInTransfer(block, false);
        if (!kept)
            return {};
    }
    if (hasTails() && table.tokens % blockSize() != 0 && !m_host->addTail(out, table.tailSlot))
        return {};
    return out;
}

// ---- loading ----

/// What is to be loaded is held until it is: room is made by evictions, and these go down into the same tier.
void KvCache::holdLoads(bool hold) {
    for (const std::int32_t slot : m_match.hostSlots)
        if (slot != BlockStore::kNone)
            hold ? m_host->hold(slot) : m_host->drop(slot);
    if (!hold)
        m_match.hostSlots.clear();
}

/// Fills the blocks that the table lacks, behind which come the companions (openWindow), then the slots are let go.
/// How many blocks were loaded.
std::int32_t KvCache::loadBlocks(TableRecord& table, const AdmitRequest& request, Nanos now) {
    holdLoads(true);
    std::int32_t loaded = 0;
    for (std::size_t i = 0; i < m_match.hostSlots.size(); ++i) {
        if (table.blocks[i].valid())
            continue;
        const std::int32_t slot = m_match.hostSlots[i];
        const auto own = m_host->tokens(slot);
        const auto wanted = request.tokens.subspan(i * static_cast<std::size_t>(blockSize()), computedOf(table, i));
        KV_CHECK(std::equal(own.begin(), own.end(), wanted.begin(), wanted.end()),
                 "a slot of the host tier does not hold the tokens that it is loaded for");
        const BlockId block = table.blocks[i] = take(table, i, EvictionReason::Admission, now);
        m_pool.write(block, 0, own, now);
        m_pool.setInTransfer(block, true);
        m_host->load(slot, {block, BlockId()});
        m_pool.setInTransfer(block, false);
        if (own.size() == static_cast<std::size_t>(blockSize())) {
            m_pool.seal(block);
            publishLoaded(table, i, slot);
        } else if (hasTails()) {
            m_host->loadTail(*request.swapped, table.tailSlot);
        }
        ++loaded;
    }
    m_host->count().hitBlocks += static_cast<std::uint64_t>(loaded);
    m_host->count().declinedBlocks += static_cast<std::uint64_t>(m_match.declined);
    return loaded;
}

void KvCache::publishLoaded(const TableRecord& table, std::size_t index, std::int32_t slot) {
    if (!m_host->findable(slot))
        return;
    const BlockContent content = m_host->content(slot);
    const BlockId parent = index == 0 ? BlockId() : table.blocks[index - 1];
    if (content.parentGeneration != generationOf(parent) || (parent.valid() && !m_pool.facts(parent).findable) ||
        m_index.find(content.key) != KeyTable::kNotFound)
        return;
    m_pool.adoptGeneration(table.blocks[index], content.generation);
    m_index.set(content.key, table.blocks[index].value());
    m_pool.makeFindable(table.blocks[index], content.key, parent);
}

/// The companion of a block of an admission whose window sees it.
BlockId KvCache::loadCompanion(const TableRecord& table, std::size_t index) {
    KV_CHECK(m_host && index < m_match.hostSlots.size() && m_match.hostSlots[index] != BlockStore::kNone,
             "a companion was to be read that is not there any more");
    const BlockId companion = m_window->take(table.blocks[index]);
    m_host->load(m_match.hostSlots[index], {BlockId(), companion});
    return companion;
}

void KvCache::checkHost() const {
    m_host->checkInvariants();
    for (std::int32_t i = 0; i < numBlocks(); ++i) {
        const BlockId block(i);
        KV_CHECK(!m_pool.facts(block).inTransfer, "a block still moves although nothing is being moved");
        const std::int32_t slot = inHost(block);
        KV_CHECK(slot == BlockStore::kNone || m_host->content(slot).generation == generationOf(block),
                 "equal content has one generation in the pool and another in the host tier");
    }
}

} // namespace kvscope::kv
