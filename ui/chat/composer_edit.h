// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QPlainTextEdit>
#include <QStringList>

#include "ui/models/send_key.h"

namespace kvscope::ui {

/// A text field for messages: one key sends, the others begin a line. While an input method composes, its keys are its
/// own: nothing is sent. What is too large to be laid out at once is handed on instead of being inserted, and so are
/// files.
class ComposerEdit final : public QPlainTextEdit {
    Q_OBJECT
public:
    explicit ComposerEdit(QWidget* parent = nullptr);
    /// Height of the text between two and eight lines.
    int wantedHeight() const;
    void setSendKey(SendKey key) { m_sendKey = key; }
    SendKey sendKey() const { return m_sendKey; }
    bool composing() const { return m_composing; }
    QString exactText() const; ///< see exactTextOf
    bool hasWords() const;     ///< anything but spaces and empty lines
    /// Replaces the text as one step that Undo takes back.
    void replaceText(const QString& text);

signals:
    void sendRequested();
    void focusChanged(bool focused);
    void filesOffered(const QStringList& paths);
    void largePasteOffered(const QString& text);

protected:
    bool event(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void inputMethodEvent(QInputMethodEvent* event) override;
    void focusInEvent(QFocusEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;
    bool canInsertFromMimeData(const QMimeData* source) const override;
    void insertFromMimeData(const QMimeData* source) override;

private:
    SendKey m_sendKey = SendKey::Enter;
    bool m_composing = false;
};

/// The text to the last character: toPlainText turns spaces that do not break into ones that do.
QString exactTextOf(const QTextDocument& document);

/// Files of this machine among what is pasted or dropped.
QStringList localFiles(const QMimeData* data);

} // namespace kvscope::ui
