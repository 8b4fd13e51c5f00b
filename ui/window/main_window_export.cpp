// SPDX-License-Identifier: GPL-3.0-or-later
//
// MainWindow: export and import of chats.
#include <QFileDialog>
#include <QFileInfo>
#include <QPointer>

#include "ui/chat/chat_panel.h"
#include "ui/chat/conversation_panel.h"
#include "ui/models/chat_controller.h"
#include "ui/models/chat_store.h"
#include "ui/models/format.h"
#include "ui/window/import_report.h"
#include "ui/window/main_window.h"

namespace kvscope::ui {
namespace {

QString sentenceOf(const Error& error) {
    return QString::fromStdString(error.message);
}

const std::pair<const char*, ChatStore::ExportFormat> kFormats[] = {{".md", ChatStore::ExportFormat::Markdown},
                                                                    {".html", ChatStore::ExportFormat::Html},
                                                                    {".json", ChatStore::ExportFormat::Json}};

/// A file name out of a title: nothing that a path or a shell could misread.
QString fileNameFrom(const QString& title) {
    QString out;
    for (const QChar c : title.simplified())
        out += c.isLetterOrNumber() || c == QLatin1Char(' ') || c == QLatin1Char('-') || c == QLatin1Char('_')
                   ? c
                   : QChar(QLatin1Char('-'));
    out = out.simplified().left(60).trimmed();
    return out.isEmpty() ? QStringLiteral("chat") : out;
}

} // namespace

// ---- export and import ----

void MainWindow::exportChats(std::vector<std::int64_t> ids) {
    const Conversation* only = ids.size() == 1 ? m_parts.chat.conversations()->find(ids.front()) : nullptr;
    QFileDialog dialog(this, only ? tr("Export this chat") : tr("Export all chats"), m_exportFolder,
                       tr("Markdown (*.md);;HTML page (*.html);;JSON, everything (*.json)"));
    dialog.setAcceptMode(QFileDialog::AcceptSave);
    dialog.setDefaultSuffix(QStringLiteral("md"));
    dialog.selectFile(only ? fileNameFrom(only->title) : QStringLiteral("chats"));
    const auto suffixOf = [](const QString& filter) { return filter.section(QLatin1String("*."), 1).chopped(1); };
    connect(&dialog, &QFileDialog::filterSelected, &dialog,
            [&](const QString& filter) { dialog.setDefaultSuffix(suffixOf(filter)); });
    if (dialog.exec() != QDialog::Accepted || dialog.selectedFiles().isEmpty())
        return;
    const QString path = dialog.selectedFiles().constFirst();
    m_exportFolder = QFileInfo(path).absolutePath();
    // What the name says counts, for it says what the file will be taken for.
    ChatStore::ExportFormat format = ChatStore::ExportFormat::Markdown;
    for (const auto& [suffix, candidate] : kFormats)
        if (path.endsWith(QLatin1StringView(suffix), Qt::CaseInsensitive))
            format = candidate;
    m_parts.store->exportChats(
        ids, format, path, [self = QPointer<MainWindow>(this)](Result<ChatStore::ExportReport> r) {
            if (!self)
                return;
            self->say(r ? tr("Exported: %1, %2")
                              .arg(QFileInfo(r->path).fileName(),
                                   r->conversations == 1
                                       ? tr("1 chat, %1 messages").arg(formatNumber(r->messages))
                                       : tr("%1 chats, %2 messages")
                                             .arg(formatNumber(r->conversations), formatNumber(r->messages)))
                        : sentenceOf(r.error()));
        });
}

void MainWindow::importChats() {
    const QString path = QFileDialog::getOpenFileName(this, tr("Import chats"), m_exportFolder,
                                                      tr("Chats (*.json *.jsonl);;All files (*)"));
    if (path.isEmpty())
        return;
    m_exportFolder = QFileInfo(path).absolutePath();
    m_parts.store->importChats(path, [self = QPointer<MainWindow>(this)](Result<ChatStore::ImportReport> report) {
        if (!self)
            return;
        if (!report)
            return self->say(sentenceOf(report.error()));
        self->m_parts.chat.reloadList();
        // Not exec: this runs inside of the tick that brings words and answers of the store.
        auto* dialog = new ImportReportDialog(*report, self);
        dialog->setAttribute(Qt::WA_DeleteOnClose);
        dialog->open();
    });
}

} // namespace kvscope::ui
