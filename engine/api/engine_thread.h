// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>

#include "engine/api/engine_config.h"
#include "engine/api/sources.h"

namespace kvscope::api {

class SessionObserver; // engine/api/session_observer.h

/// Runs an Engine on its own thread: commands in by a queue, events and samples out by channels, the block map out by a
/// triple buffer. Never waits for its consumer.
///
/// Thread: construct, call and destroy from one consumer thread. The engine thread starts in the constructor, and is
/// joined in the destructor (a running step is aborted).
class EngineThread final : public ChatSource, public CacheSource {
public:
    /// `observer` (may be null) outlives the thread.
    explicit EngineThread(const Clock& clock, SessionObserver* observer = nullptr);
    ~EngineThread() override;
    EngineThread(const EngineThread&) = delete;
    EngineThread& operator=(const EngineThread&) = delete;

    /// Loads a model in the background of everything else; answers LoadingEvent*, then LoadedEvent or LoadFailedEvent.
    /// A model loaded before stays until the new one is ready, and stays when that fails.
    void load(EngineConfig config);
    void unload();
    /// After FaultedEvent: throws the engine state away and loads the same model again.
    void restart();

    /// Another chat template for the loaded model, as EngineConfig::chatTemplate; answers TemplateEvent.
    void useTemplate(std::string name);
    /// What `dialog` would become if it were asked for an answer of `maxTokens`; answers PromptTokensEvent with the
    /// same key.
    void queryPrompt(std::int64_t key, DialogPrompt dialog, std::int64_t maxTokens);

    void submit(Request request) override;
    void cancel(RequestId id) override;
    void measure(Request request) override;
    std::optional<Event> nextEvent() override;

    CacheCapabilities capabilities() const override;
    bool nextSample(metrics::StepSample& sample) override;
    bool nextMemorySample(metrics::MemorySample& sample) override;
    std::uint64_t droppedSamples() const override;
    const metrics::BlockMapSnapshot* takeBlockMap() override;
    const std::vector<SequenceRow>* takeSequences() override;
    void queryBlock(BlockId block) override;
    void queryOwner(OwnerId owner) override;

private:
    struct Impl;
    std::unique_ptr<Impl> m_impl;
};

} // namespace kvscope::api
