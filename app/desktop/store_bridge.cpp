// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/store_bridge.h"

#include "app/desktop/store_rows.h"
#include "ui/models/chat_settings.h"

namespace kvscope::desktop {
namespace {

store::ConversationId idOf(ui::ConversationId id) {
    return store::ConversationId(id);
}

ui::StoreTrouble::Reason reasonOf(ErrorCode code) {
    using Reason = ui::StoreTrouble::Reason;
    switch (code) {
    case ErrorCode::Newer:
        return Reason::Newer;
    case ErrorCode::Unsupported:
        return Reason::Foreign;
    case ErrorCode::Corrupt:
        return Reason::Damaged;
    case ErrorCode::ReadOnly:
        return Reason::ReadOnly;
    case ErrorCode::Full:
        return Reason::Full;
    case ErrorCode::Busy:
        return Reason::Locked;
    default:
        return Reason::Failing;
    }
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

StoreBridge::~StoreBridge() {
    m_ending = true;
    m_files.waitForDone();
}

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
        takeOpened(*opened);
        return;
    }
    if (const auto* refused = std::get_if<store::TroubleEvent>(&event)) {
        emit trouble({reasonOf(refused->error.code), QString::fromStdString(refused->path),
                      QString::fromStdString(refused->error.message), refused->waitingWrites, refused->opening});
        return;
    }
    if (const auto* over = std::get_if<store::RecoveredEvent>(&event)) {
        emit trouble({ui::StoreTrouble::Reason::None, QString::fromStdString(over->path), {}, 0, false});
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

void StoreBridge::takeOpened(const store::OpenedEvent& opened) {
    const bool again = std::exchange(m_opened, true);
    const bool wasInMemory = std::exchange(m_inMemory, opened.inMemory);
    const QString path = QString::fromStdString(opened.path);
    if (!opened.sameChats)
        m_removed.clear(); // they belong to another database
    if (!opened.inMemory)
        emit this->opened(path);
    if (again || opened.inMemory)
        emit trouble({ui::StoreTrouble::Reason::None, path, {}, 0, false});
    if (opened.recovery.interruptedAnswers > 0 && !wasInMemory)
        emit recovered(opened.recovery.interruptedAnswers);
    if (again || opened.inMemory)
        emit reopened(path, opened.inMemory, opened.sameChats);
}

void StoreBridge::noteEvent(const std::string& kind, const std::string& detailJson) {
    store::StoredEvent event;
    event.kind = kind;
    event.detail = detailJson;
    event.time = store::systemWallClock()();
    m_thread.addEvent(std::move(event));
}

void StoreBridge::listModels(Done<std::vector<store::StoredModel>> done) {
    wait(m_thread.listModels(),
         expecting<store::ModelsEvent>(std::move(done), [](const store::ModelsEvent& event) { return event.models; }));
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

void StoreBridge::loadMessages(Id conversation, Done<Messages> done) {
    wait(m_thread.loadConversation(idOf(conversation)),
         expecting<store::ContentEvent>(std::move(done),
                                        [](const store::ContentEvent& event) { return pathOf(event.content); }));
}

void StoreBridge::createConversation(const ui::Conversation& c, Done<Id> done) {
    store::NewConversation row;
    row.title = c.title.toStdString();
    row.systemPrompt = c.systemPrompt.toStdString();
    row.settings = ui::settingsToJson(c.settings).toStdString();
    wait(m_thread.createConversation(std::move(row)),
         expecting<store::ConversationCreatedEvent>(std::move(done), [](const store::ConversationCreatedEvent& event) {
             return event.conversation.id.value();
         }));
}

void StoreBridge::renameConversation(Id conversation, const QString& title, Done<void> done) {
    waitDone(m_thread.renameConversation(idOf(conversation), title.toStdString()), std::move(done));
}

void StoreBridge::setAutomaticTitle(Id conversation, const QString& title, Done<void> done) {
    waitDone(m_thread.renameConversation(idOf(conversation), title.toStdString(), false), std::move(done));
}

void StoreBridge::setSystemPrompt(Id conversation, const QString& prompt, Done<void> done) {
    waitDone(m_thread.setSystemPrompt(idOf(conversation), prompt.toStdString()), std::move(done));
}

void StoreBridge::setSettings(Id conversation, const api::SamplingParams& settings, Done<void> done) {
    waitDone(m_thread.setSettings(idOf(conversation), ui::settingsToJson(settings).toStdString()), std::move(done));
}

void StoreBridge::deleteConversation(Id conversation, Done<void> done) {
    waitDone(m_thread.deleteConversation(idOf(conversation)), std::move(done));
}

void StoreBridge::restoreConversation(Id conversation, Done<void> done) {
    waitDone(m_thread.restoreConversation(idOf(conversation)), std::move(done));
}

void StoreBridge::addTurn(const NewTurn& turn, Done<TurnIds> done) {
    store::NewTurn row;
    row.conversation = idOf(turn.conversation);
    row.parent = store::MessageId(turn.parent);
    row.text = turn.text.toStdString();
    row.settings = ui::settingsToJson(turn.settings).toStdString();
    row.model = turn.model.toStdString();
    row.attachments = rowsOf(turn.attachments);
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

void StoreBridge::duplicateConversation(Id conversation, const QString& title, Done<ui::Conversation> done) {
    branchConversation(conversation, ui::kNoId, title, std::move(done));
}

void StoreBridge::branchConversation(Id conversation, ui::MessageId last, const QString& title,
                                     Done<ui::Conversation> done) {
    wait(m_thread.duplicateConversation(idOf(conversation), title.toStdString(), store::MessageId(last)),
         expecting<store::ConversationCreatedEvent>(std::move(done), [](const store::ConversationCreatedEvent& event) {
             return conversationOf(event.conversation);
         }));
}

void StoreBridge::saveDraft(Id conversation, const QString& text, const std::vector<ui::Attachment>& attachments) {
    m_thread.saveDraft(idOf(conversation), {text.toStdString(), rowsOf(attachments)});
}

void StoreBridge::saveWaiting(Id conversation, const QString& text, const std::vector<ui::Attachment>& attachments,
                              Done<void> done) {
    waitDone(m_thread.saveWaiting(idOf(conversation), {text.toStdString(), rowsOf(attachments)}), std::move(done));
}

void StoreBridge::loadNewDraft(Done<std::pair<QString, std::vector<ui::Attachment>>> done) {
    wait(m_thread.newChatDraft(), expecting<store::DraftEvent>(std::move(done), [](const store::DraftEvent& event) {
             return std::pair(QString::fromStdString(event.draft.text), attachmentsOf(event.draft.attachments));
         }));
}

void StoreBridge::addAnswer(const NewAnswer& answer, Done<ui::MessageId> done) {
    store::NewAnswer row;
    row.conversation = idOf(answer.conversation);
    row.parent = store::MessageId(answer.parent);
    row.settings = ui::settingsToJson(answer.settings).toStdString();
    row.model = answer.model.toStdString();
    wait(m_thread.addAnswer(std::move(row)),
         expecting<store::AnswerOpenedEvent>(
             std::move(done), [](const store::AnswerOpenedEvent& event) { return event.answer.id.value(); }));
}

void StoreBridge::addMessage(const NewMessage& message, Done<ui::MessageId> done) {
    store::NewMessage row;
    row.conversation = idOf(message.conversation);
    row.parent = store::MessageId(message.parent);
    row.role = message.role == ui::MessageRole::User ? store::Role::User : store::Role::Assistant;
    row.text = message.text.toStdString();
    row.thinking = message.thinking.toStdString();
    row.settings = ui::settingsToJson(message.settings).toStdString();
    row.model = message.model.toStdString();
    row.attachments = rowsOf(message.attachments);
    wait(m_thread.addMessage(std::move(row)),
         expecting<store::MessageAddedEvent>(
             std::move(done), [](const store::MessageAddedEvent& event) { return event.message.id.value(); }));
}

void StoreBridge::reopenAnswer(ui::MessageId answer, Done<void> done) {
    waitDone(m_thread.reopenAnswer(store::MessageId(answer)), std::move(done));
}

void StoreBridge::showVersion(Id conversation, ui::MessageId message, Done<Messages> done) {
    wait(m_thread.showVersion(idOf(conversation), store::MessageId(message)),
         expecting<store::ContentEvent>(std::move(done),
                                        [](const store::ContentEvent& event) { return pathOf(event.content); }));
}

void StoreBridge::deleteMessage(Id conversation, ui::MessageId message, Done<Messages> done) {
    wait(m_thread.removeMessage(idOf(conversation), store::MessageId(message)),
         expecting<store::ContentEvent>(std::move(done), [this, message](const store::ContentEvent& event) {
             if (event.removed)
                 m_removed.insert_or_assign(message, *event.removed);
             return pathOf(event.content);
         }));
}

void StoreBridge::restoreMessage(Id conversation, ui::MessageId message, Done<Messages> done) {
    const auto removed = m_removed.find(message);
    if (removed == m_removed.end() || removed->second.message.conversation != idOf(conversation))
        return done(fail(ErrorCode::NotFound, "This message was not deleted since the program started."));
    wait(m_thread.restoreMessage(removed->second),
         expecting<store::ContentEvent>(std::move(done), [this, message](const store::ContentEvent& event) {
             m_removed.erase(message);
             return pathOf(event.content);
         }));
}

// ---- search, presets ----

void StoreBridge::search(const QString& query, int mostHits, Done<SearchResult> done) {
    wait(m_thread.search(query.toStdString(), std::size_t(std::max(0, mostHits))),
         expecting<store::SearchEvent>(std::move(done),
                                       [](const store::SearchEvent& event) { return resultOf(event.result); }));
}

void StoreBridge::listPresets(Done<std::vector<Preset>> done) {
    wait(m_thread.listPresets(), expecting<store::PresetsEvent>(std::move(done), [](const store::PresetsEvent& event) {
             std::vector<Preset> all;
             for (const store::Preset& row : event.presets)
                 all.push_back(presetOf(row));
             return all;
         }));
}

void StoreBridge::savePreset(const Preset& preset, Done<std::int64_t> done) {
    wait(m_thread.savePreset(rowOf(preset)),
         expecting<store::PresetSavedEvent>(std::move(done),
                                            [](const store::PresetSavedEvent& event) { return event.preset.value(); }));
}

void StoreBridge::deletePreset(std::int64_t preset, Done<void> done) {
    waitDone(m_thread.deletePreset(store::PresetId(preset)), std::move(done));
}

// ---- files ----

void StoreBridge::backUp(const QString& path, Done<void> done) {
    waitDone(m_thread.backUp(path.toStdString()), std::move(done));
}

void StoreBridge::restoreBackup(const QString& path, Done<QString> done) {
    wait(m_thread.restoreBackup(path.toStdString()),
         expecting<store::RestoredEvent>(std::move(done), [](const store::RestoredEvent& event) {
             return QString::fromStdString(event.keptPath);
         }));
}

} // namespace kvscope::desktop
