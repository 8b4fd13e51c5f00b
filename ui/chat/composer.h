// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QFrame>
#include <QPlainTextEdit>

#include "ui/theme/apply_theme.h"

class QLabel;

namespace kvscope::ui {

class Button;

/// The text field of the composer: Enter sends, Shift+Enter begins a line. While an input method composes, Enter
/// belongs to it: the text under composition is taken over and nothing is sent.
class ComposerEdit final : public QPlainTextEdit {
    Q_OBJECT
public:
    explicit ComposerEdit(QWidget* parent = nullptr);
    /// Height of the text between one and eight lines.
    int wantedHeight() const;

signals:
    void sendRequested();
    void focusChanged(bool focused);

protected:
    void keyPressEvent(QKeyEvent* event) override;
    void inputMethodEvent(QInputMethodEvent* event) override;
    void focusInEvent(QFocusEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;

private:
    bool m_composing = false;
};

/// Where messages are written. The ring goes around the whole box.
class Composer final : public QFrame, public Themed {
    Q_OBJECT
public:
    explicit Composer(const Theme& theme, QWidget* parent = nullptr);

    ComposerEdit* edit() const { return m_edit; }
    QString text() const { return m_edit->toPlainText(); }
    void setText(const QString& text);
    void clear() { m_edit->clear(); }
    /// `canSend`: a message would be taken; `answering`: the button stops instead; `hint`: why nothing can be sent.
    void setState(bool canSend, bool answering, const QString& hint);
    void setTextSize(int pixels);
    void setTheme(const Theme& theme) override;

signals:
    void sendRequested();
    void stopRequested();

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    void updateHeight();
    void updateButton();

    Theme m_theme;
    ComposerEdit* m_edit;
    QLabel* m_hint;
    Button* m_button;
    bool m_canSend = false, m_answering = false;
};

} // namespace kvscope::ui
