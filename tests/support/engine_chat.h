// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <deque>
#include <functional>
#include <stdexcept>
#include <string>

#include "engine/api/engine.h"
#include "tests/support/fake_chat_store.h"
#include "ui/models/chat_controller.h"

namespace kvscope::test {

/// A real engine behind ChatSource, without a thread: it works when `run` says so.
class EngineSource final : public api::ChatSource, public api::EngineListener {
public:
    void load(const api::EngineConfig& config) {
        if (auto ok = engine.load(config); !ok)
            throw std::runtime_error(ok.error().message);
    }
    void submit(api::Request request) override {
        submitted.push_back(request);
        engine.submit(std::move(request), clock.now());
    }
    void cancel(RequestId id) override { engine.cancel(id); }
    void measure(api::Request request) override { engine.measure(request); }
    std::optional<api::Event> nextEvent() override {
        if (m_events.empty())
            return std::nullopt;
        api::Event event = std::move(m_events.front());
        m_events.pop_front();
        return event;
    }
    void onEvent(const api::Event& event) override { m_events.push_back(event); }

    MonotonicClock clock;
    api::Engine engine{api::EngineParts{clock, *this, nullptr, nullptr, {}, {}}};
    std::vector<api::Request> submitted;

private:
    std::deque<api::Event> m_events;
};

/// The chat side over a real engine and a store in memory.
struct EngineChat {
    EngineSource source;
    FakeChatStore store;
    ui::ChatController chat{source, store, source.clock, [] { return qint64(1'773'327'600'000); }};

    api::EngineConfig config;

    explicit EngineChat(const std::string& model, std::int64_t blocks = 256, std::int64_t maxModelLen = 0) {
        chat.start();
        store.settleAll();
        config.modelPath = model;
        config.threads = 1;
        config.numBlocks = blocks;
        config.maxModelLen = maxModelLen;
        source.load(config);
        drain();
        api::SamplingParams greedy;
        greedy.temperature = 0;
        greedy.maxTokens = 64;
        chat.setSettings(greedy);
        chat.setAutoTitles(false);
    }
    void drain() {
        store.settleAll();
        while (std::optional<api::Event> event = source.nextEvent()) {
            chat.handleEvent(*event);
            store.settleAll();
        }
    }
    /// One step of the engine, and what it says. False: there was nothing to do.
    bool step() {
        drain();
        if (!source.engine.hasWork())
            return false;
        source.engine.step();
        drain();
        return true;
    }
    void finish() {
        while (step()) {
        }
    }
    /// Sends and waits for the whole answer.
    const ui::ChatMessage& ask(const QString& text) {
        if (!chat.send(text))
            qFatal("not sent");
        finish();
        return last();
    }
    /// Until the answer has at least `tokens` tokens; then Stop.
    void stopAfter(std::size_t tokens) {
        while (last().tokens.size() < tokens && step()) {
        }
        chat.stop();
        finish();
    }
    ui::ChatModel& rows() { return *chat.messages(); }
    const ui::ChatMessage& last() { return rows().at(rows().size() - 1); }
    void setMaxTokens(int tokens) {
        api::SamplingParams settings = chat.current().conversation.settings;
        settings.maxTokens = tokens;
        chat.setSettings(settings);
    }
};

} // namespace kvscope::test
