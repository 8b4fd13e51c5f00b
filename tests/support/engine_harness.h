// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/api/engine.h"

namespace kvscope::test {

using Logits = std::vector<std::vector<float>>;

/// An Engine with everything it gives out collected, for tests that run whole requests.
class EngineHarness final : public api::EngineListener {
public:
    explicit EngineHarness(api::SessionObserver* observer = nullptr) : m_observer(observer) {}

    /// Must come before `load`. Empty = the CPU backend.
    std::function<kernels::BackendResult<std::unique_ptr<kernels::Backend>>(const api::EngineConfig&)> makeBackend;
    /// Bytes; 0 = this machine's.
    std::uint64_t available = 0;
    /// Called on every event, while the engine is inside a call.
    std::function<void(const api::Event&)> onEachEvent;

    static api::EngineConfig config(const std::string& path) {
        api::EngineConfig c;
        c.modelPath = path;
        c.threads = 1;
        c.numBlocks = 256;
        return c;
    }
    /// A fresh engine with this model; throws with the sentence when it cannot be loaded.
    void load(const api::EngineConfig& config) {
        events.clear();
        engine = std::make_unique<api::Engine>(
            api::EngineParts{clock, *this, m_observer, nullptr, makeBackend, availability()});
        if (auto ok = engine->load(config); !ok)
            throw std::runtime_error(ok.error().message);
    }

    static api::Request request(std::int64_t id, api::Prompt prompt, std::int32_t maxTokens = 16) {
        api::Request r;
        r.id = RequestId(id);
        r.owner = OwnerId(id);
        r.prompt = std::move(prompt);
        r.sampling.maxTokens = maxTokens;
        return r;
    }
    void submit(api::Request request) { engine->submit(std::move(request), clock.now()); }
    void finish() {
        while (engine->hasWork() && !engine->faulted())
            engine->step();
    }
    api::Answer run(api::Request request) {
        const RequestId id = request.id;
        submit(std::move(request));
        finish();
        return answers.at(id);
    }
    /// Raw logits after each of the positions, computed in one prompt.
    Logits logits(const std::vector<TokenId>& ids, const std::vector<std::int64_t>& positions) {
        m_logits.clear();
        api::Request r = request(m_nextScore++, api::TokenPrompt{ids}, 1);
        r.logitPositions = positions;
        const api::Answer answer = run(std::move(r));
        if (answer.error)
            throw std::runtime_error(answer.error->message);
        Logits out;
        for (const std::int64_t position : positions)
            out.push_back(m_logits.at(position));
        return out;
    }

    template <class E> std::vector<E> eventsOf(RequestId id) const {
        std::vector<E> out;
        for (const api::Event& event : events)
            if (const E* e = std::get_if<E>(&event); e && e->id == id)
                out.push_back(*e);
        return out;
    }
    template <class E> std::vector<E> eventsOf() const {
        std::vector<E> out;
        for (const api::Event& event : events)
            if (const E* e = std::get_if<E>(&event))
                out.push_back(*e);
        return out;
    }

    void onEvent(const api::Event& event) override {
        events.push_back(event);
        if (const auto* finished = std::get_if<api::FinishedEvent>(&event))
            if (!answers.emplace(finished->answer.id, finished->answer).second)
                answers[finished->answer.id] = finished->answer;
        if (onEachEvent)
            onEachEvent(event);
    }
    void onLogits(RequestId, std::int64_t position, std::span<const float> logits) override {
        m_logits[position] = {logits.begin(), logits.end()};
    }

    MonotonicClock clock;
    std::unique_ptr<api::Engine> engine;
    std::vector<api::Event> events;
    std::map<RequestId, api::Answer> answers; ///< the newest of each id

private:
    std::function<std::uint64_t()> availability() const {
        if (available == 0)
            return {};
        return [this] { return available; };
    }

    api::SessionObserver* m_observer;
    std::map<std::int64_t, std::vector<float>> m_logits;
    std::int64_t m_nextScore = 1'000'000;
};

} // namespace kvscope::test
