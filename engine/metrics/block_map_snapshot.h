// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/ids.h"
#include "engine/kv/block_state.h"

namespace kvscope::metrics {

/// One block as the map draws it: 8 bytes, so that 65,536 blocks are half a megabyte. Meaning only, no colours.
struct BlockCell {
    kv::BlockState state = kv::BlockState::Empty;
    std::uint8_t fill = 0;        ///< filled slots, 0..blockSize (at most 64)
    std::uint16_t owner = 0;      ///< index into BlockMapSnapshot::owners + 1; 0 = nobody
    std::uint16_t references = 0; ///< saturates
    std::uint16_t lastRead = 0;   ///< quarter seconds since the session began, modulo 2^16 (wraps after 4.5 h)
};
static_assert(sizeof(BlockCell) == 8);

/// The whole pool at one moment. Published at most every 16 ms and only when the cache epoch moved.
struct BlockMapSnapshot {
    Nanos time = 0;
    std::uint64_t epoch = 0; ///< moves with every change of any block; equal epoch = equal map
    std::int32_t blockSize = 0;
    std::vector<BlockCell> cells; ///< (numBlocks)
    std::vector<OwnerId> owners;  ///< small owner numbers of `cells` resolve here
};

} // namespace kvscope::metrics
