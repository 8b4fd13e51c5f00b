// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <Qt>

namespace kvscope::ui {

/// Which key sends a message; the other ones begin a line.
enum class SendKey { Enter, ShiftEnter, CtrlEnter };

/// Does Enter with these modifiers send?
bool sends(SendKey key, Qt::KeyboardModifiers modifiers);
QString sendKeyText(SendKey key);         ///< "Enter", "Shift+Enter", "Ctrl+Enter"
QString newLineKeyText(SendKey key);      ///< what begins a line then
QString sendKeyName(SendKey key);         ///< as the settings file has it
SendKey sendKeyFrom(const QString& name); ///< Enter for anything unknown

} // namespace kvscope::ui
