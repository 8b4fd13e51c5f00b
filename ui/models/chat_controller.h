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
    bool canSend() const { return m_modelReady && m_current->ready(); }
    /// Messages of the shown chat can be changed: they are here, no answer is being written.
    bool canChange() const { return m_current->ready(); }
    /// A message is under way: it is counted, or its answer is.
    bool answering() const { return m_current->request.valid() || m_current->checking.valid(); }
    bool anyRunning() const { return !m_running.empty(); }
    /// Rate of all answers that are being written; 0 = none.
    double tokensPerSecond() const;
    QString titleOf(OwnerId owner) const;
    ContextUse context() const;

    /// Reads the list from the database and shows the chat that was used last.
    void start();
    /// Another database has taken the place of the one that was read: its list, and nothing of what was shown before.
    void reread();
    /// Reads the list anew: an import changed it.
    void reloadList();
    void newConversation();
    void select(ConversationId id);
    void rename(ConversationId id, const QString& title);
    void remove(ConversationId id);
    /// Takes back the last `remove`, or an earlier one.
    void undoRemove();
    void undoRemove(ConversationId id);
    void setSystemPrompt(const QString& prompt);
    void setSettings(const api::SamplingParams& settings);

    /// False when nothing was sent (empty text, no model, an answer runs): the text stays with the caller.
    bool send(const Draft& message);
    bool send(const QString& text) { return send(Draft{text, {}}); }
    // ---- versions of the shown chat. Each returns false when it cannot be done now. Nothing is overwritten: what was
    // there before stays as a sibling, reached by showVersion.

    /// Another answer to the user's message in or above `row`; what was said after it stays with the answer before.
    bool regenerate(int row);
    /// A user's message: a new version of it, and an answer to that. An answer: the user's own wording of it, which is
    /// taken as it stands; nothing is generated. The same text changes nothing. Attachments stay.
    bool editMessage(int row, const QString& text);
    bool editMessage(int row, const Draft& message);
    /// Shows version 1..versions of a message, and what followed it there.
    bool showVersion(int row, int version);
    /// Shows the versions that lead to this message of the shown chat.
    bool showMessage(MessageId id);
    /// A new conversation that begins with everything up to this message, and is shown. Its blocks are those of this
    /// chat as far as they are cached.
    bool branch(int row);
    /// Takes one message out; what follows it stays.
    bool deleteMessage(int row);
    /// Takes back a `deleteMessage` or `discardAnswer`; false = there is none, or it cannot be done now.
    bool undoDeleteMessage(ConversationId conversation, MessageId message);
    bool undoDeleteMessage(); ///< the last one of the shown chat
    /// An answer at the end that was cut off: stopped, interrupted, or at its limit of tokens.
    bool canContinue(int row) const;
    /// Writes the last answer on from the tokens that it has.
    bool continueAnswer();
    /// Takes an answer that was cut off out; where it was one of several, another is shown.
    bool discardAnswer();

    // ---- a message that there is no room for: nothing of it is sent until the user has chosen
    const OverLong* tooLong() const; ///< of the shown chat; null = none
    OverLong takeTooLong();          ///< back to the user, to be made shorter; there must be one
    /// Asks for a reload with the larger window, and sends the message when it is there. False while answers run (a
    /// reload would end them), or where a reload does not help.
    bool enlargeAndSend();

    // ---- figures for the composer. `done` is called later, or never when the source goes away
    void countTokens(const QString& text, std::function<void(std::int64_t)> done);
    /// What `text` would need as the next message of the shown chat. Call it when the user pauses; not for texts of
    /// more than 256 Ki characters.
    void predict(const QString& text, std::function<void(const api::MeasuredEvent&)> done);

    // ---- one message waits while an answer is written, and is sent when it has ended
    bool queueMessage(const Draft& message); ///< replaces what waited; false when there is no answer to wait for
    bool queueMessage(const QString& text) { return queueMessage(Draft{text, {}}); }
    const Draft& queued() const { return m_current->queued; } ///< empty = none
    Draft takeQueued();                                       ///< to edit it or to drop it
    /// Nothing of the shown chat waits any more, and what waited is where it should be: the database may forget it.
    void forgetWaiting();

    /// Whether the model is asked for a title after the first answer of a chat. A title that the user gave stays.
    void setAutoTitles(bool on);
    /// What is written from now on reaches no file (or, false, does again): its chats are marked.
    void setUnsaved(bool unsaved) { m_unsaved = unsaved; }
    bool autoTitles() const { return m_autoTitles; }

    /// Stops the shown conversation's answer, in whatever stage it is.
    void stop();
    void stop(ConversationId id);

    void handleEvent(const api::Event& event);
    /// Hands collected changes to the views, at most 14 times a second; true when it did.
    bool tick();
    /// Saves the partial text of every running answer; an own timer does it once a second.
    void savePartials();

    /// What the newest answer of the shown chat was asked with, or would be.
    api::DialogPrompt shownPrompt() const;
    /// Rows of the shown conversation that hold tokens [first, first + count) of its newest sequence.
    std::vector<int> rowsOfTokens(std::int64_t first, std::int64_t count) const;

