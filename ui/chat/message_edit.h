// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QFrame>
#include <QPlainTextEdit>

#include "ui/theme/apply_theme.h"

namespace kvscope::ui {

class Button;

/// The text field of an edit in place. Ctrl+Enter takes the text, Esc leaves; while an input method composes, both keys
/// belong to it.
class MessageEditField final : public QPlainTextEdit {
    Q_OBJECT
public:
    explicit MessageEditField(QWidget* parent);

signals:
    void accepted();
    void cancelled();

protected:
    void keyPressEvent(QKeyEvent* event) override;
    void inputMethodEvent(QInputMethodEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;
    bool event(QEvent* event) override;

private:
    bool m_composing = false;
};

/// Stands in the place of a message while its text is edited.
class MessageEdit final : public QFrame, public Themed {
    Q_OBJECT
public:
    /// `question`: a message of the user, whose edit is sent again; else an answer, whose wording is kept.
    MessageEdit(const QString& text, bool question, int textPixels, const Theme& theme, QWidget* parent);
    MessageEditField* field() const { return m_field; }
    QString text() const;
    int wantedHeight(int width) const;
    /// A message with attachments needs no words.
    void setMayBeEmpty(bool may);
    void setTheme(const Theme& theme) override;

signals:
    void accepted();
    void cancelled();
    void heightChanged();

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    void updateButton();

    Theme m_theme;
    bool m_mayBeEmpty = false;
    MessageEditField* m_field;
    Button* m_cancel;
    Button* m_accept;
};

} // namespace kvscope::ui
