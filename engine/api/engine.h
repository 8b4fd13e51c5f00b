// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/api/engine_config.h"
#include "engine/api/sources.h"
#include "engine/api/step_abort.h"
#include "engine/base/clock.h"
#include "engine/kv/cost_rates.h"
#include "kernels/backend.h"

namespace kvscope::api {

class BlockLog;
class SessionObserver;

/// Takes what an Engine gives out, on the thread that drives it. The slots let a listener own the memory that large
/// snapshots are written into (a triple buffer); nullptr = nobody wants one now.
class EngineListener {
public:
    virtual ~EngineListener() = default;
    virtual void onEvent(const Event& event) = 0;
    virtual void onSample(const metrics::StepSample& /*sample*/) {}
    virtual metrics::BlockMapSnapshot* blockMapSlot() { return nullptr; }
    virtual void blockMapReady() {}
    virtual std::vector<SequenceRow>* sequencesSlot() { return nullptr; }
    virtual void sequencesReady() {}
    /// Raw logits of one position of a scoring request, natural scale. (vocab), valid during the call.
    virtual void onLogits(RequestId /*id*/, std::int64_t /*position*/, std::span<const float> /*logits*/) {}
};

/// What an Engine is built from; everything outlives it.
struct EngineParts {
    const Clock& clock;
    EngineListener& listener;
    SessionObserver* observer = nullptr;
    StepAbort* abort = nullptr;
    /// Makes the backend of a model. Empty = the CPU backend by the options of the configuration.
    std::function<kernels::BackendResult<std::unique_ptr<kernels::Backend>>(const EngineConfig&)> makeBackend;
    /// Memory that can still be taken, bytes. Empty = this machine's.
    std::function<std::uint64_t()> availableMemory;
    /// Where the first model that is loaded writes its block log.
    BlockLog* blockLog = nullptr;
};

/// What happened over the whole run, for `--stats`.
struct EngineStats {
    metrics::StepSample last;
    /// Blocks by drawn state at the moment when most blocks were referenced.
    std::array<std::uint32_t, kv::kBlockStateCount> peakBlocksByState{};
    std::uint32_t peakReferencedBlocks = 0;
    std::vector<std::pair<const char*, std::uint64_t>> evictionsByReason;
    Nanos evictedAge = 0;       ///< of all evictions together: since each block had been read last
    const char* eviction = "";  ///< the policy
    const char* allocator = ""; ///< its name
    /// Preemptions that are over, where there is a host tier: how many, what was expected, what they took.
    struct Preempted {
        std::uint64_t count = 0;
        Nanos estimated = 0, took = 0;
    };
    Preempted swaps, rereads;
    std::uint64_t hostDeclinedBlocks = 0; ///< found in the host tier, but computing was estimated cheaper
    std::uint64_t hostRefusedBlocks = 0;  ///< not kept: all of it was held
    kv::CostRates rates;                  ///< that were told last
};

/// The engine without any thread: commands are calls, and work happens in `step()`.
///
/// Thread: one. Errors: `load` returns them; a request's own failure ends that request with FinishReason::Error; a
/// broken invariant makes the engine Faulted (every request ends with an error, FaultedEvent, only `restart` helps).
class Engine {
public:
    explicit Engine(EngineParts parts);
    ~Engine();
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    /// Loads a model; answers LoadingEvent*, then LoadedEvent or LoadFailedEvent, and returns the same.
    /// The model that was loaded before stays until the new one is ready, and stays with its chats when that fails.
    /// When it succeeds, requests that still ran on the old one end with ErrorCode::Cancelled.
    /// `cancel` may be set from any thread.
    Result<void> load(const EngineConfig& config, const std::atomic<bool>* cancel = nullptr);
    void unload();
    /// Throws the state of a faulted engine away and loads the same model again.
    Result<void> restart(const std::atomic<bool>* cancel = nullptr);

    bool loaded() const;
    bool faulted() const;
    /// Of the loaded model.
    const ModelInfo& model() const;

    /// Answers QueuedEvent ... FinishedEvent; what cannot be run ends at once with an error. `arrival` is when the user
    /// asked (queue time and TTFT count from it).
    void submit(Request request, Nanos arrival);
    /// Idempotent; unknown or ended ids are ignored.
    void cancel(RequestId id);
    /// Nobody will fork from it any more (Request::keepForFork): what was kept of it goes back to the cache.
    /// Idempotent.
    void forget(RequestId id);
    /// True while some request has not ended.
    bool hasWork() const;

    enum class StepResult {
        Idle,    ///< nothing to do
        Ran,     ///< a step was computed
        Aborted, ///< nobody wanted the step any more; nothing was counted
        Blocked, ///< requests wait and none could be run
        Faulted,
    };
    /// Schedule, run, sample, append, publish, give out.
    StepResult step();
    /// Gives out a sample without a step; call it at 10 Hz while idle. Also notices when the model's file changed.
    void tick();

    /// What the next sample would say.
    metrics::StepSample sample() const;
    EngineStats stats() const;
    /// What the request's prompt would need now; answers MeasuredEvent.
    void measure(const Request& request);
    void queryBlock(BlockId block);
    void queryOwner(OwnerId owner);
    /// See EngineThread. Nothing happens without a loaded model.
    void useTemplate(const std::string& name);
    void queryPrompt(std::int64_t key, const DialogPrompt& dialog, std::int64_t maxTokens);

private:
    class Impl;
    std::unique_ptr<Impl> m_impl;
};

} // namespace kvscope::api
