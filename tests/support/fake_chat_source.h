// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <deque>
#include <vector>

#include "engine/api/sources.h"

namespace kvscope::test {

/// A ChatSource that answers only what a test tells it to, and keeps what it was asked.
class FakeChatSource final : public api::ChatSource {
public:
    void submit(api::Request request) override { submitted.push_back(std::move(request)); }
    void cancel(RequestId id) override { cancelled.push_back(id); }
    void measure(api::Request request) override { measured.push_back(std::move(request)); }
    std::optional<api::Event> nextEvent() override {
        if (events.empty())
            return std::nullopt;
        api::Event event = std::move(events.front());
        events.pop_front();
        return event;
    }

    static api::LoadedEvent loaded(std::int64_t context = 2048) {
        api::LoadedEvent event;
        event.info.path = "/models/tiny.gguf";
        event.info.name = "Tiny";
        event.info.maxModelLen = context;
        event.info.contextLength = context;
        event.info.blockSize = 16;
        event.info.hasChatTemplate = true;
        return event;
    }
    static api::TokensEvent tokens(RequestId id, std::string text, std::vector<TokenId> ids, std::int64_t length) {
        return {id, std::move(text), std::move(ids), length};
    }
    static api::FinishedEvent finished(const api::Request& request, std::string text, std::vector<TokenId> ids,
                                       api::FinishReason reason = api::FinishReason::Stop) {
        api::FinishedEvent event;
        event.answer.id = request.id;
        event.answer.owner = request.owner;
        event.answer.text = std::move(text);
        event.answer.tokenIds = std::move(ids);
        event.answer.reason = reason;
        event.answer.cache.promptTokens = 40;
        event.answer.cache.reusedTokens = 32;
        event.answer.cache.computedTokens = 8;
        event.answer.cache.newBlocks = 2;
        event.answer.cache.blockSize = 16;
        event.answer.timings.ttftMs = 210;
        event.answer.timings.decodeMs = 1000;
        return event;
    }

    std::vector<api::Request> submitted;
    std::vector<RequestId> cancelled;
    std::vector<api::Request> measured;
    std::deque<api::Event> events;
};

} // namespace kvscope::test
