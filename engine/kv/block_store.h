// SPDX-License-Identifier: GPL-3.0-or-later
//
// What lies below the pool: stores that keep the content of sealed blocks by their name, and whoever moves the bytes.
// The cache decides and knows no bytes; so it runs without kernels, and a replay moves nothing.
#pragma once

#include <cstdint>
#include <span>

#include "engine/base/clock.h"
#include "engine/base/ids.h"
#include "engine/kv/block_key.h"

namespace kvscope::kv {

/// Where a block's bytes lie on the device. An invalid part is not meant.
struct DeviceBlock {
    BlockId block;     ///< of the pool
    BlockId companion; ///< of the window group

    /// Of what is meant, by the bytes of a block and of a companion.
    std::uint64_t bytes(std::uint64_t blockBytes, std::uint64_t companionBytes) const {
        return (block.valid() ? blockBytes : 0) + (companion.valid() ? companionBytes : 0);
    }
};

/// Time spent on moving.
struct MoveTimes {
    Nanos store = 0, load = 0;
};

/// Moves bytes between the device and the slots of the host tier. A slot holds a block and its companion, or a piece of
/// a tail slot. Called in the order of the stream of steps: what a call reads is as the calls and steps before it left
/// it, what it writes is there for those after it, and the copies of a step come after all that was moved before the
/// step was submitted. So a block may be taken for new content as soon as the call that stores it has returned.
///
/// Thread: that of the cache.
class BlockMover {
public:
    virtual ~BlockMover() = default;
    virtual void store(const DeviceBlock& from, std::int32_t slot) = 0;
    virtual void load(std::int32_t slot, const DeviceBlock& to) = 0;
    /// The bytes [piece x slot size, ...) of a tail slot.
    virtual void storeTail(std::int32_t tailSlot, std::int32_t piece, std::int32_t slot) = 0;
    virtual void loadTail(std::int32_t slot, std::int32_t piece, std::int32_t tailSlot) = 0;
    /// Of all calls so far.
    virtual MoveTimes times() const = 0;
};

/// Where only decisions matter (a replay, a virtual clock).
class NoMover final : public BlockMover {
public:
    void store(const DeviceBlock&, std::int32_t) override {}
    void load(std::int32_t, const DeviceBlock&) override {}
    void storeTail(std::int32_t, std::int32_t, std::int32_t) override {}
    void loadTail(std::int32_t, std::int32_t, std::int32_t) override {}
    MoveTimes times() const override { return {}; }
};

/// What a sealed block holds. The key only leads to a candidate; tokens, adapter and the parent's generation are
/// compared, so that a collision costs time, never content.
struct BlockContent {
    BlockKey key;
    std::span<const TokenId> tokens; ///< of a whole block
    std::uint64_t adapter = 0;
    std::uint64_t parentGeneration = 0; ///< see BlockIdentity; 0 = it is the first of its sequence
    std::uint64_t generation = 0;       ///< its own; equal content has equal ones, so it is not compared
};

/// A tier below the pool: sealed blocks by content. The host tier is one; a disk tier would be another below it, with
/// the same verbs.
///
/// Thread: that of the cache.
class BlockStore {
public:
    static constexpr std::int32_t kNone = -1;

    virtual ~BlockStore() = default;
    /// The entry that holds this content; kNone = it is not there.
    virtual std::int32_t find(const BlockContent& content) const = 0;
    /// What an entry holds. Valid until the store changes.
    virtual BlockContent content(std::int32_t entry) const = 0;
    virtual bool hasCompanion(std::int32_t entry) const = 0;
    /// Keeps it; what is there already is not moved again, except a companion that it lacks. The entry, kNone = there
    /// is no room for it now, or other content has its key and is in use.
    virtual std::int32_t store(const BlockContent& content, const DeviceBlock& from) = 0;
    /// The entry stays, and counts as used.
    virtual void load(std::int32_t entry, const DeviceBlock& to) = 0;
};

} // namespace kvscope::kv
