// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/bench/driver.h"

#include <algorithm>
#include <utility>

#include "engine/base/check.h"

namespace kvscope::bench {

namespace {

class Driver {
public:
    Driver(BenchEngine& engine, const Workload& workload, const DriverOptions& options)
        : m_engine(engine)
        , m_workload(workload)
        , m_options(options)
        , m_states(workload.requests.size())
        , m_start(engine.now())
        , m_lastEnd(m_start) {
        for (const PlannedRequest& request : workload.requests) {
            const auto phase = static_cast<std::size_t>(request.phase);
            m_left.resize(std::max(m_left.size(), phase + 1));
            ++m_left[phase];
        }
        for (const PlannedRequest& request : workload.requests)
            if (request.follows >= 0)
                m_states[static_cast<std::size_t>(request.follows)].isContinued = true;
    }

    RunResult run() {
        while (m_ended < m_workload.requests.size()) {
            if (m_options.interrupted && m_options.interrupted->load(std::memory_order_relaxed)) {
                m_result.partial = true;
                m_engine.cancelAll();
                collect();
                break;
            }
            sendReady();
            const Nanos before = m_engine.now();
            if (m_engine.step())
                m_result.pool.add(m_engine.pool(), m_engine.now() - before);
            else if (m_inFlight == 0 && m_ended < m_workload.requests.size())
                waitForArrival();
            collect();
        }
        finish();
        return std::move(m_result);
    }

private:
    struct State {
        bool sent = false, ended = false, isContinued = false;
        std::vector<TokenId> sequence; ///< prompt and answer, kept for the request that continues it
        RequestRecord record;
    };

    bool ready(std::size_t index) const {
        const PlannedRequest& request = m_workload.requests[index];
        for (std::size_t phase = 0; phase < static_cast<std::size_t>(request.phase); ++phase)
            if (m_left[phase] > 0)
                return false;
        return request.follows < 0 || m_states[static_cast<std::size_t>(request.follows)].ended;
    }

    /// In the order of the list; whoever is not ready lets others pass.
    void sendReady() {
        const bool open = m_workload.openLoop();
        while (m_firstUnsent < m_states.size() && m_states[m_firstUnsent].sent)
            ++m_firstUnsent;
        for (std::size_t i = m_firstUnsent; i < m_states.size(); ++i) {
            if (!open && m_inFlight >= m_options.concurrency)
                return;
            if (m_states[i].sent || !ready(i))
                continue;
            if (open && due(i) > m_engine.now())
                return; // they are in the order of their arrival
            send(i);
        }
    }

    Nanos due(std::size_t index) const {
        return m_start + static_cast<Nanos>(m_workload.requests[index].arrival * 1e9);
    }

    void waitForArrival() {
        Nanos next = -1;
        for (std::size_t i = m_firstUnsent; i < m_states.size(); ++i)
            if (!m_states[i].sent && ready(i) && (next < 0 || due(i) < next))
                next = due(i);
        KV_CHECK(m_workload.openLoop() && next >= 0, "nothing runs, and no request of the workload is ready");
        m_engine.waitUntil(next);
    }

    void send(std::size_t index) {
        const PlannedRequest& request = m_workload.requests[index];
        State& state = m_states[index];
        state.sent = true;
        RequestRecord& record = state.record;
        record.index = static_cast<std::int32_t>(index);
        record.kind = request.kind;
        record.turn = request.turn;
        record.owner = request.owner;
        record.sent = (m_workload.openLoop() ? due(index) : m_engine.now()) - m_start;
        SentRequest sent;
        sent.index = record.index;
        sent.owner = request.owner;
        sent.answerTokens = request.answerTokens;
        if (request.follows >= 0) {
            State& before = m_states[static_cast<std::size_t>(request.follows)];
            if (before.record.status != RequestStatus::Ok)
                return neverSent(state, "The request that it continues has failed.");
            sent.prompt = std::exchange(before.sequence, {});
        }
        sent.prompt.insert(sent.prompt.end(), request.tokens.begin(), request.tokens.end());
        record.promptTokens = static_cast<std::int64_t>(sent.prompt.size());
        if (state.isContinued)
            state.sequence = sent.prompt;
        ++m_inFlight;
        m_engine.submit(std::move(sent));
    }

    void neverSent(State& state, std::string why) {
        state.record.status = RequestStatus::Failed;
        state.record.problem = std::move(why);
        countEnd(state);
    }

    void countEnd(State& state) {
        state.ended = true;
        ++m_ended;
        --m_left[static_cast<std::size_t>(m_workload.requests[static_cast<std::size_t>(state.record.index)].phase)];
        if (m_options.onEnded)
            m_options.onEnded(static_cast<std::int32_t>(m_ended));
    }

    void collect() {
        for (EndedRequest& ended : m_engine.takeEnded()) {
            State& state = m_states[static_cast<std::size_t>(ended.index)];
            KV_CHECK(state.sent && !state.ended, "a request ended that was not running");
            RequestRecord& record = state.record;
            for (const Nanos time : ended.tokenTimes)
                record.tokenTimes.push_back(time - m_start);
            record.reusedTokens = ended.reusedTokens;
            record.computedTokens = ended.computedTokens;
            record.recomputedTokens = ended.recomputedTokens;
            record.preemptions = ended.preemptions;
            record.problem = std::move(ended.problem);
            record.status = ended.cut                   ? RequestStatus::Cut
                            : !record.problem.empty()   ? RequestStatus::Failed
                            : record.tokenTimes.empty() ? RequestStatus::Empty
                                                        : RequestStatus::Ok;
            if (record.status == RequestStatus::Empty)
                record.problem = "It ended without a token.";
            if (record.status == RequestStatus::Cut)
                record.problem = "The run was interrupted.";
            if (state.isContinued)
                state.sequence.insert(state.sequence.end(), ended.answer.begin(), ended.answer.end());
            --m_inFlight;
            countEnd(state);
            m_lastEnd = m_engine.now();
        }
    }

    void finish() {
        for (State& state : m_states)
            if (state.sent)
                m_result.records.push_back(std::move(state.record));
        m_result.counters = m_engine.counters();
        m_result.seconds = static_cast<double>(m_lastEnd - m_start) / 1e9;
    }

    BenchEngine& m_engine;
    const Workload& m_workload;
    const DriverOptions& m_options;
    std::vector<State> m_states;
    std::vector<std::int32_t> m_left; ///< requests that have not ended, by phase
    std::size_t m_firstUnsent = 0;
    std::size_t m_ended = 0;
    std::int32_t m_inFlight = 0;
    Nanos m_start;
    Nanos m_lastEnd;
    RunResult m_result;
};

} // namespace

RunResult runWorkload(BenchEngine& engine, const Workload& workload, const DriverOptions& options) {
    return Driver(engine, workload, options).run();
}

} // namespace kvscope::bench
