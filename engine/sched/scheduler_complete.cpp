// SPDX-License-Identifier: GPL-3.0-or-later
//
// After the step: tokens are appended, blocks published, sequences end.
#include <algorithm>
#include <utility>

#include "engine/base/check.h"
#include "engine/sched/scheduler.h"

namespace kvscope::sched {

void Scheduler::complete(std::span<const DrawnToken> drawn, Nanos now) {
    KV_CHECK(m_inFlight, "a step was completed that was never scheduled");
    KV_CHECK(drawn.size() == static_cast<std::size_t>(m_plan.draws), "not every item that samples got its token");
    if (m_observer)
        m_observer->completed(drawn, now);
    m_inFlight = false;
    ++m_counters.steps;
    m_cache.commitCopies();
    // First everything that was written, then what was drawn: an end must not come before its neighbours' blocks are
    // published.
    for (const StepItem& item : m_plan.items)
        finishItem(item, std::max<Nanos>(0, now - m_planned), now);
    std::size_t next = 0;
    for (const StepItem& item : m_plan.items)
        if (item.samples)
            appendToken(*m_sequences.at(item.sequence), drawn[next++], now);
    endCancelled(now);
}

void Scheduler::abandon(Nanos now) {
    KV_CHECK(m_inFlight, "a step was abandoned that was never scheduled");
    if (m_observer)
        m_observer->abandoned();
    m_inFlight = false;
    endCancelled(now);
}

void Scheduler::finishItem(const StepItem& item, Nanos stepTook, Nanos now) {
    Sequence& sequence = *m_sequences.at(item.sequence);
    if (sequence.preemption)
        countReread(item, sequence, stepTook);
    m_cache.advance(sequence.table, item.tokens, now);
    const std::int64_t fresh = std::max(std::int64_t(0), item.to - std::max(item.from, sequence.everComputed));
    const std::int64_t freshPrompt = std::max(std::int64_t(0), std::min(item.to, sequence.promptTokens) -
                                                                   std::max(item.from, sequence.everComputed));
    sequence.usage.computedTokens += freshPrompt;
    sequence.usage.recomputedTokens += item.to - item.from - fresh;
    // What is computed again after a preemption is reading, whatever it was before.
    m_counters.decodeTokens += static_cast<std::uint64_t>(fresh - freshPrompt);
    m_counters.prefillTokens += static_cast<std::uint64_t>(item.to - item.from - (fresh - freshPrompt));
    sequence.everComputed = std::max(sequence.everComputed, item.to);
    sequence.computed = item.to;
    sequence.lastTurn = ++m_turns;
    if (sequence.spec.pinPrompt && !sequence.pinned && sequence.computed >= sequence.promptTokens) {
        const auto full = static_cast<std::int32_t>(sequence.promptTokens / m_cache.blockSize());
        if (full > 0)
            m_pins.push_back(m_cache.pin(sequence.table, full));
        sequence.pinned = true;
    }
}

void Scheduler::appendToken(Sequence& sequence, DrawnToken drawn, Nanos now) {
    if (sequence.cancelled)
        return;
    sequence.phase = SequencePhase::Writing;
    sequence.tokens.push_back(drawn.token);
    if (sequence.times.firstToken < 0)
        sequence.times.firstToken = now;
    else
        sequence.intervals.add(now - sequence.times.lastToken);
    sequence.times.lastToken = now;
    if (drawn.ends)
        end(sequence, EndReason::Stopped, now);
    else if (sequence.generated() >= sequence.spec.maxNewTokens)
        end(sequence, EndReason::MaxTokens, now);
    else if (m_config.maxLength > 0 && sequence.known() >= m_config.maxLength)
        end(sequence, EndReason::MaxLength, now);
}

void Scheduler::end(Sequence& sequence, EndReason reason, Nanos now, std::int64_t needed, std::int64_t available) {
    auto& list = sequence.phase == SequencePhase::Waiting ? m_waiting : m_running;
    list.erase(std::find(list.begin(), list.end(), &sequence));
    EndedSequence ended;
    ended.id = sequence.id;
    ended.request = sequence.spec.request;
    ended.owner = sequence.spec.owner;
    ended.reason = reason;
    ended.neededTokens = needed;
    ended.availableTokens = available;
    ended.promptTokens = sequence.promptTokens;
    ended.generatedTokens = sequence.generated();
    ended.usage = sequence.usage;
    ended.times = sequence.times;
    ended.times.ended = now;
    if (m_observer)
        m_observer->ended(ended, sequence.tokens);
    if (sequence.spec.retain && sequence.table &&
        m_cache.hasTails()) // forks share whole blocks only; the tail slot is for who runs
        m_cache.truncate(sequence.table, sequence.table.tokens() / m_cache.blockSize() * m_cache.blockSize());
    if (sequence.spec.retain && sequence.table.tokens() > 0) {
        m_cache.rest(sequence.table);
        m_retained.push_back({sequence.id, std::move(sequence.tokens), std::move(sequence.table)});
    }
    m_sequences.erase(ended.id); // releases the table
    ended.blocksAvailableAfter = m_cache.available();
    ended.blocksCachedAfter =
        static_cast<std::int32_t>(m_cache.pool().counts()[static_cast<std::size_t>(kv::BlockState::Cached)]);
    m_ended.push_back(ended);
    ++m_counters.finished;
}

void Scheduler::fail(SequenceId id, Nanos now) {
    KV_CHECK(!m_inFlight, "a sequence failed while a step is in flight");
    const auto found = m_sequences.find(id);
    if (found == m_sequences.end())
        return;
    if (m_observer)
        m_observer->failed(*found->second);
    end(*found->second, EndReason::Failed, now);
}

void Scheduler::endCancelled(Nanos now) {
    for (const SequenceId id : m_cancelled)
        if (const auto found = m_sequences.find(id); found != m_sequences.end())
            end(*found->second, EndReason::Cancelled, now);
    m_cancelled.clear();
}

void Scheduler::endAll(EndReason reason, Nanos now) {
    if (m_observer)
        m_observer->allEnded();
    m_inFlight = false;
    while (!m_running.empty())
        end(*m_running.back(), reason, now);
    while (!m_waiting.empty())
        end(*m_waiting.back(), reason, now);
    m_cancelled.clear();
    m_retained.clear();
}

} // namespace kvscope::sched
