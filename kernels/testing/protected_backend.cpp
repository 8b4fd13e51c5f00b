// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/testing/protected_backend.h"

#include <utility>

namespace kvscope::kernels::testing {

namespace {

/// Opens the memory for one call.
class Access {
public:
    explicit Access(const CpuBackend& backend) : m_backend(backend) { m_backend.setMemoryAccessible(true); }
    ~Access() { m_backend.setMemoryAccessible(false); }
    Access(const Access&) = delete;
    Access& operator=(const Access&) = delete;

private:
    const CpuBackend& m_backend;
};

} // namespace

BackendResult<std::unique_ptr<Backend>> ProtectedBackend::make(const CpuOptions& options) {
    auto inner = makeCpuBackend(options);
    if (!inner)
        return inner;
    std::unique_ptr<CpuBackend> cpu(static_cast<CpuBackend*>(inner.value->release()));
    return {std::make_unique<ProtectedBackend>(std::move(cpu)), {}};
}

ProtectedBackend::ProtectedBackend(std::unique_ptr<CpuBackend> inner) : m_inner(std::move(inner)) {
    m_inner->setMemoryAccessible(false);
}

BackendResult<WeightId> ProtectedBackend::addWeight(const WeightDesc& weight) {
    Access access(*m_inner);
    return m_inner->addWeight(weight);
}

BackendResult<bool> ProtectedBackend::createKvCache(const KvLayout& layout) {
    Access access(*m_inner);
    return m_inner->createKvCache(layout);
}

BackendResult<bool> ProtectedBackend::setProgram(const Program& program) {
    Access access(*m_inner);
    return m_inner->setProgram(program);
}

Ticket ProtectedBackend::submit(const StepInputs& inputs) {
    Access access(*m_inner);
    return m_inner->submit(inputs);
}

StepStatus ProtectedBackend::await(Ticket ticket) {
    Access access(*m_inner);
    return m_inner->await(ticket);
}

void ProtectedBackend::sample(Ticket ticket, std::span<const SampleRow> rows, std::span<SampledToken> out) {
    Access access(*m_inner);
    m_inner->sample(ticket, rows, out);
}

void ProtectedBackend::readLogits(Ticket ticket, std::int32_t logitRow, std::span<float> out) {
    Access access(*m_inner);
    m_inner->readLogits(ticket, logitRow, out);
}

void ProtectedBackend::readKv(KvPart part, std::int32_t index, std::size_t offset, std::span<std::byte> out) {
    Access access(*m_inner);
    m_inner->readKv(part, index, offset, out);
}

void ProtectedBackend::writeKv(KvPart part, std::int32_t index, std::size_t offset, std::span<const std::byte> in) {
    Access access(*m_inner);
    m_inner->writeKv(part, index, offset, in);
}

} // namespace kvscope::kernels::testing
