// SPDX-License-Identifier: GPL-3.0-or-later
//
// Private to engine/api: the Engine's state. engine.cpp: models and requests; engine_step.cpp: one step;
// engine_publish.cpp: what goes out.
#pragma once

#include <deque>
#include <unordered_map>

#include "engine/api/active_request.h"
#include "engine/api/engine.h"
#include "engine/api/loaded_model.h"
#include "engine/api/prompt_encoder.h"
#include "engine/api/read_cost.h"
#include "engine/api/session_observer.h"
#include "engine/api/step_time.h"

namespace kvscope::api {

class Engine::Impl {
public:
    explicit Impl(EngineParts parts);
    ~Impl();
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    // ---- engine.cpp
    Result<void> load(const EngineConfig& config, const std::atomic<bool>* cancel);
    void unload();
    Result<void> restart(const std::atomic<bool>* cancel);
    void submit(Request request, Nanos arrival);
    void cancel(RequestId id);
    void forget(RequestId id);

    // ---- engine_measure.cpp: how long sequences may be, and what a prompt would need
    std::int64_t longestSequence() const; ///< tokens
    /// How a dialog is cut to the window; none = it is not.
    std::optional<WindowRoom> windowFor(std::int64_t maxTokens) const;
    Result<EncodedPrompt> encode(const Request& request) const;
    MeasuredEvent measure(const Request& request) const;
    /// An answer to a look, not part of what happened: not for the session log.
    void answerMeasure(const Request& request) { m_parts.listener.onEvent(measure(request)); }

    // ---- engine_step.cpp
    StepResult step();

    // ---- engine_publish.cpp
    void tick();
    metrics::StepSample sample() const;
    EngineStats stats() const;
    void queryBlock(BlockId block);
    void queryOwner(OwnerId owner);
    void useTemplate(const std::string& name);
    void queryPrompt(std::int64_t key, const DialogPrompt& dialog, std::int64_t maxTokens);

    /// Runs an entry point; a broken invariant inside makes the engine Faulted.
    template <class Work> void guarded(Work&& work) {
        try {
            work();
        } catch (const std::exception& broken) {
            fault(broken.what());
        }
    }

    bool loaded() const { return m_model != nullptr; }
    bool faulted() const { return m_faulted; }
    bool hasWork() const { return !m_requests.empty(); }
    const ModelInfo& info() const { return m_info; }

private:
    struct Kept {
        std::vector<TokenId> tokens; ///< prompt and answer
        SequenceId sequence;         ///< whose table the scheduler may still have
    };

    Nanos now() const { return m_parts.clock.now(); }
    void planLarger(const Request& request, MeasuredEvent& out) const;
    const std::vector<TokenId>* keptTokens(RequestId id) const;
    ActiveRequest* find(RequestId id);
    bool fitsBeside(const EncodedPrompt& prompt, std::int64_t newTokens) const;
    void say(const Event& event);

    void endSession();
    void beginSession();
    void endRequest(const sched::EndedSequence& ended);
    void endEverything(sched::EndReason reason, const Error& error);

    StepResult run(const sched::StepPlan& plan);
    bool announce(const sched::StepPlan& plan);
    void setBudget();
    void tellRates();
    void learnReading(const sched::StepPlan& plan, Nanos took);
    std::int64_t sight() const;
    double secondsToRead(std::int64_t from, std::int64_t to) const;
    double secondsLeft(const sched::StepPlan& plan, std::int64_t from, std::int64_t to) const;
    void sayPreemptions();
    void flatten(const sched::StepPlan& plan);
    void sayAdmissions(const sched::StepPlan& plan);
    void sayWaiting();
    void sayProgress(const sched::StepPlan& plan);
    void giveOutLogits(const sched::StepPlan& plan);
    void draw(const sched::StepPlan& plan);
    bool endUndrawable(const sched::StepPlan& plan);
    void accept(const sched::StepPlan& plan);
    void collectEnded();
    void backendFailed();
    void countStep(Nanos start);
    void fault(const std::string& message);

    void publish(bool sampled);
    void publishBlockMap(Nanos time);
    void publishSequences();
    void addIdle(std::vector<SequenceRow>& rows);
    void sampleHost(metrics::StepSample& sample) const;
    void watchPeak();
    void watchFiles(Nanos time);

    EngineParts m_parts;
    std::unique_ptr<LoadedModel> m_model;
    ModelInfo m_info;
    EngineConfig m_config; ///< of m_model; kept while faulted
    bool m_faulted = false;
    std::unordered_map<RequestId, std::unique_ptr<ActiveRequest>> m_requests; ///< not ended
    std::unordered_map<SequenceId, ActiveRequest*> m_bySequence;
    std::unordered_map<RequestId, Kept> m_kept;
    std::optional<Error> m_endError; ///< why the sequences that end now do so, when the engine made them
    StepTimeBudget m_stepTime{1};
    ReadCost m_readCost;

    // scratch of a step; keeps its capacity
    std::vector<RequestId> m_members;
    std::vector<std::int32_t> m_logitOffsets;
    std::vector<std::int32_t> m_firstLogitRow; ///< per plan item
    std::vector<std::int32_t> m_drawRow;       ///< per plan item, -1 = does not draw
    std::vector<kernels::SampleRow> m_rows;
    std::vector<kernels::SampledToken> m_drawn;
    std::vector<sched::DrawnToken> m_tokens;
    std::vector<TokensEvent> m_pieces;
    std::vector<float> m_logits;

    // counters of the session beside those of scheduler and cache
    metrics::StepSample m_times; ///< only its phase times
    std::array<std::uint32_t, kv::kBlockStateCount> m_peakStates{};
    std::uint32_t m_peakReferenced = 0;
    Nanos m_sessionStart = 0;
    Nanos m_lastMap = 0;
    std::uint64_t m_lastMapEpoch = ~std::uint64_t(0);
    std::vector<kv::IdleOwner> m_idle; ///< as of m_idleCounted
    std::uint64_t m_idleEpoch = ~std::uint64_t(0);
    Nanos m_idleCounted = 0;
    Nanos m_lastFileCheck = 0;
    bool m_fileChangeSaid = false;
    metrics::BlockMapSnapshot m_ownMap; ///< for the observer when the listener wants none
};

} // namespace kvscope::api
