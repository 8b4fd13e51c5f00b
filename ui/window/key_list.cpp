// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/key_list.h"

#include <QGridLayout>
#include <QGuiApplication>
#include <QLabel>
#include <QScreen>
#include <QScrollArea>
#include <QVBoxLayout>
#include <algorithm>
#include <vector>

#include "ui/theme/theme.h"

namespace kvscope::ui {
namespace {

struct Group {
    QString name;
    std::vector<std::pair<QString, QString>> lines; ///< what, keys
};

std::vector<Group> groupsOf(const CommandRegistry& commands, SendKey sendKey) {
    std::vector<Group> groups;
    const auto groupCalled = [&](const QString& name) -> Group& {
        const auto it = std::find_if(groups.begin(), groups.end(), [&](const Group& g) { return g.name == name; });
        return it == groups.end() ? groups.emplace_back(Group{name, {}}) : *it;
    };
    for (const Command& command : commands.all()) {
        const QString keys = keysText(command);
        if (keys.isEmpty())
            continue;
        Group& group = groupCalled(command.group);
        if (group.lines.empty() && command.id.startsWith(QLatin1StringView("message."))) {
            group.lines.emplace_back(KeyList::tr("Send"), sendKeyText(sendKey));
            group.lines.emplace_back(KeyList::tr("New line"), newLineKeyText(sendKey));
        }
        group.lines.emplace_back(command.title, keys);
    }
    return groups;
}

QWidget* makeColumn(const std::vector<Group>& groups, std::size_t from, std::size_t to, QWidget* parent) {
    auto* column = new QWidget(parent);
    auto* grid = new QGridLayout(column);
    grid->setContentsMargins(0, 0, 0, 0);
    grid->setHorizontalSpacing(24);
    grid->setVerticalSpacing(6);
    int row = 0;
    for (std::size_t i = from; i < to; ++i) {
        auto* name = new QLabel(groups[i].name, column);
        name->setObjectName(QStringLiteral("panelTitle"));
        name->setFont(textFont(TextRole::Control, QFont::DemiBold));
        name->setContentsMargins(0, row == 0 ? 0 : 12, 0, 2);
        grid->addWidget(name, row++, 0, 1, 2);
        for (const auto& [what, keys] : groups[i].lines) {
            auto* words = new QLabel(what, column);
            words->setFont(textFont(TextRole::Control));
            auto* key = new QLabel(keys, column);
            key->setFont(monoFont(TextRole::Table));
            key->setObjectName(QStringLiteral("quiet"));
            grid->addWidget(words, row, 0);
            grid->addWidget(key, row++, 1);
        }
    }
    grid->setColumnStretch(0, 1);
    grid->setRowStretch(row, 1);
    return column;
}

} // namespace

KeyList::KeyList(const CommandRegistry& commands, SendKey sendKey, QWidget* parent) : QDialog(parent) {
    setWindowTitle(tr("Keys"));
    const std::vector<Group> groups = groupsOf(commands, sendKey);
    std::size_t lines = 0, split = 0, before = 0;
    for (const Group& group : groups)
        lines += group.lines.size() + 2;
    while (split < groups.size() && before * 2 < lines) // about half of the lines at the left
        before += groups[split++].lines.size() + 2;
    auto* scroll = new QScrollArea(this);
    scroll->setFrameShape(QFrame::NoFrame);
    scroll->setWidgetResizable(true);
    auto* sheet = new QWidget(scroll);
    auto* columns = new QHBoxLayout(sheet);
    columns->setContentsMargins(28, 24, 28, 24);
    columns->setSpacing(48);
    columns->addWidget(makeColumn(groups, 0, split, sheet));
    columns->addWidget(makeColumn(groups, split, groups.size(), sheet));
    scroll->setWidget(sheet);
    auto* all = new QVBoxLayout(this);
    all->setContentsMargins(0, 0, 0, 0);
    all->addWidget(scroll);
    const QSize room = parent ? parent->size() : QGuiApplication::primaryScreen()->availableSize();
    resize(sheet->sizeHint().boundedTo(room - QSize(40, 40)) + QSize(12, 0));
}

} // namespace kvscope::ui
