// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/ids.h"
#include "kernels/backend.h"

namespace kvscope::exec {

/// Flattens the sequences of one step into the arrays of kernels::StepInputs.
///
/// The buffers live as long as the runner and have the capacities of the program, so that a step allocates nothing.
/// Use: clear(), one addSequence per sequence in plan order, then view() (valid until the next clear()).
class StepInputBuffers {
public:
    StepInputBuffers(const kernels::Program& capacities, std::int32_t blockSize);

    void clear();
    /// `tokens` are the tokens computed in this step, the first of them at absolute position `firstPosition`; `table`
    /// covers every position up to the last of them. `logitOffsets` (ascending, of `tokens`) get logits.
    /// `tailSlot`: of a quantized KV cache, else -1. `windowTable`: of a window group, as long as `table` is used; else
    /// empty.
    /// Returns the index of the sequence's first logit row in the step.
    std::int32_t addSequence(std::span<const TokenId> tokens, std::int64_t firstPosition,
                             std::span<const BlockId> table, std::span<const std::int32_t> logitOffsets,
                             std::int32_t tailSlot = -1, std::span<const BlockId> windowTable = {});
    /// Copy-on-write: the first `slotCount` slots of `from` go to `to` before anything of this step is written.
    void addCopy(BlockId from, BlockId to, std::int32_t slotCount);

    kernels::StepInputs view() const;
    std::int32_t tokens() const { return static_cast<std::int32_t>(m_tokenIds.size()); }
    std::int32_t logitRows() const { return static_cast<std::int32_t>(m_logitRows.size()); }

private:
    std::int32_t m_blockSize;
    kernels::Program m_capacities; ///< only the max... fields are kept
    std::vector<std::int32_t> m_tokenIds, m_positions, m_slotMapping;
    std::vector<std::int32_t> m_cuQueryLens, m_sequenceLengths, m_blockTables, m_tableStarts, m_logitRows;
    std::vector<std::int32_t> m_tailSlots;    ///< empty, or one a sequence
    std::vector<std::int32_t> m_windowTables; ///< empty, or as m_blockTables
    std::vector<kernels::BlockCopy> m_copies;
};

} // namespace kvscope::exec
