// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>

#include "kernels/cpu/cpu_backend.h"

namespace kvscope::kernels::testing {

/// The CPU backend with its memory taken away between calls: weights, KV pool, step inputs, activations and logits
/// are PROT_NONE except while a call of this class runs. An engine that follows a pointer into backend memory, instead
/// of using handles and copies, dies at the first touch; a GPU backend would only have given it wrong numbers.
class ProtectedBackend final : public Backend {
public:
    /// The same failures as makeCpuBackend.
    static BackendResult<std::unique_ptr<Backend>> make(const CpuOptions& options);
    explicit ProtectedBackend(std::unique_ptr<CpuBackend> inner);

    std::string describe() const override { return m_inner->describe() + ", protected"; }
    BackendResult<WeightId> addWeight(const WeightDesc& weight) override;
    BackendResult<bool> createKvCache(const KvLayout& layout) override;
    std::uint32_t kvLayoutVersion() const override { return m_inner->kvLayoutVersion(); }
    BackendResult<bool> setProgram(const Program& program) override;
    Ticket submit(const StepInputs& inputs) override;
    StepStatus await(Ticket ticket) override;
    void requestAbort() override { m_inner->requestAbort(); }
    BackendError lastError() const override { return m_inner->lastError(); }
    void sample(Ticket ticket, std::span<const SampleRow> rows, std::span<SampledToken> out) override;
    void readLogits(Ticket ticket, std::int32_t logitRow, std::span<float> out) override;
    void readKv(KvPart part, std::int32_t index, std::size_t offset, std::span<std::byte> out) override;
    void writeKv(KvPart part, std::int32_t index, std::size_t offset, std::span<const std::byte> in) override;
    BackendMemory memory() const override { return m_inner->memory(); }
    PhaseTimes phaseTimes() const override { return m_inner->phaseTimes(); }

private:
    std::unique_ptr<CpuBackend> m_inner;
};

} // namespace kvscope::kernels::testing
