// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/ids.h"
#include "engine/kv/kv_cache.h"

namespace kvscope::sched {

/// One sequence's share of a step: compute its tokens [from, to). There is no prefill and no decode here, only tokens
/// that are known but not computed.
struct StepItem {
    SequenceId sequence;
    RequestId request;
    std::int64_t from = 0; ///< absolute positions
    std::int64_t to = 0;
    std::span<const TokenId> tokens; ///< (to - from)
    std::span<const BlockId> blocks; ///< (ceil(to / blockSize)): its block table
    /// With a window group: the blocks that its layers read and write, (as `blocks`), invalid where none is needed.
    std::span<const BlockId> windowBlocks;
    std::int32_t tailSlot = -1; ///< where its block being filled lies; -1 = blocks keep their form
    bool samples = false;       ///< everything known is computed after this step: draw the next token
    std::int64_t drawIndex = 0; ///< index in the answer of the token to draw
};

/// What one step does. Spans are valid until the plan is completed or abandoned.
struct StepPlan {
    std::uint64_t number = 0; ///< 1, 2, ...
    std::vector<StepItem> items;
    std::vector<kv::BlockCopy> copies; ///< to be done before anything is written
    std::int64_t tokens = 0;           ///< of all items; at most the token budget
    std::int32_t draws = 0;            ///< items that sample

    bool empty() const { return items.empty(); }
};

/// The token drawn for one item that samples, and whether the sequence ends with it (end token, stop string).
struct DrawnToken {
    TokenId token = -1;
    bool ends = false;
};

} // namespace kvscope::sched
