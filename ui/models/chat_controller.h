// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QTimer>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "engine/api/sources.h"
#include "ui/models/chat_session.h"
#include "ui/models/chat_store.h"
#include "ui/models/conversation_list_model.h"

namespace kvscope::ui {

/// The flow of a chat message: own message committed to the database first, then submitted; events of the engine into
/// the rows; partial text saved about once a second; the end saved with tokens, receipt and settings. Several
/// conversations can be answered at once, shown or not.
///
/// Thread: GUI. `handleEvent` is fed by whoever drains the source; `tick` is called once per frame.
class ChatController final : public QObject {
    Q_OBJECT
public:
    /// Source, store and clock outlive the controller. `wallNow` gives milliseconds since the epoch.
    ChatController(api::ChatSource& source, ChatStore& store, const Clock& clock, std::function<qint64()> wallNow,
                   QObject* parent = nullptr);
    ~ChatController() override;

    ConversationListModel* conversations() { return &m_list; }
    const ChatSession& current() const { return *m_current; } ///< the shown one; there always is one
    ChatModel* messages() const { return m_current->model.get(); }
    bool modelReady() const { return m_modelReady; }
    bool canSend() const { return m_modelReady && m_current->loaded && !m_current->request.valid(); }
    bool answering() const { return m_current->request.valid(); }
    bool anyRunning() const { return !m_running.empty(); }
    /// Rate of all answers that are being written; 0 = none.
    double tokensPerSecond() const;
    QString titleOf(OwnerId owner) const;
    ContextUse context() const;

    /// Reads the list from the database and shows the chat that was used last.
    void start();
    void newConversation();
    void select(ConversationId id);
    void rename(ConversationId id, const QString& title);
    void remove(ConversationId id);
    /// Takes back the last `remove`.
    void undoRemove();
    void setSystemPrompt(const QString& prompt);
    void setSettings(const api::SamplingParams& settings);

    /// False when nothing was sent (empty text, no model, an answer runs): the text stays with the caller.
    bool send(const QString& text);
    /// Stops the shown conversation's answer, in whatever stage it is.
    void stop();
    void stop(ConversationId id);

    void handleEvent(const api::Event& event);
    /// Hands collected changes to the views, at most 14 times a second; true when it did.
    bool tick();
    /// Saves the partial text of every running answer; an own timer does it once a second.
    void savePartials();

    /// Rows of the shown conversation that hold tokens [first, first + count) of its newest sequence.
    std::vector<int> rowsOfTokens(std::int64_t first, std::int64_t count) const;

signals:
    void currentChanged();                            ///< another conversation is shown, or its messages arrived
    void stateChanged();                              ///< canSend, answering, title, settings, system prompt
    void contextChanged();                            ///< context() of the shown conversation
    void removed(qint64 conversation, QString title); ///< can be undone
    void sendFailed(QString text, QString sentence);  ///< not saved, so not sent: the composer takes the text back
    void storeFailed(QString sentence);               ///< something later could not be saved
    void lengthChanged(qint64 conversation, qint64 tokens); ///< of its sequence: what its warmth is measured against

private:
    ChatSession* byConversation(ConversationId id) const;
    ChatSession* byKey(std::int64_t key) const;
    ChatSession* byRequest(RequestId id) const;
    ChatSession& add(Conversation conversation);
    void show(ChatSession& s);
    void load(ChatSession& s);
    void forgetIdle();
    void createThenCommit(std::int64_t key, const QString& text);
    void commitTurn(ChatSession& s, const QString& text);
    void turnRefused(ChatSession& s, const QString& text, const Error& error);
    void turnCommitted(ChatSession& s, const ChatStore::TurnIds& ids);
    void submit(ChatSession& s);
    void onQueued(const api::QueuedEvent& e);
    void onWaiting(const api::WaitingEvent& e);
    void onPrefill(const api::PrefillEvent& e);
    void onTokens(const api::TokensEvent& e);
    void onFinished(const api::Answer& answer);
    void onModel(const api::ModelInfo* info);
    void setLength(ChatSession& s, std::int64_t tokens);
    void endAnswer(ChatSession& s);
    void touch(ChatSession& s, const QString& preview);
    void setActivity(const ChatSession& s);
    ChatStore::Done<void> reportFailure();

    api::ChatSource& m_source;
    ChatStore& m_store;
    const Clock& m_clock;
    std::function<qint64()> m_wallNow;
    ConversationListModel m_list;
    std::vector<std::unique_ptr<ChatSession>> m_sessions; ///< most recently shown last
    ChatSession* m_current = nullptr;
    std::unordered_map<RequestId, std::int64_t> m_running; ///< request -> session key
    std::int64_t m_nextKey = 1;
    std::int64_t m_nextRequest = 1;
    ConversationId m_lastRemoved = kNoId;
    std::int64_t m_contextLimit = 0;
    QString m_modelPath;
    bool m_modelReady = false;
    Nanos m_lastFlush = 0;
    QTimer m_saveTimer;
};

} // namespace kvscope::ui
