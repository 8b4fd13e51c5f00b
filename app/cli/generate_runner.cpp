// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/generate_runner.h"

#include <algorithm>
#include <utility>

namespace kvscope::cli {

namespace {

/// Request ids are job numbers, so that an event finds its job.
RequestId requestOf(std::size_t job) {
    return RequestId(static_cast<std::int64_t>(job));
}

Error waitsForNothing(const std::string& field, const nlohmann::json& id) {
    return {ErrorCode::InvalidArgument, "'" + field + "' names " + id.dump() + ", but no line has this id."};
}

Error waitsForNoStart(const std::string& field, const nlohmann::json& id) {
    return {ErrorCode::InvalidArgument,
            "'" + field + "' names line " + id.dump() + ", which could not start; see its own error."};
}

} // namespace

void GenerateRunner::add(Result<GenerateLine> line, nlohmann::json id) {
    Line entry;
    if (line) {
        entry.spec = std::move(*line);
    } else {
        entry.spec.id = std::move(id);
        entry.error = line.error();
    }
    if (!entry.spec.id.is_null()) {
        const auto [named, isNew] = m_lineById.emplace(entry.spec.id.dump(), m_lines.size());
        if (!isNew && !entry.error && m_lines[named->second].error) // the other one was refused: this one is meant
            named->second = m_lines.size();
        else if (!isNew && !entry.error)
            entry.error = Error{ErrorCode::InvalidArgument, "Two lines have the id " + entry.spec.id.dump() + "."};
    }
    m_lines.push_back(std::move(entry));
}

void GenerateRunner::run(api::Engine& engine, const OnResult& onResult, const std::atomic<bool>* interrupted) {
    resolveReferences();
    while (m_nextLine < m_lines.size()) {
        if (interrupted && interrupted->load(std::memory_order_relaxed)) {
            interrupt(engine);
            giveOut(onResult);
            forgetSources(engine);
            return;
        }
        const bool started = startReady(engine);
        sendCancels(engine);
        if (engine.hasWork()) {
            engine.step();
            sendCancels(engine);
        } else if (!started) {
            endStuck();
        }
        giveOut(onResult);
        forgetSources(engine);
    }
}

void GenerateRunner::onEvent(const api::Event& event) {
    if (const auto* tokens = std::get_if<api::TokensEvent>(&event)) {
        m_jobs[static_cast<std::size_t>(tokens->id.value())].generated +=
            static_cast<std::int64_t>(tokens->tokens.size());
        if (m_onText && !tokens->text.empty())
            m_onText(tokens->text);
    } else if (const auto* finished = std::get_if<api::FinishedEvent>(&event)) {
        Job& job = m_jobs[static_cast<std::size_t>(finished->answer.id.value())];
        job.state = Job::State::Ended;
        // The engine keeps nothing of a request that it refused: it has not even a prompt.
        job.refused = finished->answer.reason == api::FinishReason::Error && finished->answer.promptTokenIds.empty();
        job.answer = finished->answer;
        ++m_lines[job.line].ended;
    }
}

void GenerateRunner::resolveReferences() {
    for (std::size_t i = 0; i < m_lines.size(); ++i) {
        Line& line = m_lines[i];
        const auto resolve = [&](const char* field, const nlohmann::json& id, std::optional<std::size_t>& target) {
            if (line.error || id.is_null())
                return;
            if (const auto found = m_lineById.find(id.dump()); found != m_lineById.end())
                target = found->second;
            else
                line.error = waitsForNothing(field, id);
        };
        resolve("after", line.spec.after, line.after);
        resolve("fork_of", line.spec.forkOf, line.forkOf);
        if (line.error)
            continue;
        if (line.forkOf)
            ++m_lines[*line.forkOf].forks;
        m_open.push_back(i);
    }
}

/// True when something was started: its end, which may come at once, may let others start.
bool GenerateRunner::startReady(api::Engine& engine) {
    bool started = false;
    for (const std::size_t index : m_open) {
        started |= startRepetition(engine, index);
        started |= startSamples(engine, m_lines[index]);
    }
    m_open.erase(std::remove_if(m_open.begin(), m_open.end(),
                                [this](std::size_t index) { return everythingStarted(m_lines[index]); }),
                 m_open.end());
    return started;
}

bool GenerateRunner::startRepetition(api::Engine& engine, std::size_t index) {
    Line& line = m_lines[index];
    if (line.ended < line.jobs.size() || line.jobs.size() == line.runs())
        return false;
    for (const auto& other : {line.after, line.forkOf})
        if (other && !m_lines[*other].over())
            return false;
    if (line.error = whyNotAfter(line); line.error)
        return true;
    const std::size_t first = m_jobs.size();
    for (std::size_t sample = 0; sample < line.samples(); ++sample) {
        line.jobs.push_back(m_jobs.size());
        Job job;
        job.line = index;
        job.sample = static_cast<std::int32_t>(sample);
        m_jobs.push_back(std::move(job));
    }
    start(engine, first);
    return true;
}

/// Why a line cannot start although what it waits for is over. A line that the engine refused has ended, too; but there
/// is nothing to fork from.
std::optional<Error> GenerateRunner::whyNotAfter(const Line& line) const {
    if (line.after && m_lines[*line.after].error)
        return waitsForNoStart("after", line.spec.after);
    if (line.forkOf && (m_lines[*line.forkOf].error || m_jobs[m_lines[*line.forkOf].jobs.front()].refused))
        return waitsForNoStart("fork_of", line.spec.forkOf);
    return std::nullopt;
}

/// Samples start when the first one has its prompt in the cache, so that the others find it there.
bool GenerateRunner::startSamples(api::Engine& engine, Line& line) {
    if (line.samples() == 1 || line.jobs.empty())
        return false;
    const std::size_t first = line.jobs[line.jobs.size() - line.samples()];
    if (m_jobs[first].generated == 0 && m_jobs[first].state != Job::State::Ended)
        return false;
    bool started = false;
    for (std::size_t job = first + 1; job < first + line.samples(); ++job)
        if (m_jobs[job].state == Job::State::Pending) {
            start(engine, job);
            started = true;
        }
    return started;
}

bool GenerateRunner::everythingStarted(const Line& line) const {
    return line.error || (line.jobs.size() == line.runs() && m_jobs[line.jobs.back()].state != Job::State::Pending);
}

void GenerateRunner::start(api::Engine& engine, std::size_t index) {
    Job& job = m_jobs[index];
    const Line& line = m_lines[job.line];
    api::Request request;
    request.id = requestOf(index);
    request.owner = OwnerId(static_cast<std::int64_t>(job.line));
    request.sampling = line.spec.sampling;
    request.sampling.seed = sampleSeed(line.spec.sampling.seed, job.sample);
    request.keepForFork = line.forks > 0;
    request.pinPrompt = line.spec.pin;
    request.prompt = line.spec.prompt;
    if (line.forkOf) {
        api::ForkPrompt fork;
        fork.of = requestOf(m_lines[*line.forkOf].jobs.front());
        fork.at = line.spec.forkAt;
        if (const auto* ids = std::get_if<api::TokenPrompt>(&line.spec.prompt))
            fork.then = *ids;
        else
            fork.then = std::get<api::TextPrompt>(line.spec.prompt);
        request.prompt = std::move(fork);
    }
    job.state = Job::State::Running;
    if (line.spec.cancelAfter)
        m_cancellable.push_back(index);
    engine.submit(std::move(request), m_clock.now());
}

void GenerateRunner::sendCancels(api::Engine& engine) {
    const auto done = [&](std::size_t index) {
        const Job& job = m_jobs[index];
        if (job.state == Job::State::Ended)
            return true;
        if (job.generated < *m_lines[job.line].spec.cancelAfter)
            return false;
        engine.cancel(requestOf(index));
        return true;
    };
    m_cancellable.erase(std::remove_if(m_cancellable.begin(), m_cancellable.end(), done), m_cancellable.end());
}

void GenerateRunner::endStuck() {
    // Nothing runs and nothing could be started: all that is left waits in a circle, or for somebody who does.
    for (const std::size_t index : m_open)
        m_lines[index].error = Error{ErrorCode::InvalidArgument, "This line waits for a line that waits for it."};
    m_open.clear();
}

void GenerateRunner::interrupt(api::Engine& engine) {
    for (const std::size_t index : m_open) {
        Line& line = m_lines[index];
        line.cut = true;
        if (line.jobs.empty())
            line.error = Error{ErrorCode::Cancelled, "The program was interrupted before this line was started."};
    }
    m_open.clear();
    for (std::size_t i = 0; i < m_jobs.size(); ++i) {
        Job& job = m_jobs[i];
        if (job.state == Job::State::Running)
            engine.cancel(requestOf(i));
        if (job.state != Job::State::Pending)
            continue;
        api::Answer never; // a sample that waited for the first one
        never.id = requestOf(i);
        never.reason = api::FinishReason::Cancelled;
        onEvent(api::FinishedEvent{std::move(never)});
    }
}

nlohmann::json GenerateRunner::resultId(const Line& line, std::size_t repetition) const {
    if (!line.spec.repeat || line.error || line.spec.id.is_null())
        return line.spec.id;
    const std::string id = line.spec.id.is_string() ? line.spec.id.get<std::string>() : line.spec.id.dump();
    return id + "#" + std::to_string(repetition + 1);
}

void GenerateRunner::giveOut(const OnResult& onResult) {
    while (m_nextLine < m_lines.size()) {
        Line& line = m_lines[m_nextLine];
        if (line.error) {
            GenerateResult result;
            result.id = resultId(line, 0);
            result.error = line.error;
            onResult(result);
        } else if (m_nextRepetition * line.samples() < line.runs()) {
            if (!giveOutRepetition(line, onResult))
                return;
            continue;
        }
        if (line.forkOf && --m_lines[*line.forkOf].forks == 0)
            m_forkedOut.push_back(*line.forkOf);
        ++m_nextLine;
        m_nextRepetition = 0;
    }
}

void GenerateRunner::forgetSources(api::Engine& engine) {
    for (const std::size_t line : std::exchange(m_forkedOut, {}))
        for (const std::size_t job : m_lines[line].jobs)
            engine.forget(requestOf(job));
}

/// False: it has not ended yet.
bool GenerateRunner::giveOutRepetition(Line& line, const OnResult& onResult) {
    const std::size_t first = m_nextRepetition * line.samples();
    if (line.jobs.size() < first + line.samples())
        return false;
    for (std::size_t s = 0; s < line.samples(); ++s)
        if (m_jobs[line.jobs[first + s]].state != Job::State::Ended)
            return false;
    GenerateResult result;
    result.id = resultId(line, m_nextRepetition);
    result.answer = std::exchange(m_jobs[line.jobs[first]].answer, std::nullopt);
    for (std::size_t s = 1; s < line.samples(); ++s)
        result.furtherAnswers.push_back(*std::exchange(m_jobs[line.jobs[first + s]].answer, std::nullopt));
    onResult(result);
    ++m_nextRepetition;
    return true;
}

} // namespace kvscope::cli
