// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/cpu/cpu_backend.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include <sched.h>

#include "kernels/cpu/cpu_features.h"
#include "kernels/cpu/program_check.h"
#include "kernels/cpu/weight_packing.h"

namespace kvscope::kernels {

namespace {

int usableCores() {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return std::max(1, CPU_COUNT(&set));
    return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

const KernelTable& kernelsFor([[maybe_unused]] Isa isa, [[maybe_unused]] bool vnni) {
#if defined(KVSCOPE_X86_KERNELS)
    if (isa == Isa::Avx512)
        return vnni && cpuFeatures().avx512Vnni ? avx512VnniKernels() : avx512Kernels();
    if (isa == Isa::Avx2)
        return avx2Kernels();
#endif
    return portableKernels();
}

BackendResult<bool> refused(std::string sentence, bool outOfMemory = false) {
    return {std::nullopt, {std::move(sentence), outOfMemory}};
}

} // namespace

bool cpuSupports(Isa isa) {
#if defined(KVSCOPE_X86_KERNELS)
    if (isa == Isa::Avx2)
        return cpuFeatures().avx2;
    if (isa == Isa::Avx512)
        return cpuFeatures().avx512;
#endif
    return isa == Isa::Portable;
}

Isa bestIsa() {
    for (Isa isa : {Isa::Avx512, Isa::Avx2})
        if (cpuSupports(isa))
            return isa;
    return Isa::Portable;
}

BackendResult<std::unique_ptr<Backend>> makeCpuBackend(const CpuOptions& options) {
    const Isa isa = options.forceIsa.value_or(bestIsa());
    if (!cpuSupports(isa))
        return {std::nullopt,
                {std::string("This processor has no ") + isaName(isa) + "; the best it can run is " +
                     isaName(bestIsa()) + ".",
                 false}};
    const int threads = options.threads > 0 ? options.threads : usableCores();
    return {std::make_unique<CpuBackend>(kernelsFor(isa, options.vnni), threads, options), {}};
}

CpuBackend::CpuBackend(const KernelTable& kernels, int threads, const CpuOptions& options)
    : m_kernels(kernels)
    , m_floatActivations(options.floatActivations)
    , m_trace(options.trace)
    , m_team(threads) {}
CpuBackend::~CpuBackend() = default;

std::string CpuBackend::describe() const {
    return "CPU, " + std::to_string(m_team.size()) + (m_team.size() == 1 ? " thread, " : " threads, ") +
           m_kernels.name + (m_floatActivations ? ", float activations" : "");
}

BackendResult<WeightId> CpuBackend::addWeight(const WeightDesc& weight) {
    BackendResult<PackedWeight> packed = packWeight(weight, m_weightMemory, m_floatActivations);
    if (!packed)
        return {std::nullopt, packed.error};
    m_weights.push_back(*packed.value);
    m_weightNames.push_back(weight.name);
    return {WeightId{static_cast<std::int32_t>(m_weights.size()) - 1}, {}};
}

BackendResult<bool> CpuBackend::createKvCache(const KvLayout& layout) {
    if (std::string wrong = checkKvLayout(layout); !wrong.empty())
        return refused(std::move(wrong));
    if (m_hasProgram)
        if (std::string wrong = checkProgramAgainstKv(m_program, layout); !wrong.empty())
            return refused(std::move(wrong));
    const std::size_t bytes = layout.poolBytes();
    m_pool = MemoryRegion(); // the old one goes first: both might not fit
    m_kv = KvLayout();
    m_pool = MemoryRegion(bytes);
    if (!m_pool.data())
        return refused(
            "The system refused " + std::to_string(bytes >> 20) + " MiB for the KV cache. Choose a smaller one.", true);
    m_kv = layout;
    if (std::string wrong = allocateStep(); !wrong.empty())
        return refused(std::move(wrong), true);
    return {true, {}};
}

BackendResult<bool> CpuBackend::setProgram(const Program& program) {
    if (std::string wrong = checkProgram(program, m_weights, m_weightNames); !wrong.empty())
        return refused(std::move(wrong));
    if (m_pool.data())
        if (std::string wrong = checkProgramAgainstKv(program, m_kv); !wrong.empty())
            return refused(std::move(wrong));
    m_program = program;
    m_hasProgram = true;
    if (std::string wrong = allocateStep(); !wrong.empty())
        return refused(std::move(wrong), true);
    m_samplers.clear();
    for (int i = 0; i < m_team.size(); ++i)
        m_samplers.emplace_back(m_kernels, program.vocab);
    return {true, {}};
}

/// The sizes of step buffers depend on both program and cache, which may come in either order.
std::string CpuBackend::allocateStep() {
    if (!m_hasProgram || !m_pool.data())
        return {};
    std::string wrong = m_buffers.allocate(m_program, m_kv, m_weights, m_team.size());
    m_layers = layerCaches(m_kv, m_pool.data(), m_buffers.fresh);
    return wrong;
}

Ticket CpuBackend::submit(const StepInputs& inputs) {
    m_abort.store(false, std::memory_order_relaxed);
    m_error = {};
    m_pending = true;
    if (!m_hasProgram || !m_pool.data())
        m_error.message = "A step was submitted before the program and the KV cache were set.";
    else
        m_error.message = m_buffers.load(inputs);
    return Ticket{++m_ticket};
}

StepStatus CpuBackend::await(Ticket ticket) {
    if (!m_pending || ticket.id != m_ticket) {
        m_error.message = "There is no such step in flight.";
        return StepStatus::Failed;
    }
    m_pending = false;
    if (!m_error.message.empty())
        return StepStatus::Failed;
    StepContext context;
    context.kernels = &m_kernels;
    context.program = &m_program;
    context.weights = &m_weights;
    context.kv = &m_kv;
    context.pool = m_pool.data();
    context.layers = &m_layers;
    context.buffers = &m_buffers;
    context.abort = &m_abort;
    context.trace = m_trace;
    StepRunner runner(context, m_team);
    const StepStatus status = runner.run();
    m_times = runner.times();
    return status;
}

void CpuBackend::sample(Ticket, std::span<const SampleRow> rows, std::span<SampledToken> out) {
    const auto start = std::chrono::steady_clock::now();
    const std::size_t count = std::min(rows.size(), out.size());
    const auto one = [&](int thread, std::size_t i) {
        const std::int64_t row = rows[i].logitRow;
        if (row < 0 || row >= m_buffers.logitRows()) {
            out[i] = SampledToken{};
            return;
        }
        out[i] = m_samplers[static_cast<std::size_t>(thread)].sample(m_buffers.logits + row * m_program.vocab, rows[i]);
    };
    if (count == 1)
        one(0, 0);
    else
        m_team.run([&](int thread) {
            m_team.forChunks(thread, static_cast<std::int64_t>(count),
                             [&](std::int64_t i) { one(thread, static_cast<std::size_t>(i)); });
        });
    m_times.sample =
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start).count();
}

void CpuBackend::readLogits(Ticket, std::int32_t logitRow, std::span<float> out) {
    const auto vocab = static_cast<std::size_t>(m_program.vocab);
    if (logitRow >= 0 && logitRow < m_buffers.logitRows())
        std::memcpy(out.data(), m_buffers.logits + static_cast<std::size_t>(logitRow) * vocab,
                    std::min(out.size(), vocab) * sizeof(float));
}

/// Empty where there is no such part.
std::span<std::byte> CpuBackend::kvBytes(KvPart part, std::int32_t index, std::size_t offset, std::size_t most) const {
    const std::size_t bytes = m_kv.partBytes(part);
    if (index < 0 || index >= m_kv.partCount(part) || offset >= bytes)
        return {};
    std::byte* const first = m_pool.data() + m_kv.partOffset(part) + static_cast<std::size_t>(index) * bytes;
    return {first + offset, std::min(most, bytes - offset)};
}

void CpuBackend::readKv(KvPart part, std::int32_t index, std::size_t offset, std::span<std::byte> out) {
    const auto bytes = kvBytes(part, index, offset, out.size());
    std::copy(bytes.begin(), bytes.end(), out.begin());
}

void CpuBackend::writeKv(KvPart part, std::int32_t index, std::size_t offset, std::span<const std::byte> in) {
    const auto bytes = kvBytes(part, index, offset, in.size());
    std::copy_n(in.begin(), bytes.size(), bytes.begin());
}

BackendMemory CpuBackend::memory() const {
    return {m_weightMemory.usedBytes(), m_pool.size(), m_buffers.peakBytes()};
}

void CpuBackend::setMemoryAccessible(bool accessible) const {
    m_weightMemory.setAccessible(accessible);
    m_pool.setAccessible(accessible);
    m_buffers.setAccessible(accessible);
}

} // namespace kvscope::kernels
