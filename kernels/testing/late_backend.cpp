// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/testing/late_backend.h"

namespace kvscope::kernels::testing {

struct LateBackend::OwnedInputs {
    explicit OwnedInputs(const StepInputs& in)
        : tokenIds(in.tokenIds.begin(), in.tokenIds.end())
        , positions(in.positions.begin(), in.positions.end())
        , slotMapping(in.slotMapping.begin(), in.slotMapping.end())
        , cuQueryLens(in.cuQueryLens.begin(), in.cuQueryLens.end())
        , sequenceLengths(in.sequenceLengths.begin(), in.sequenceLengths.end())
        , blockTables(in.blockTables.begin(), in.blockTables.end())
        , tableStarts(in.tableStarts.begin(), in.tableStarts.end())
        , windowTables(in.windowTables.begin(), in.windowTables.end())
        , logitRows(in.logitRows.begin(), in.logitRows.end())
        , copies(in.copies.begin(), in.copies.end()) {}

    StepInputs view() const {
        StepInputs in;
        in.tokenIds = tokenIds;
        in.positions = positions;
        in.slotMapping = slotMapping;
        in.cuQueryLens = cuQueryLens;
        in.sequenceLengths = sequenceLengths;
        in.blockTables = blockTables;
        in.tableStarts = tableStarts;
        in.windowTables = windowTables;
        in.logitRows = logitRows;
        in.copies = copies;
        return in;
    }

    std::vector<std::int32_t> tokenIds, positions, slotMapping, cuQueryLens, sequenceLengths, blockTables, tableStarts,
        windowTables, logitRows;
    std::vector<BlockCopy> copies;
};

LateBackend::LateBackend(std::unique_ptr<Backend> inner, std::chrono::microseconds delay)
    : m_inner(std::move(inner))
    , m_delay(delay)
    , m_worker([this] { work(); }) {}

LateBackend::~LateBackend() {
    {
        const std::lock_guard lock(m_mutex);
        m_stop = true;
    }
    m_changed.notify_all();
    m_worker.join();
}

Ticket LateBackend::submit(const StepInputs& inputs) {
    const std::lock_guard lock(m_mutex);
    m_inputs = std::make_unique<OwnedInputs>(inputs);
    m_abort = false;
    m_done = false;
    m_hasWork = true;
    m_changed.notify_all();
    return Ticket{++m_ticket};
}

StepStatus LateBackend::await(Ticket ticket) {
    std::unique_lock lock(m_mutex);
    if (ticket.id != m_ticket || !m_inputs)
        return StepStatus::Failed;
    m_changed.wait(lock, [this] { return m_done; });
    m_inputs.reset();
    return m_status;
}

void LateBackend::requestAbort() {
    m_abort = true; // remembered for a step that the worker has not begun
    m_inner->requestAbort();
}

void LateBackend::sample(Ticket, std::span<const SampleRow> rows, std::span<SampledToken> out) {
    m_inner->sample(m_innerTicket, rows, out);
}

void LateBackend::readLogits(Ticket, std::int32_t logitRow, std::span<float> out) {
    m_inner->readLogits(m_innerTicket, logitRow, out);
}

void LateBackend::work() {
    std::unique_lock lock(m_mutex);
    for (;;) {
        m_changed.wait(lock, [this] { return m_hasWork || m_stop; });
        if (!m_hasWork)
            return;
        m_hasWork = false;
        const OwnedInputs* inputs = m_inputs.get();
        lock.unlock();
        std::this_thread::sleep_for(m_delay);
        const Ticket ticket = m_inner->submit(inputs->view());
        if (m_abort)
            m_inner->requestAbort();
        const StepStatus status = m_inner->await(ticket);
        lock.lock();
        m_innerTicket = ticket;
        m_status = status;
        m_done = true;
        m_changed.notify_all();
    }
}

} // namespace kvscope::kernels::testing
