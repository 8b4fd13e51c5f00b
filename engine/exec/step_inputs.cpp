// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/exec/step_inputs.h"

#include "engine/base/check.h"

namespace kvscope::exec {

StepInputBuffers::StepInputBuffers(const kernels::Program& capacities, std::int32_t blockSize)
    : m_blockSize(blockSize) {
    m_capacities.maxTokens = capacities.maxTokens;
    m_capacities.maxSequences = capacities.maxSequences;
    m_capacities.maxLogitRows = capacities.maxLogitRows;
    m_capacities.maxTableEntries = capacities.maxTableEntries;
    const auto tokens = static_cast<std::size_t>(capacities.maxTokens);
    const auto sequences = static_cast<std::size_t>(capacities.maxSequences);
    m_tokenIds.reserve(tokens);
    m_positions.reserve(tokens);
    m_slotMapping.reserve(tokens);
    m_cuQueryLens.reserve(sequences + 1);
    m_sequenceLengths.reserve(sequences);
    m_tableStarts.reserve(sequences + 1);
    m_blockTables.reserve(static_cast<std::size_t>(capacities.maxTableEntries));
    m_logitRows.reserve(static_cast<std::size_t>(capacities.maxLogitRows));
    m_copies.reserve(sequences);
    m_tailSlots.reserve(sequences);
    m_windowTables.reserve(static_cast<std::size_t>(capacities.maxTableEntries));
    clear();
}

void StepInputBuffers::clear() {
    for (auto* v : {&m_tokenIds, &m_positions, &m_slotMapping, &m_cuQueryLens, &m_sequenceLengths, &m_blockTables,
                    &m_tableStarts, &m_logitRows, &m_tailSlots, &m_windowTables})
        v->clear();
    m_copies.clear();
    m_cuQueryLens.push_back(0);
    m_tableStarts.push_back(0);
}

std::int32_t StepInputBuffers::addSequence(std::span<const TokenId> tokens, std::int64_t firstPosition,
                                           std::span<const BlockId> table, std::span<const std::int32_t> logitOffsets,
                                           std::int32_t tailSlot, std::span<const BlockId> windowTable) {
    const auto count = static_cast<std::int32_t>(tokens.size());
    const std::int64_t length = firstPosition + count;
    const auto entries = static_cast<std::size_t>((length + m_blockSize - 1) / m_blockSize);
    KV_CHECK(count > 0, "A sequence entered a step without tokens");
    KV_CHECK(entries <= table.size(), "A block table does not cover the tokens of its sequence");
    KV_CHECK(windowTable.empty() || entries <= windowTable.size(), "A window table is shorter than its block table");
    const auto logitRows = static_cast<std::int32_t>(logitOffsets.size());
    KV_CHECK(logitRows == 0 || (logitOffsets.front() >= 0 && logitOffsets.back() < count),
             "Logits were asked for outside the tokens of the step");
    KV_CHECK(static_cast<std::int32_t>(m_tokenIds.size()) + count <= m_capacities.maxTokens &&
                 static_cast<std::int32_t>(m_sequenceLengths.size()) < m_capacities.maxSequences &&
                 static_cast<std::int32_t>(m_logitRows.size()) + logitRows <= m_capacities.maxLogitRows &&
                 m_blockTables.size() + entries <= static_cast<std::size_t>(m_capacities.maxTableEntries),
             "A step exceeds the capacity of the persistent inputs");
    const auto firstRow = static_cast<std::int32_t>(m_tokenIds.size());
    for (std::int32_t i = 0; i < count; ++i) {
        const std::int64_t position = firstPosition + i;
        const BlockId block = table[static_cast<std::size_t>(position / m_blockSize)];
        KV_CHECK(block.valid(), "A block table has a hole where a token is written");
        m_tokenIds.push_back(tokens[static_cast<std::size_t>(i)]);
        m_positions.push_back(static_cast<std::int32_t>(position));
        m_slotMapping.push_back(block.value() * m_blockSize + static_cast<std::int32_t>(position % m_blockSize));
    }
    for (std::size_t i = 0; i < entries; ++i)
        m_blockTables.push_back(table[i].value());
    for (std::size_t i = 0; !windowTable.empty() && i < entries; ++i)
        m_windowTables.push_back(windowTable[i].value());
    m_cuQueryLens.push_back(firstRow + count);
    m_tableStarts.push_back(static_cast<std::int32_t>(m_blockTables.size()));
    m_sequenceLengths.push_back(static_cast<std::int32_t>(length));
    if (tailSlot >= 0)
        m_tailSlots.push_back(tailSlot);
    const auto firstLogitRow = static_cast<std::int32_t>(m_logitRows.size());
    for (const std::int32_t offset : logitOffsets)
        m_logitRows.push_back(firstRow + offset);
    return firstLogitRow;
}

void StepInputBuffers::addCopy(BlockId from, BlockId to, std::int32_t slotCount) {
    m_copies.push_back({from.value(), to.value(), slotCount});
}

kernels::StepInputs StepInputBuffers::view() const {
    kernels::StepInputs in;
    in.tokenIds = m_tokenIds;
    in.positions = m_positions;
    in.slotMapping = m_slotMapping;
    in.cuQueryLens = m_cuQueryLens;
    in.sequenceLengths = m_sequenceLengths;
    in.blockTables = m_blockTables;
    in.tableStarts = m_tableStarts;
    in.windowTables = m_windowTables;
    in.logitRows = m_logitRows;
    in.copies = m_copies;
    in.tailSlots = m_tailSlots;
    return in;
}

} // namespace kvscope::exec
