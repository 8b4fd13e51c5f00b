// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/base/ids.h"
#include "engine/kv/free_list.h"

namespace kvscope::kv {

/// The blocks of the layers that look back over a window only: a group beside that of the pool.
///
/// What such layers wrote for the tokens of a pool's block lies in a block of this group, its *companion*. The two are
/// filled, shared and forgotten together, so key, tokens and generation of the pool's block say what the companion
/// holds, and no second index is needed. A companion is held by the tables whose window has not passed it. Held by
/// nobody it is cached: there for whoever finds the pool's block, until its room is needed; what a window has passed
/// goes first, then what was released longest ago.
///
/// Thread: the engine thread. Nothing is allocated after construction.
class WindowGroup {
public:
    /// `window` in tokens, > 0. There are never more companions than `poolBlocks`, so more blocks are not made.
    WindowGroup(std::int32_t window, std::int32_t numBlocks, std::int32_t poolBlocks, std::int32_t blockSize);

    std::int32_t window() const { return m_window; }
    std::int32_t numBlocks() const { return static_cast<std::int32_t>(m_owners.size()); }
    std::int32_t available() const { return m_free.size(); } ///< empty + cached
    std::int32_t cached() const { return m_cached; }
    std::uint64_t evictions() const { return m_evictions; }
    /// Index in its table of the first block that the token at `position` sees.
    std::size_t firstSeen(std::int64_t position) const {
        return position < m_window ? 0 : static_cast<std::size_t>((position - m_window + 1) / m_blockSize);
    }
    /// Of a block of the pool; invalid = what the layers wrote for it is not there any more.
    BlockId companion(BlockId block) const { return m_companions[at(block)]; }
    /// The pool's block that it belongs to; invalid = it is empty.
    BlockId ownerOf(BlockId companion) const { return m_owners[at(companion)]; }
    std::int32_t references(BlockId companion) const { return m_references[at(companion)]; }
    const FreeList& freeList() const { return m_free; }

    // ---- changes; `block` is always the pool's ----

    /// A companion for a block that has none, held once. Evicts if need be; there must be room.
    BlockId take(BlockId block);
    BlockId hold(BlockId block);
    /// `passed`: the window has left it, so it goes before those that a finished sequence leaves.
    void drop(BlockId block, bool passed);
    /// Equal content: the companion of `from` becomes that of `to`, which has none.
    void move(BlockId from, BlockId to);
    /// The block has lost its content. Nobody holds its companion, if there is one.
    void forget(BlockId block);

    /// The group against itself, by recount; throws BrokenInvariant.
    void checkInvariants() const;

private:
    static std::size_t at(BlockId block) { return static_cast<std::size_t>(block.value()); }

    std::int32_t m_window;
    std::int32_t m_blockSize;
    std::vector<BlockId> m_companions; ///< by the pool's block
    std::vector<BlockId> m_owners;     ///< by companion
    std::vector<std::int32_t> m_references;
    FreeList m_free;
    std::int32_t m_cached = 0;
    std::uint64_t m_evictions = 0;
};

} // namespace kvscope::kv
