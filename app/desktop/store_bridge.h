// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QThreadPool>
#include <atomic>
#include <functional>
#include <memory>
#include <unordered_map>

#include "engine/store/store_thread.h"
#include "ui/models/chat_store.h"

namespace kvscope::desktop {

/// The window's ChatStore over the store's thread: translates rows, and matches answers with the calls that wait for
/// them. `drain` is called once per frame.
class StoreBridge final : public QObject, public ui::ChatStore {
    Q_OBJECT
public:
    using Id = ui::ConversationId;
    using Messages = std::vector<ui::ChatMessage>;

    explicit StoreBridge(store::StoreThread& thread, QObject* parent = nullptr);
    ~StoreBridge() override;

    void drain();
    bool waiting() const { return !m_waiting.empty(); }
    /// Fingerprint of the loaded model: token ids are kept under it.
    void setTokenizer(std::string fingerprint) { m_tokenizer = std::move(fingerprint); }
    /// An event of the run without a window's waiting for it: a fault, a changed model file.
    void noteEvent(const std::string& kind, const std::string& detailJson);

    // What a window offers while there is trouble.
    void retry() { m_thread.retry(); }
    void openOther(const QString& path) { m_thread.openOther(path.toStdString()); }
    void continueWithoutSaving() { m_thread.continueInMemory(); }
    /// Going on without saving: what is written reaches no file.
    bool inMemory() const { return m_inMemory; }

    /// The model files that were loaded before, with the template chosen for each.
    void listModels(Done<std::vector<store::StoredModel>> done);
    void listConversations(Done<std::vector<ui::Conversation>> done) override;
    void loadMessages(Id conversation, Done<Messages> done) override;
    void createConversation(const ui::Conversation& conversation, Done<Id> done) override;
    void renameConversation(Id conversation, const QString& title, Done<void> done) override;
    void setAutomaticTitle(Id conversation, const QString& title, Done<void> done) override;
    void setSystemPrompt(Id conversation, const QString& prompt, Done<void> done) override;
    void setSettings(Id conversation, const api::SamplingParams& settings, Done<void> done) override;
    void deleteConversation(Id conversation, Done<void> done) override;
    void restoreConversation(Id conversation, Done<void> done) override;
    void duplicateConversation(Id conversation, const QString& title, Done<ui::Conversation> done) override;
    void branchConversation(Id conversation, ui::MessageId last, const QString& title,
                            Done<ui::Conversation> done) override;
    void saveDraft(Id conversation, const QString& text, const std::vector<ui::Attachment>& attachments) override;
    void saveWaiting(Id conversation, const QString& text, const std::vector<ui::Attachment>& attachments,
                     Done<void> done) override;
    void loadNewDraft(Done<std::pair<QString, std::vector<ui::Attachment>>> done) override;
    void addTurn(const NewTurn& turn, Done<TurnIds> done) override;
    void addAnswer(const NewAnswer& answer, Done<ui::MessageId> done) override;
    void addMessage(const NewMessage& message, Done<ui::MessageId> done) override;
    void saveProgress(const ui::ChatMessage& answer, Done<void> done) override;
    void endAnswer(const ui::ChatMessage& answer, Done<void> done) override;
    void reopenAnswer(ui::MessageId answer, Done<void> done) override;
    void showVersion(Id conversation, ui::MessageId message, Done<Messages> done) override;
    void deleteMessage(Id conversation, ui::MessageId message, Done<Messages> done) override;
    void restoreMessage(Id conversation, ui::MessageId message, Done<Messages> done) override;
    void search(const QString& query, int mostHits, Done<SearchResult> done) override;
    void listPresets(Done<std::vector<Preset>> done) override;
    void savePreset(const Preset& preset, Done<std::int64_t> done) override;
    void deletePreset(std::int64_t preset, Done<void> done) override;
    void exportChats(const std::vector<Id>& conversations, ExportFormat format, const QString& path,
                     Done<ExportReport> done) override;
    void importChats(const QString& path, Done<ImportReport> done) override;
    void backUp(const QString& path, Done<void> done) override;
    void restoreBackup(const QString& path, Done<QString> done) override;

signals:
    /// The storage refuses writes, or (reason None) takes them again.
    void trouble(const ui::StoreTrouble& trouble);
    void opened(const QString& path); ///< the database in this file, and not one in memory
    /// Another database, or the same one anew, has taken the place of the one before: everything shown is read again.
    /// `inMemory`: the user goes on without saving. `sameChats`: ids that were known before mean the same chats.
    void reopened(const QString& path, bool inMemory, bool sameChats);
    void recovered(int interruptedAnswers);

private:
    using Finish = std::function<void(Result<store::StoreEvent>)>;
    void wait(store::JobId job, Finish finish);
    void waitDone(store::JobId job, Done<void> done);
    void settle(store::JobId job, Result<store::StoreEvent> result);
    void take(store::StoreEvent event);
    struct Export;
    struct Import;
    void exportNext(const std::shared_ptr<Export>& job);
    void takeBatch(const std::shared_ptr<Import>& job,
                   std::vector<std::pair<store::ConversationContent, std::string>> batch);
    void endImport(const std::shared_ptr<Import>& job);
    void takeOpened(const store::OpenedEvent& opened);

    store::StoreThread& m_thread;
    std::unordered_map<store::JobId, Finish> m_waiting;
    std::unordered_map<ui::MessageId, store::RemovedMessage> m_removed; ///< since the program started
    std::string m_tokenizer;
    bool m_opened = false; ///< the first OpenedEvent has come
    bool m_inMemory = false;
    std::atomic<bool> m_ending{false}; ///< tells readers of files to stop
    QThreadPool m_files;               ///< reads and writes files of conversations; waited for at the end
};

} // namespace kvscope::desktop
