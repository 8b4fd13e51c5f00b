// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>

namespace kvscope::kv {

/// The drawn state of a block. One function (drawnState in block_facts.h) decides it for map, legend, curves, CLI and
/// log; the states partition the pool. Values are stable: they stand in recorded sessions.
enum class BlockState : std::uint8_t {
    Empty = 0,      ///< no references, nothing findable in it
    Filling = 1,    ///< referenced, not sealed
    Active = 2,     ///< sealed, one reference beside pins
    Shared = 3,     ///< two or more references beside pins
    Cached = 4,     ///< no references, sealed, findable
    Pinned = 5,     ///< never evicted
    InTransfer = 6, ///< moving between tiers
    Reserved = 7,   ///< contiguous allocator only: in a request's extent, nothing written yet
};
inline constexpr std::size_t kBlockStateCount = 8;

/// "empty", "filling", ... as in JSON output and logs. The window has its own, translated words.
const char* blockStateName(BlockState state);

} // namespace kvscope::kv
