// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/cli/generate_line.h"
#include "engine/api/engine.h"

namespace kvscope::cli {

/// One answer of a line (a repetition, a sample), or why there is none.
struct GenerateResult {
    nlohmann::json id;
    std::optional<api::Answer> answer;
    std::optional<Error> error;              ///< of a line that never became a request
    std::vector<api::Answer> furtherAnswers; ///< samples 2..n of a line with `n` above 1
};

/// Runs many lines in one engine by continuous batching: starts each line when what it waits for has ended, cancels
/// where a line asks for it, and hands results out in input order. The work between two steps grows with the lines that
/// still have something to start, not with their repetitions.
class GenerateRunner final : public api::EngineListener {
public:
    using OnResult = std::function<void(const GenerateResult&)>;
    using OnText = std::function<void(const std::string&)>; ///< streamed text of every request

    explicit GenerateRunner(const Clock& clock, OnText onText = {}) : m_clock(clock), m_onText(std::move(onText)) {}

    /// A line, or the reason why it could not be read. Call in input order, before `run`.
    void add(Result<GenerateLine> line, nlohmann::json id);
    /// Runs everything. Results come in input order, each as soon as all before it are out.
    /// When `interrupted` becomes true, what runs is cancelled and what has not begun answers an error.
    void run(api::Engine& engine, const OnResult& onResult, const std::atomic<bool>* interrupted = nullptr);

    void onEvent(const api::Event& event) override;

private:
    /// One run of one sample of one line; made when its repetition may start.
    struct Job {
        std::size_t line = 0;
        std::int32_t sample = 0;
        enum class State { Pending, Running, Ended } state = State::Pending;
        bool refused = false; ///< by the engine, before it had a prompt
        std::int64_t generated = 0;
        std::optional<api::Answer> answer; ///< from its end until it is given out
    };
    struct Line {
        GenerateLine spec;
        std::optional<std::size_t> after, forkOf; ///< lines that must have ended first
        std::vector<std::size_t> jobs;            ///< repetition-major: job of (r, s) at r * n + s
        std::size_t ended = 0;                    ///< of those
        std::optional<Error> error;               ///< it never becomes a request
        std::size_t forks = 0;                    ///< lines that fork from it and were not given out yet
        bool cut = false;                         ///< interrupted: no further repetition is made

        std::size_t samples() const { return static_cast<std::size_t>(spec.samples); }
        std::size_t runs() const {
            return cut ? jobs.size() : samples() * static_cast<std::size_t>(spec.repeat.value_or(1));
        }
        bool over() const { return error || ended == runs(); }
    };

    void resolveReferences();
    bool startReady(api::Engine& engine);
    bool startRepetition(api::Engine& engine, std::size_t index);
    std::optional<Error> whyNotAfter(const Line& line) const;
    bool startSamples(api::Engine& engine, Line& line);
    bool everythingStarted(const Line& line) const;
    void start(api::Engine& engine, std::size_t index);
    void sendCancels(api::Engine& engine);
    void endStuck();
    void interrupt(api::Engine& engine);
    void giveOut(const OnResult& onResult);
    void forgetSources(api::Engine& engine);
    bool giveOutRepetition(Line& line, const OnResult& onResult);
    nlohmann::json resultId(const Line& line, std::size_t repetition) const;

    const Clock& m_clock;
    OnText m_onText;
    std::vector<Line> m_lines;
    std::deque<Job> m_jobs;
    std::map<std::string, std::size_t> m_lineById; ///< by JSON text of the id: "1" and 1 differ; refused ones too
    std::vector<std::size_t> m_open;               ///< lines that have something left to start, in input order
    std::vector<std::size_t> m_cancellable;        ///< running jobs of lines with `cancel_after`
    std::vector<std::size_t> m_forkedOut;          ///< lines that nobody will fork from any more
    std::size_t m_nextLine = 0;                    ///< to be given out
    std::size_t m_nextRepetition = 0;
};

} // namespace kvscope::cli
