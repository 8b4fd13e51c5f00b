// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/api/trace_collector.h"

namespace kvscope::api {

void TraceCollector::submitted(const sched::Sequence& sequence, Nanos now) {
    const sched::SequenceSpec& spec = sequence.spec;
    event(TraceSubmit{sequence.id, spec.owner, now, sequence.tokens, spec.maxNewTokens, spec.adapter, spec.forkOf,
                      spec.retain, spec.scores, spec.pinPrompt});
}

void TraceCollector::cancelled(const sched::Sequence& sequence, bool inFlight) {
    event(TraceCancel{sequence.id, inFlight, sequence.generated()});
}

void TraceCollector::scheduled(const sched::StepPlan&, Nanos now) {
    ++m_plans;
    m_step = {now, now, false, m_cache.pool().referencedBlocks()};
}

void TraceCollector::completed(std::span<const sched::DrawnToken>, Nanos now) {
    m_step.completed = now;
    m_sink.add(m_step);
}

void TraceCollector::abandoned() {
    m_step.aborted = true;
    m_sink.add(m_step);
}

void TraceCollector::admitted(const sched::Sequence& sequence, std::int64_t reusedTokens, std::int32_t loadedBlocks) {
    m_sink.add(TraceAdmission{sequence.id, !sequence.admittedBefore, sequence.known(), reusedTokens, loadedBlocks});
}

void TraceCollector::preempted(const sched::Preemption& preemption) {
    m_sink.add(TracePreemption{preemption.sequence, preemption.swaps, preemption.blocks});
}

void TraceCollector::ended(const sched::EndedSequence& ended, std::span<const TokenId> tokens) {
    const auto answer = tokens.subspan(static_cast<std::size_t>(ended.promptTokens));
    ++m_ended;
    m_sink.add(ended.id, TraceAnswer{{answer.begin(), answer.end()},
                                     ended.reason == sched::EndReason::Stopped,
                                     ended.usage.preemptions,
                                     ended.reason});
}

void TraceCollector::evicted(const kv::Eviction& eviction) {
    m_sink.add(
        TraceEviction{m_plans, eviction.block, eviction.firstPosition, eviction.uses, eviction.age, eviction.reason});
}

TraceOptions traceOptions(const kv::CacheConfig& cache, const sched::SchedulerConfig& scheduler) {
    TraceOptions o;
    o.allocator = cache.allocator;
    o.reserve = scheduler.reserve;
    o.blockSize = cache.blockSize;
    o.numBlocks = cache.numBlocks;
    o.tailSlots = cache.tailSlots;
    o.window = cache.window;
    o.sinks = cache.sinks;
    o.sinkWindow = cache.sinkWindow;
    o.prefixCaching = cache.prefixCaching;
    o.eviction = cache.eviction;
    o.attentionPerToken = cache.attentionPerToken;
    o.maxSequences = scheduler.maxSequences;
    o.maxLength = scheduler.maxLength;
    o.watermark = scheduler.watermark;
    o.policy = scheduler.policy;
    o.longPrefillThreshold = scheduler.longPrefillThreshold;
    o.maxLongPartialPrefills = scheduler.maxLongPartialPrefills;
    o.tokenBudget = scheduler.tokenBudget;
    o.hostSlots = cache.host.slotCount;
    o.blockBytes = cache.host.blockBytes;
    o.windowBlockBytes = cache.host.windowBytes;
    o.tailBytes = cache.host.tailBytes;
    return o;
}

} // namespace kvscope::api
