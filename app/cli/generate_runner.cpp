// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/generate_runner.h"

#include <algorithm>

#include "engine/base/check.h"

namespace kvscope::cli {

namespace {

/// Request ids are job numbers, so that an event finds its job.
RequestId requestOf(std::size_t job) {
    return RequestId(static_cast<std::int64_t>(job));
}

Error waitsForNothing(const std::string& field, const nlohmann::json& id) {
    return {ErrorCode::InvalidArgument, "'" + field + "' names " + id.dump() + ", but no line has this id."};
}

} // namespace

void GenerateRunner::add(Result<GenerateLine> line, nlohmann::json id) {
    Line entry;
    if (line) {
        entry.spec = std::move(*line);
        if (!entry.spec.id.is_null() && !m_lineById.emplace(entry.spec.id.dump(), m_lines.size()).second)
            entry.error = Error{ErrorCode::InvalidArgument, "Two lines have the id " + entry.spec.id.dump() + "."};
    } else {
        entry.spec.id = std::move(id);
        entry.error = line.error();
    }
    const std::size_t repetitions = entry.error ? 1 : static_cast<std::size_t>(entry.spec.repeat);
    entry.samples = entry.error ? 1 : static_cast<std::size_t>(entry.spec.samples);
    for (std::size_t i = 0; i < repetitions * entry.samples; ++i) {
        entry.jobs.push_back(m_jobs.size());
        Job job;
        job.line = m_lines.size();
        job.repetition = static_cast<std::int32_t>(i / entry.samples);
        job.sample = static_cast<std::int32_t>(i % entry.samples);
        m_jobs.push_back(std::move(job));
    }
    m_lines.push_back(std::move(entry));
}

void GenerateRunner::run(api::Engine& engine, const OnResult& onResult) {
    resolveReferences();
    while (m_nextLine < m_lines.size()) {
        startReady(engine);
        sendCancels(engine);
        if (engine.hasWork()) {
            engine.step();
            sendCancels(engine);
        } else {
            endStuck();
        }
        giveOut(onResult);
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
        job.result.answer = finished->answer;
    }
}

void GenerateRunner::resolveReferences() {
    for (Line& line : m_lines) {
        const std::pair<const char*, const nlohmann::json*> references[] = {{"after", &line.spec.after},
                                                                            {"fork_of", &line.spec.forkOf}};
        for (const auto& [field, id] : references) {
            if (line.error || id->is_null())
                continue;
            const auto found = m_lineById.find(id->dump());
            if (found == m_lineById.end())
                line.error = waitsForNothing(field, *id);
            else if (id == &line.spec.forkOf)
                m_lines[found->second].keepForFork = true;
        }
    }
    for (Job& job : m_jobs)
        if (const auto& error = m_lines[job.line].error)
            end(job, *error);
}

bool GenerateRunner::lineEnded(const Line& line) const {
    return std::all_of(line.jobs.begin(), line.jobs.end(), [this](std::size_t job) { return jobEnded(job); });
}

const GenerateRunner::Line* GenerateRunner::find(const nlohmann::json& id) const {
    return id.is_null() ? nullptr : &m_lines[m_lineById.at(id.dump())];
}

GenerateRunner::Readiness GenerateRunner::readiness(const Job& job) const {
    const Line& line = m_lines[job.line];
    for (const Line* other : {find(line.spec.after), find(line.spec.forkOf)})
        if (other && !lineEnded(*other))
            return Readiness::Waits;
    const std::size_t firstOfRepetition = static_cast<std::size_t>(job.repetition) * line.samples;
    for (std::size_t earlier = 0; earlier < firstOfRepetition; ++earlier)
        if (!jobEnded(line.jobs[earlier]))
            return Readiness::Waits;
    // Samples start when the first one has its prompt in the cache, so that the others find it there.
    const Job& first = m_jobs[line.jobs[firstOfRepetition]];
    if (job.sample > 0 && first.generated == 0 && first.state != Job::State::Ended)
        return Readiness::Waits;
    return Readiness::Ready;
}

void GenerateRunner::startReady(api::Engine& engine) {
    // Starting may end a job at once (an error), which may make a later one ready: look until nothing changes.
    for (bool changed = true; changed;) {
        changed = false;
        for (std::size_t i = 0; i < m_jobs.size(); ++i)
            if (m_jobs[i].state == Job::State::Pending && readiness(m_jobs[i]) == Readiness::Ready) {
                start(engine, m_jobs[i], i);
                changed = true;
            }
    }
}

void GenerateRunner::start(api::Engine& engine, Job& job, std::size_t index) {
    const Line& line = m_lines[job.line];
    api::Request request;
    request.id = requestOf(index);
    request.owner = OwnerId(static_cast<std::int64_t>(job.line));
    request.sampling = line.spec.sampling;
    request.sampling.seed = sampleSeed(line.spec.sampling.seed, job.sample);
    request.keepForFork = line.keepForFork;
    request.pinPrompt = line.spec.pin;
    request.prompt = line.spec.prompt;
    if (const Line* parent = find(line.spec.forkOf)) {
        api::ForkPrompt fork;
        fork.of = requestOf(parent->jobs.front());
        fork.at = line.spec.forkAt;
        if (const auto* ids = std::get_if<api::TokenPrompt>(&line.spec.prompt))
            fork.then = *ids;
        else
            fork.then = std::get<api::TextPrompt>(line.spec.prompt);
        request.prompt = std::move(fork);
    }
    job.state = Job::State::Running;
    job.request = request.id;
    engine.submit(std::move(request), m_clock.now());
}

void GenerateRunner::sendCancels(api::Engine& engine) {
    for (Job& job : m_jobs) {
        const auto& after = m_lines[job.line].spec.cancelAfter;
        if (job.state == Job::State::Running && !job.cancelSent && after && job.generated >= *after) {
            job.cancelSent = true;
            engine.cancel(job.request);
        }
    }
}

void GenerateRunner::end(Job& job, Error error) {
    job.state = Job::State::Ended;
    job.result.error = std::move(error);
}

void GenerateRunner::endStuck() {
    // Nothing runs and nothing could be started: all that is left waits in a circle, or for somebody who does.
    for (Job& job : m_jobs)
        if (job.state == Job::State::Pending)
            end(job, {ErrorCode::InvalidArgument, "This line waits for a line that waits for it."});
}

nlohmann::json GenerateRunner::resultId(const Line& line, std::int32_t repetition) const {
    if (line.spec.repeat == 1 || line.spec.id.is_null())
        return line.spec.id;
    const std::string id = line.spec.id.is_string() ? line.spec.id.get<std::string>() : line.spec.id.dump();
    return id + "#" + std::to_string(repetition + 1);
}

void GenerateRunner::giveOut(const OnResult& onResult) {
    while (m_nextLine < m_lines.size()) {
        Line& line = m_lines[m_nextLine];
        const std::size_t first = m_nextRepetition * line.samples;
        for (std::size_t s = 0; s < line.samples; ++s)
            if (!jobEnded(line.jobs[first + s]))
                return;
        GenerateResult result = m_jobs[line.jobs[first]].result;
        result.id = resultId(line, static_cast<std::int32_t>(m_nextRepetition));
        for (std::size_t s = 1; s < line.samples; ++s)
            result.otherSamples.push_back(m_jobs[line.jobs[first + s]].result);
        onResult(result);
        if (++m_nextRepetition * line.samples == line.jobs.size()) {
            ++m_nextLine;
            m_nextRepetition = 0;
        }
    }
}

} // namespace kvscope::cli
