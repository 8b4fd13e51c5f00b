// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

#include "engine/base/clock.h"
#include "engine/kv/block_state.h"

namespace kvscope::kv {

/// What is known of one block, besides its identity (key, generation) and its tokens. 32 bytes, so that the whole pool
/// is read quickly when the map is drawn. Only BlockPool changes it.
struct BlockFacts {
    Nanos lastRead = 0;              ///< when a step read or wrote it last
    std::int32_t references = 0;     ///< table entries, and copies that are still to be made from it
    std::int32_t pins = 0;           ///< each pin keeps it from being evicted
    std::int32_t firstPosition = -1; ///< position of its first slot in the sequence that filled it
    std::uint16_t owner = 0;         ///< small number of the owner that took it last (OwnerNumbers); 0 = nobody
    std::uint8_t fill = 0;           ///< highest filled slot + 1, 0..blockSize
    bool sealed : 1 = false;         ///< full, and written by all layers: its content never changes again
    bool findable : 1 = false;       ///< the prefix index leads to it
    bool inTransfer : 1 = false;     ///< moving between tiers; whoever moves it holds a reference
    bool reserved : 1 = false;       ///< contiguous allocator: in a request's extent, nothing written yet

    /// The reference count of the contract: 0 <=> the block is in the free list.
    std::int32_t count() const { return references + pins; }
};
static_assert(sizeof(BlockFacts) <= 32);

/// The one function that decides what state a block is drawn in, for map, legend, curves, CLI and log. The first match
/// counts, so the states partition the pool.
constexpr BlockState drawnState(const BlockFacts& block) {
    if (block.inTransfer)
        return BlockState::InTransfer;
    if (block.reserved)
        return BlockState::Reserved;
    if (block.references + block.pins > 0) {
        if (!block.sealed)
            return BlockState::Filling;
        if (block.pins > 0)
            return BlockState::Pinned;
        return block.references > 1 ? BlockState::Shared : BlockState::Active;
    }
    return block.sealed && block.findable ? BlockState::Cached : BlockState::Empty;
}

} // namespace kvscope::kv
