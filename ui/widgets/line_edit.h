// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QLineEdit>

class QKeyEvent;

namespace kvscope::ui {

/// While an input method composes, its keys are its own: Enter takes the composed text over (nothing is sent, renamed
/// or searched), Esc throws it away, arrows choose among candidates. Call it first in `keyPressEvent` and, with a
/// ShortcutOverride, in `event`. True = the key has been dealt with.
bool composingKey(QWidget* field, QKeyEvent* event, bool composing);

/// Keys that are the window's even while a text field has the focus, though Qt would edit with them (Ctrl+K deletes to
/// the end of the line in its X11 bindings). Call it with a ShortcutOverride in `event`; true = leave it alone.
bool windowKey(QKeyEvent* event);

/// One line of text that leaves these keys to the input method.
class LineEdit : public QLineEdit {
    Q_OBJECT
public:
    explicit LineEdit(QWidget* parent = nullptr) : QLineEdit(parent) {}
    bool composing() const { return m_composing; }

protected:
    bool event(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void inputMethodEvent(QInputMethodEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;

private:
    bool m_composing = false;
};

} // namespace kvscope::ui
