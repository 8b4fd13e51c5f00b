// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "kernels/backend.h"

namespace kvscope::kernels::testing {

/// A backend whose tickets complete late and on another thread, as a GPU's would: `submit` copies the inputs and
/// returns at once, a worker waits `delay`, runs the step and completes the ticket; only `await` waits for it. An
/// engine that reads results before awaiting, reuses its input arrays too early or touches blocks of a running step is
/// found out (under ThreadSanitizer, as a race).
class LateBackend final : public Backend {
public:
    explicit LateBackend(std::unique_ptr<Backend> inner,
                         std::chrono::microseconds delay = std::chrono::microseconds(300));
    ~LateBackend() override;
    LateBackend(const LateBackend&) = delete;
    LateBackend& operator=(const LateBackend&) = delete;

    std::string describe() const override { return m_inner->describe() + ", late"; }
    BackendResult<WeightId> addWeight(const WeightDesc& weight) override { return m_inner->addWeight(weight); }
    BackendResult<bool> createKvCache(const KvLayout& layout) override { return m_inner->createKvCache(layout); }
    std::uint32_t kvLayoutVersion() const override { return m_inner->kvLayoutVersion(); }
    BackendResult<bool> setProgram(const Program& program) override { return m_inner->setProgram(program); }
    Ticket submit(const StepInputs& inputs) override;
    StepStatus await(Ticket ticket) override;
    void requestAbort() override;
    BackendError lastError() const override { return m_inner->lastError(); }
    void sample(Ticket ticket, std::span<const SampleRow> rows, std::span<SampledToken> out) override;
    void readLogits(Ticket ticket, std::int32_t logitRow, std::span<float> out) override;
    void readKv(KvPart part, std::int32_t index, std::size_t offset, std::span<std::byte> out) override {
        m_inner->readKv(part, index, offset, out);
    }
    void writeKv(KvPart part, std::int32_t index, std::size_t offset, std::span<const std::byte> in) override {
        m_inner->writeKv(part, index, offset, in);
    }
    BackendMemory memory() const override { return m_inner->memory(); }
    PhaseTimes phaseTimes() const override { return m_inner->phaseTimes(); }

private:
    struct OwnedInputs;
    void work();

    std::unique_ptr<Backend> m_inner;
    const std::chrono::microseconds m_delay;
    std::unique_ptr<OwnedInputs> m_inputs; ///< of the step in flight
    std::mutex m_mutex;
    std::condition_variable m_changed;
    bool m_hasWork = false, m_stop = false, m_done = false;
    std::atomic<bool> m_abort{false};
    StepStatus m_status = StepStatus::Failed;
    std::uint64_t m_ticket = 0; ///< ours
    Ticket m_innerTicket;
    std::thread m_worker;
};

} // namespace kvscope::kernels::testing