signals:
    void currentChanged();                            ///< another conversation is shown, or its messages arrived
    void stateChanged();                              ///< canSend, answering, title, settings, system prompt
    void contextChanged();                            ///< context() of the shown conversation
    void removed(qint64 conversation, QString title); ///< can be undone
    /// Not saved, so not sent: the composer takes the message back, or the field in which a message was edited.
    void sendFailed(kvscope::ui::Draft message, QString sentence, qint64 edited);
    void messageDeleted(qint64 conversation, qint64 message); ///< can be undone
    void turnStored(qint64 conversation);                     ///< the store has forgotten what its draft was
    void overLong(qint64 conversation);                       ///< there is a tooLong() for the user to decide on
    /// The model that is loaded, again with another window. `numBlocks` 0 = as configured.
    void reloadWanted(qint64 maxModelLen, qint64 numBlocks, bool unloadFirst);
    void storeFailed(QString sentence);                     ///< something later could not be saved
    void lengthChanged(qint64 conversation, qint64 tokens); ///< of its sequence: what its warmth is measured against

private:
    ChatSession* byConversation(ConversationId id) const;
    ChatSession* byKey(std::int64_t key) const;
    ChatSession* byRequest(RequestId id) const;
    ChatSession& add(Conversation conversation);
    void show(ChatSession& s);
    void load(ChatSession& s);
    void forgetIdle();
    void startRequest(ChatSession& s);
    void startTurn(ChatSession& s, const Draft& message, int row);
    ChatMessage emptyAnswer(const ChatSession& s) const;
    void giveWay(ChatSession& s, int row, ChatMessage& version) const;
    void bringBack(ChatSession& s);
    void setId(ChatSession& s, int row, MessageId id);
    void showStored(ChatSession& s, Result<std::vector<ChatMessage>> path);
    void createThenCommit(std::int64_t key, const Draft& message);
    void commitTurn(ChatSession& s, const Draft& message);
    void turnRefused(ChatSession& s, const Draft& message, const Error& error);
    void saveWaiting(ChatSession& s);
    void turnCommitted(ChatSession& s, const ChatStore::TurnIds& ids);
    void answerOpened(ChatSession& s);
    void dropRequest(ChatSession& s);
    void submit(ChatSession& s);
    void sendQueued(ChatSession& s);
    void editAnswer(ChatSession& s, int row, const QString& text);
    void takeOut(ChatSession& s, int row);
    api::DialogPrompt dialogWith(ChatSession& s, const QString& text, int row) const;
    bool surelyFits(ChatSession& s, const QString& text, int row) const;
    /// `edited`: it becomes another version of this message; kNoId = the next message.
    void sendIfItFits(ChatSession& s, const Draft& message, MessageId edited);
    void sendNow(ChatSession& s, const Draft& message, MessageId edited, bool count = false);
    void onMeasured(const api::MeasuredEvent& e);
    void sendAfterReload();
    void findCut();
    void measure(api::Prompt prompt, std::function<void(const api::MeasuredEvent&)> done);
    void wantTitle(ChatSession& s);
    void askTitle();
    void stopTitle();
    void titleFound(const api::Answer& answer);
    void onQueued(const api::QueuedEvent& e);
    void onWaiting(const api::WaitingEvent& e);
    void onPrefill(const api::PrefillEvent& e);
    void onTokens(const api::TokensEvent& e);
    void onFinished(const api::Answer& answer);
    void onModel(const api::ModelInfo* info);
    void showWritten(ChatSession& s, const std::string& bytes, const std::vector<TokenId>& tokens);
    Receipt receiptOf(const api::Answer& answer) const;
    void setLength(ChatSession& s, std::int64_t tokens);
    void endAnswer(ChatSession& s);
    void touch(ChatSession& s, const QString& preview, qint64 used = -1); ///< used: when; -1 = now
    void notePreview(ChatSession& s);
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
    std::vector<std::pair<ConversationId, MessageId>> m_deleted; ///< messages, the last one at the end
    std::int64_t m_contextLimit = 0;
    std::int64_t m_longest = 0; ///< tokens of the longest sequence that window and pool hold; 0 = not known
    std::unordered_map<RequestId, std::function<void(const api::MeasuredEvent&)>> m_counters;
    QString m_modelPath;
    bool m_modelReady = false;
    bool m_trims = false; ///< chats that have outgrown the window are sent without their oldest turns
    bool m_autoTitles = true;
    bool m_unsaved = false;
    RequestId m_titleRequest;    ///< valid while a title is looked for ...
    std::int64_t m_titleKey = 0; ///< ... for this session
    bool m_titleOpensThought = false;
    Nanos m_lastFlush = 0;
    QTimer m_saveTimer;
};

} // namespace kvscope::ui
