// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/chat/composer_edit.h"

#include <QInputMethodEvent>
#include <QKeyEvent>
#include <QMimeData>
#include <QTextBlock>
#include <QUrl>
#include <algorithm>

#include "ui/models/attachment.h"
#include "ui/widgets/line_edit.h"

namespace kvscope::ui {
namespace {

constexpr int kLinesAtMost = 8;
constexpr int kLinesAtLeast = 2;

} // namespace

QStringList localFiles(const QMimeData* data) {
    QStringList paths;
    if (data->hasUrls())
        for (const QUrl& url : data->urls())
            if (url.isLocalFile())
                paths << url.toLocalFile();
    return paths;
}

ComposerEdit::ComposerEdit(QWidget* parent) : QPlainTextEdit(parent) {
    setObjectName(QStringLiteral("composerText"));
    setFrameShape(QFrame::NoFrame);
    setPlaceholderText(tr("Write a message"));
    setAccessibleName(tr("Message"));
    setTabChangesFocus(true);
    setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setProperty("kvscopeFocusInside", true);
    document()->setDocumentMargin(0);
}

int ComposerEdit::wantedHeight() const {
    // A plain text document measures its height in lines.
    const int lines = std::clamp(int(document()->size().height()), kLinesAtLeast, kLinesAtMost);
    return lines * fontMetrics().lineSpacing() + 2;
}

QString ComposerEdit::exactText() const {
    return exactTextOf(*document());
}

QString exactTextOf(const QTextDocument& document) {
    QString text = document.toRawText();
    text.replace(QChar(QChar::ParagraphSeparator), QLatin1Char('\n'));
    text.replace(QChar(QChar::LineSeparator), QLatin1Char('\n'));
    return text;
}

bool ComposerEdit::hasWords() const {
    for (QTextBlock block = document()->begin(); block.isValid(); block = block.next()) {
        const QString line = block.text();
        if (std::any_of(line.begin(), line.end(), [](QChar c) { return !c.isSpace(); }))
            return true;
    }
    return false;
}

void ComposerEdit::replaceText(const QString& text) {
    QTextCursor cursor(document());
    cursor.beginEditBlock();
    cursor.select(QTextCursor::Document);
    cursor.insertText(text);
    cursor.endEditBlock();
    cursor.movePosition(QTextCursor::End);
    setTextCursor(cursor);
    ensureCursorVisible();
}

bool ComposerEdit::event(QEvent* event) {
    if (event->type() == QEvent::ShortcutOverride && windowKey(static_cast<QKeyEvent*>(event)))
        return true;
    const bool key = event->type() == QEvent::ShortcutOverride || event->type() == QEvent::KeyPress;
    if (key && composingKey(this, static_cast<QKeyEvent*>(event), m_composing))
        return true;
    return QPlainTextEdit::event(event);
}

void ComposerEdit::keyPressEvent(QKeyEvent* event) {
    const bool enter = event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter;
    if (!enter) {
        QPlainTextEdit::keyPressEvent(event);
        return;
    }
    event->accept();
    if (sends(m_sendKey, event->modifiers())) {
        emit sendRequested();
    } else {
        insertPlainText(QStringLiteral("\n"));
        ensureCursorVisible();
    }
}

void ComposerEdit::inputMethodEvent(QInputMethodEvent* event) {
    m_composing = !event->preeditString().isEmpty();
    QPlainTextEdit::inputMethodEvent(event);
}

void ComposerEdit::focusInEvent(QFocusEvent* event) {
    QPlainTextEdit::focusInEvent(event);
    emit focusChanged(true);
}

void ComposerEdit::focusOutEvent(QFocusEvent* event) {
    m_composing = false;
    QPlainTextEdit::focusOutEvent(event);
    emit focusChanged(false);
}

bool ComposerEdit::canInsertFromMimeData(const QMimeData* source) const {
    return source->hasText() || !localFiles(source).isEmpty();
}

void ComposerEdit::insertFromMimeData(const QMimeData* source) {
    const QStringList files = localFiles(source);
    if (!files.isEmpty()) {
        emit filesOffered(files);
        return;
    }
    const QString text = source->text();
    if (isLargePaste(text) || document()->characterCount() + text.size() > 4 * kLongestTyped) {
        emit largePasteOffered(text);
        return;
    }
    insertPlainText(text);
    ensureCursorVisible();
}

} // namespace kvscope::ui
