// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/kv/host_tier.h"

#include <algorithm>

#include "engine/base/check.h"
#include "engine/kv/record_slots.h"

namespace kvscope::kv {

namespace {

constexpr std::uint64_t kRank = 0; ///< of all cached entries: the order is that in which they were used

} // namespace

std::int64_t SwappedTable::tokens() const {
    return m_own.keeper() ? m_own.keeper()->m_swapped[m_own.record()].tokens : 0;
}
void SwappedTable::giveBack(HostTier& tier, std::int32_t record) noexcept {
    tier.releaseTable(record);
}

HostTier::HostTier(const HostConfig& config, std::int32_t blockSize)
    : m_config(config)
    , m_blockSize(blockSize)
    , m_entries(at(config.slotCount))
    , m_tokens(at(config.slotCount) * static_cast<std::size_t>(blockSize))
    , m_free(config.slotCount)
    , m_index(config.slotCount) {
    KV_CHECK(config.slotCount > 0 && config.mover != nullptr,
             "a host tier needs slots, and somebody who moves the bytes");
    for (std::int32_t slot = config.slotCount; slot > 0; --slot)
        m_free.pushFront(BlockId(slot - 1));
}

std::span<const TokenId> HostTier::tokens(std::int32_t slot) const {
    return {&m_tokens[at(slot) * static_cast<std::size_t>(m_blockSize)], entry(slot).fill};
}

BlockContent HostTier::content(std::int32_t slot) const {
    const Entry& e = entry(slot);
    return {e.key, tokens(slot), e.adapter, e.parentGeneration, e.generation};
}

bool HostTier::holds(std::int32_t slot, const BlockContent& content) const {
    const Entry& e = entry(slot);
    const auto own = tokens(slot);
    return e.adapter == content.adapter && e.parentGeneration == content.parentGeneration &&
           std::equal(own.begin(), own.end(), content.tokens.begin(), content.tokens.end());
}

std::int32_t HostTier::find(const BlockContent& content) const {
    const std::int32_t slot = m_index.find(content.key);
    return slot != KeyTable::kNotFound && holds(slot, content) ? slot : kNone;
}

std::int32_t HostTier::store(const BlockContent& content, const DeviceBlock& from) {
    if (const std::int32_t known = m_index.find(content.key); known != KeyTable::kNotFound) {
        if (holds(known, content)) {
            if (from.companion.valid() && !entry(known).companion)
                moveIn(known, {BlockId(), from.companion});
            hold(known); // and so it becomes the one used last
            drop(known);
            return known;
        }
        if (isHeld(known)) // other content under the same key
            return kNone;
        forget(known);
    }
    const std::int32_t slot = take();
    if (slot == kNone)
        return kNone;
    Entry& e = entry(slot);
    e.key = content.key;
    e.adapter = content.adapter;
    e.parentGeneration = content.parentGeneration;
    e.generation = content.generation;
    e.findable = true;
    setTokens(slot, content.tokens);
    moveIn(slot, from);
    m_index.set(e.key, slot);
    m_free.insert(BlockId(slot), kRank);
    ++m_version;
    return slot;
}

/// An empty slot, out of the free list; the cached entry used longest ago goes if need be. kNone = all are held.
std::int32_t HostTier::take() {
    const BlockId front = m_free.front();
    if (!front.valid()) {
        ++m_counters.refused;
        return kNone;
    }
    if (entry(front.value()).used) {
        ++m_counters.evictions;
        forget(front.value());
    }
    m_free.remove(front);
    entry(front.value()) = Entry{};
    entry(front.value()).used = true;
    ++m_used;
    return front.value();
}

/// A cached entry becomes an empty slot.
void HostTier::forget(std::int32_t slot) {
    Entry& e = entry(slot);
    KV_CHECK(e.used && e.findable && e.references == 0, "a slot of the host tier was emptied that somebody holds");
    m_index.erase(e.key);
    e = Entry{};
    m_free.remove(BlockId(slot));
    m_free.pushFront(BlockId(slot));
    --m_used;
    ++m_version;
}

void HostTier::moveIn(std::int32_t slot, const DeviceBlock& from) {
    m_config.mover->store(from, slot);
    m_counters.storedBlocks += from.block.valid() ? 1 : 0;
    m_counters.storedBytes += from.bytes(m_config.blockBytes, m_config.windowBytes);
    if (from.companion.valid() && !entry(slot).companion) {
        entry(slot).companion = true;
        ++m_version;
    }
}

void HostTier::load(std::int32_t slot, const DeviceBlock& to) {
    KV_CHECK(entry(slot).used && (!to.companion.valid() || entry(slot).companion),
             "something was to be loaded that the host tier does not hold");
    m_config.mover->load(slot, to);
    m_counters.loadedBlocks += to.block.valid() ? 1 : 0;
    m_counters.loadedBytes += to.bytes(m_config.blockBytes, m_config.windowBytes);
    if (!isHeld(slot)) {
        hold(slot);
        drop(slot);
    }
}

void HostTier::setTokens(std::int32_t slot, std::span<const TokenId> tokens) {
    KV_CHECK(tokens.size() <= static_cast<std::size_t>(m_blockSize), "a block has no more tokens than slots");
    std::copy(tokens.begin(), tokens.end(), m_tokens.begin() + static_cast<std::ptrdiff_t>(slot) * m_blockSize);
    entry(slot).fill = static_cast<std::uint8_t>(tokens.size());
}

void HostTier::hold(std::int32_t slot) {
    KV_CHECK(entry(slot).used, "an empty slot of the host tier was held");
    if (entry(slot).references++ == 0)
        m_free.remove(BlockId(slot));
}

void HostTier::drop(std::int32_t slot) {
    Entry& e = entry(slot);
    KV_CHECK(e.references > 0, "a slot of the host tier was given back that nobody held");
    if (--e.references > 0)
        return;
    if (e.findable) {
        m_free.insert(BlockId(slot), kRank);
        return;
    }
    e = Entry{};
    m_free.pushFront(BlockId(slot));
    --m_used;
}

// ---- swapped tables ----

SwappedTable HostTier::newTable(std::int64_t tokens) {
    const std::int32_t index = takeRecord(m_swapped, m_freeSwapped);
    m_swapped[at(index)].tokens = tokens;
    m_swapped[at(index)].live = true;
    return {this, index};
}

void HostTier::add(const SwappedTable& table, std::int32_t slot) {
    hold(slot);
    record(table).blocks.push_back(slot);
}

bool HostTier::addPrivate(const SwappedTable& table, std::span<const TokenId> tokens, const DeviceBlock& from) {
    const std::int32_t slot = take();
    if (slot == kNone)
        return false;
    entry(slot).references = 1;
    record(table).blocks.push_back(slot);
    setTokens(slot, tokens);
    moveIn(slot, from);
    return true;
}

bool HostTier::addTail(const SwappedTable& table, std::int32_t tailSlot) {
    for (std::int32_t piece = 0; piece < m_config.tailPieces(); ++piece) {
        const std::int32_t slot = take();
        if (slot == kNone)
            return false;
        entry(slot).references = 1;
        record(table).tail.push_back(slot);
        m_config.mover->storeTail(tailSlot, piece, slot);
    }
    m_counters.storedBytes += m_config.tailBytes;
    return true;
}

std::span<const std::int32_t> HostTier::slotsOf(const SwappedTable& table) const {
    return m_swapped[table.m_own.record()].blocks;
}

void HostTier::loadTail(const SwappedTable& table, std::int32_t tailSlot) {
    std::int32_t piece = 0;
    for (const std::int32_t slot : record(table).tail)
        m_config.mover->loadTail(slot, piece++, tailSlot);
    m_counters.loadedBytes += piece > 0 ? m_config.tailBytes : 0;
}

/// The last block first, as a device table gives its blocks back.
void HostTier::releaseTable(std::int32_t index) noexcept {
    if (m_abandoned)
        return;
    // Called by destructors: a broken invariant found here is told by the next call that may throw.
    try {
        Swapped& table = m_swapped[at(index)];
        for (auto slot = table.tail.rbegin(); slot != table.tail.rend(); ++slot)
            drop(*slot);
        for (auto slot = table.blocks.rbegin(); slot != table.blocks.rend(); ++slot)
            drop(*slot);
        table.tail.clear();
        table.blocks.clear();
        table.tokens = 0;
        table.live = false;
        m_freeSwapped.push_back(index);
    } catch (...) {
        m_broken = std::current_exception();
    }
}

void HostTier::checkInvariants() const {
    rethrowBroken();
    std::vector<std::int32_t> references(m_entries.size(), 0);
    for (const Swapped& table : m_swapped) {
        KV_CHECK(table.live || (table.blocks.empty() && table.tail.empty()), "a released swap still holds slots");
        for (const auto* list : {&table.blocks, &table.tail})
            for (const std::int32_t slot : *list)
                ++references[at(slot)];
    }
    std::int32_t findableEntries = 0, usedSlots = 0, length = 0;
    for (std::int32_t slot = 0; slot < slotCount(); ++slot) {
        const Entry& e = entry(slot);
        KV_CHECK(e.references == references[at(slot)], "the references of a host slot are not the tables that hold it");
        KV_CHECK(m_free.contains(BlockId(slot)) == (e.references == 0),
                 "a host slot is in the free list although it is held, or the other way round");
        KV_CHECK(e.references > 0 || m_free.isCached(BlockId(slot)) == e.used,
                 "a host slot queues up as something else than it is");
        KV_CHECK(e.used || (!e.findable && e.fill == 0), "an empty host slot claims to hold something");
        KV_CHECK(!e.findable || (m_index.find(e.key) == slot && e.fill == m_blockSize),
                 "a host entry can be found, but the index leads elsewhere or it is not whole");
        KV_CHECK(!e.used || e.findable || e.references > 0, "a host slot keeps what nobody can ask for");
        findableEntries += e.findable ? 1 : 0;
        usedSlots += e.used ? 1 : 0;
    }
    KV_CHECK(findableEntries == m_index.size(), "the host index has entries that no slot carries");
    KV_CHECK(usedSlots == m_used, "the used host slots are not those of a recount");
    for (BlockId slot = m_free.front(); slot.valid(); slot = m_free.after(slot))
        KV_CHECK(++length <= m_free.size(), "the free list of the host tier has a cycle");
    KV_CHECK(length == m_free.size(), "the free list of the host tier is not as long as it is counted");
    m_free.checkMarks();
}

} // namespace kvscope::kv
