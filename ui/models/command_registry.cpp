// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/command_registry.h"

#include <QStringList>
#include <algorithm>

namespace kvscope::ui {

void CommandRegistry::add(Command command) {
    for (const Command& known : m_commands) {
        if (known.id == command.id)
            qFatal("two commands are called %s", qPrintable(command.id));
        if (known.keys == Command::Keys::Widget || command.keys == Command::Keys::Widget)
            continue;
        for (const QKeySequence& keys : command.shortcuts)
            if (known.shortcuts.contains(keys))
                qFatal("%s and %s have the same key", qPrintable(known.id), qPrintable(command.id));
    }
    m_commands.push_back(std::move(command));
}

const Command* CommandRegistry::find(const QString& id) const {
    const auto it = std::find_if(m_commands.begin(), m_commands.end(), [&](const Command& c) { return c.id == id; });
    return it == m_commands.end() ? nullptr : &*it;
}

bool CommandRegistry::run(const QString& id) const {
    const Command* command = find(id);
    if (!command || !command->isEnabled())
        return false;
    const auto action = command->run; // what it does may change the list
    action();
    return true;
}

QString CommandRegistry::keysOf(const QString& id) const {
    const Command* command = find(id);
    return command ? keysText(*command) : QString();
}

QString keysText(const Command& command) {
    if (!command.keysText.isEmpty())
        return command.keysText;
    QStringList words;
    for (const QKeySequence& keys : command.shortcuts)
        words << keys.toString(QKeySequence::NativeText);
    return words.join(QStringLiteral(", "));
}

} // namespace kvscope::ui
