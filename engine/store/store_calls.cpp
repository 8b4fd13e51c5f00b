// SPDX-License-Identifier: GPL-3.0-or-later
//
// The calls of StoreThread: every one becomes a piece of work in the queue.
#include "engine/store/store_thread.h"

namespace kvscope::store {

JobId StoreThread::listConversations() {
    const JobId id(m_lastJob + 1);
    return post(false, [id](Session& session, RunId) {
        return session.conversations.list().map([&](std::vector<Conversation> all) -> StoreEvent {
            return ConversationsEvent{id, std::move(all)};
        });
    });
}

JobId StoreThread::createConversation(NewConversation conversation) {
    const JobId id(m_lastJob + 1);
    return post(true, [id, conversation = std::move(conversation)](Session& session, RunId) {
        return session.conversations.create(conversation).map([&](Conversation made) -> StoreEvent {
            return ConversationCreatedEvent{id, std::move(made)};
        });
    });
}

JobId StoreThread::loadConversation(ConversationId conversation) {
    const JobId id(m_lastJob + 1);
    return post(false, [id, conversation](Session& session, RunId) {
        return session.conversations.load(conversation).map([&](ConversationContent content) -> StoreEvent {
            return ContentEvent{id, std::move(content), std::nullopt};
        });
    });
}

JobId StoreThread::renameConversation(ConversationId id, std::string title, bool byUser) {
    return postWrite([=](Session& session, RunId) { return session.conversations.rename(id, title, byUser); });
}

JobId StoreThread::deleteConversation(ConversationId id) {
    return postWrite([=](Session& session, RunId) { return session.conversations.remove(id); });
}

JobId StoreThread::restoreConversation(ConversationId id) {
    return postWrite([=](Session& session, RunId) { return session.conversations.restore(id); });
}

JobId StoreThread::setSystemPrompt(ConversationId id, std::string systemPrompt) {
    return postWrite([=](Session& session, RunId) { return session.conversations.setSystemPrompt(id, systemPrompt); });
}

JobId StoreThread::setSettings(ConversationId id, std::string settings) {
    return postWrite([=](Session& session, RunId) { return session.conversations.setSettings(id, settings); });
}

JobId StoreThread::setModel(ConversationId id, std::string path) {
    return postWrite([=](Session& session, RunId) { return session.conversations.setModel(id, path); });
}

JobId StoreThread::setActiveLeaf(ConversationId id, MessageId leaf) {
    return postWrite([=](Session& session, RunId) { return session.conversations.setActiveLeaf(id, leaf); });
}

JobId StoreThread::addUserMessage(NewTurn turn) {
    const JobId id(m_lastJob + 1);
    forgetLater({LaterKind::Draft, turn.conversation.value()});
    return post(true, [id, turn = std::move(turn)](Session& session, RunId run) {
        return session.conversations.addTurn(turn, run).map([&](ConversationStore::Turn made) -> StoreEvent {
            return TurnCommittedEvent{id, std::move(made.user), std::move(made.answer)};
        });
    });
}

JobId StoreThread::addAnswer(NewAnswer answer) {
    const JobId id(m_lastJob + 1);
    return post(true, [id, answer = std::move(answer)](Session& session, RunId run) {
        return session.conversations.addAnswer(answer, run).map([&](Message made) -> StoreEvent {
            return AnswerOpenedEvent{id, std::move(made)};
        });
    });
}

JobId StoreThread::endAnswer(AnswerEnd end) {
    forgetLater({LaterKind::Progress, end.answer.value()});
    return postWrite([end = std::move(end)](Session& session, RunId) { return session.conversations.endAnswer(end); });
}

JobId StoreThread::addEvent(StoredEvent event) {
    if (event.time == 0)
        event.time = m_options.wallClock(); // when it happened, not when the disk had time for it
    return postWrite(
        [event = std::move(event)](Session& session, RunId run) { return session.runs.addEvent(run, event); });
}

JobId StoreThread::listModels() {
    const JobId id(m_lastJob + 1);
    return post(false, [id](Session& session, RunId) {
        return session.runs.models().map([&](std::vector<StoredModel> all) -> StoreEvent {
            return ModelsEvent{id, std::move(all)};
        });
    });
}

JobId StoreThread::noteModel(StoredModel model) {
    return postWrite([model = std::move(model)](Session& session, RunId) { return session.runs.noteModel(model); });
}

JobId StoreThread::noteEstimates(std::vector<LoadEstimate> estimates) {
    return postWrite([estimates = std::move(estimates)](Session& session, RunId run) {
        return session.runs.addEstimates(run, estimates);
    });
}

void StoreThread::saveProgress(AnswerProgress progress) {
    const LaterKey key{LaterKind::Progress, progress.answer.value()};
    postLater(key, [progress = std::move(progress)](Session& session, RunId) {
        return session.conversations.saveProgress(progress).map([]() -> StoreEvent { return DoneEvent{}; });
    });
}

void StoreThread::saveDraft(ConversationId id, Draft draft) {
    postLater({LaterKind::Draft, id.value()}, [id, draft = std::move(draft)](Session& session, RunId) {
        return session.conversations.setDraft(id, draft).map([]() -> StoreEvent { return DoneEvent{}; });
    });
}

JobId StoreThread::saveWaiting(ConversationId id, Draft message) {
    Work draft;
    {
        const std::lock_guard lock(m_mutex);
        if (const auto later = m_later.find({LaterKind::Draft, id.value()}); later != m_later.end()) {
            draft = std::move(later->second);
            m_later.erase(later);
        }
    }
    return postWrite(
        [id, message = std::move(message), draft = std::move(draft)](Session& session, RunId run) -> Result<void> {
            if (draft)
                if (auto saved = draft(session, run); !saved)
                    return tl::unexpected<Error>(saved.error());
            return session.conversations.setWaiting(id, message);
        });
}

JobId StoreThread::duplicateConversation(ConversationId source, std::string title, MessageId last) {
    const JobId id(m_lastJob + 1);
    return post(true, [=, title = std::move(title)](Session& session, RunId) {
        return session.conversations.duplicate(source, title, last).map([&](Conversation made) -> StoreEvent {
            return ConversationCreatedEvent{id, std::move(made)};
        });
    });
}

JobId StoreThread::newChatDraft() {
    const JobId id(m_lastJob + 1);
    return post(false, [id](Session& session, RunId) {
        return session.conversations.newChatDraft().map([&](Draft draft) -> StoreEvent {
            return DraftEvent{id, std::move(draft)};
        });
    });
}

JobId StoreThread::addMessage(NewMessage message) {
    const JobId id(m_lastJob + 1);
    return post(true, [id, message = std::move(message)](Session& session, RunId run) {
        return session.conversations.addMessage(message, run).map([&](Message made) -> StoreEvent {
            return MessageAddedEvent{id, std::move(made)};
        });
    });
}

JobId StoreThread::reopenAnswer(MessageId id) {
    return postWrite([=](Session& session, RunId run) { return session.conversations.reopenAnswer(id, run); });
}

JobId StoreThread::showVersion(ConversationId conversation, MessageId through) {
    const JobId id(m_lastJob + 1);
    return post(true, [=](Session& session, RunId) -> Result<StoreEvent> {
        if (const auto shown = session.conversations.showVersion(conversation, through); !shown)
            return tl::unexpected<Error>(shown.error());
        return session.conversations.load(conversation).map([&](ConversationContent content) -> StoreEvent {
            return ContentEvent{id, std::move(content), std::nullopt};
        });
    });
}

JobId StoreThread::removeMessage(ConversationId conversation, MessageId message) {
    const JobId id(m_lastJob + 1);
    return post(true, [=](Session& session, RunId) -> Result<StoreEvent> {
        auto removed = session.conversations.removeMessage(conversation, message);
        if (!removed)
            return tl::unexpected<Error>(removed.error());
        return session.conversations.load(conversation).map([&](ConversationContent content) -> StoreEvent {
            return ContentEvent{id, std::move(content), std::move(*removed)};
        });
    });
}

JobId StoreThread::restoreMessage(RemovedMessage removed) {
    const JobId id(m_lastJob + 1);
    return post(true, [id, removed = std::move(removed)](Session& session, RunId) -> Result<StoreEvent> {
        if (const auto restored = session.conversations.restoreMessage(removed); !restored)
            return tl::unexpected<Error>(restored.error());
        return session.conversations.load(removed.message.conversation)
            .map([&](ConversationContent content) -> StoreEvent {
                return ContentEvent{id, std::move(content), std::nullopt};
            });
    });
}

JobId StoreThread::search(std::string query, std::size_t mostHits) {
    const JobId id(m_lastJob + 1);
    if (m_searchStop)
        m_searchStop->store(true, std::memory_order_relaxed);
    m_searchStop = std::make_shared<std::atomic<bool>>(false);
    return post(false, [id, query = std::move(query), mostHits, stop = m_searchStop](Session& session, RunId) {
        return searchChats(session.database, query, stop.get(), mostHits).map([&](SearchResult result) -> StoreEvent {
            return SearchEvent{id, std::move(result)};
        });
    });
}

JobId StoreThread::listPresets() {
    const JobId id(m_lastJob + 1);
    return post(false, [id](Session& session, RunId) {
        return session.presets.list().map([&](std::vector<Preset> all) -> StoreEvent {
            return PresetsEvent{id, std::move(all)};
        });
    });
}

JobId StoreThread::savePreset(Preset preset) {
    const JobId id(m_lastJob + 1);
    return post(true, [id, preset = std::move(preset)](Session& session, RunId) {
        return session.presets.save(preset).map([&](PresetId saved) -> StoreEvent {
            return PresetSavedEvent{id, saved};
        });
    });
}

JobId StoreThread::deletePreset(PresetId id) {
    return postWrite([=](Session& session, RunId) { return session.presets.remove(id); });
}

JobId StoreThread::adoptConversations(std::vector<std::pair<ConversationContent, std::string>> conversations) {
    const JobId id(m_lastJob + 1);
    // Tried again after a trouble, it goes on where it was: what is here already is found again.
    return post(true, [id, all = std::move(conversations)](Session& session, RunId) -> Result<StoreEvent> {
        AdoptedEvent event{id, {}};
        for (const auto& [content, fingerprint] : all) {
            const auto adopted = session.conversations.adopt(content, fingerprint);
            if (!adopted)
                return tl::unexpected<Error>(adopted.error());
            event.outcomes.push_back(*adopted);
        }
        return event;
    });
}

JobId StoreThread::backUp(std::string target) {
    const JobId id(m_lastJob + 1);
    return post(false, [id, target = std::move(target)](Session& session, RunId) {
        return session.database.backUpTo(target).map([&]() -> StoreEvent { return DoneEvent{id}; });
    });
}

} // namespace kvscope::store
