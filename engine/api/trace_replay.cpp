// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <set>

#include "engine/api/block_trace.h"
#include "engine/api/trace_collector.h"
#include "kernels/backend.h"

namespace kvscope::api {

namespace {

template <class... F> struct Overloaded : F... { using F::operator()...; };
template <class... F> Overloaded(F...) -> Overloaded<F...>;

/// The largest budget that a step was given.
std::int32_t mostTokens(const BlockTrace& trace, const TraceOptions& options) {
    std::int32_t most = options.tokenBudget;
    for (const TraceEvent& event : trace.events)
        if (const auto* budget = std::get_if<TraceBudget>(&event.what))
            most = std::max(most, budget->tokens);
    return most;
}

kv::CacheConfig cacheConfig(const BlockTrace& trace, const TraceOptions& o, kv::BlockMover& mover) {
    kv::CacheConfig c;
    c.numBlocks = o.numBlocks;
    c.blockSize = o.blockSize;
    c.tailSlots = o.tailSlots;
    c.allocator = o.allocator;
    c.window = o.allocator == kv::AllocatorKind::Paged ? o.window : 0;
    if (c.window > 0)
        c.windowBlocks = kernels::windowBlocksNeeded(c.window, o.maxSequences, mostTokens(trace, o), o.blockSize);
    c.sinks = o.allocator == kv::AllocatorKind::Paged ? o.sinks : 0;
    c.sinkWindow = o.allocator == kv::AllocatorKind::Paged ? o.sinkWindow : 0;
    c.prefixCaching = o.prefixCaching && o.allocator == kv::AllocatorKind::Paged;
    c.eviction = o.eviction;
    c.attentionPerToken = o.attentionPerToken;
    c.host.slotCount = o.allocator == kv::AllocatorKind::Paged ? o.hostSlots : 0;
    c.host.blockBytes = o.blockBytes;
    c.host.windowBytes = o.windowBlockBytes;
    c.host.tailBytes = o.tailBytes;
    c.host.mover = &mover;
    return c;
}

sched::SchedulerConfig schedulerConfig(const TraceOptions& o) {
    sched::SchedulerConfig c;
    c.tokenBudget = o.tokenBudget;
    c.maxSequences = o.maxSequences;
    c.maxLength = o.maxLength;
    c.watermark = o.watermark;
    c.policy = o.policy;
    c.longPrefillThreshold = o.longPrefillThreshold;
    c.maxLongPartialPrefills = o.maxLongPartialPrefills;
    c.reserve = o.reserve;
    return c;
}

/// Keeps the records in memory.
class MemorySink final : public TraceSink {
public:
    void add(const TraceEvent& event) override { trace.events.push_back(event); }
    void add(const TraceStep& step) override { trace.steps.push_back(step); }
    void add(SequenceId id, const TraceAnswer& answer) override {
        trace.answers[id] = answer;
        trace.ended.push_back(id);
    }
    void add(const TraceAdmission& admission) override { trace.admissions.push_back(admission); }
    void add(const TraceEviction& eviction) override { trace.evictions.push_back(eviction); }
    void add(const TracePreemption& preemption) override { trace.preemptions.push_back(preemption); }
    BlockTrace trace;
};

class Replay {
public:
    Replay(const BlockTrace& recorded, const TraceOptions& options)
        : m_recorded(recorded)
        , m_cache(cacheConfig(recorded, options, m_mover))
        , m_collector(m_cache, m_sink)
        , m_scheduler(m_cache, schedulerConfig(options)) {
        m_scheduler.observe(&m_collector);
        m_sink.trace.program = recorded.program;
        m_sink.trace.modelFingerprint = recorded.modelFingerprint;
        m_sink.trace.options = options;
    }

    BlockTrace run() {
        for (;;) {
            deliver(false);
            const sched::StepPlan& plan = m_scheduler.schedule(timeOfPlan().scheduled);
            if (!plan.empty()) {
                step(plan);
                continue;
            }
            m_scheduler.takeEnded();
            if (m_next == m_recorded.events.size())
                return std::move(m_sink.trace);
            handle(m_recorded.events[m_next++]); // nothing else is left to do before it
        }
    }

private:
    /// Times of the plan that is next or in flight; beyond the recorded ones a nanosecond each.
    TraceStep timeOfPlan() const {
        const auto& steps = m_recorded.steps;
        if (m_plans < steps.size())
            return steps[m_plans];
        TraceStep after = steps.empty() ? TraceStep{} : steps.back();
        after.scheduled = after.completed += static_cast<Nanos>(m_plans - steps.size()) + 1;
        after.aborted = false;
        return after;
    }

