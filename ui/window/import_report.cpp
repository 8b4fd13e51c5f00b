// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/import_report.h"

#include <QCoreApplication>
#include <QDialogButtonBox>
#include <QFileInfo>
#include <QLabel>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QVBoxLayout>

#include "ui/models/format.h"
#include "ui/theme/theme.h"

namespace kvscope::ui {
namespace {

QString tr(const char* text) {
    return QCoreApplication::translate("import", text);
}

QString counted(std::int64_t n, const char* one, const char* many) {
    return n == 1 ? tr(one) : tr(many).arg(formatNumber(n));
}

} // namespace

QString importSummary(const ChatStore::ImportReport& report) {
    const auto added = std::int64_t(report.added.size());
    QStringList sentences;
    if (added > 0)
        sentences << tr("%1 with %2 added.")
                         .arg(counted(added, "1 chat", "%1 chats"),
                              counted(report.messages, "1 message", "%1 messages"));
    else
        sentences << tr("No chat was added.");
    if (report.alreadyThere > 0)
        sentences << counted(report.alreadyThere, "1 chat was here already.", "%1 chats were here already.");
    if (report.skippedCount > 0)
        sentences << counted(report.skippedCount,
                             "1 part could not be taken over:", "%1 parts could not be taken over:");
    return sentences.join(QLatin1Char(' '));
}

ImportReportDialog::ImportReportDialog(const ChatStore::ImportReport& report, QWidget* parent) : QDialog(parent) {
    setWindowTitle(QDialog::tr("Import of %1").arg(QFileInfo(report.path).fileName()));
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(24, 20, 24, 16);
    column->setSpacing(12);
    auto* summary = new QLabel(importSummary(report), this);
    summary->setFont(textFont(TextRole::Chat));
    summary->setTextFormat(Qt::PlainText);
    summary->setWordWrap(true);
    column->addWidget(summary);
    if (!report.skipped.empty()) {
        auto* list = new QPlainTextEdit(this);
        list->setReadOnly(true);
        list->setFont(textFont(TextRole::Table));
        QStringList lines;
        for (const ChatStore::Skipped& skipped : report.skipped)
            lines << QStringLiteral("%1: %2").arg(skipped.what, skipped.why);
        if (report.skippedCount > std::int64_t(report.skipped.size()))
            lines << tr("… and %1 more").arg(formatNumber(report.skippedCount - std::int64_t(report.skipped.size())));
        list->setPlainText(lines.join(QLatin1Char('\n')));
        list->setMinimumSize(480, 180);
        column->addWidget(list, 1);
    }
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
    buttons->button(QDialogButtonBox::Close)->setIcon({});
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    column->addWidget(buttons);
    setMinimumWidth(420);
}

} // namespace kvscope::ui
