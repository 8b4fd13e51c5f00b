// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "engine/api/block_trace.h"
#include "engine/kv/kv_cache.h"
#include "engine/sched/scheduler.h"

namespace kvscope::api {

/// Turns what a scheduler is told and decides into the records of a block log, and hands each to `Sink` as it comes.
class TraceSink {
public:
    virtual ~TraceSink() = default;
    virtual void add(const TraceEvent& event) = 0;
    virtual void add(const TraceStep& step) = 0;
    virtual void add(SequenceId id, const TraceAnswer& answer) = 0;
    virtual void add(const TraceAdmission& admission) = 0;
    virtual void add(const TraceEviction& eviction) = 0;
    virtual void add(const TracePreemption& preemption) = 0;
};

class TraceCollector final : public sched::ScheduleObserver {
public:
    /// Both outlive the collector.
    TraceCollector(const kv::KvCache& cache, TraceSink& sink) : m_cache(cache), m_sink(sink) {}

    void submitted(const sched::Sequence& sequence, Nanos now) override;
    void cancelled(const sched::Sequence& sequence, bool inFlight) override;
    void failed(const sched::Sequence& sequence) override { event(TraceFail{sequence.id}); }
    void allEnded() override { event(TraceEndAll{}); }
    void pinsReleased() override { event(TraceUnpin{}); }
    void retainedDropped(SequenceId id) override { event(TraceDropRetained{id}); }
    void budgetChanged(std::int32_t tokens) override { event(TraceBudget{tokens}); }
    void ratesChanged(const kv::CostRates& rates) override { event(TraceRates{rates}); }
    void scheduled(const sched::StepPlan& plan, Nanos now) override;
    void completed(std::span<const sched::DrawnToken> drawn, Nanos now) override;
    void abandoned() override;
    void admitted(const sched::Sequence& sequence, std::int64_t reusedTokens, std::int32_t loadedBlocks) override;
    void preempted(const sched::Preemption& preemption) override;
    void ended(const sched::EndedSequence& ended, std::span<const TokenId> tokens) override;
    void evicted(const kv::Eviction& eviction) override;

private:
    template <class What> void event(What&& what) {
        m_sink.add(TraceEvent{m_plans, m_ended, std::forward<What>(what)});
    }

    const kv::KvCache& m_cache;
    TraceSink& m_sink;
    std::uint64_t m_plans = 0;
    std::size_t m_ended = 0;
    TraceStep m_step; ///< in flight
};

/// The options in force, as a block log records them.
TraceOptions traceOptions(const kv::CacheConfig& cache, const sched::SchedulerConfig& scheduler);

} // namespace kvscope::api
