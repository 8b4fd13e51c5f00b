// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "engine/api/engine_config.h"
#include "engine/api/sources.h"

namespace kvscope::api {

/// What a session (one recording from engine load to unload) begins with.
struct SessionStart {
    Nanos time = 0; ///< monotonic; all later times of the session count on the same clock
    EngineConfig config;
    ModelInfo model; ///< with the pool as it was really made
};

/// Sees everything that happens in a session, for the session log. The engine knows nothing of files or formats.
///
/// Thread: every call comes on the engine thread (where an Engine is driven without EngineThread: on the caller's).
/// Arguments live during the call only. Implementations must not wait, throw or call back into the engine.
/// Order: sessionStarted first, sessionEnded last; between them requestSubmitted comes before any event of that
/// request, and its FinishedEvent (the answer with its receipt) is the last one. A model switch is one session's end
/// and another's start.
class SessionObserver {
public:
    virtual ~SessionObserver() = default;

    virtual void sessionStarted(const SessionStart& start) = 0;
    /// As submitted: prompt and all sampling settings. The prompt's token count follows as QueuedEvent.
    virtual void requestSubmitted(Nanos time, const Request& request) = 0;
    /// Every event that goes to the consumer and concerns the session (loading events come before a session exists and
    /// are left out). Answers with their receipts are FinishedEvents.
    virtual void event(Nanos time, const Event& event) = 0;
    /// After each step, and at 10 Hz while no step runs. Cumulative: the session's totals are the last one's.
    virtual void stepSample(const metrics::StepSample& sample) = 0;
    /// The whole pool, at most every 16 ms and only when its epoch moved. Differences are the observer's business.
    virtual void blockMap(const metrics::BlockMapSnapshot& map) = 0;
    /// The sequence table, whenever it is published to the window.
    virtual void sequences(Nanos /*time*/, const std::vector<SequenceRow>& /*rows*/) {}
    /// From the memory probe, 10 Hz, handed on by the engine thread.
    virtual void memorySample(const metrics::MemorySample& sample) = 0;
    virtual void sessionEnded(Nanos time) = 0;
};

} // namespace kvscope::api
