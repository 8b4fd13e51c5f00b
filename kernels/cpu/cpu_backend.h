// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/kernel_team.h"
#include "kernels/cpu/memory_region.h"
#include "kernels/cpu/sampler.h"
#include "kernels/cpu/step_buffers.h"
#include "kernels/cpu/step_runner.h"

namespace kvscope::kernels {

class OpTrace;

struct CpuOptions {
    int threads = 0;             ///< kernel team size; 0 = all cores this process may use
    std::optional<Isa> forceIsa; ///< none = best the processor has
    bool vnni = true;            ///< AVX-512: use VNNI where the processor has it (same results, only slower without)
    /// Quantized weights are dequantized, activations never rounded to 8 bits: slow, for evaluation and tests.
    bool floatActivations = false;
    OpTrace* trace = nullptr; ///< debug mode (op_trace.h); outlives the backend
};

/// Whether this processor can run `isa`, decided by cpuid (and the OS's saved register state).
bool cpuSupports(Isa isa);
Isa bestIsa();

/// Runs programs on this machine's processor. Work happens inside `await`, on the calling thread and the kernel team's;
/// `submit` only takes the inputs in. Between calls the team is parked.
class CpuBackend final : public Backend {
public:
    /// `options`: only its floatActivations and trace are read.
    CpuBackend(const KernelTable& kernels, int threads, const CpuOptions& options = {});
    ~CpuBackend() override;

    std::string describe() const override;
    BackendResult<WeightId> addWeight(const WeightDesc& weight) override;
    BackendResult<bool> createKvCache(const KvLayout& layout) override;
    std::uint32_t kvLayoutVersion() const override { return 2; }
    BackendResult<bool> setProgram(const Program& program) override;
    Ticket submit(const StepInputs& inputs) override;
    StepStatus await(Ticket ticket) override;
    void requestAbort() override { m_abort.store(true, std::memory_order_relaxed); }
    BackendError lastError() const override { return m_error; }
    void sample(Ticket ticket, std::span<const SampleRow> rows, std::span<SampledToken> out) override;
    void readLogits(Ticket ticket, std::int32_t logitRow, std::span<float> out) override;
    void readKv(KvPart part, std::int32_t index, std::size_t offset, std::span<std::byte> out) override;
    void writeKv(KvPart part, std::int32_t index, std::size_t offset, std::span<const std::byte> in) override;
    BackendMemory memory() const override;
    PhaseTimes phaseTimes() const override { return m_times; }

    /// For the protecting test backend: false makes weights, KV pool, inputs and activations fault when touched. Only
    /// while no call is running.
    void setMemoryAccessible(bool accessible) const;

private:
    std::string allocateStep();
    std::span<std::byte> kvBytes(KvPart part, std::int32_t index, std::size_t offset, std::size_t most) const;

    const KernelTable& m_kernels;
    const bool m_floatActivations;
    OpTrace* const m_trace;
    KernelTeam m_team;
    Arena m_weightMemory;
    std::vector<PackedWeight> m_weights;
    std::vector<std::string> m_weightNames;
    KvLayout m_kv;
    MemoryRegion m_pool;
    Program m_program;
    bool m_hasProgram = false;
    StepBuffers m_buffers;
    std::vector<LayerCache> m_layers;
    std::vector<Sampler> m_samplers; ///< one a thread
    std::atomic<bool> m_abort{false};
    std::uint64_t m_ticket = 0;
    bool m_pending = false; ///< submitted, not awaited
    BackendError m_error;
    PhaseTimes m_times;
};

/// Fails with a sentence when the forced instruction set is not available here.
BackendResult<std::unique_ptr<Backend>> makeCpuBackend(const CpuOptions& options);

} // namespace kvscope::kernels
