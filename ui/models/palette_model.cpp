// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/palette_model.h"

#include <QPoint>
#include <algorithm>

namespace kvscope::ui {
namespace {

constexpr std::size_t kShownAtMost = 60;

} // namespace

PaletteModel::PaletteModel(const CommandRegistry* commands, const ConversationListModel* conversations, QObject* parent)
    : QAbstractListModel(parent)
    , m_registry(commands)
    , m_conversations(conversations) {
    setQuery({});
}

int PaletteModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : int(m_entries.size());
}

QVariant PaletteModel::data(const QModelIndex& index, int role) const {
    if (!index.isValid())
        return {};
    const Entry& entry = m_entries[std::size_t(index.row())];
    switch (role) {
    case Qt::DisplayRole:
        return entry.title;
    case Qt::AccessibleTextRole:
        return entry.keys.isEmpty() ? tr("%1, %2").arg(entry.title, entry.detail)
                                    : tr("%1, %2").arg(entry.title, entry.keys);
    case DetailRole:
        return entry.detail;
    case KeysRole:
        return entry.keys;
    case IsCommandRole:
        return entry.command;
    case IdRole:
        return entry.id;
    case RangesRole: {
        QVariantList list;
        for (const auto& [begin, end] : entry.match.ranges)
            list.append(QPoint(int(begin), int(end)));
        return list;
    }
    default:
        return {};
    }
}

void PaletteModel::addCommands(const QString& query) {
    for (const Command& command : m_registry->all()) {
        if (!command.inPalette || !command.isEnabled())
            continue;
        // The group is part of what one may type: "theme dark". It counts, but only the title is marked.
        auto match = fuzzyMatch(query, command.title);
        if (!match) {
            match = fuzzyMatch(query, command.title + QLatin1Char(' ') + command.group);
            if (!match)
                continue;
            match->score /= 2;
            std::erase_if(match->ranges, [&](const auto& range) { return range.second > command.title.size(); });
        }
        m_entries.push_back({true, command.id, command.title, command.group, keysText(command), std::move(*match)});
    }
}

void PaletteModel::addConversations(const QString& query) {
    for (int at = 0; at < m_conversations->rowCount(); ++at) {
        const ConversationId id = m_conversations->idAt(at);
        if (id == kNoId)
            continue; // a heading
        const QModelIndex row = m_conversations->index(at);
        const QString title = row.data().toString();
        if (auto match = fuzzyMatch(query, title))
            m_entries.push_back({false,
                                 QString::number(id),
                                 title,
                                 row.data(ConversationListModel::TimeRole).toString(),
                                 {},
                                 std::move(*match)});
    }
}

void PaletteModel::setQuery(const QString& query) {
    beginResetModel();
    m_entries.clear();
    addCommands(query);
    addConversations(query);
    if (!query.trimmed().isEmpty())
        std::stable_sort(m_entries.begin(), m_entries.end(),
                         [](const Entry& a, const Entry& b) { return a.match.score > b.match.score; });
    if (m_entries.size() > kShownAtMost)
        m_entries.resize(kShownAtMost);
    endResetModel();
}

} // namespace kvscope::ui
