// SPDX-License-Identifier: GPL-3.0-or-later
//
// ChatController, fourth part: other answers, edited messages, branches, and answers that were cut off.
#include <algorithm>

#include "ui/models/attachment.h"
#include "ui/models/chat_controller.h"
#include "ui/models/chat_words.h"

namespace kvscope::ui {
namespace {

QString sentenceOf(const Error& error) {
    return QString::fromStdString(error.message);
}

} // namespace

bool ChatController::regenerate(int row) {
    ChatSession& s = *m_current;
    if (!canSend() || row < 0 || row >= s.model->size())
        return false;
    const int user = s.model->at(row).role == MessageRole::User ? row : row - 1;
    if (user < 0 || s.model->at(user).role != MessageRole::User)
        return false; // the message that it answered was deleted: there is nothing to answer again
    startRequest(s);
    s.userRow = user;
    ChatMessage fresh = emptyAnswer(s);
    giveWay(s, user + 1, fresh);
    s.answerRow = s.model->append(std::move(fresh));
    ChatStore::NewAnswer answer;
    answer.conversation = s.conversation.id;
    answer.parent = s.model->at(user).id;
    answer.settings = s.conversation.settings;
    answer.model = m_modelPath;
    m_store.addAnswer(answer, [this, key = s.key](Result<MessageId> id) {
        ChatSession* session = byKey(key);
        if (!session)
            return;
        if (id) {
            setId(*session, session->answerRow, *id);
            answerOpened(*session);
            return;
        }
        session->model->remove(session->answerRow);
        bringBack(*session);
        dropRequest(*session);
        emit storeFailed(sentenceOf(id.error()));
        emit stateChanged();
    });
    emit stateChanged();
    return true;
}

bool ChatController::editMessage(int row, const QString& text) {
    if (row < 0 || row >= m_current->model->size())
        return false;
    return editMessage(row, Draft{text, m_current->model->at(row).attachments});
}

bool ChatController::editMessage(int row, const Draft& message) {
    ChatSession& s = *m_current;
    if (!canChange() || row < 0 || row >= s.model->size() || !message.hasWords() || s.model->at(row).id == kNoId)
        return false;
    if (sameMessage(message, {s.model->at(row).text, s.model->at(row).attachments}))
        return true;
    if (s.model->at(row).role == MessageRole::Assistant) {
        editAnswer(s, row, message.text);
        return true;
    }
    if (!canSend() || s.tooLong)
        return false;
    sendIfItFits(s, message, s.model->at(row).id);
    return true;
}

void ChatController::editAnswer(ChatSession& s, int row, const QString& text) {
    s.changing = true;
    const MessageId old = s.model->at(row).id;
    ChatStore::NewMessage message;
    message.conversation = s.conversation.id;
    message.parent = row > 0 ? s.model->at(row - 1).id : kNoId;
    message.text = text;
    message.settings = s.model->at(row).settings;
    m_store.addMessage(message, [this, key = s.key, old, text](Result<MessageId> id) {
        ChatSession* session = byKey(key);
        if (!session)
            return;
        session->changing = false;
        const int at = session->model->rowOf(old);
        if (id && at >= 0) {
            ChatMessage edited;
            edited.role = MessageRole::Assistant;
            edited.text = text;
            edited.createdMs = m_wallNow();
            giveWay(*session, at, edited);
            session->rowsBefore.clear();
            setId(*session, session->model->append(std::move(edited)), *id);
            touch(*session, text);
        } else if (!id) {
            emit storeFailed(sentenceOf(id.error()));
        }
        emit stateChanged();
    });
    emit stateChanged();
}

/// What the database shows after a change of the tree.
void ChatController::showStored(ChatSession& s, Result<std::vector<ChatMessage>> path) {
    s.changing = false;
    if (path) {
        s.userRow = s.answerRow = -1;
        s.model->showPath(std::move(*path));
        s.contextFromReceipts();
        if (&s == m_current) {
            emit contextChanged();
            findCut();
        }
        notePreview(s);
    } else {
        emit storeFailed(sentenceOf(path.error()));
    }
    emit stateChanged();
}

bool ChatController::showVersion(int row, int version) {
    ChatSession& s = *m_current;
    if (!canChange() || row < 0 || row >= s.model->size() || version < 1 ||
        version > int(s.model->at(row).siblings.size()))
        return false;
    if (version == s.model->at(row).version)
        return true;
    s.changing = true;
    m_store.showVersion(s.conversation.id, s.model->at(row).siblings[std::size_t(version) - 1],
                        [this, key = s.key](Result<std::vector<ChatMessage>> path) {
                            if (ChatSession* session = byKey(key))
                                showStored(*session, std::move(path));
                        });
    emit stateChanged();
    return true;
}

bool ChatController::showMessage(MessageId id) {
    ChatSession& s = *m_current;
    if (!canChange() || id == kNoId || s.conversation.id == kNoId)
        return false;
    s.changing = true;
    m_store.showVersion(s.conversation.id, id, [this, key = s.key](Result<std::vector<ChatMessage>> path) {
        if (ChatSession* session = byKey(key))
            showStored(*session, std::move(path));
    });
    emit stateChanged();
    return true;
}

bool ChatController::branch(int row) {
    ChatSession& s = *m_current;
    if (!canChange() || row < 0 || row >= s.model->size() || s.model->at(row).id == kNoId)
        return false;
    s.changing = true;
    m_store.branchConversation(s.conversation.id, s.model->at(row).id, words::branchTitle(s.conversation.title),
                               [this, key = s.key](Result<Conversation> made) {
                                   if (ChatSession* session = byKey(key))
                                       session->changing = false;
                                   if (!made) {
                                       emit storeFailed(sentenceOf(made.error()));
                                       emit stateChanged();
                                       return;
                                   }
                                   m_list.put(*made, m_wallNow());
                                   if (m_current->key == key) // the user has not gone elsewhere meanwhile
                                       select(made->id);
                                   emit stateChanged();
                               });
    emit stateChanged();
    return true;
}

bool ChatController::deleteMessage(int row) {
    ChatSession& s = *m_current;
    if (!canChange() || row < 0 || row >= s.model->size() || s.model->at(row).id == kNoId)
        return false;
    takeOut(s, row);
    return true;
}

void ChatController::takeOut(ChatSession& s, int row) {
    s.changing = true;
    const MessageId gone = s.model->at(row).id;
    MessageId instead = kNoId; // at the end of the path another version takes its place
    if (row == s.model->size() - 1)
        for (const MessageId sibling : s.model->at(row).siblings)
            if (sibling != gone)
                instead = sibling;
    const ConversationId id = s.conversation.id;
    m_store.deleteMessage(id, gone, [this, key = s.key, id, gone, instead](Result<std::vector<ChatMessage>> path) {
        ChatSession* session = byKey(key);
        if (!session)
            return;
        if (path) {
            m_deleted.emplace_back(id, gone);
            emit messageDeleted(id, gone);
        }
        if (!path || instead == kNoId)
            return showStored(*session, std::move(path));
        m_store.showVersion(id, instead, [this, key](Result<std::vector<ChatMessage>> other) {
            if (ChatSession* shown = byKey(key))
                showStored(*shown, std::move(other));
        });
    });
    emit stateChanged();
}

bool ChatController::undoDeleteMessage() {
    const ConversationId shown = m_current->conversation.id;
    const auto last =
        std::find_if(m_deleted.rbegin(), m_deleted.rend(), [shown](const auto& entry) { return entry.first == shown; });
    return last != m_deleted.rend() && undoDeleteMessage(shown, last->second);
}

bool ChatController::undoDeleteMessage(ConversationId conversation, MessageId message) {
    const auto entry = std::find(m_deleted.begin(), m_deleted.end(), std::pair(conversation, message));
    ChatSession* s = byConversation(conversation);
    if (entry == m_deleted.end() || (s && !s->ready()))
        return false;
    m_deleted.erase(entry);
    if (s)
        s->changing = true;
    const auto key = s ? s->key : 0;
    m_store.restoreMessage(conversation, message,
                           [this, key, conversation, message](Result<std::vector<ChatMessage>> path) {
                               if (!path)
                                   m_deleted.emplace_back(conversation, message); // it can be tried again
                               if (ChatSession* session = byKey(key))
                                   showStored(*session, std::move(path));
                               else if (!path)
                                   emit storeFailed(sentenceOf(path.error()));
                           });
    emit stateChanged();
    return true;
}

// ---- answers that were cut off ----

bool ChatController::canContinue(int row) const {
    const ChatModel& model = *m_current->model;
    if (!canChange() || row < 0 || row != model.size() - 1)
        return false;
    const ChatMessage& m = model.at(row);
    if (m.role != MessageRole::Assistant || (m.tokens.empty() && m.text.isEmpty() && m.thinking.isEmpty()))
        return false;
    return m.status == MessageStatus::Stopped || m.status == MessageStatus::Interrupted ||
           m.status == MessageStatus::Failed ||
           (m.status == MessageStatus::Done && m.reason == api::FinishReason::Length);
}

bool ChatController::continueAnswer() {
    ChatSession& s = *m_current;
    const int row = s.model->size() - 1;
    if (!canSend() || !canContinue(row))
        return false;
    startRequest(s);
    s.continuing = true;
    s.userRow = row > 0 && s.model->at(row - 1).role == MessageRole::User ? row - 1 : -1;
    s.answerRow = row;
    const ChatMessage before = s.model->at(row);
    s.model->edit(row, [&](ChatMessage& m) {
        m.status = MessageStatus::Queued;
        m.error.clear();
        m.progress = {};
        m.receipt.reset();
        m.reason = api::FinishReason::Stop;
    });
    m_store.reopenAnswer(before.id, [this, key = s.key, before](Result<void> done) {
        ChatSession* session = byKey(key);
        if (!session)
            return;
        if (done) {
            answerOpened(*session);
            return;
        }
        session->model->edit(session->answerRow, [&](ChatMessage& m) { m = before; });
        dropRequest(*session);
        emit storeFailed(sentenceOf(done.error()));
        emit stateChanged();
    });
    emit stateChanged();
    return true;
}

bool ChatController::discardAnswer() {
    ChatSession& s = *m_current;
    const int row = s.model->size() - 1;
    if (!canChange() || row < 0 || s.model->at(row).role != MessageRole::Assistant || s.model->at(row).id == kNoId ||
        (s.model->at(row).status == MessageStatus::Done && s.model->at(row).reason != api::FinishReason::Length))
        return false;
    takeOut(s, row);
    return true;
}

} // namespace kvscope::ui
