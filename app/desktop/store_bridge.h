// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <functional>
#include <unordered_map>

#include "engine/store/store_thread.h"
#include "ui/models/chat_store.h"

namespace kvscope::desktop {

/// The window's ChatStore over the store's thread: translates rows, and matches answers with the calls that wait for
/// them. `drain` is called once per frame.
class StoreBridge final : public QObject, public ui::ChatStore {
    Q_OBJECT
public:
    explicit StoreBridge(store::StoreThread& thread, QObject* parent = nullptr);

    void drain();
    bool waiting() const { return !m_waiting.empty(); }
    /// Fingerprint of the loaded model: token ids are kept under it.
    void setTokenizer(std::string fingerprint) { m_tokenizer = std::move(fingerprint); }
    /// An event of the run without a window's waiting for it: a fault, a changed model file.
    void noteEvent(const std::string& kind, const std::string& detailJson);

    void listConversations(Done<std::vector<ui::Conversation>> done) override;
    void loadMessages(ui::ConversationId conversation, Done<std::vector<ui::ChatMessage>> done) override;
    void createConversation(const ui::Conversation& conversation, Done<ui::ConversationId> done) override;
    void renameConversation(ui::ConversationId conversation, const QString& title, Done<void> done) override;
    void setSystemPrompt(ui::ConversationId conversation, const QString& prompt, Done<void> done) override;
    void setSettings(ui::ConversationId conversation, const api::SamplingParams& settings, Done<void> done) override;
    void deleteConversation(ui::ConversationId conversation, Done<void> done) override;
    void restoreConversation(ui::ConversationId conversation, Done<void> done) override;
    void addTurn(const NewTurn& turn, Done<TurnIds> done) override;
    void saveProgress(const ui::ChatMessage& answer, Done<void> done) override;
    void endAnswer(const ui::ChatMessage& answer, Done<void> done) override;

signals:
    /// The storage refuses writes; they wait and are tried again. An empty sentence: it is over.
    void trouble(const QString& path, const QString& sentence, int waitingWrites);
    void recovered(int interruptedAnswers);

private:
    using Finish = std::function<void(Result<store::StoreEvent>)>;
    void wait(store::JobId job, Finish finish);
    void waitDone(store::JobId job, Done<void> done);
    void settle(store::JobId job, Result<store::StoreEvent> result);
    void take(store::StoreEvent event);

    store::StoreThread& m_thread;
    std::unordered_map<store::JobId, Finish> m_waiting;
    std::string m_tokenizer;
};

} // namespace kvscope::desktop
