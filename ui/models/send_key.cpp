// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/send_key.h"

#include <QCoreApplication>

namespace kvscope::ui {
namespace {

QString tr(const char* text) {
    return QCoreApplication::translate("keys", text);
}

} // namespace

bool sends(SendKey key, Qt::KeyboardModifiers modifiers) {
    const auto held = modifiers & (Qt::ShiftModifier | Qt::ControlModifier | Qt::AltModifier | Qt::MetaModifier);
    switch (key) {
    case SendKey::Enter:
        // Ctrl+Enter sends as well: it begins a line nowhere, and many are used to it.
        return held == Qt::NoModifier || held == Qt::ControlModifier;
    case SendKey::ShiftEnter:
        return held == Qt::ShiftModifier;
    case SendKey::CtrlEnter:
        return held == Qt::ControlModifier;
    }
    return false;
}

QString sendKeyText(SendKey key) {
    return key == SendKey::Enter ? tr("Enter") : key == SendKey::ShiftEnter ? tr("Shift+Enter") : tr("Ctrl+Enter");
}

QString newLineKeyText(SendKey key) {
    return key == SendKey::Enter ? tr("Shift+Enter") : tr("Enter");
}

QString sendKeyName(SendKey key) {
    return key == SendKey::Enter        ? QStringLiteral("enter")
           : key == SendKey::ShiftEnter ? QStringLiteral("shift-enter")
                                        : QStringLiteral("ctrl-enter");
}

SendKey sendKeyFrom(const QString& name) {
    for (const SendKey key : {SendKey::ShiftEnter, SendKey::CtrlEnter})
        if (name == sendKeyName(key))
            return key;
    return SendKey::Enter;
}

} // namespace kvscope::ui
