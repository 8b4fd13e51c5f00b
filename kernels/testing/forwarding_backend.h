// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <utility>

#include "kernels/backend.h"

namespace kvscope::kernels::testing {

/// Passes every call on to another backend; what a test wants different it overrides.
class ForwardingBackend : public Backend {
public:
    explicit ForwardingBackend(std::unique_ptr<Backend> inner = nullptr) : m_inner(std::move(inner)) {}

    std::string describe() const override { return m_inner->describe(); }
    BackendResult<WeightId> addWeight(const WeightDesc& weight) override { return m_inner->addWeight(weight); }
    BackendResult<bool> createKvCache(const KvLayout& layout) override { return m_inner->createKvCache(layout); }
    std::uint32_t kvLayoutVersion() const override { return m_inner->kvLayoutVersion(); }
    BackendResult<bool> setProgram(const Program& program) override { return m_inner->setProgram(program); }
    Ticket submit(const StepInputs& inputs) override { return m_inner->submit(inputs); }
    StepStatus await(Ticket ticket) override { return m_inner->await(ticket); }
    void requestAbort() override { m_inner->requestAbort(); }
    BackendError lastError() const override { return m_inner->lastError(); }
    void sample(Ticket ticket, std::span<const SampleRow> rows, std::span<SampledToken> out) override {
        m_inner->sample(ticket, rows, out);
    }
    void readLogits(Ticket ticket, std::int32_t logitRow, std::span<float> out) override {
        m_inner->readLogits(ticket, logitRow, out);
    }
    void readKv(KvPart part, std::int32_t index, std::size_t offset, std::span<std::byte> out) override {
        m_inner->readKv(part, index, offset, out);
    }
    void writeKv(KvPart part, std::int32_t index, std::size_t offset, std::span<const std::byte> in) override {
        m_inner->writeKv(part, index, offset, in);
    }
    BackendMemory memory() const override { return m_inner->memory(); }
    PhaseTimes phaseTimes() const override { return m_inner->phaseTimes(); }

protected:
    std::unique_ptr<Backend> m_inner;
};

} // namespace kvscope::kernels::testing
