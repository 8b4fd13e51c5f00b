// SPDX-License-Identifier: GPL-3.0-or-later
//
// MainWindow: everything it can do, each under one name. Shortcuts, menu, palette and the list of keys are made from
// these commands.
#include <QMenu>
#include <QSettings>
#include <QShortcut>
#include <algorithm>

#include "ui/chat/chat_panel.h"
#include "ui/chat/chat_view.h"
#include "ui/chat/composer.h"
#include "ui/chat/conversation_panel.h"
#include "ui/models/chat_controller.h"
#include "ui/window/appearance.h"
#include "ui/window/command_palette.h"
#include "ui/window/dock_area.h"
#include "ui/window/key_list.h"
#include "ui/window/main_window.h"
#include "ui/window/top_bar.h"

namespace kvscope::ui {
namespace {

constexpr char kTitlesSetting[] = "chats/titlesByModel";

QKeySequence ctrl(Qt::Key key) {
    return QKeySequence(QKeyCombination(Qt::CTRL, key));
}
QKeySequence ctrlShift(Qt::Key key) {
    return QKeySequence(QKeyCombination(Qt::CTRL | Qt::SHIFT, key));
}

/// The upper part of the menu: ids of commands, empty = a line.
const QStringList& menuEntries() {
    static const QStringList kEntries = {
        QStringLiteral("help.palette"),
        QString(),
        QStringLiteral("chat.new"),
        QStringLiteral("chat.duplicate"),
        QStringLiteral("chat.undo"),
        QStringLiteral("chat.export"),
        QStringLiteral("chat.exportAll"),
        QStringLiteral("chat.import"),
        QStringLiteral("chat.titles"),
        QStringLiteral("store.backup"),
        QStringLiteral("store.restore"),
        QString(),
        QStringLiteral("model.open"),
        QStringLiteral("session.save"),
        QString(),
    };
    return kEntries;
}

} // namespace

void MainWindow::buildCommands() {
    addChatCommands();
    addMessageCommands();
    addViewCommands();
    addProgramCommands();
    addListedKeys();
}

void MainWindow::addChatCommands() {
    const QString group = tr("Chats");
    const auto add = [&](const char* id, const QString& title, const QList<QKeySequence>& keys,
                         std::function<void()> run, std::function<bool()> enabled = {}) {
        Command command;
        command.id = QLatin1StringView(id);
        command.title = title;
        command.group = group;
        command.shortcuts = keys;
        command.run = std::move(run);
        command.enabled = std::move(enabled);
        m_commands.add(std::move(command));
    };
    const auto stored = [this] { return m_parts.chat.current().conversation.id != kNoId; };
    const auto hasStore = [this] { return m_parts.store != nullptr; };
    const auto both = [stored, hasStore] { return stored() && hasStore(); };
    add("chat.new", tr("New chat"), {ctrl(Qt::Key_N)}, [this] {
        m_parts.chat.newConversation();
        m_chatPanel->composer()->edit()->setFocus();
    });
    add(
        "chat.search", tr("Search in all chats"), {ctrl(Qt::Key_F), ctrlShift(Qt::Key_F)}, [this] { focusSearch(); },
        hasStore);
    add("chat.next", tr("Next chat"), {ctrl(Qt::Key_PageDown)}, [this] { stepConversation(1); });
    add("chat.previous", tr("Previous chat"), {ctrl(Qt::Key_PageUp)}, [this] { stepConversation(-1); });
    add(
        "chat.rename", tr("Rename this chat"), {QKeySequence(Qt::Key_F2)},
        [this] { emit m_chatPanel->renameRequested(); }, stored);
    add(
        "chat.duplicate", tr("Duplicate this chat"), {ctrl(Qt::Key_D)},
        [this] { emit m_side->duplicateRequested(m_parts.chat.current().conversation.id); }, both);
    add(
        "chat.delete", tr("Delete this chat"), {}, [this] { emit m_chatPanel->deleteRequested(); }, stored);
    add(
        "chat.undo", tr("Bring the deleted chat back"), {QKeySequence(QKeyCombination(Qt::CTRL | Qt::ALT, Qt::Key_Z))},
        [this] { undoRemove(); }, [this] { return !m_removed.empty(); });
    add("chat.settings", tr("Settings and presets of this chat"), {ctrl(Qt::Key_Comma)},
        [this] { m_chatPanel->showSettings(); });
    add(
        "chat.export", tr("Export this chat…"), {ctrl(Qt::Key_E)},
        [this] { exportChats({m_parts.chat.current().conversation.id}); }, both);
    add(
        "chat.exportAll", tr("Export all chats…"), {}, [this] { exportChats({}); }, hasStore);
    add(
        "chat.import", tr("Import chats…"), {}, [this] { importChats(); }, hasStore);
    addTitleCommand(group);
    add(
        "store.backup", tr("Back up all chats…"), {}, [this] { backUp(); }, hasStore);
    add(
        "store.restore", tr("Restore a backup…"), {}, [this] { restoreBackup(); }, hasStore);
}

void MainWindow::addTitleCommand(const QString& group) {
    const QString key = QLatin1StringView(kTitlesSetting);
    m_parts.chat.setAutoTitles(m_parts.settings.value(key, m_parts.chat.autoTitles()).toBool());
    Command command;
    command.id = QStringLiteral("chat.titles");
    command.title = tr("Titles written by the model");
    command.group = group;
    command.run = [this, key] {
        m_parts.chat.setAutoTitles(!m_parts.chat.autoTitles());
        m_parts.settings.setValue(key, m_parts.chat.autoTitles());
    };
    command.checked = [this] { return m_parts.chat.autoTitles(); };
    m_commands.add(std::move(command));
}

void MainWindow::addMessageCommands() {
    const auto add = [&](const char* id, const QString& title, const QList<QKeySequence>& keys,
                         std::function<void()> run, std::function<bool()> enabled = {}, const QString& text = {}) {
        Command command;
        command.id = QLatin1StringView(id);
        command.title = title;
        command.group = tr("Writing");
        command.shortcuts = keys;
        command.keysText = text;
        command.run = std::move(run);
        command.enabled = std::move(enabled);
        m_commands.add(std::move(command));
    };
    add("message.focus", tr("To the message field"), {ctrl(Qt::Key_L)},
        [this] { m_chatPanel->composer()->edit()->setFocus(); });
    add("message.attach", tr("Attach text files…"), {ctrlShift(Qt::Key_A)}, [this] { m_chatPanel->chooseFiles(); });
    add(
        "message.stop", tr("Stop the answer"), {}, [this] { m_parts.chat.stop(); },
        [this] { return m_parts.chat.answering(); }, tr("Esc"));
    add("message.tokens", tr("Show the tokens of the newest prompt"), {}, [this] { showPromptTokens(); });
    for (const SendKey key : {SendKey::Enter, SendKey::ShiftEnter, SendKey::CtrlEnter}) {
        Command command;
        command.id = QStringLiteral("sendkey.") + sendKeyName(key);
        command.title = tr("Send with %1").arg(sendKeyText(key));
        command.group = tr("Key that sends");
        command.run = [this, key] { m_parts.appearance.setSendKey(key); };
        command.checked = [this, key] { return m_parts.appearance.sendKey() == key; };
        m_commands.add(std::move(command));
    }
}

void MainWindow::addViewCommands() {
    Appearance& look = m_parts.appearance;
    const auto add = [&](const QString& id, const QString& title, const QString& group, const QList<QKeySequence>& keys,
                         std::function<void()> run, std::function<bool()> checked = {}) {
        Command command;
        command.id = id;
        command.title = title;
        command.group = group;
        command.shortcuts = keys;
        command.run = std::move(run);
        command.checked = std::move(checked);
        m_commands.add(std::move(command));
    };
    const QString window = tr("Window"), theme = tr("Theme"), text = tr("Text size"), panels = tr("Panels");
    add(QStringLiteral("view.side"), tr("Show or hide the chats"), window, {ctrl(Qt::Key_B)}, [this] { toggleSide(); });
    add(QStringLiteral("workspace.chat"), tr("Workspace Chat"), window, {ctrl(Qt::Key_1)},
        [this] { setWorkspace(TopBar::Chat); });
    add(QStringLiteral("workspace.observe"), tr("Workspace Observe"), window, {ctrl(Qt::Key_2)},
        [this] { setWorkspace(TopBar::Observe); });
    add(QStringLiteral("view.nextPane"), tr("To the next part of the window"), window, {QKeySequence(Qt::Key_F6)},
        [this] { stepPane(1); });
    add(QStringLiteral("view.previousPane"), tr("To the previous part of the window"), window,
        {QKeySequence(QKeyCombination(Qt::SHIFT, Qt::Key_F6))}, [this] { stepPane(-1); });
    const std::tuple<const char*, QString, ThemeChoice> themes[] = {
        {"theme.system", tr("Theme as the desktop"), ThemeChoice::System},
        {"theme.light", tr("Light theme"), ThemeChoice::Light},
        {"theme.dark", tr("Dark theme"), ThemeChoice::Dark}};
    for (const auto& [id, title, choice] : themes)
        add(
            QLatin1StringView(id), title, theme, {}, [&look, choice = choice] { look.setChoice(choice); },
            [&look, choice = choice] { return look.choice() == choice; });
    add(QStringLiteral("text.larger"), tr("Larger text"), text,
        {QKeySequence(Qt::CTRL | Qt::Key_Plus), ctrl(Qt::Key_Equal)},
        [&look] { look.setTextSize(look.textSize() + 1); });
    add(QStringLiteral("text.smaller"), tr("Smaller text"), text, {ctrl(Qt::Key_Minus)},
        [&look] { look.setTextSize(look.textSize() - 1); });
    add(QStringLiteral("text.normal"), tr("Normal text size"), text, {ctrl(Qt::Key_0)},
        [&look] { look.setTextSize(Appearance::kNormalText); });
    const QStringList ids = m_docks->panelIds(), names = m_docks->panelNames();
    for (qsizetype i = 0; i < ids.size(); ++i)
        add(
            QStringLiteral("panel.") + ids[i], tr("Panel %1").arg(names[i]), panels, {},
            [this, id = ids[i]] { m_docks->setShown(id, !m_docks->isShown(id)); },
            [this, id = ids[i]] { return m_docks->isShown(id); });
    add(QStringLiteral("layout.reset"), tr("Reset layout"), window, {}, [this] { resetLayout(); });
}

void MainWindow::addProgramCommands() {
    const auto add = [&](const char* id, const QString& title, const QString& group, const QList<QKeySequence>& keys,
                         std::function<void()> run, bool inPalette = true) {
        Command command;
        command.id = QLatin1StringView(id);
        command.title = title;
        command.group = group;
        command.shortcuts = keys;
        command.run = std::move(run);
        command.inPalette = inPalette;
        m_commands.add(std::move(command));
    };
    const QString model = tr("Model"), program = tr("Program");
    add("model.choose", tr("Choose a model"), model, {ctrl(Qt::Key_M)}, [this] { openModelPicker(); });
    add("model.open", tr("Open a GGUF file…"), model, {ctrl(Qt::Key_O)}, [this] { openModelFile(); });
    add("session.save", tr("Save session…"), program, {ctrl(Qt::Key_S)}, [this] { saveSession(); });
    add(
        "help.palette", tr("Find or run…"), program, {ctrl(Qt::Key_K)}, [this] { openPalette(); }, false);
    add(
        "help.menu", tr("Menu"), program, {QKeySequence(Qt::Key_F10)}, [this] { emit m_top->menuRequested(); }, false);
    add("help.keys", tr("Keys"), program, {QKeySequence(Qt::Key_F1)}, [this] { showShortcuts(); });
    add("help.about", tr("About KVScope"), program, {}, [this] { showAbout(); });
    add("program.quit", tr("Quit"), program, {ctrl(Qt::Key_Q)}, [this] { close(); });
}

/// Keys that belong to one part of the window: that part knows them, here they are only told.
void MainWindow::addListedKeys() {
    const auto add = [&](const char* id, const QString& group, const QString& title, const QString& keys) {
        Command command;
        command.id = QLatin1StringView(id);
        command.title = title;
        command.group = group;
        command.keysText = keys;
        command.keys = Command::Keys::Widget;
        command.inPalette = false;
        m_commands.add(std::move(command));
    };
    const QString list = tr("In the list of chats"), messages = tr("In the messages"), map = tr("In the block map"),
                  curves = tr("In the curves");
    add("list.move", list, tr("Choose, go to its text"), tr("Arrows, Enter"));
    add("list.delete", list, tr("Delete"), tr("Del"));
    add("list.menu", list, tr("Menu of a chat"), tr("Menu"));
    add("view.scroll", messages, tr("Scroll"), tr("Arrows, Page, Home, End"));
    add("view.walk", messages, tr("From message to message"), tr("Ctrl+Up, Ctrl+Down"));
    add("view.parts", messages, tr("From part to part of a message"), tr("Tab, Left, Right"));
    add("view.open", messages, tr("Do what the part does, open the receipt"), tr("Enter"));
    add("view.edit", messages, tr("Edit the message"), tr("E"));
    add("view.again", messages, tr("Answer again"), tr("R"));
    add("view.branch", messages, tr("New chat from here"), tr("N"));
    add("view.delete", messages, tr("Delete the message"), tr("Del"));
    add("view.undo", messages, tr("Bring back what was deleted"), tr("Ctrl+Z"));
    add("view.versions", messages, tr("Version before, after"), tr("<, >"));
    add("view.thought", messages, tr("Open the thought"), tr("T"));
    add("view.blocks", messages, tr("Show its blocks"), tr("B"));
    add("view.copy", messages, tr("Copy the selection or the message"), tr("C, Ctrl+C"));
    add("view.all", messages, tr("Select everything"), tr("Ctrl+A"));
    add("map.move", map, tr("Move, choose"), tr("Arrows, Enter"));
    add("map.zoom", map, tr("Zoom, fit, dim"), tr("+, -, 0, D"));
    add("curves.move", curves, tr("Move the cursor"), tr("Left, Right"));
    add("curves.zoom", curves, tr("Zoom, oldest, newest"), tr("+, -, Home, End"));
    add("curves.pause", curves, tr("Stop and go on"), tr("Space"));
}

void MainWindow::buildShortcuts() {
    for (const Command& command : m_commands.all()) {
        if (command.keys != Command::Keys::Window)
            continue;
        for (const QKeySequence& keys : command.shortcuts) {
            auto* shortcut = new QShortcut(keys, this);
            connect(shortcut, &QShortcut::activated, this, [this, id = command.id] { m_commands.run(id); });
        }
    }
    connect(new QShortcut(QKeySequence(Qt::Key_Escape), this), &QShortcut::activated, this, &MainWindow::escape);
}

// ---- menu, palette, list of keys ----

void MainWindow::fillMenu(QMenu& menu, const QStringList& ids) {
    for (const QString& id : ids) {
        const Command* command = m_commands.find(id);
        if (!command) {
            menu.addSeparator();
            continue;
        }
        const QString keys = command->shortcuts.isEmpty()
                                 ? QString()
                                 : QLatin1Char('\t') + command->shortcuts.first().toString(QKeySequence::NativeText);
        QAction* action = menu.addAction(command->title + keys, this, [this, id] { m_commands.run(id); });
        action->setEnabled(command->isEnabled());
        if (command->checked) {
            action->setCheckable(true);
            action->setChecked(command->checked());
        }
    }
}

QMenu* MainWindow::makeMenu() {
    auto* menu = new QMenu(this);
    menu->setAttribute(Qt::WA_DeleteOnClose);
    fillMenu(*menu, menuEntries());
    const auto group = [&](const QString& title, const QString& prefix) {
        QStringList ids;
        for (const Command& command : m_commands.all())
            if (command.id.startsWith(prefix))
                ids << command.id;
        fillMenu(*menu->addMenu(title), ids);
    };
    group(tr("Theme"), QStringLiteral("theme."));
    group(tr("Text size"), QStringLiteral("text."));
    group(tr("Key that sends"), QStringLiteral("sendkey."));
    group(tr("Panels"), QStringLiteral("panel."));
    fillMenu(*menu, {QStringLiteral("layout.reset"), QString(), QStringLiteral("help.keys"),
                     QStringLiteral("help.about"), QString(), QStringLiteral("program.quit")});
    return menu;
}

void MainWindow::openPalette() {
    auto* palette =
        new CommandPalette(&m_commands, m_parts.chat.conversations(), Theme::load(m_parts.appearance.kind()), this);
    palette->setAttribute(Qt::WA_DeleteOnClose);
    connect(
        palette, &CommandPalette::commandChosen, this, [this](const QString& id) { m_commands.run(id); },
        Qt::QueuedConnection); // once the palette is gone: what runs may open a dialog
    connect(palette, &CommandPalette::conversationChosen, this, [this](qint64 id) {
        m_parts.chat.select(id);
        m_chatPanel->composer()->edit()->setFocus();
    });
    palette->open();
}

void MainWindow::showShortcuts() {
    KeyList dialog(m_commands, m_parts.appearance.sendKey(), this);
    dialog.exec();
}

// ---- walking about ----

void MainWindow::focusSearch() {
    if (!m_side->isVisible())
        toggleSide();
    m_side->focusSearch();
}

void MainWindow::stepConversation(int by) {
    const std::vector<ConversationId> ids = m_parts.chat.conversations()->ids();
    if (ids.empty())
        return;
    const auto now = std::find(ids.begin(), ids.end(), m_parts.chat.current().conversation.id);
    // From a chat that is not in the list yet, the first one is the next.
    const auto at = now == ids.end() ? (by > 0 ? -1 : 0) : now - ids.begin();
    const auto next = at + by;
    if (next >= 0 && next < qsizetype(ids.size()))
        m_parts.chat.select(ids[std::size_t(next)]);
}

/// F6: chats, messages, message field, cockpit, bar.
void MainWindow::stepPane(int by) {
    QWidget* const panes[] = {m_side, m_chatPanel->view(), m_chatPanel->composer(), m_docks, m_top};
    QWidget* const targets[] = {m_side->list(), m_chatPanel->view(), m_chatPanel->composer()->edit(), nullptr, nullptr};
    constexpr int kPanes = int(std::size(panes));
    const QWidget* focus = focusWidget();
    int now = by > 0 ? -1 : kPanes;
    for (int i = 0; i < kPanes; ++i)
        if (focus && (panes[i] == focus || panes[i]->isAncestorOf(focus)))
            now = i;
    for (int step = 1; step <= kPanes; ++step) {
        const int i = (now + by * step + 2 * kPanes) % kPanes;
        if (!panes[i]->isVisible())
            continue;
        QWidget* target = targets[i];
        for (QWidget* child : panes[i]->findChildren<QWidget*>())
            if (!target && child->isVisible() && child->isEnabled() && (child->focusPolicy() & Qt::TabFocus))
                target = child;
        if (target && target->isVisible()) {
            target->setFocus(Qt::TabFocusReason);
            return;
        }
    }
}

} // namespace kvscope::ui
