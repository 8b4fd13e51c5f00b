// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <optional>

#include "ui/models/chat_store.h"

namespace kvscope::test {

/// A ChatStore in memory. Answers come only when the test calls `settle` (one) or `settleAll`, in order, as from
/// another thread; `failNext` makes the next answered write fail.
class FakeChatStore final : public ui::ChatStore {
public:
    using Id = ui::ConversationId;

    void settle() {
        auto work = std::move(m_queue.front());
        m_queue.pop_front();
        work();
    }
    void settleAll() {
        while (!m_queue.empty())
            settle();
    }
    std::size_t pending() const { return m_queue.size(); }
    void failNext(Error error) { m_failure = std::move(error); }

    void listConversations(Done<std::vector<ui::Conversation>> done) override {
        m_queue.push_back([this, done] {
            std::vector<ui::Conversation> list;
            for (const auto& [id, c] : conversations)
                if (!deleted.count(id))
                    list.push_back(c);
            done(list);
        });
    }
    void loadMessages(Id id, Done<std::vector<ui::ChatMessage>> done) override {
        m_queue.push_back([this, id, done] { done(messages[id]); });
    }
    void createConversation(const ui::Conversation& conversation, Done<Id> done) override {
        m_queue.push_back([this, conversation, done] {
            if (auto error = takeFailure())
                return done(tl::unexpected(*error));
            const Id id = m_nextConversation++;
            conversations[id] = conversation;
            conversations[id].id = id;
            done(id);
        });
    }
    void renameConversation(Id id, const QString& title, Done<void> done) override {
        write(done, [this, id, title] { conversations[id].title = title; });
    }
    void setSystemPrompt(Id id, const QString& prompt, Done<void> done) override {
        write(done, [this, id, prompt] { conversations[id].systemPrompt = prompt; });
    }
    void setSettings(Id id, const api::SamplingParams& settings, Done<void> done) override {
        write(done, [this, id, settings] { conversations[id].settings = settings; });
    }
    void deleteConversation(Id id, Done<void> done) override {
        write(done, [this, id] { deleted[id] = true; });
    }
    void restoreConversation(Id id, Done<void> done) override {
        write(done, [this, id] { deleted.erase(id); });
    }
    void addTurn(const NewTurn& turn, Done<TurnIds> done) override {
        m_queue.push_back([this, turn, done] {
            if (auto error = takeFailure())
                return done(tl::unexpected(*error));
            turns.push_back(turn);
            ui::ChatMessage user;
            user.id = m_nextMessage++;
            user.text = turn.text;
            ui::ChatMessage answer;
            answer.id = m_nextMessage++;
            answer.role = ui::MessageRole::Assistant;
            answer.status = ui::MessageStatus::Queued;
            answer.settings = turn.settings;
            answer.model = turn.model;
            const TurnIds ids{user.id, answer.id};
            messages[turn.conversation].push_back(std::move(user));
            messages[turn.conversation].push_back(std::move(answer));
            done(ids);
        });
    }
    void saveProgress(const ui::ChatMessage& answer, Done<void> done) override {
        write(done, [this, answer] {
            progressSaves.push_back(answer.text);
            replace(answer);
        });
    }
    void endAnswer(const ui::ChatMessage& answer, Done<void> done) override {
        write(done, [this, answer] { replace(answer); });
    }

    std::map<Id, ui::Conversation> conversations;
    std::map<Id, bool> deleted;
    std::map<Id, std::vector<ui::ChatMessage>> messages;
    std::vector<NewTurn> turns;
    std::vector<QString> progressSaves;

private:
    void write(Done<void> done, std::function<void()> change) {
        m_queue.push_back([this, done, change] {
            if (auto error = takeFailure())
                return done(tl::unexpected(*error));
            change();
            done({});
        });
    }
    void replace(const ui::ChatMessage& answer) {
        for (auto& [id, list] : messages)
            for (ui::ChatMessage& m : list)
                if (m.id == answer.id)
                    m = answer;
    }
    std::optional<Error> takeFailure() { return std::exchange(m_failure, std::nullopt); }

    std::deque<std::function<void()>> m_queue;
    std::optional<Error> m_failure;
    Id m_nextConversation = 1;
    ui::MessageId m_nextMessage = 1;
};

} // namespace kvscope::test
