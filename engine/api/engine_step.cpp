// SPDX-License-Identifier: GPL-3.0-or-later
//
// One step: schedule, flatten, compute, draw, append, publish, give out.
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/api/engine_impl.h"
#include "engine/base/check.h"

namespace kvscope::api {

namespace {

/// Share by which a cost rate must have changed to be told again.
constexpr double kRateStep = 0.1;
/// Tokens of a step that says something of reading, which goes in chunks.
constexpr std::int32_t kLeastToLearn = 16;

/// Tokens of the step that belong to chunks, not to answers being written one by one.
std::int64_t readTokens(const sched::StepPlan& plan) {
    std::int64_t tokens = 0;
    for (const sched::StepItem& item : plan.items)
        if (item.to - item.from > 1)
            tokens += item.to - item.from;
    return tokens;
}

bool sameWaiting(const WaitingEvent& a, const WaitingEvent& b) {
    return a.neededBlocks == b.neededBlocks && a.availableBlocks == b.availableBlocks &&
           a.runningLimit == b.runningLimit && a.longPrefillLimit == b.longPrefillLimit && a.preempted == b.preempted &&
           a.lentTo == b.lentTo;
}

} // namespace

Engine::StepResult Engine::Impl::step() {
    if (m_faulted)
        return StepResult::Faulted;
    if (!m_model || m_requests.empty())
        return StepResult::Idle;
    const Nanos start = now();
    watchFiles(start);
    setBudget();
    tellRates();
    const sched::StepPlan& plan = m_model->scheduler->schedule(start);
    sayWaiting();
    if (plan.empty()) {
        collectEnded();
        publish(false);
        return m_requests.empty() ? StepResult::Idle : StepResult::Blocked;
    }
    m_times.totalSchedule += now() - start;
    const StepResult result = run(plan);
    if (result == StepResult::Ran)
        countStep(start);
    return result;
}

Engine::StepResult Engine::Impl::run(const sched::StepPlan& plan) {
    sayAdmissions(plan);
    flatten(plan);
    if (!announce(plan)) {
        m_model->scheduler->abandon(now());
        return StepResult::Aborted;
    }
    const Nanos computeStart = now();
    const kernels::StepStatus status = m_model->runner->compute();
    if (m_parts.abort)
        m_parts.abort->endStep();
    if (status == kernels::StepStatus::Aborted) {
        m_model->scheduler->abandon(now());
        collectEnded();
        return StepResult::Aborted;
    }
    if (status == kernels::StepStatus::Failed) {
        backendFailed();
        return StepResult::Ran;
    }
    draw(plan);
    if (endUndrawable(plan))
        return StepResult::Ran;
    accept(plan);
    const Nanos took = now() - computeStart;
    m_stepTime.stepTook(static_cast<std::int32_t>(readTokens(plan)), took);
    learnReading(plan, took);

    const Nanos drawn = now();
    giveOutLogits(plan);
    sayProgress(plan); // before complete(): the plan's spans end with it
    m_model->scheduler->complete(m_tokens, drawn);
    for (TokensEvent& piece : m_pieces)
        say(piece);
    watchPeak();
    collectEnded();
    m_times.totalPostprocess += now() - drawn;
    return StepResult::Ran;
}

void Engine::Impl::setBudget() {
    const auto running = m_model->scheduler->running();
    const auto answers = static_cast<std::int32_t>(
        std::count_if(running.begin(), running.end(), [](const sched::Sequence* s) { return s->uncomputed() == 1; }));
    std::int32_t budget = m_config.maxBatchedTokens > 0
                              ? m_model->stepCapacity
                              : std::min(m_model->stepCapacity, answers + m_stepTime.tokens());
    const bool scoring = std::any_of(m_requests.begin(), m_requests.end(),
                                     [](const auto& entry) { return !entry.second->request().logitPositions.empty(); });
    if (scoring) // every token of the step may want its logits
        budget = std::min(budget, m_model->scoreCapacity);
    m_model->scheduler->setTokenBudget(budget);
}

/// The rates that the choice between moving and computing goes by. They are part of what a replay repeats, so small
/// changes are not told.
void Engine::Impl::tellRates() {
    if (!m_model->mover)
        return;
    kv::CostRates rates;
    rates.nanosPerToken = m_readCost.nanosPerToken();
    rates.nanosPerTokenAndPosition = m_readCost.nanosPerTokenAndPosition();
    rates.nanosPerByteStored = m_model->mover->nanosPerByteStored();
    rates.nanosPerByteLoaded = m_model->mover->nanosPerByteLoaded();
    const kv::CostRates& told = m_model->cache->costRates();
    const auto moved = [](double now, double before) { return std::fabs(now - before) > kRateStep * before; };
    if (moved(rates.nanosPerToken, told.nanosPerToken) ||
        moved(rates.nanosPerTokenAndPosition, told.nanosPerTokenAndPosition) ||
        moved(rates.nanosPerByteStored, told.nanosPerByteStored) ||
        moved(rates.nanosPerByteLoaded, told.nanosPerByteLoaded))
        m_model->scheduler->setCostRates(rates);
}

void Engine::Impl::learnReading(const sched::StepPlan& plan, Nanos took) {
    // What answers cost says nothing of reading.
    if (readTokens(plan) < std::min({kLeastToLearn, m_model->stepCapacity, m_stepTime.tokens()}))
        return;
    double positions = 0;
    for (const sched::StepItem& item : plan.items)
        positions += ReadCost::positionsSeen(item.from, item.to, sight());
    m_readCost.step(plan.tokens, positions, took);
}

/// Positions that a token sees before it, at most.
std::int64_t Engine::Impl::sight() const {
    const kv::SinkWindow& window = m_model->cache->sight();
    return window.on() ? window.unaffected() : std::numeric_limits<std::int64_t>::max();
}

/// The tokens at positions [from, to), if nothing else is computed meanwhile; -1 = not known yet.
double Engine::Impl::secondsToRead(std::int64_t from, std::int64_t to) const {
    if (m_readCost.nanosPerToken() <= 0)
        return -1;
    return m_readCost.toRead(to - from, ReadCost::positionsSeen(from, to, sight())) / 1e9;
}

/// The same for a sequence of this step, while the company stays: answers take their part of each step.
double Engine::Impl::secondsLeft(const sched::StepPlan& plan, std::int64_t from, std::int64_t to) const {
    const double alone = secondsToRead(from, to);
    const auto read = std::max<std::int64_t>(1, readTokens(plan));
    return alone < 0 ? alone : alone * static_cast<double>(plan.tokens) / static_cast<double>(read);
}

void Engine::Impl::flatten(const sched::StepPlan& plan) {
    exec::ModelRunner& runner = *m_model->runner;
    runner.begin();
    for (const kv::BlockCopy& copy : plan.copies)
        runner.addCopy(copy.from, copy.to, copy.slotCount);
    m_firstLogitRow.clear();
    m_drawRow.clear();
    for (const sched::StepItem& item : plan.items) {
        m_logitOffsets.clear();
        for (const std::int64_t position : m_bySequence.at(item.sequence)->request().logitPositions)
            if (position >= item.from && position < item.to)
                m_logitOffsets.push_back(static_cast<std::int32_t>(position - item.from));
        const auto last = static_cast<std::int32_t>(item.to - item.from) - 1;
        if (item.samples && (m_logitOffsets.empty() || m_logitOffsets.back() != last))
            m_logitOffsets.push_back(last);
        const std::int32_t first =
            runner.addSequence(item.tokens, item.from, item.blocks, m_logitOffsets, item.tailSlot, item.windowBlocks);
        m_firstLogitRow.push_back(first);
        m_drawRow.push_back(item.samples ? first + static_cast<std::int32_t>(m_logitOffsets.size()) - 1 : -1);
    }
}

/// False: somebody in the step was cancelled meanwhile; it must be planned again.
bool Engine::Impl::announce(const sched::StepPlan& plan) {
    if (!m_parts.abort)
        return true;
    m_members.clear();
    for (const sched::StepItem& item : plan.items)
        m_members.push_back(item.request);
    return m_parts.abort->beginStep(m_members);
}

void Engine::Impl::draw(const sched::StepPlan& plan) {
    m_rows.clear();
    for (std::size_t i = 0; i < plan.items.size(); ++i)
        if (plan.items[i].samples)
            m_rows.push_back(m_bySequence.at(plan.items[i].sequence)->sampleRow(m_drawRow[i], plan.items[i].drawIndex));
    m_drawn.assign(m_rows.size(), {});
    if (!m_rows.empty())
        m_model->runner->draw(m_rows, m_drawn);
}

/// Damaged weights compute logits that are no numbers. That is the file's fault and ends the requests that met it; the
/// others repeat the step. False: every row has its token.
bool Engine::Impl::endUndrawable(const sched::StepPlan& plan) {
    std::vector<SequenceId> failed;
    std::size_t next = 0;
    for (const sched::StepItem& item : plan.items)
        if (item.samples && m_drawn[next++].token < 0)
            failed.push_back(item.sequence);
    if (failed.empty())
        return false;
    m_model->scheduler->abandon(now());
    m_endError = {ErrorCode::Corrupt, "The model computed values that are no numbers: its weights are damaged, or do "
                                      "not fit its configuration. Download it again."};
    for (const SequenceId id : failed)
        m_model->scheduler->fail(id, now());
    collectEnded();
    m_endError.reset();
    return true;
}

/// What the drawn tokens make of the answers.
void Engine::Impl::accept(const sched::StepPlan& plan) {
    m_tokens.clear();
    m_pieces.clear();
    const Nanos time = now();
    std::size_t next = 0;
    for (const sched::StepItem& item : plan.items) {
        if (!item.samples)
            continue;
        const kernels::SampledToken& token = m_drawn[next++];
        KV_CHECK(token.token < m_model->vocab, "The sampler drew a token that does not exist");
        TokenOutcome outcome = m_bySequence.at(item.sequence)->accept(token, time);
        m_tokens.push_back({token.token, outcome.ends});
        TokensEvent piece{item.request, std::move(outcome.text), {}, item.to + 1};
        if (outcome.shown)
            piece.tokens.push_back(token.token);
        m_pieces.push_back(std::move(piece));
    }
}

void Engine::Impl::giveOutLogits(const sched::StepPlan& plan) {
    for (std::size_t i = 0; i < plan.items.size(); ++i) {
        const sched::StepItem& item = plan.items[i];
        std::int32_t row = m_firstLogitRow[i];
        for (const std::int64_t position : m_bySequence.at(item.sequence)->request().logitPositions) {
            if (position < item.from || position >= item.to)
                continue;
            m_logits.resize(static_cast<std::size_t>(m_model->vocab));
            m_model->runner->readLogits(row++, m_logits);
            m_parts.listener.onLogits(item.request, position, m_logits);
        }
    }
}

void Engine::Impl::backendFailed() {
    const kernels::BackendError error = m_model->backend->lastError();
    m_model->scheduler->abandon(now());
    endEverything(sched::EndReason::Failed,
                  {error.outOfMemory ? ErrorCode::OutOfMemory : ErrorCode::Internal, error.message});
}

// ---- what the requests hear of it ----

void Engine::Impl::sayWaiting() {
    for (const sched::Sequence* sequence : m_model->scheduler->waiting()) {
        ActiveRequest& request = *m_bySequence.at(sequence->id);
        const sched::WaitingReason& reason = sequence->waiting;
        WaitingEvent event;
        event.id = request.request().id;
        event.neededBlocks = reason.neededBlocks;
        event.availableBlocks = reason.availableBlocks;
        event.runningLimit = reason.places;
        event.longPrefillLimit = reason.longPrefills;
        event.preempted = reason.preempted;
        event.lentTo = reason.lentTo;
        if (request.said && sameWaiting(*request.said, event))
            continue;
        request.said = event;
        request.readingSaid = false;
        say(event);
    }
}

void Engine::Impl::sayPreemptions() {
    const auto milliseconds = [](Nanos nanos) { return static_cast<double>(nanos) / 1e6; };
    for (const sched::Preemption& p : m_model->scheduler->takePreemptions())
        say(PreemptionEvent{p.request, p.swaps, p.tokens, p.blocks, milliseconds(p.estimatedSwap),
                            milliseconds(p.estimatedRead), p.restored, milliseconds(p.expected), milliseconds(p.took)});
}

void Engine::Impl::sayAdmissions(const sched::StepPlan& plan) {
    for (const sched::StepItem& item : plan.items) {
        ActiveRequest& request = *m_bySequence.at(item.sequence);
        if (request.readingSaid)
            continue;
        request.readingSaid = true;
        request.said.reset();
        const sched::Sequence& sequence = *m_model->scheduler->find(item.sequence);
        const double left = secondsLeft(plan, item.from, sequence.known());
        say(PrefillEvent{item.request, item.from, item.from, sequence.known(), left});
    }
}

void Engine::Impl::sayProgress(const sched::StepPlan& plan) {
    for (const sched::StepItem& item : plan.items) {
        if (item.samples) // reading is over; the token says so
            continue;
        const sched::Sequence& sequence = *m_model->scheduler->find(item.sequence);
        const double left = secondsLeft(plan, item.to, sequence.known());
        say(PrefillEvent{item.request, sequence.usage.reusedTokens, item.to, sequence.known(), left});
    }
}

void Engine::Impl::countStep(Nanos start) {
    if (!m_model)
        return;
    const kernels::PhaseTimes phases = m_model->backend->phaseTimes();
    m_times.totalEmbed += phases.embed;
    m_times.totalQkv += phases.qkv;
    m_times.totalAttention += phases.attention;
    m_times.totalMlp += phases.mlp;
    m_times.totalLogits += phases.logits;
    m_times.totalSampling += phases.sample;
    const Nanos beforePublish = now();
    m_times.totalStep += beforePublish - start;
    publish(true);
    const Nanos published = now() - beforePublish;
    m_times.totalPublish += published;
    m_times.totalStep += published;
}

} // namespace kvscope::api
