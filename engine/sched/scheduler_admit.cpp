// SPDX-License-Identifier: GPL-3.0-or-later
//
// Waiting sequences become running ones.
#include <algorithm>

#include "engine/base/check.h"
#include "engine/sched/scheduler.h"

namespace kvscope::sched {

/// First come, first served, nobody overtakes; only a fork whose source is still reading steps aside.
void Scheduler::admitWaiting(Nanos now) {
    std::size_t next = 0;
    while (next < m_waiting.size() && budgetLeft() > 0 &&
           m_running.size() < static_cast<std::size_t>(m_config.maxSequences)) {
        Sequence& sequence = *m_waiting[next];
        const ForkSource source = forkSource(sequence);
        if (source.reading) {
            ++next;
            continue;
        }
        const Admitted outcome = tryAdmit(sequence, now);
        if (outcome == Admitted::Yes)
            addItem(sequence, std::min(sequence.uncomputed(), budgetLeft()));
        if (outcome == Admitted::NotNow)
            break;
    }
    explainWaiting();
}

Scheduler::Admitted Scheduler::tryAdmit(Sequence& sequence, Nanos now) {
    sequence.waiting.kind = WaitingKind::None;
    const bool first = !sequence.admittedBefore;
    for (;;) {
        const ForkSource source = forkSource(sequence);
        kv::AdmitRequest request;
        request.tokens = sequence.tokens;
        request.owner = sequence.spec.owner;
        request.adapter = sequence.spec.adapter;
        request.forkFrom = source.table;
        request.forkTokens = source.tokens;
        request.explain = first;
        // Alone, there is nothing to keep a block back for. One that was preempted comes back only when it can also
        // write at least a block, else it would be preempted again for nothing.
        if (!m_running.empty())
            request.keepBack = std::max(m_watermarkBlocks, first ? 0 : 1);
        kv::AdmitResult result = m_cache.admit(request, now);
        if (result) {
            admitted(sequence, std::move(*result), now);
            return Admitted::Yes;
        }
        if (dropOldestRetained())
            continue;
        if (!m_running.empty()) {
            sequence.waiting.kind = WaitingKind::Blocks;
            sequence.waiting.neededBlocks = result.error().needed;
            sequence.waiting.availableBlocks = result.error().available;
            return Admitted::NotNow;
        }
        // Nobody runs, so nothing will ever be given back: pinned blocks hold the rest.
        end(sequence, first ? EndReason::TooLong : EndReason::PoolFull, now, sequence.known(),
            static_cast<std::int64_t>(result.error().available) * m_cache.blockSize());
        return Admitted::Never;
    }
}

void Scheduler::admitted(Sequence& sequence, kv::Admission admission, Nanos now) {
    m_waiting.erase(std::find(m_waiting.begin(), m_waiting.end(), &sequence));
    insertByArrival(m_running, sequence);
    const std::int64_t reused = admission.reusedTokens;
    sequence.table = std::move(admission.table);
    sequence.computed = reused;
    sequence.phase = SequencePhase::Reading;
    sequence.waiting = {};
    sequence.usage.newBlocks += admission.newBlocks;
    sequence.usage.blocksPeak =
        std::max(sequence.usage.blocksPeak, static_cast<std::int32_t>(sequence.table.blocks().size()));
    // A prompt that was preempted half read may find more of itself cached when it comes back.
    sequence.usage.reusedTokens +=
        std::max(std::int64_t(0), std::min(reused, sequence.promptTokens) - sequence.everComputed);
    sequence.everComputed = std::max(sequence.everComputed, reused);
    const auto known = static_cast<std::uint64_t>(sequence.known());
    if (sequence.admittedBefore) {
        m_counters.readmitTokens += known;
        m_counters.readmitHitTokens += static_cast<std::uint64_t>(reused);
        return;
    }
    sequence.admittedBefore = true;
    sequence.usage.cause = admission.cause;
    sequence.times.firstScheduled = now;
    ++m_counters.admitted;
    m_counters.prefixQueryTokens += known;
    m_counters.prefixHitTokens += static_cast<std::uint64_t>(reused);
    m_hitRate.add(reused, sequence.promptTokens);
}

Scheduler::ForkSource Scheduler::forkSource(const Sequence& sequence) const {
    const SequenceId id = sequence.spec.forkOf;
    if (!id.valid())
        return {};
    const auto common = [&](const std::vector<TokenId>& tokens) {
        const std::size_t length = std::min(tokens.size(), sequence.tokens.size());
        const auto end = tokens.begin() + static_cast<std::ptrdiff_t>(length);
        return static_cast<std::int64_t>(std::mismatch(tokens.begin(), end, sequence.tokens.begin()).first -
                                         tokens.begin());
    };
    ForkSource source;
    if (const Sequence* live = find(id)) {
        source.tokens = std::min(common(live->tokens), sequence.known() - 1);
        source.reading = live->phase != SequencePhase::Writing && live->computed < source.tokens;
        source.table = live->table ? &live->table : nullptr;
        return source;
    }
    const auto kept = std::find_if(m_retained.begin(), m_retained.end(),
                                   [id](const Retained& retained) { return retained.id == id; });
    if (kept != m_retained.end()) {
        source.tokens = common(kept->tokens);
        source.table = &kept->table;
    }
    return source;
}

void Scheduler::explainWaiting() {
    const bool full = m_running.size() >= static_cast<std::size_t>(m_config.maxSequences);
    bool headSeen = false;
    for (Sequence* sequence : m_waiting) {
        WaitingReason& reason = sequence->waiting;
        const bool wantsBlocks = reason.kind == WaitingKind::Blocks && !headSeen && !full;
        headSeen |= reason.kind == WaitingKind::Blocks;
        if (wantsBlocks)
            continue;
        reason.kind = full                            ? WaitingKind::Places
                      : forkSource(*sequence).reading ? WaitingKind::Source
                                                      : WaitingKind::Queue;
        reason.places = full ? m_config.maxSequences : 0;
        reason.neededBlocks = 0;
        reason.availableBlocks = 0;
    }
}

} // namespace kvscope::sched
