// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <span>
#include <vector>

#include "engine/kv/block_store.h"
#include "engine/kv/free_list.h"
#include "engine/kv/key_table.h"
#include "engine/kv/record_slots.h"

namespace kvscope::kv {

/// Size of the host tier, and of what is moved, in bytes.
struct HostConfig {
    std::int32_t slotCount = 0; ///< 0 = there is no host tier
    std::uint64_t blockBytes = 0;
    std::uint64_t windowBytes = 0; ///< of a companion; 0 = there is no window group
    std::uint64_t tailBytes = 0;   ///< of one tail slot; 0 = blocks keep their form
    BlockMover* mover = nullptr;   ///< outlives the cache; not null where there are slots

    std::uint64_t slotBytes() const { return blockBytes + windowBytes; }
    /// Slots that a tail takes beside that of its block.
    std::int32_t tailPieces() const {
        return slotBytes() == 0 ? 0 : static_cast<std::int32_t>((tailBytes + slotBytes() - 1) / slotBytes());
    }
};

/// Cumulative since the tier was made.
struct HostCounters {
    std::uint64_t storedBlocks = 0, loadedBlocks = 0; ///< blocks of the pool whose bytes were moved
    std::uint64_t storedBytes = 0, loadedBytes = 0;   ///< companions and tails included
    std::uint64_t evictions = 0;                      ///< entries forgotten for room
    std::uint64_t refused = 0;                        ///< blocks not kept: all slots were held
    std::uint64_t hitBlocks = 0;                      ///< found here by an admission, and loaded
    std::uint64_t declinedBlocks = 0;                 ///< found here, but computing them again was estimated cheaper
};

class HostTier;

/// What a preempted sequence left in the host tier: its blocks, the partial one and its tail included, held until the
/// handle dies. Move-only. Must not outlive the cache.
class SwappedTable {
public:
    SwappedTable() = default;
    explicit operator bool() const { return m_own.keeper() != nullptr; }
    std::int64_t tokens() const; ///< whose K/V it holds; 0 on an empty handle
    void release() noexcept { m_own.release(); }

private:
    friend class HostTier;
    friend class RecordOwner<HostTier, SwappedTable>;
    SwappedTable(HostTier* tier, std::int32_t record) : m_own(tier, record) {}
    static void giveBack(HostTier& tier, std::int32_t record) noexcept;
    RecordOwner<HostTier, SwappedTable> m_own;
};

/// Host memory below the pool: a fixed number of slots. An entry is content that can be found (cached: least recently
/// used goes first; or held by somebody who is about to load it), or a private part of a swapped table. What is loaded
/// stays, so that a block that goes to and fro is stored once.
///
/// Thread: the engine thread. Nothing is allocated after construction, but for the lists of swapped tables.
class HostTier final : public BlockStore {
public:
    HostTier(const HostConfig& config, std::int32_t blockSize);

    const HostConfig& config() const { return m_config; }
    std::int32_t slotCount() const { return m_config.slotCount; }
    std::int32_t used() const { return m_used; }             ///< hold something
    std::int32_t available() const { return m_free.size(); } ///< empty, or cached
    /// Of used slots, those that somebody holds.
    std::int32_t held() const { return slotCount() - available(); }
    const HostCounters& counters() const { return m_counters; }
    HostCounters& count() { return m_counters; }
    MoveTimes times() const { return m_config.mover->times(); }
    /// Moves with every change of what can be found.
    std::uint64_t version() const { return m_version; }

    std::int32_t find(const BlockContent& content) const override;
    BlockContent content(std::int32_t slot) const override;
    bool hasCompanion(std::int32_t slot) const override { return entry(slot).companion; }
    std::int32_t store(const BlockContent& content, const DeviceBlock& from) override;
    void load(std::int32_t slot, const DeviceBlock& to) override;

    bool findable(std::int32_t slot) const { return entry(slot).findable; }
    bool isHeld(std::int32_t slot) const { return entry(slot).references > 0; }
    /// (fill) what the slot's block holds
    std::span<const TokenId> tokens(std::int32_t slot) const;
    void hold(std::int32_t slot);
    /// Held by nobody, what can be found is cached as the one used last, anything else is forgotten.
    void drop(std::int32_t slot);

    // ---- swapped tables ----

    /// Holds nothing yet.
    SwappedTable newTable(std::int64_t tokens);
    /// The next block of the table is what this entry holds.
    void add(const SwappedTable& table, std::int32_t slot);
    /// The next block of the table, which nobody else can find; false: there is no room.
    bool addPrivate(const SwappedTable& table, std::span<const TokenId> tokens, const DeviceBlock& from);
    bool addTail(const SwappedTable& table, std::int32_t tailSlot);
    std::span<const std::int32_t> slotsOf(const SwappedTable& table) const; ///< by block of the table
    void loadTail(const SwappedTable& table, std::int32_t tailSlot);

    /// The tier against itself, by recount; throws BrokenInvariant.
    void checkInvariants() const;
    /// What was found broken while a table was released.
    void rethrowBroken() const {
        if (m_broken)
            std::rethrow_exception(m_broken);
    }
    /// After a broken invariant: releasing a table only forgets it.
    void abandon() noexcept { m_abandoned = true; }

private:
    friend class SwappedTable;
    struct Entry {
        BlockKey key;
        std::uint64_t adapter = 0, parentGeneration = 0, generation = 0;
        std::int32_t references = 0;
        std::uint8_t fill = 0;
        bool used = false, findable = false, companion = false;
    };
    struct Swapped {
        std::vector<std::int32_t> blocks, tail;
        std::int64_t tokens = 0;
        bool live = false;
    };

    static std::size_t at(std::int32_t slot) { return static_cast<std::size_t>(slot); }
    Entry& entry(std::int32_t slot) { return m_entries[at(slot)]; }
    const Entry& entry(std::int32_t slot) const { return m_entries[at(slot)]; }
    Swapped& record(const SwappedTable& table) { return m_swapped[table.m_own.record()]; }
    bool holds(std::int32_t slot, const BlockContent& content) const;
    std::int32_t take();
    void forget(std::int32_t slot);
    void moveIn(std::int32_t slot, const DeviceBlock& from);
    void setTokens(std::int32_t slot, std::span<const TokenId> tokens);
    void releaseTable(std::int32_t record) noexcept;

    HostConfig m_config;
    std::int32_t m_blockSize;
    std::vector<Entry> m_entries;
    std::vector<TokenId> m_tokens; ///< (slots, blockSize)
    FreeList m_free;
    KeyTable m_index; ///< key -> slot
    std::deque<Swapped> m_swapped;
    std::vector<std::int32_t> m_freeSwapped;
    std::int32_t m_used = 0;
    std::uint64_t m_version = 0;
    HostCounters m_counters;
    std::exception_ptr m_broken;
    bool m_abandoned = false;
};

} // namespace kvscope::kv