    void step(const sched::StepPlan& plan) {
        const TraceStep times = timeOfPlan();
        ++m_plans;
        deliver(true);
        if (times.aborted) {
            m_scheduler.abandon(times.completed);
        } else {
            m_drawn.clear();
            for (const sched::StepItem& item : plan.items)
                if (item.samples)
                    m_drawn.push_back(draw(item));
            m_scheduler.complete(m_drawn, times.completed);
        }
        m_scheduler.takeEnded();
    }

    sched::DrawnToken draw(const sched::StepItem& item) {
        const auto answer = m_recorded.answers.find(item.sequence);
        const auto index = static_cast<std::size_t>(item.drawIndex);
        if (answer == m_recorded.answers.end() || index >= answer->second.tokens.size()) {
            m_scheduler.cancel(item.sequence, timeOfPlan().scheduled);
            return {0, false};
        }
        const auto& tokens = answer->second.tokens;
        return {tokens[index], answer->second.stopped && index + 1 == tokens.size()};
    }

    /// Whatever is due, in order.
    void deliver(bool inFlight) {
        while (m_next < m_recorded.events.size()) {
            const TraceEvent& event = m_recorded.events[m_next];
            const auto* cancel = std::get_if<TraceCancel>(&event.what);
            if (event.at > m_plans || (inFlight && !(cancel && cancel->inFlight)) || !isDue(event))
                return;
            ++m_next;
            handle(event);
        }
    }

    /// Has happened what had happened before it?
    bool isDue(const TraceEvent& event) const {
        return std::visit(Overloaded{
                              [&](const TraceSubmit&) { return endedAsBefore(event.endedBefore); },
                              [&](const TraceCancel& cancel) { return hasDrawn(cancel.id, cancel.generated); },
                              [&](const TraceFail& failed) { return hasDrawn(failed.id, answered(failed.id)); },
                              [&](const TraceDropRetained&) { return endedAsBefore(event.endedBefore); },
                              [&](const TraceUnpin&) { return endedAsBefore(event.endedBefore); },
                              [&](const TraceEndAll&) { return everyoneHasDrawn(); },
                              [&](const TraceBudget&) { return true; },
                              [&](const TraceRates&) { return true; },
                          },
                          event.what);
    }
    bool endedAsBefore(std::size_t count) const {
        const auto end = m_recorded.ended.begin() + static_cast<std::ptrdiff_t>(count);
        return std::all_of(m_recorded.ended.begin(), end,
                           [this](SequenceId id) { return m_scheduler.find(id) == nullptr; });
    }
    bool hasDrawn(SequenceId id, std::int64_t tokens) const {
        const sched::Sequence* sequence = m_scheduler.find(id);
        return sequence == nullptr || sequence->generated() >= tokens;
    }
    std::int64_t answered(SequenceId id) const {
        const auto answer = m_recorded.answers.find(id);
        return answer == m_recorded.answers.end() ? 0 : static_cast<std::int64_t>(answer->second.tokens.size());
    }
    bool everyoneHasDrawn() const {
        const auto drawn = [this](const sched::Sequence* s) { return s->generated() >= answered(s->id); };
        return std::all_of(m_scheduler.running().begin(), m_scheduler.running().end(), drawn) &&
               std::all_of(m_scheduler.waiting().begin(), m_scheduler.waiting().end(), drawn);
    }

