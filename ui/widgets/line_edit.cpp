// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/widgets/line_edit.h"

#include <QCoreApplication>
#include <QGuiApplication>
#include <QInputMethod>
#include <QInputMethodEvent>
#include <QKeyEvent>

namespace kvscope::ui {
namespace {

bool belongsToComposition(int key) {
    switch (key) {
    case Qt::Key_Return:
    case Qt::Key_Enter:
    case Qt::Key_Escape:
    case Qt::Key_Tab:
    case Qt::Key_Backtab:
    case Qt::Key_Left:
    case Qt::Key_Right:
    case Qt::Key_Up:
    case Qt::Key_Down:
    case Qt::Key_PageUp:
    case Qt::Key_PageDown:
    case Qt::Key_Home:
    case Qt::Key_End:
        return true;
    default:
        return false;
    }
}

} // namespace

bool composingKey(QWidget* field, QKeyEvent* event, bool composing) {
    if (!composing || !belongsToComposition(event->key()))
        return false;
    event->accept();
    if (event->type() == QEvent::ShortcutOverride)
        return true;
    if (event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter) {
        QGuiApplication::inputMethod()->commit();
    } else if (event->key() == Qt::Key_Escape) {
        QGuiApplication::inputMethod()->reset();
        QInputMethodEvent nothing;
        QCoreApplication::sendEvent(field, &nothing);
    }
    return true;
}

bool windowKey(QKeyEvent* event) {
    const bool control = event->modifiers() == Qt::ControlModifier;
    const int key = event->key();
    if (!control || (key != Qt::Key_K && key != Qt::Key_E && key != Qt::Key_D))
        return false;
    event->ignore();
    return true;
}

bool LineEdit::event(QEvent* event) {
    if (event->type() == QEvent::ShortcutOverride && windowKey(static_cast<QKeyEvent*>(event)))
        return true;
    if (event->type() == QEvent::ShortcutOverride && composingKey(this, static_cast<QKeyEvent*>(event), m_composing))
        return true;
    // Tab never comes to keyPressEvent: it would move the focus.
    if (event->type() == QEvent::KeyPress && composingKey(this, static_cast<QKeyEvent*>(event), m_composing))
        return true;
    return QLineEdit::event(event);
}

void LineEdit::keyPressEvent(QKeyEvent* event) {
    if (!composingKey(this, event, m_composing))
        QLineEdit::keyPressEvent(event);
}

void LineEdit::inputMethodEvent(QInputMethodEvent* event) {
    m_composing = !event->preeditString().isEmpty();
    QLineEdit::inputMethodEvent(event);
}

void LineEdit::focusOutEvent(QFocusEvent* event) {
    m_composing = false;
    QLineEdit::focusOutEvent(event);
}

} // namespace kvscope::ui
