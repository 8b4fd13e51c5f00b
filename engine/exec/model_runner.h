// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <span>

#include "engine/base/ids.h"
#include "engine/exec/step_inputs.h"
#include "kernels/backend.h"

namespace kvscope::exec {

/// Runs one step at a time on a backend: flatten, submit, wait, draw.
///
/// Use: begin(), addCopy and addSequence in plan order, compute(); after StepStatus::Done, draw() and readLogits() as
/// often as wanted until the next begin().
class ModelRunner {
public:
    /// `backend` has the program and the KV cache already and outlives the runner.
    ModelRunner(kernels::Backend& backend, const kernels::Program& program, std::int32_t blockSize)
        : m_backend(backend)
        , m_inputs(program, blockSize) {}

    void begin() { m_inputs.clear(); }
    void addCopy(BlockId from, BlockId to, std::int32_t slotCount) { m_inputs.addCopy(from, to, slotCount); }
    /// See StepInputBuffers::addSequence; returns the sequence's first logit row.
    std::int32_t addSequence(std::span<const TokenId> tokens, std::int64_t firstPosition,
                             std::span<const BlockId> table, std::span<const std::int32_t> logitOffsets,
                             std::int32_t tailSlot, std::span<const BlockId> windowTable) {
        return m_inputs.addSequence(tokens, firstPosition, table, logitOffsets, tailSlot, windowTable);
    }

    kernels::StepStatus compute() {
        m_ticket = m_backend.submit(m_inputs.view());
        return m_backend.await(m_ticket);
    }
    void draw(std::span<const kernels::SampleRow> rows, std::span<kernels::SampledToken> out) {
        m_backend.sample(m_ticket, rows, out);
    }
    void readLogits(std::int32_t logitRow, std::span<float> out) { m_backend.readLogits(m_ticket, logitRow, out); }

private:
    kernels::Backend& m_backend;
    StepInputBuffers m_inputs;
    kernels::Ticket m_ticket;
};

} // namespace kvscope::exec