    void handle(const TraceEvent& event) {
        const Nanos now = timeOfPlan().scheduled;
        std::visit(Overloaded{
                       [&](const TraceSubmit& submit) {
                           sched::SequenceSpec spec;
                           spec.request = RequestId(submit.id.value());
                           spec.owner = submit.owner;
                           spec.tokens = submit.tokens;
                           spec.maxNewTokens = submit.maxNewTokens;
                           spec.adapter = submit.adapter;
                           spec.forkOf = submit.forkOf;
                           spec.retain = submit.retain;
                           spec.scores = submit.scores;
                           spec.pinPrompt = submit.pinPrompt;
                           m_scheduler.submit(std::move(spec), submit.time);
                       },
                       [&](const TraceCancel& cancel) { m_scheduler.cancel(cancel.id, now); },
                       [&](const TraceFail& failed) { m_scheduler.fail(failed.id, now); },
                       [&](const TraceDropRetained& dropped) { m_scheduler.dropRetained(dropped.id); },
                       [&](const TraceBudget& budget) { m_scheduler.setTokenBudget(budget.tokens); },
                       [&](const TraceRates& told) { m_scheduler.setCostRates(told.rates); },
                       [&](const TraceUnpin&) { m_scheduler.releasePins(); },
                       [&](const TraceEndAll&) { m_scheduler.endAll(sched::EndReason::Failed, now); },
                   },
                   event.what);
        m_scheduler.takeEnded();
    }

    const BlockTrace& m_recorded;
    MemorySink m_sink;
    kv::NoMover m_mover;
    kv::KvCache m_cache;
    TraceCollector m_collector;
    sched::Scheduler m_scheduler;
    std::uint64_t m_plans = 0;
    std::size_t m_next = 0; ///< event to be delivered
    std::vector<sched::DrawnToken> m_drawn;
};

template <class Record, class Say>
std::string firstDifference(const std::vector<Record>& a, const std::vector<Record>& b, const char* what, Say&& say) {
    const auto [left, right] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
    if (left == a.end() && right == b.end())
        return {};
    std::string sentence = std::string(what) + " " + std::to_string(left - a.begin() + 1) + " was ";
    sentence += left == a.end() ? "not there" : say(*left);
    sentence += right == b.end() ? ", in the replay it is not there." : ", in the replay it is " + say(*right) + ".";
    return sentence;
}

} // namespace

TraceTotals totalsOf(const BlockTrace& trace) {
    TraceTotals totals;
    totals.steps = trace.steps.size();
    for (const TraceEvent& event : trace.events)
        totals.requests += std::holds_alternative<TraceSubmit>(event.what) ? 1 : 0;
    for (const TraceAdmission& admission : trace.admissions) {
        (admission.first ? totals.queryTokens : totals.readmitQueryTokens) +=
            static_cast<std::uint64_t>(admission.tokens);
        (admission.first ? totals.hitTokens : totals.readmitHitTokens) += static_cast<std::uint64_t>(admission.reused);
        totals.loadedBlocks += static_cast<std::uint64_t>(admission.loaded);
    }
    for (const TracePreemption& preemption : trace.preemptions)
        totals.swaps += preemption.swapped ? 1 : 0;
    for (const TraceEviction& eviction : trace.evictions)
        ++totals.evictions[static_cast<std::size_t>(eviction.reason)];
    for (const auto& [id, answer] : trace.answers) {
        totals.preemptions += static_cast<std::uint64_t>(answer.preemptions);
        if (answer.reason)
            ++totals.ended[static_cast<std::size_t>(*answer.reason)];
    }
    for (const TraceStep& step : trace.steps)
        totals.peakBlocks = std::max(totals.peakBlocks, step.blocksInUse);
    return totals;
}

BlockTrace replayTrace(const BlockTrace& recorded, const TraceOptions& options) {
    return Replay(recorded, options).run();
}

std::string traceDifference(const BlockTrace& recorded, const BlockTrace& replayed) {
    const std::string admissions =
        firstDifference(recorded.admissions, replayed.admissions, "Admission", [](const TraceAdmission& a) {
            return "sequence " + std::to_string(a.id.value()) + " with " + std::to_string(a.reused) + " of " +
                   std::to_string(a.tokens) + " tokens reused, " + std::to_string(a.loaded) + " blocks loaded";
        });
    if (!admissions.empty())
        return admissions;
    const std::string preemptions =
        firstDifference(recorded.preemptions, replayed.preemptions, "Preemption", [](const TracePreemption& p) {
            return "that of sequence " + std::to_string(p.id.value()) + (p.swapped ? ", swapped out" : ", read again");
        });
    if (!preemptions.empty())
        return preemptions;
    return firstDifference(recorded.evictions, replayed.evictions, "Eviction", [](const TraceEviction& e) {
        return "block " + std::to_string(e.block.value()) + " for " + kv::evictionReasonName(e.reason) + " in step " +
               std::to_string(e.at + 1);
    });
}

} // namespace kvscope::api
