// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/sched/scheduler.h"

#include <algorithm>
#include <utility>

#include "engine/base/check.h"

namespace kvscope::sched {

void HitRateWindow::add(std::int64_t reused, std::int64_t prompt) {
    Entry& oldest = m_ring[m_next];
    m_reused += reused - oldest.reused;
    m_prompt += prompt - oldest.prompt;
    oldest = {reused, prompt};
    m_next = (m_next + 1) % m_ring.size();
}

Scheduler::Scheduler(kv::KvCache& cache, const SchedulerConfig& config)
    : m_cache(cache)
    , m_config(config)
    , m_watermarkBlocks(static_cast<std::int32_t>(config.watermark * cache.numBlocks()))
    , m_order(cache, config.policy) {
    KV_CHECK(config.tokenBudget > 0, "a step needs a budget of at least one token");
    KV_CHECK(config.maxSequences > 0, "at least one sequence must be allowed to run");
    KV_CHECK(config.watermark >= 0 && config.watermark < 1, "the watermark is a share of the pool below 1");
    KV_CHECK(config.longPrefillThreshold >= 0 && config.maxLongPartialPrefills >= 1,
             "at least one long prompt must be allowed to be read");
}

Scheduler::~Scheduler() {
    if (m_observer)
        m_cache.observe(nullptr);
}

// ---- requests in ----

SequenceId Scheduler::submit(SequenceSpec spec, Nanos now) {
    KV_CHECK(!spec.tokens.empty(), "a request without tokens was submitted");
    KV_CHECK(spec.maxNewTokens > 0, "a request for no tokens was submitted");
    auto owned = std::make_unique<Sequence>();
    Sequence& sequence = *owned;
    sequence.id = SequenceId(m_nextId++);
    sequence.tokens = std::move(spec.tokens);
    sequence.spec = std::move(spec);
    sequence.promptTokens = sequence.known();
    sequence.times.arrival = now;
    sequence.clockAtArrival = static_cast<std::int64_t>(m_counters.prefillTokens + m_counters.decodeTokens);
    const SequenceId id = sequence.id;
    m_sequences.emplace(id, std::move(owned));
    m_waiting.push_back(&sequence);
    if (m_observer)
        m_observer->submitted(sequence, now);

    // The last token drawn is never computed, so a prompt needs one token of length more than it needs slots.
    const std::int64_t slots = m_cache.longestTable();
    const std::int64_t longest = m_config.maxLength > 0 ? std::min(m_config.maxLength, slots + 1) : slots + 1;
    const std::int64_t needed = sequence.promptTokens + (sequence.spec.scores ? 0 : 1);
    if (needed > longest || sequence.promptTokens > slots)
        end(sequence, EndReason::TooLong, now, needed, longest);
    return id;
}

void Scheduler::cancel(SequenceId id, Nanos now) {
    const auto found = m_sequences.find(id);
    if (found == m_sequences.end() || found->second->cancelled)
        return;
    found->second->cancelled = true;
    if (m_observer)
        m_observer->cancelled(*found->second, m_inFlight);
    m_cancelled.push_back(id);
    if (!m_inFlight)
        endCancelled(now);
}

void Scheduler::setTokenBudget(std::int32_t tokens) {
    KV_CHECK(tokens > 0 && !m_inFlight, "the token budget is at least 1 and changes between steps only");
    if (m_observer && tokens != m_config.tokenBudget)
        m_observer->budgetChanged(tokens);
    m_config.tokenBudget = tokens;
}

void Scheduler::releasePins() {
    if (m_observer)
        m_observer->pinsReleased();
    m_pins.clear();
}

void Scheduler::observe(ScheduleObserver* observer) {
    m_observer = observer;
    m_cache.observe(observer);
}

std::int64_t Scheduler::reserveFor(std::int64_t promptTokens, std::int64_t maxNewTokens) const {
    const std::int64_t slots = static_cast<std::int64_t>(m_cache.numBlocks()) * m_cache.blockSize();
    const std::int64_t longest = m_config.maxLength > 0 ? m_config.maxLength : slots;
    if (m_config.reserve == kv::ContiguousReserve::Model)
        return longest;
    return promptTokens > longest - maxNewTokens ? longest : promptTokens + maxNewTokens;
}

// ---- the plan ----

const StepPlan& Scheduler::schedule(Nanos now) {
    KV_CHECK(!m_inFlight, "a step was scheduled while another is in flight");
    m_plan.items.clear();
    m_plan.copies.clear();
    m_plan.tokens = 0;
    m_plan.draws = 0;

    const kv::MoveTimes before = moved();
    planSingleTokens(now);
    planChunks(now);
    admitWaiting(now);

    if (m_plan.empty())
        return m_plan;
    const kv::MoveTimes after = moved();
    m_planned = now + (after.store - before.store) + (after.load - before.load);
    m_plan.number = ++m_stepNumber;
    const auto copies = m_cache.pendingCopies();
    m_plan.copies.assign(copies.begin(), copies.end());
    for (const StepItem& item : m_plan.items)
        m_plan.draws += item.samples ? 1 : 0;
    m_inFlight = true;
    if (m_observer)
        m_observer->scheduled(m_plan, now);
    return m_plan;
}

/// Sequences with one token to compute come before all chunks, so that a long prompt never holds up an answer. Whoever
/// waited longest is first: with a budget smaller than the number of answers they take turns.
void Scheduler::planSingleTokens(Nanos now) {
    m_turn.clear();
    std::copy_if(m_running.begin(), m_running.end(), std::back_inserter(m_turn),
                 [](const Sequence* sequence) { return sequence->uncomputed() == 1; });
    std::stable_sort(m_turn.begin(), m_turn.end(),
                     [](const Sequence* a, const Sequence* b) { return a->lastTurn < b->lastTurn; });
    for (Sequence* sequence : m_turn) {
        if (budgetLeft() == 0)
            return;
        if (sequence->phase != SequencePhase::Waiting && makeRoom(*sequence, sequence->known(), now))
            addItem(*sequence, 1);
    }
}

void Scheduler::planChunks(Nanos now) {
    m_turn.clear();
    std::copy_if(m_running.begin(), m_running.end(), std::back_inserter(m_turn),
                 [](const Sequence* sequence) { return sequence->uncomputed() > 1; });
    for (Sequence* sequence : m_turn) {
        if (budgetLeft() == 0)
            return;
        if (sequence->phase == SequencePhase::Waiting)
            continue;
        // With sinks, this step's chunks give blocks back: whoever finds no room waits for these.
        if (m_cache.sight().on() && !m_plan.empty() && roomOf(*sequence) < 1)
            continue;
        const std::int64_t count = chunkOf(*sequence);
        if (makeRoom(*sequence, sequence->computed + count, now))
            addItem(*sequence, count);
    }
}

/// How many tokens of a sequence the next chunk takes. A long prompt goes in small pieces where somebody else would
/// wait for it; alone, it is read at full speed.
std::int64_t Scheduler::chunkOf(const Sequence& sequence) const {
    const std::int64_t most = withinRoom(sequence, std::min(sequence.uncomputed(), budgetLeft()));
    if (!isLong(sequence.uncomputed()))
        return inOneTail(sequence, most);
    const auto shorter = [&](const Sequence* other) { return other != &sequence && !isLong(other->uncomputed()); };
    const bool others = std::any_of(m_running.begin(), m_running.end(), shorter) ||
                        std::any_of(m_waiting.begin(), m_waiting.end(), shorter);
    return inOneTail(sequence, others ? std::min<std::int64_t>(most, m_config.longPrefillThreshold) : most);
}

/// With sinks a chunk takes what blocks there are, instead of others': memory is what that mode is chosen for.
std::int64_t Scheduler::withinRoom(const Sequence& sequence, std::int64_t count) const {
    if (!m_cache.sight().on())
        return count;
    return std::clamp<std::int64_t>(roomOf(sequence), 1, std::min(count, longestChunk()));
}

/// Tokens that it can compute without anybody's blocks.
std::int64_t Scheduler::roomOf(const Sequence& sequence) const {
    return (static_cast<std::int64_t>(sequence.table.blocks().size()) + m_cache.available()) * m_cache.blockSize() -
           sequence.computed;
}

/// Of a sequence that is admitted: with sinks it must fit into the pool beside what it keeps.
std::int64_t Scheduler::longestChunk() const {
    const auto& sight = m_cache.sight();
    if (!sight.on())
        return m_config.tokenBudget;
    return std::clamp<std::int64_t>(sight.chunkWithin(m_cache.numBlocks()), 1, m_config.tokenBudget);
}

/// A tail slot holds one block: a chunk that begins inside a block and would end inside a later one ends at the last
/// border before.
std::int64_t Scheduler::inOneTail(const Sequence& sequence, std::int64_t count) const {
    const std::int64_t size = m_cache.blockSize(), from = sequence.computed, to = from + count;
    const bool twoTails = m_cache.hasTails() && from % size != 0 && to % size != 0 && from / size != to / size;
    return (twoTails ? to / size * size : to) - from;
}

void Scheduler::addItem(Sequence& sequence, std::int64_t count) {
    StepItem item;
    item.sequence = sequence.id;
    item.request = sequence.spec.request;
    item.from = sequence.computed;
    item.to = sequence.computed + count;
    item.tokens =
        std::span(sequence.tokens).subspan(static_cast<std::size_t>(item.from), static_cast<std::size_t>(count));
    item.blocks = sequence.table.blocks().first(static_cast<std::size_t>(m_cache.blocksFor(item.to)));
    if (m_cache.window() != nullptr)
        item.windowBlocks = sequence.table.windowBlocks().first(item.blocks.size());
    item.tailSlot = sequence.table.tailSlot();
    item.samples = item.to == sequence.known();
    item.drawIndex = sequence.generated();
    m_plan.items.push_back(item);
    m_plan.tokens += count;
}

void Scheduler::removeItem(SequenceId id) {
    const auto item = std::find_if(m_plan.items.begin(), m_plan.items.end(),
                                   [id](const StepItem& planned) { return planned.sequence == id; });
    if (item == m_plan.items.end())
        return;
    m_plan.tokens -= item->to - item->from;
    m_plan.items.erase(item);
}

// ---- room for those who run ----

/// False: it gave way itself (it waits again), or it was alone and has ended.
bool Scheduler::makeRoom(Sequence& sequence, std::int64_t upTo, Nanos now) {
    for (;;) {
        const kv::GrowResult grown = m_cache.grow(sequence.table, upTo, now);
        if (grown) {
            sequence.usage.newBlocks += *grown;
            sequence.usage.blocksPeak = std::max(sequence.usage.blocksPeak, sequence.table.heldBlocks());
            return true;
        }
        if (dropOldestRetained())
            continue;
        Sequence& youngest = *m_running.back();
        if (&youngest == &sequence && m_running.size() == 1) {
            const std::int64_t fit = static_cast<std::int64_t>(sequence.table.blocks().size()) * m_cache.blockSize();
            end(sequence, EndReason::PoolFull, now, upTo, fit);
            return false;
        }
        preempt(youngest, &youngest == &sequence ? OwnerId() : sequence.spec.owner);
        if (&youngest == &sequence)
            return false;
    }
}

bool Scheduler::dropOldestRetained() {
    if (m_retained.empty())
        return false;
    m_retained.pop_front();
    return true;
}

void Scheduler::preempt(Sequence& victim, OwnerId lentTo) {
    removeItem(victim.id);
    m_running.erase(std::find(m_running.begin(), m_running.end(), &victim));
    if (m_cache.host() != nullptr)
        chooseSwap(victim);
    victim.table.release();
    victim.computed = 0;
    victim.phase = SequencePhase::Waiting;
    victim.waiting = {};
    victim.waiting.preempted = true;
    victim.waiting.lentTo = lentTo;
    ++victim.usage.preemptions;
    ++m_counters.preemptions;
    insertByArrival(m_waiting, victim);
}

void Scheduler::insertByArrival(std::vector<Sequence*>& list, Sequence& sequence) {
    const auto position = std::upper_bound(list.begin(), list.end(), &sequence,
                                           [](const Sequence* a, const Sequence* b) { return a->id < b->id; });
    list.insert(position, &sequence);
}

// ---- looking in ----

std::span<const Sequence* const> Scheduler::running() const {
    return {m_running.data(), m_running.size()};
}
std::span<const Sequence* const> Scheduler::waiting() const {
    return {m_waiting.data(), m_waiting.size()};
}

const Sequence* Scheduler::find(SequenceId id) const {
    const auto found = m_sequences.find(id);
    return found == m_sequences.end() ? nullptr : found->second.get();
}

std::vector<EndedSequence> Scheduler::takeEnded() {
    return std::exchange(m_ended, {});
}

void Scheduler::dropRetained(SequenceId id) {
    const auto found = std::find_if(m_retained.begin(), m_retained.end(),
                                    [id](const Retained& retained) { return retained.id == id; });
    if (found == m_retained.end())
        return;
    if (m_observer)
        m_observer->retainedDropped(id);
    m_retained.erase(found);
}

} // namespace kvscope::sched
