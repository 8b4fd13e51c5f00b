// SPDX-License-Identifier: GPL-3.0-or-later
//
// Waiting sequences become running ones.
#include <algorithm>

#include "engine/base/check.h"
#include "engine/sched/growth_outlook.h"
#include "engine/sched/scheduler.h"

namespace kvscope::sched {

namespace {

constexpr std::int32_t kPatience = 2; ///< preemptions after which nothing is left to luck

std::int64_t commonBlocks(const std::vector<TokenId>& a, const std::vector<TokenId>& b, std::int32_t blockSize) {
    const auto differ = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first;
    return (differ - a.begin()) / blockSize;
}

} // namespace

/// In the order of the policy nobody overtakes the one that waits for blocks; only a fork whose source is still reading
/// and a long prompt without a place for long ones step aside.
void Scheduler::admitWaiting(Nanos now) {
    m_queue.assign(m_waiting.begin(), m_waiting.end());
    const auto placeFree = [this] { return m_running.size() < static_cast<std::size_t>(m_config.maxSequences); };
    if (budgetLeft() > 0 && placeFree())
        m_order.sort(m_queue);
    for (auto next = m_queue.begin(); next != m_queue.end() && budgetLeft() > 0 && placeFree();) {
        Sequence& sequence = **next;
        if (forkSource(sequence).reading || !longPlaceFree(sequence)) {
            ++next;
            continue;
        }
        const Admitted outcome = tryAdmit(sequence, now);
        if (outcome == Admitted::NotNow)
            break;
        next = m_queue.erase(next);
        if (outcome != Admitted::Yes)
            continue;
        // The pool's blocks are there for the whole prompt, those of a window group only as far as it is read.
        const std::int64_t count = chunkOf(sequence);
        if (makeRoom(sequence, sequence.computed + count, now))
            addItem(sequence, count);
    }
    explainWaiting();
}

/// Notes the reason when there is none. Who was preempted while reading keeps its right to be read.
bool Scheduler::longPlaceFree(Sequence& sequence) const {
    sequence.waiting.longPrefills = 0;
    if (!isLong(sequence.known()) || sequence.longPrefill || !isLong(m_order.toRead(sequence)))
        return true;
    const auto reading = std::count_if(m_running.begin(), m_running.end(), [](const Sequence* running) {
        return running->longPrefill && running->phase == SequencePhase::Reading;
    });
    if (reading < m_config.maxLongPartialPrefills)
        return true;
    sequence.waiting.kind = WaitingKind::LongPrefills;
    sequence.waiting.longPrefills = m_config.maxLongPartialPrefills;
    return false;
}

Scheduler::Admitted Scheduler::tryAdmit(Sequence& sequence, Nanos now) {
    sequence.waiting.kind = WaitingKind::None;
    const bool first = !sequence.admittedBefore;
    std::int64_t chunk = longestChunk();
    for (;;) {
        const ForkSource source = forkSource(sequence);
        kv::AdmitRequest request;
        request.tokens = sequence.tokens;
        request.owner = sequence.spec.owner;
        request.adapter = sequence.spec.adapter;
        request.forkFrom = source.table;
        request.forkTokens = source.tokens;
        request.swapped = &sequence.swapped;
        request.longest = reserveFor(sequence.promptTokens, sequence.spec.maxNewTokens);
        request.chunk = chunk;
        request.explain = first;
        // Alone, there is nothing to keep a block back for.
        if (!m_running.empty())
            request.keepBack = std::max(m_watermarkBlocks, first ? 0 : roomToStay(sequence));
        const Loaded before = loadedSoFar();
        kv::AdmitResult result = m_cache.admit(request, now);
        if (result) {
            const Loaded after = loadedSoFar();
            admitted(sequence, std::move(*result), {after.took - before.took, after.bytes - before.bytes}, now);
            return Admitted::Yes;
        }
        // In small chunks it needs less: of a block, or, where nobody will give anything back, of a token.
        if (const std::int64_t least = m_running.empty() ? 1 : m_cache.blockSize();
            m_cache.sight().on() && chunk > least) {
            chunk = least;
            continue;
        }
        if (dropOldestRetained())
            continue;
        if (result.error().fragmented && !sequence.waiting.fragmented) {
            sequence.waiting.fragmented = true;
            ++m_counters.refused;
        }
        if (!m_running.empty()) {
            sequence.waiting.kind = result.error().tailSlot ? WaitingKind::Places : WaitingKind::Blocks;
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

/// Blocks that must be left when one that was preempted comes back: it must be able to write at least a block, else it
/// would be preempted again for nothing. Who was preempted before comes back only when all that run can be written to
/// their ends beside it.
std::int32_t Scheduler::roomToStay(const Sequence& sequence) const {
    if (sequence.usage.preemptions < kPatience)
        return 1;
    GrowthOutlook outlook(m_cache.blockSize());
    std::int64_t toRead = 0; // they share what the budget leaves beside those that write
    const auto writing = std::count_if(m_running.begin(), m_running.end(),
                                       [](const Sequence* running) { return running->uncomputed() == 1; });
    const auto readABudget = std::max<std::int64_t>(1, m_config.tokenBudget - writing);
    const auto mostOf = [&](const Sequence& member) -> std::int64_t {
        if (!m_cache.sight().on())
            return m_cache.numBlocks();
        return m_cache.sight().mostHeld(member.uncomputed() > 1 ? m_cache.blockSize() : 1);
    };
    const auto add = [&](const Sequence& member, std::int64_t blocks, std::int64_t own) {
        std::int64_t steps = member.spec.maxNewTokens - member.generated();
        if (m_config.maxLength > 0)
            steps = std::min(steps, m_config.maxLength - member.known());
        toRead += member.uncomputed() > 1 ? member.uncomputed() : 0;
        outlook.add({member.known(), std::max<std::int64_t>(1, steps),
                     member.uncomputed() > 1 ? (toRead - 1) / readABudget : 0, blocks, std::max<std::int64_t>(0, own),
                     mostOf(member)});
    };
    std::int64_t mostInCommon = 0; // blocks that it will have in common with one that runs: the end of one frees none
    for (const Sequence* running : m_running) {
        const std::int64_t blocks = running->table.heldBlocks();
        const std::int64_t inCommon = commonBlocks(running->tokens, sequence.tokens, m_cache.blockSize());
        mostInCommon = std::max(mostInCommon, inCommon);
        add(*running, blocks, blocks - std::max<std::int64_t>(inCommon, m_cache.sharedBlocks(running->table)));
    }
    const std::int64_t own = m_cache.mostBlocks(sequence.known(), m_cache.blockSize());
    add(sequence, own, own - mostInCommon);
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(outlook.most(), 1, m_cache.numBlocks()));
}

void Scheduler::admitted(Sequence& sequence, kv::Admission admission, const Loaded& loaded, Nanos now) {
    m_waiting.erase(std::find(m_waiting.begin(), m_waiting.end(), &sequence));
    insertByArrival(m_running, sequence);
    const std::int64_t reused = admission.reusedTokens;
    sequence.table = std::move(admission.table);
    sequence.computed = reused;
    sequence.phase = SequencePhase::Reading;
    sequence.longPrefill = sequence.longPrefill || isLong(sequence.uncomputed());
    sequence.waiting = {};
    sequence.usage.newBlocks += admission.newBlocks;
    sequence.usage.loadedBlocks += admission.loadedBlocks;
    sequence.usage.blocksPeak = std::max(sequence.usage.blocksPeak, sequence.table.heldBlocks());
    // A prompt that was preempted half read may find more of itself cached when it comes back.
    sequence.usage.reusedTokens +=
        std::max(std::int64_t(0), std::min(reused, sequence.promptTokens) - sequence.everComputed);
    sequence.everComputed = std::max(sequence.everComputed, reused);
    if (sequence.preemption)
        cameBack(sequence, admission, loaded);
    if (m_observer)
        m_observer->admitted(sequence, reused, admission.loadedBlocks);
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

/// Of those who were not even looked at, the first that wanted blocks last time still does.
void Scheduler::explainWaiting() {
    const bool full = m_running.size() >= static_cast<std::size_t>(m_config.maxSequences);
    bool headSeen = false;
    for (Sequence* sequence : m_queue) {
        WaitingReason& reason = sequence->waiting;
        const bool wantsBlocks = reason.kind == WaitingKind::Blocks && !headSeen && !full;
        headSeen |= reason.kind == WaitingKind::Blocks;
        if (wantsBlocks)
            continue;
        const bool tooLong = reason.longPrefills > 0 && !full;
        reason.kind = full                            ? WaitingKind::Places
                      : tooLong                       ? WaitingKind::LongPrefills
                      : forkSource(*sequence).reading ? WaitingKind::Source
                                                      : WaitingKind::Queue;
        reason.places = full ? m_config.maxSequences : 0;
        reason.longPrefills = tooLong ? m_config.maxLongPartialPrefills : 0;
        reason.neededBlocks = 0;
        reason.availableBlocks = 0;
    }
}

} // namespace kvscope::sched
