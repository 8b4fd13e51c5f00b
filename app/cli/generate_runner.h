// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "app/cli/generate_line.h"
#include "engine/api/engine.h"

namespace kvscope::cli {

/// One answer of a line (a repetition, a sample), or why there is none.
struct GenerateResult {
    nlohmann::json id;
    std::optional<api::Answer> answer;
    std::optional<Error> error;               ///< of a line that never became a request
    std::vector<GenerateResult> otherSamples; ///< of a line with `n` above 1
};

/// Runs many lines in one engine by continuous batching: starts each line when what it waits for has ended, cancels
/// where a line asks for it, and hands results out in input order.
class GenerateRunner final : public api::EngineListener {
public:
    using OnResult = std::function<void(const GenerateResult&)>;
    using OnText = std::function<void(const std::string&)>; ///< streamed text of every request

    explicit GenerateRunner(const Clock& clock, OnText onText = {}) : m_clock(clock), m_onText(std::move(onText)) {}

    /// A line, or the reason why it could not be read. Call in input order, before `run`.
    void add(Result<GenerateLine> line, nlohmann::json id);
    /// Runs everything. Results come in input order, each as soon as all before it are out.
    void run(api::Engine& engine, const OnResult& onResult);

    void onEvent(const api::Event& event) override;

private:
    /// One run of one sample of one line.
    struct Job {
        std::size_t line = 0;
        std::int32_t repetition = 0;
        std::int32_t sample = 0;
        enum class State { Pending, Running, Ended } state = State::Pending;
        RequestId request;
        std::int64_t generated = 0;
        bool cancelSent = false;
        GenerateResult result;
    };
    struct Line {
        GenerateLine spec;
        std::size_t samples = 1;
        std::vector<std::size_t> jobs; ///< repetition-major: job of (r, s) at r * samples + s
        std::optional<Error> error;
        bool keepForFork = false;
    };
    enum class Readiness { Ready, Waits };

    void resolveReferences();
    bool jobEnded(std::size_t job) const { return m_jobs[job].state == Job::State::Ended; }
    bool lineEnded(const Line& line) const;
    const Line* find(const nlohmann::json& id) const;
    Readiness readiness(const Job& job) const;
    void startReady(api::Engine& engine);
    void start(api::Engine& engine, Job& job, std::size_t index);
    void sendCancels(api::Engine& engine);
    void end(Job& job, Error error);
    void endStuck();
    void giveOut(const OnResult& onResult);
    nlohmann::json resultId(const Line& line, std::int32_t repetition) const;

    const Clock& m_clock;
    OnText m_onText;
    std::vector<Line> m_lines;
    std::vector<Job> m_jobs;
    std::map<std::string, std::size_t> m_lineById; ///< by JSON text of the id: "1" and 1 differ
    std::size_t m_nextLine = 0;                    ///< to be given out
    std::size_t m_nextRepetition = 0;
};

} // namespace kvscope::cli
