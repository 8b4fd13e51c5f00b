// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <vector>

#include "app/bench/bench_engine.h"
#include "engine/api/engine.h"

namespace kvscope::bench {

/// The engine as the program has it, on this machine's clock. Every answer is greedy and has exactly the tokens that
/// were asked for (an end token does not end it), so that all stages compute the same amount.
class RealEngine final : public BenchEngine, private api::EngineListener {
public:
    RealEngine();

    /// Loads the model anew: an empty cache. Errors: those of api::Engine::load.
    Result<void> load(const api::EngineConfig& config, const std::atomic<bool>* cancel);
    const api::ModelInfo& model() const { return m_engine.model(); }
    const api::Engine& engine() const { return m_engine; }

    Nanos now() const override { return m_clock.now(); }
    void waitUntil(Nanos time) override;
    void submit(SentRequest request) override;
    bool step() override;
    void cancelAll() override;
    std::vector<EndedRequest> takeEnded() override { return std::exchange(m_ended, {}); }
    PoolState pool() const override;
    RunCounters counters() const override;

private:
    void onEvent(const api::Event& event) override;
    std::vector<api::SequenceRow>* sequencesSlot() override { return &m_rows; }

    MonotonicClock m_clock;
    std::vector<api::SequenceRow> m_rows; ///< at the end of the newest step
    std::vector<EndedRequest> m_ended;
    std::vector<std::int32_t> m_running; ///< indices of requests that have not ended
    api::Engine m_engine;                ///< last: it calls what stands above
};

} // namespace kvscope::bench
