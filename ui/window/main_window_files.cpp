// SPDX-License-Identifier: GPL-3.0-or-later
//
// MainWindow: what has to do with the store: search, drafts, duplicates, backup.
#include <QDateTime>
#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QMessageBox>
#include <QPointer>
#include <QPushButton>

#include "ui/chat/chat_panel.h"
#include "ui/chat/chat_view.h"
#include "ui/chat/conversation_panel.h"
#include "ui/models/chat_controller.h"
#include "ui/models/chat_store.h"
#include "ui/models/format.h"
#include "ui/models/preset_model.h"
#include "ui/models/search_model.h"
#include "ui/window/main_window.h"

namespace kvscope::ui {
namespace {

QString sentenceOf(const Error& error) {
    return QString::fromStdString(error.message);
}

SearchModel::Found rowsOf(const ChatStore::SearchResult& result, const ConversationListModel& list) {
    SearchModel::Found found;
    found.conversations = result.conversations;
    for (const ChatStore::SearchHit& hit : result.hits) {
        SearchHit row;
        row.conversation = hit.conversation;
        row.message = hit.message;
        row.count = hit.count;
        row.snippet = hit.message == kNoId ? QString() : hit.snippet;
        row.title = hit.message == kNoId ? hit.snippet : QString();
        if (const Conversation* known = list.find(hit.conversation)) {
            row.title = known->title;
            row.updatedMs = known->updatedMs;
            if (hit.message == kNoId)
                row.snippet = known->preview;
        }
        found.hits.push_back(std::move(row));
    }
    return found;
}

} // namespace

// ---- search ----

void MainWindow::connectStore() {
    if (!m_parts.store)
        return;
    m_search->setSource([this](const QString& query, int mostHits, SearchModel::Answer answer) {
        m_parts.store->search(
            query, mostHits,
            [self = QPointer<MainWindow>(this), answer = std::move(answer)](Result<ChatStore::SearchResult> result) {
                if (!self)
                    return;
                if (!result)
                    answer(tl::unexpected(result.error()));
                else if (!result->superseded)
                    answer(rowsOf(*result, *self->m_parts.chat.conversations()));
            });
    });
    connect(m_chatPanel, &ChatPanel::draftChanged, this,
            [this](qint64 id, const Draft& draft) { m_parts.store->saveDraft(id, draft.text, draft.attachments); });
    connect(m_side, &ConversationPanel::duplicateRequested, this, &MainWindow::duplicate);
    connect(m_side, &ConversationPanel::exportRequested, this, [this](qint64 id) { exportChats({id}); });
}

/// Presets and the draft of the chat that has no message yet; once the program is up.
void MainWindow::loadFromStore() {
    if (!m_parts.store)
        return;
    m_presets->load();
    m_parts.store->loadNewDraft(
        [self = QPointer<MainWindow>(this)](Result<std::pair<QString, std::vector<Attachment>>> draft) {
            if (self && draft)
                self->m_chatPanel->setNewDraft({draft->first, draft->second});
        });
}

void MainWindow::showHit(qint64 conversation, qint64 message, const QString& query) {
    showSideOverlay(false);
    m_pendingHit = {conversation, message, query, false};
    if (m_parts.chat.current().conversation.id == conversation)
        showPendingHit();
    else
        m_parts.chat.select(conversation);
}

void MainWindow::showPendingHit() {
    const ChatSession& session = m_parts.chat.current();
    if (m_pendingHit.conversation == kNoId || session.conversation.id != m_pendingHit.conversation || !session.loaded ||
        (m_pendingHit.asked && session.changing))
        return;
    const auto hit = std::exchange(m_pendingHit, {});
    for (int row = 0; row < session.model->size(); ++row) {
        const ChatMessage& message = session.model->at(row);
        if (hit.message == kNoId || message.id != hit.message)
            continue;
        const auto ranges = foundRanges(message.text, hit.query);
        // Found in what is attached, the message is shown and nothing of its text is lit.
        m_chatPanel->view()->setLitText(
            row, ranges.empty() ? TextRange{} : TextRange{int(ranges.front().first), int(ranges.front().second)});
        return;
    }
    if (hit.message == kNoId || hit.asked || !m_parts.chat.canChange())
        return;
    m_pendingHit = hit; // it stands in another version: that is shown first
    m_pendingHit.asked = true;
    if (!m_parts.chat.showMessage(hit.message))
        m_pendingHit = {};
}

void MainWindow::duplicate(qint64 id) {
    const Conversation* known = m_parts.chat.conversations()->find(id);
    if (!known)
        return;
    m_parts.store->duplicateConversation(
        id, tr("%1 (copy)").arg(known->title), [self = QPointer<MainWindow>(this)](Result<Conversation> copy) {
            if (!self)
                return;
            if (!copy)
                return self->say(sentenceOf(copy.error()));
            self->m_parts.chat.conversations()->put(*copy, QDateTime::currentMSecsSinceEpoch());
            self->m_parts.chat.select(copy->id);
        });
}

// ---- backup ----

void MainWindow::backUp() {
    const QString proposed =
        QDir(m_exportFolder).filePath(tr("kvscope-%1.db").arg(QDate::currentDate().toString(Qt::ISODate)));
    const QString path = QFileDialog::getSaveFileName(this, tr("Back up all chats"), proposed, tr("Databases (*.db)"));
    if (path.isEmpty())
        return;
    m_exportFolder = QFileInfo(path).absolutePath();
    m_parts.store->backUp(path, [self = QPointer<MainWindow>(this), path](Result<void> done) {
        if (!self)
            return;
        self->say(done ? tr("Backed up: %1, %2")
                             .arg(QFileInfo(path).fileName(), formatBytes(std::uint64_t(QFileInfo(path).size())))
                       : sentenceOf(done.error()));
    });
}

void MainWindow::restoreBackup() {
    const QString path = QFileDialog::getOpenFileName(this, tr("Restore a backup"), m_exportFolder,
                                                      tr("Databases (*.db *.bak);;All files (*)"));
    if (path.isEmpty())
        return;
    QMessageBox box(QMessageBox::Question, tr("Restore a backup"),
                    tr("All chats are replaced by those of %1. The present ones are kept in a file beside it.")
                        .arg(QFileInfo(path).fileName()),
                    QMessageBox::Cancel, this);
    box.setTextFormat(Qt::PlainText);
    QPushButton* restore = box.addButton(tr("Restore"), QMessageBox::AcceptRole);
    box.exec();
    if (box.clickedButton() != restore)
        return;
    m_parts.store->restoreBackup(path, [self = QPointer<MainWindow>(this)](Result<QString> kept) {
        if (!self)
            return;
        if (!kept)
            return self->say(sentenceOf(kept.error()));
        self->m_presets->load();
        self->say(kept->isEmpty() ? tr("Restored.") : tr("Restored. The chats from before are in %1").arg(*kept));
    });
}

} // namespace kvscope::ui
