// SPDX-License-Identifier: GPL-3.0-or-later
//
// The caller's side of StoreThread: every call becomes a piece of work in the queue.
#include "engine/store/store_thread.h"

#include "engine/base/thread_name.h"

namespace kvscope::store {

StoreThread::StoreThread(const Clock& clock, StoreOptions options) : m_clock(clock), m_options(std::move(options)) {
    m_thread = std::thread([this] {
        nameThisThread("kv-store");
        run();
    });
}

StoreThread::~StoreThread() {
    close(2'000'000'000);
}

int StoreThread::close(Nanos patience) {
    if (m_closed)
        return m_unsavedAtEnd;
    {
        const std::lock_guard lock(m_mutex);
        m_closing = true;
        m_closeBy = m_clock.now() + patience;
    }
    m_wake.notify_one();
    m_thread.join();
    m_closed = true;
    return m_unsavedAtEnd;
}

JobId StoreThread::post(bool write, Work work) {
    const JobId id(++m_lastJob);
    m_postedAt[id] = m_clock.now();
    {
        const std::lock_guard lock(m_mutex);
        m_queue.push_back({id, write, std::move(work)});
    }
    m_wake.notify_one();
    return id;
}

JobId StoreThread::postWrite(std::function<Result<void>(Session&, RunId)> work) {
    const JobId id(m_lastJob + 1); // the one that `post` gives
    return post(true, [id, work = std::move(work)](Session& session, RunId run) -> Result<StoreEvent> {
        return work(session, run).map([&]() -> StoreEvent { return DoneEvent{id}; });
    });
}

void StoreThread::postLater(LaterKey key, Work work) {
    {
        const std::lock_guard lock(m_mutex);
        m_later[key] = std::move(work);
    }
    m_wake.notify_one();
}

void StoreThread::forgetLater(LaterKey key) {
    const std::lock_guard lock(m_mutex);
    m_later.erase(key);
    if (m_laterInWork == key)
        m_laterInWork.reset();
}

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
            return ContentEvent{id, std::move(content)};
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

void StoreThread::saveDraft(ConversationId id, std::string draft) {
    postLater({LaterKind::Draft, id.value()}, [id, draft = std::move(draft)](Session& session, RunId) {
        return session.conversations.setDraft(id, draft).map([]() -> StoreEvent { return DoneEvent{}; });
    });
}

void StoreThread::retry() {
    {
        const std::lock_guard lock(m_mutex);
        m_retryAsked = true;
    }
    m_wake.notify_one();
}

std::optional<StoreEvent> StoreThread::nextEvent() {
    if (m_closed)
        m_events.flush(); // the producer is gone: what it had spilled is ours to move on
    auto event = m_events.pop();
    if (event)
        std::visit(
            [this](const auto& e) {
                if constexpr (requires { e.job; })
                    m_postedAt.erase(e.job);
            },
            *event);
    return event;
}

Nanos StoreThread::waitingFor(JobId job) const {
    const auto posted = m_postedAt.find(job);
    return posted == m_postedAt.end() ? 0 : std::max<Nanos>(1, m_clock.now() - posted->second);
}

int StoreThread::unsavedWrites() const {
    const std::lock_guard lock(m_mutex);
    return unsavedLocked();
}

int StoreThread::unsavedLocked() const {
    int count = static_cast<int>(m_later.size()) + (m_inWork ? 1 : 0);
    for (const Job& job : m_queue)
        count += job.write ? 1 : 0;
    return count;
}

} // namespace kvscope::store
