// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/bench/real_engine.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace kvscope::bench {

RealEngine::RealEngine() : m_engine({m_clock, *this, nullptr, nullptr, {}, {}}) {}

Result<void> RealEngine::load(const api::EngineConfig& config, const std::atomic<bool>* cancel) {
    m_engine.unload(); // two pools at once may be more than there is memory for
    m_rows.clear();
    m_ended.clear();
    m_running.clear();
    return m_engine.load(config, cancel);
}

void RealEngine::waitUntil(Nanos time) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(std::max<Nanos>(0, time - now())));
}

void RealEngine::submit(SentRequest sent) {
    api::Request request;
    request.id = RequestId(sent.index);
    request.owner = OwnerId(sent.owner);
    request.prompt = api::TokenPrompt{std::move(sent.prompt)};
    request.sampling.maxTokens = static_cast<std::int32_t>(sent.answerTokens);
    request.sampling.ignoreEos = true;
    m_running.push_back(sent.index);
    m_engine.submit(std::move(request), now());
}

bool RealEngine::step() {
    return m_engine.step() == api::Engine::StepResult::Ran;
}

void RealEngine::cancelAll() {
    const std::vector<std::int32_t> running = m_running; // ending changes the list
    for (const std::int32_t index : running)
        m_engine.cancel(RequestId(index));
}

void RealEngine::onEvent(const api::Event& event) {
    const auto* finished = std::get_if<api::FinishedEvent>(&event);
    if (!finished)
        return;
    const api::Answer& answer = finished->answer;
    EndedRequest ended;
    ended.index = static_cast<std::int32_t>(answer.id.value());
    ended.answer = answer.tokenIds;
    ended.tokenTimes = answer.tokenTimes;
    ended.reusedTokens = answer.cache.reusedTokens;
    ended.computedTokens = answer.cache.computedTokens;
    ended.recomputedTokens = answer.cache.recomputedTokens;
    ended.preemptions = answer.cache.preemptions;
    ended.cut = answer.reason == api::FinishReason::Cancelled;
    if (answer.reason == api::FinishReason::Error)
        ended.problem = answer.error ? answer.error->message : "It ended with an error.";
    m_running.erase(std::remove(m_running.begin(), m_running.end(), ended.index), m_running.end());
    m_ended.push_back(std::move(ended));
}

PoolState RealEngine::pool() const {
    const metrics::StepSample sample = m_engine.sample();
    PoolState state;
    state.allocatedSlots = static_cast<std::uint64_t>(sample.referencedBlocks) * sample.blockSize;
    state.usedSlots = sample.usedSlots;
    std::uint64_t tails = 0;
    for (const api::SequenceRow& row : m_rows) {
        if (row.state == api::SequenceState::Waiting || row.state == api::SequenceState::Idle)
            continue;
        const std::uint64_t room = static_cast<std::uint64_t>(row.blocks) * sample.blockSize;
        state.wastedSlots += room - std::min(room, static_cast<std::uint64_t>(row.tokens));
        state.held += row.computedTokens >= row.promptTokens ? 1 : 0;
        tails += row.computedTokens % static_cast<std::int64_t>(sample.blockSize) != 0 ? 1 : 0;
    }
    const api::ModelInfo& model = m_engine.model();
    state.allocatedBytes = sample.referencedBlocks * sample.bytesPerBlock + sample.windowUsedBytes +
                           tails * (model.tailBytes / static_cast<std::uint64_t>(model.maxSequences));
    state.externalFragmentation = sample.externalFragmentation();
    return state;
}

RunCounters RealEngine::counters() const {
    const metrics::StepSample sample = m_engine.sample();
    RunCounters out;
    out.promptTokens = sample.totalPrefixQueryTokens;
    out.reusedTokens = sample.totalPrefixHitTokens;
    out.computedTokens = sample.totalPrefillTokens;
    out.preemptions = sample.totalPreemptions;
    out.evictions = sample.totalEvictions;
    out.refused = sample.totalRefused;
    out.steps = sample.step;
    return out;
}

} // namespace kvscope::bench
