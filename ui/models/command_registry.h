// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QKeySequence>
#include <QList>
#include <QString>
#include <functional>
#include <vector>

namespace kvscope::ui {

/// Something that the window can do, under the one name by which menu, palette and list of keys call it.
struct Command {
    enum class Keys {
        Window, ///< the window binds them
        Widget, ///< the widget that has the focus knows them itself; they are only shown
    };
    QString id;    ///< stable: "chat.new"
    QString title; ///< "New chat"; ends in "…" where it asks for more
    QString group; ///< heading in the list of keys: "Chats"
    QList<QKeySequence> shortcuts;
    QString keysText; ///< shown instead of `shortcuts`: keys that no sequence names ("Arrows")
    Keys keys = Keys::Window;
    std::function<void()> run;     ///< empty: only listed among the keys
    std::function<bool()> enabled; ///< empty = always
    std::function<bool()> checked; ///< empty = it is not a switch
    bool inPalette = true;

    bool isEnabled() const { return run && (!enabled || enabled()); }
};

/// All commands, in the order in which they were added. Thread: GUI.
class CommandRegistry {
public:
    /// Ids are unique, and so is each key that the window binds: a second one is a programming error and aborts.
    void add(Command command);
    const std::vector<Command>& all() const { return m_commands; }
    const Command* find(const QString& id) const;
    /// False = there is none, or it cannot be run now.
    bool run(const QString& id) const;
    QString keysOf(const QString& id) const;

private:
    std::vector<Command> m_commands;
};

/// "Ctrl+N", "Ctrl++, Ctrl+-".
QString keysText(const Command& command);

} // namespace kvscope::ui
