// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "engine/api/session_observer.h"
#include "engine/metrics/recorder.h"

namespace kvscope::api {

/// Turns what the engine reports into records of the session log. Thread: that of SessionObserver; the recorder
/// outlives it.
class SessionRecorder final : public SessionObserver {
public:
    /// `program`: name and version, as they stand in a log's header. `wallMillis` gives the time of day.
    SessionRecorder(metrics::Recorder& recorder, std::string program, std::function<std::int64_t()> wallMillis);

    void sessionStarted(const SessionStart& start) override;
    void requestSubmitted(Nanos time, const Request& request) override;
    void event(Nanos time, const Event& event) override;
    void stepSample(const metrics::StepSample& sample) override;
    void blockMap(const metrics::BlockMapSnapshot& map) override;
    void sequences(Nanos time, const std::vector<SequenceRow>& rows) override;
    void memorySample(const metrics::MemorySample& sample) override;
    void sessionEnded(Nanos time) override;

private:
    metrics::Recorder& m_recorder;
    std::string m_program;
    std::function<std::int64_t()> m_wallMillis;
    metrics::SequencesRecord m_table; ///< keeps its memory between calls
};

/// The engine options as they stand in a log's header: a JSON object without paths beyond the file's name.
std::string configurationJson(const EngineConfig& config, const ModelInfo& model);

} // namespace kvscope::api
