// SPDX-License-Identifier: GPL-3.0-or-later
//
// ChatController, second part: from sending to the engine. chat_events.cpp: from the engine's events to the end.
#include "ui/models/attachment.h"
#include "ui/models/chat_controller.h"
#include "ui/models/chat_words.h"

namespace kvscope::ui {
namespace {

constexpr int kSavingNoticeMs = 300;

QString sentenceOf(const Error& error) {
    return QString::fromStdString(error.message);
}

} // namespace

/// The session gets a request: from here on its answer is under way.
void ChatController::startRequest(ChatSession& s) {
    stopTitle();
    s.request = RequestId(m_nextRequest++);
    s.submitted = s.stopAsked = s.unsavedText = s.continuing = s.opensThought = false;
    s.rowsBefore.clear();
    s.written = ThinkingStream();
    s.rowDiffers = false;
    s.firstTokenAt = -1;
    s.sentAt = m_clock.now();
    s.pace.restart();
    s.rate = 0;
    s.rateAt = 0;
    m_running.emplace(s.request, s.key);
    if (!m_saveTimer.isActive())
        m_saveTimer.start();
}

/// It has none any more.
void ChatController::dropRequest(ChatSession& s) {
    m_running.erase(s.request);
    s.request = RequestId();
    s.submitted = s.unsavedText = s.continuing = false;
    s.rowsBefore.clear();
    if (m_running.empty())
        m_saveTimer.stop();
}

ChatMessage ChatController::emptyAnswer(const ChatSession& s) const {
    ChatMessage answer;
    answer.role = MessageRole::Assistant;
    answer.status = MessageStatus::Queued;
    answer.settings = s.conversation.settings;
    answer.model = m_modelPath;
    answer.createdMs = m_wallNow();
    return answer;
}

bool ChatController::send(const Draft& message) {
    if (!message.hasWords() || !canSend() || m_current->tooLong)
        return false;
    sendIfItFits(*m_current, message, kNoId);
    return true;
}

/// The rows from `row` on make room for a new version of the first of them.
void ChatController::giveWay(ChatSession& s, int row, ChatMessage& version) const {
    s.rowsBefore = s.model->divert(row);
    version.parent = row > 0 ? s.model->at(row - 1).id : kNoId;
    if (s.rowsBefore.empty())
        return;
    const ChatMessage& before = s.rowsBefore.front();
    version.siblings = before.siblings.empty() ? std::vector<MessageId>{before.id} : before.siblings;
    version.versions = version.version = int(version.siblings.size()) + 1;
}

/// ... and come back: it could not be saved.
void ChatController::bringBack(ChatSession& s) {
    for (ChatMessage& message : s.rowsBefore)
        s.model->append(std::move(message));
    s.rowsBefore.clear();
}

/// The database has given a row its id.
void ChatController::setId(ChatSession& s, int row, MessageId id) {
    s.model->edit(row, [&](ChatMessage& m) {
        m.id = id;
        m.siblings.push_back(id);
    });
    if (row + 1 < s.model->size())
        s.model->edit(row + 1, [&](ChatMessage& m) { m.parent = id; });
}

/// A message of the user and an empty answer take the place of the rows from `row` on, which become another version.
void ChatController::startTurn(ChatSession& s, const Draft& message, int row) {
    startRequest(s);
    ChatMessage user;
    user.status = MessageStatus::Committing;
    user.text = message.text;
    user.attachments = message.attachments;
    user.settings = s.conversation.settings;
    user.createdMs = m_wallNow();
    giveWay(s, row, user);
    s.userRow = s.model->append(std::move(user));
    s.answerRow = s.model->append(emptyAnswer(s));
    QTimer::singleShot(kSavingNoticeMs, this, [this, request = s.request] {
        ChatSession* waiting = byRequest(request);
        if (waiting && waiting->userRow >= 0 &&
            waiting->model->at(waiting->userRow).status == MessageStatus::Committing)
            waiting->model->edit(waiting->userRow, [](ChatMessage& m) { m.status = MessageStatus::Saving; });
    });
    if (s.conversation.id == kNoId)
        createThenCommit(s.key, message);
    else
        commitTurn(s, message);
    emit stateChanged();
}

void ChatController::createThenCommit(std::int64_t key, const Draft& message) {
    ChatSession& s = *byKey(key);
    s.conversation.title = words::titleFrom(firstWords(message));
    s.conversation.createdMs = s.conversation.updatedMs = m_wallNow();
    m_store.createConversation(s.conversation, [this, key, message](Result<ConversationId> id) {
        ChatSession* session = byKey(key);
        if (!session)
            return;
        if (!id) {
            turnRefused(*session, message, id.error());
            return;
        }
        session->conversation.id = *id;
        commitTurn(*session, message);
    });
}

void ChatController::commitTurn(ChatSession& s, const Draft& message) {
    ChatStore::NewTurn turn;
    turn.conversation = s.conversation.id;
    turn.parent = s.userRow > 0 ? s.model->at(s.userRow - 1).id : kNoId;
    turn.text = message.text;
    turn.attachments = message.attachments;
    turn.settings = s.conversation.settings;
    turn.model = m_modelPath;
    m_store.addTurn(turn, [this, key = s.key, message](Result<ChatStore::TurnIds> ids) {
        ChatSession* session = byKey(key);
        if (!session)
            return;
        if (ids)
            turnCommitted(*session, *ids);
        else
            turnRefused(*session, message, ids.error());
    });
}

void ChatController::turnRefused(ChatSession& s, const Draft& message, const Error& error) {
    s.model->remove(s.answerRow);
    s.model->remove(s.userRow);
    const int row = s.userRow;
    s.answerRow = s.userRow = -1;
    bringBack(s);
    dropRequest(s);
    const MessageId edited = row < s.model->size() ? s.model->at(row).id : kNoId;
    if (&s != m_current && s.conversation.id != kNoId && !s.removed && s.queued.isEmpty()) {
        s.queued = message; // it comes back when its chat is shown, not into the field of another one
        saveWaiting(s);
        emit storeFailed(sentenceOf(error));
    } else {
        emit sendFailed(message, sentenceOf(error), edited);
    }
    emit stateChanged();
}

void ChatController::turnCommitted(ChatSession& s, const ChatStore::TurnIds& ids) {
    s.model->edit(s.userRow, [&](ChatMessage& m) { m.status = MessageStatus::Done; });
    setId(s, s.userRow, ids.user);
    setId(s, s.answerRow, ids.answer);
    touch(s, firstWords({s.model->at(s.userRow).text, s.model->at(s.userRow).attachments}));
    s.waitingStored = false; // the turn has taken its place
    if (!s.queued.isEmpty())
        saveWaiting(s);
    emit stateChanged(); // the title of a new chat
    emit turnStored(s.conversation.id);
    answerOpened(s);
}

/// The database has the row of the answer: ask the engine, unless the user does not want it any more.
void ChatController::answerOpened(ChatSession& s) {
    if (s.stopAsked) {
        s.model->edit(s.answerRow, [](ChatMessage& m) {
            m.status = MessageStatus::Stopped;
            m.reason = api::FinishReason::Cancelled;
        });
        endAnswer(s);
        return;
    }
    submit(s);
}

void ChatController::submit(ChatSession& s) {
    api::Request request;
    request.id = s.request;
    request.owner = OwnerId(s.conversation.id);
    request.prompt = s.dialog(m_modelPath);
    request.sampling = s.answer().settings;
    s.submitted = true;
    m_source.submit(std::move(request));
    setActivity(s);
}

api::DialogPrompt ChatController::shownPrompt() const {
    const auto rows = m_current->dialogRows; // those of the request that runs
    api::DialogPrompt prompt = m_current->dialog(m_modelPath);
    m_current->dialogRows = rows;
    if (!prompt.continueLast && !prompt.messages.empty() && prompt.messages.back().role == "assistant")
        prompt.messages.pop_back();
    return prompt;
}

void ChatController::stop() {
    if (m_current->checking.valid()) { // nothing was sent yet
        m_current->checking = RequestId();
        emit sendFailed(std::exchange(m_current->checked, {}), tr("Stopped before it was sent."),
                        m_current->checkedEdit);
        emit stateChanged();
    }
    if (!m_current->request.valid())
        return;
    m_current->stopAsked = true;
    if (m_current->submitted)
        m_source.cancel(m_current->request);
}

void ChatController::stop(ConversationId id) {
    ChatSession* s = byConversation(id);
    if (!s || !s->request.valid())
        return;
    s->stopAsked = true;
    if (s->submitted)
        m_source.cancel(s->request);
}

// ---- the message that waits ----

bool ChatController::queueMessage(const Draft& message) {
    if (!message.hasWords() || !m_current->request.valid())
        return false;
    m_current->queued = message;
    saveWaiting(*m_current);
    emit stateChanged();
    return true;
}

/// So that it outlives the program. A chat that has no id yet gets it with its first turn, and this is called again.
void ChatController::saveWaiting(ChatSession& s) {
    if (s.conversation.id == kNoId)
        return;
    s.waitingStored = !s.queued.isEmpty();
    m_store.saveWaiting(s.conversation.id, s.queued.text, s.queued.attachments, reportFailure());
}

void ChatController::forgetWaiting() {
    if (m_current->waitingStored && m_current->queued.isEmpty() && !m_current->tooLong && !m_current->checking.valid())
        saveWaiting(*m_current);
}

Draft ChatController::takeQueued() {
    Draft message = std::exchange(m_current->queued, {});
    emit stateChanged();
    return message;
}

/// After an answer that failed the message would most likely fail too: the composer takes it back.
void ChatController::sendQueued(ChatSession& s) {
    if (s.queued.isEmpty() || s.removed || !m_modelReady)
        return;
    if (s.answer().status == MessageStatus::Failed) {
        if (&s == m_current)
            emit sendFailed(takeQueued(), tr("The answer before it failed, so your next message was not sent."), kNoId);
        return;
    }
    sendIfItFits(s, std::exchange(s.queued, {}), kNoId);
}

} // namespace kvscope::ui
