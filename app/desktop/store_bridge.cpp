// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/store_bridge.h"

#include "app/desktop/store_rows.h"
#include "ui/models/chat_settings.h"

namespace kvscope::desktop {
namespace {

store::ConversationId idOf(ui::ConversationId id) {
    return store::ConversationId(id);
}

/// Hands the event of the expected kind on, or the failure.
template <class Event, class Value, class Get>
std::function<void(Result<store::StoreEvent>)> expecting(ui::ChatStore::Done<Value> done, Get get) {
    return [done = std::move(done), get](Result<store::StoreEvent> result) {
        if (!result)
            done(tl::unexpected(result.error()));
        else if (const auto* event = std::get_if<Event>(&*result))
            done(get(*event));
        else
            done(fail(ErrorCode::Internal, "The database answered another question than was asked."));
    };
}

} // namespace

StoreBridge::StoreBridge(store::StoreThread& thread, QObject* parent) : QObject(parent), m_thread(thread) {}

void StoreBridge::wait(store::JobId job, Finish finish) {
    m_waiting.emplace(job, std::move(finish));
}

void StoreBridge::waitDone(store::JobId job, Done<void> done) {
    wait(job, [done = std::move(done)](Result<store::StoreEvent> result) {
        if (result)
            done({});
        else
            done(tl::unexpected(result.error()));
    });
}

void StoreBridge::settle(store::JobId job, Result<store::StoreEvent> result) {
    const auto it = m_waiting.find(job);
    if (it == m_waiting.end())
        return;
    const Finish finish = std::move(it->second);
    m_waiting.erase(it); // before: what is called may ask for more
    finish(std::move(result));
}

void StoreBridge::drain() {
    while (std::optional<store::StoreEvent> event = m_thread.nextEvent())
        take(std::move(*event));
}

void StoreBridge::take(store::StoreEvent event) {
    if (const auto* opened = std::get_if<store::OpenedEvent>(&event)) {
        if (opened->recovery.interruptedAnswers > 0)
            emit recovered(opened->recovery.interruptedAnswers);
        return;
    }
    if (const auto* refused = std::get_if<store::TroubleEvent>(&event)) {
        emit trouble(QString::fromStdString(refused->path), QString::fromStdString(refused->error.message),
                     refused->waitingWrites);
        return;
    }
    if (const auto* over = std::get_if<store::RecoveredEvent>(&event)) {
        emit trouble(QString::fromStdString(over->path), {}, 0);
        return;
    }
    if (const auto* failed = std::get_if<store::FailedEvent>(&event)) {
        settle(failed->job, tl::unexpected(failed->error));
        return;
    }
    const store::JobId job = std::visit(
        [](const auto& e) {
            if constexpr (requires { e.job; })
                return e.job;
            else
                return store::JobId();
        },
        event);
    settle(job, std::move(event));
}

void StoreBridge::noteEvent(const std::string& kind, const std::string& detailJson) {
    store::StoredEvent event;
    event.kind = kind;
    event.detail = detailJson;
    event.time = store::systemWallClock()();
    m_thread.addEvent(std::move(event));
}

void StoreBridge::listConversations(Done<std::vector<ui::Conversation>> done) {
    wait(m_thread.listConversations(),
         expecting<store::ConversationsEvent>(std::move(done), [](const store::ConversationsEvent& event) {
             std::vector<ui::Conversation> list;
             for (const store::Conversation& row : event.conversations)
                 list.push_back(conversationOf(row));
             return list;
         }));
}

void StoreBridge::loadMessages(ui::ConversationId conversation, Done<std::vector<ui::ChatMessage>> done) {
    wait(m_thread.loadConversation(idOf(conversation)),
         expecting<store::ContentEvent>(std::move(done),
                                        [](const store::ContentEvent& event) { return pathOf(event.content); }));
}

void StoreBridge::createConversation(const ui::Conversation& c, Done<ui::ConversationId> done) {
    store::NewConversation row;
    row.title = c.title.toStdString();
    row.systemPrompt = c.systemPrompt.toStdString();
    row.settings = ui::settingsToJson(c.settings).toStdString();
    wait(m_thread.createConversation(std::move(row)),
         expecting<store::ConversationCreatedEvent>(std::move(done), [](const store::ConversationCreatedEvent& event) {
             return event.conversation.id.value();
         }));
}

void StoreBridge::renameConversation(ui::ConversationId conversation, const QString& title, Done<void> done) {
    waitDone(m_thread.renameConversation(idOf(conversation), title.toStdString()), std::move(done));
}

void StoreBridge::setSystemPrompt(ui::ConversationId conversation, const QString& prompt, Done<void> done) {
    waitDone(m_thread.setSystemPrompt(idOf(conversation), prompt.toStdString()), std::move(done));
}

void StoreBridge::setSettings(ui::ConversationId conversation, const api::SamplingParams& settings, Done<void> done) {
    waitDone(m_thread.setSettings(idOf(conversation), ui::settingsToJson(settings).toStdString()), std::move(done));
}

void StoreBridge::deleteConversation(ui::ConversationId conversation, Done<void> done) {
    waitDone(m_thread.deleteConversation(idOf(conversation)), std::move(done));
}

void StoreBridge::restoreConversation(ui::ConversationId conversation, Done<void> done) {
    waitDone(m_thread.restoreConversation(idOf(conversation)), std::move(done));
}

void StoreBridge::addTurn(const NewTurn& turn, Done<TurnIds> done) {
    store::NewTurn row;
    row.conversation = idOf(turn.conversation);
    row.parent = store::MessageId(turn.parent);
    row.text = turn.text.toStdString();
    row.settings = ui::settingsToJson(turn.settings).toStdString();
    row.model = turn.model.toStdString();
    wait(m_thread.addUserMessage(std::move(row)),
         expecting<store::TurnCommittedEvent>(std::move(done), [](const store::TurnCommittedEvent& event) {
             return TurnIds{event.user.id.value(), event.answer ? event.answer->id.value() : ui::kNoId};
         }));
}

void StoreBridge::saveProgress(const ui::ChatMessage& answer, Done<void>) {
    // The latest state wins and its trouble is told as trouble of the store: nobody waits for one of them.
    m_thread.saveProgress(progressOf(answer, m_tokenizer));
}

void StoreBridge::endAnswer(const ui::ChatMessage& answer, Done<void> done) {
    waitDone(m_thread.endAnswer(endOf(answer, m_tokenizer)), std::move(done));
}

} // namespace kvscope::desktop
