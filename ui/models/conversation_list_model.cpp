// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/conversation_list_model.h"

#include <algorithm>

#include "ui/models/chat_words.h"

namespace kvscope::ui {

ConversationListModel::ConversationListModel(QObject* parent) : QAbstractListModel(parent) {}

int ConversationListModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : int(m_rows.size());
}

QVariant ConversationListModel::data(const QModelIndex& index, int role) const {
    if (!index.isValid())
        return {};
    const Row& row = m_rows[std::size_t(index.row())];
    if (role == HeadingRole)
        return row.isHeading();
    if (role == IdRole)
        return qlonglong(row.conversation.id);
    if (row.isHeading())
        return role == Qt::DisplayRole ? QVariant(row.heading) : QVariant();
    switch (role) {
    case Qt::DisplayRole:
    case Qt::EditRole:
    case Qt::ToolTipRole:
        return row.conversation.title;
    case SubtitleRole:
        return row.activity.isEmpty() ? row.conversation.preview : row.activity;
    case TimeRole:
        return words::shortTime(row.conversation.updatedMs, m_nowMs);
    case RunningRole:
        return row.running;
    case WarmthCachedRole:
        return row.warmth.cached;
    case WarmthInUseRole:
        return row.warmth.inUse;
    case WarmthKnownRole:
        return row.warmth.known;
    case UnsavedRole:
        return row.conversation.unsaved;
    default:
        return {};
    }
}

bool ConversationListModel::setData(const QModelIndex& index, const QVariant& value, int role) {
    if (role != Qt::EditRole || !index.isValid())
        return false;
    const Row& row = m_rows[std::size_t(index.row())];
    const QString title = value.toString().simplified();
    if (row.isHeading() || title.isEmpty() || title == row.conversation.title)
        return false;
    emit renamed(row.conversation.id, title);
    return true;
}

Qt::ItemFlags ConversationListModel::flags(const QModelIndex& index) const {
    if (!index.isValid())
        return Qt::NoItemFlags;
    if (m_rows[std::size_t(index.row())].isHeading())
        return Qt::ItemNeverHasChildren;
    return Qt::ItemIsEnabled | Qt::ItemIsSelectable | Qt::ItemIsEditable | Qt::ItemNeverHasChildren;
}

void ConversationListModel::setConversations(std::vector<Conversation> conversations, qint64 nowMs) {
    std::stable_sort(conversations.begin(), conversations.end(),
                     [](const Conversation& a, const Conversation& b) { return a.updatedMs > b.updatedMs; });
    beginResetModel();
    m_nowMs = nowMs;
    std::vector<Row> old = std::move(m_rows);
    m_rows.clear();
    QString heading;
    for (Conversation& conversation : conversations) {
        const QString group = words::dayGroup(conversation.updatedMs, nowMs);
        if (group != heading) {
            heading = group;
            m_rows.emplace_back().heading = group;
        }
        const auto known = std::find_if(old.begin(), old.end(), [&](const Row& row) {
            return !row.isHeading() && row.conversation.id == conversation.id;
        });
        Row row = known == old.end() ? Row{} : *known;
        row.conversation = std::move(conversation);
        m_rows.push_back(std::move(row));
    }
    endResetModel();
}

void ConversationListModel::put(const Conversation& conversation, qint64 nowMs) {
    m_nowMs = nowMs;
    const int at = rowOf(conversation.id);
    if (at < 0) {
        Row row;
        row.conversation = conversation;
        insertSorted(std::move(row));
        return;
    }
    Row& row = m_rows[std::size_t(at)];
    const bool stays = conversation.updatedMs == row.conversation.updatedMs ||
                       (at == 1 && conversation.updatedMs >= row.conversation.updatedMs &&
                        m_rows[0].heading == words::dayGroup(conversation.updatedMs, nowMs));
    if (stays) {
        row.conversation = conversation;
        changed(at, {});
        return;
    }
    Row moved = row;
    moved.conversation = conversation;
    removeRow(at);
    insertSorted(std::move(moved));
}

void ConversationListModel::insertSorted(Row row) {
    const QString group = words::dayGroup(row.conversation.updatedMs, m_nowMs);
    // The place before the first older conversation, and not before the heading of its own group.
    std::size_t at = 0;
    while (at < m_rows.size() &&
           (m_rows[at].isHeading() || m_rows[at].conversation.updatedMs > row.conversation.updatedMs))
        ++at;
    while (at > 0 && m_rows[at - 1].isHeading() && m_rows[at - 1].heading != group)
        --at;
    const bool headed = at > 0 && (m_rows[at - 1].isHeading()
                                       ? m_rows[at - 1].heading == group
                                       : words::dayGroup(m_rows[at - 1].conversation.updatedMs, m_nowMs) == group);
    if (!headed) {
        beginInsertRows({}, int(at), int(at));
        Row heading;
        heading.heading = group;
        m_rows.insert(m_rows.begin() + qsizetype(at), std::move(heading));
        endInsertRows();
        ++at;
    }
    beginInsertRows({}, int(at), int(at));
    m_rows.insert(m_rows.begin() + qsizetype(at), std::move(row));
    endInsertRows();
}

void ConversationListModel::removeRow(int row) {
    const auto isHeading = [&](int r) { return r >= int(m_rows.size()) || m_rows[std::size_t(r)].isHeading(); };
    // A heading leaves together with its last conversation.
    const int first = m_rows[std::size_t(row - 1)].isHeading() && isHeading(row + 1) ? row - 1 : row;
    beginRemoveRows({}, first, row);
    m_rows.erase(m_rows.begin() + first, m_rows.begin() + row + 1);
    endRemoveRows();
}

void ConversationListModel::remove(ConversationId id) {
    const int row = rowOf(id);
    if (row >= 0)
        removeRow(row);
}

void ConversationListModel::setActivity(ConversationId id, const QString& activity, bool running) {
    const int row = rowOf(id);
    if (row < 0)
        return;
    Row& r = m_rows[std::size_t(row)];
    if (r.activity == activity && r.running == running)
        return;
    r.activity = activity;
    r.running = running;
    changed(row, {SubtitleRole, RunningRole});
}

void ConversationListModel::setWarmth(ConversationId id, Warmth warmth) {
    const int row = rowOf(id);
    if (row < 0 || m_rows[std::size_t(row)].warmth == warmth)
        return;
    m_rows[std::size_t(row)].warmth = warmth;
    changed(row, {WarmthCachedRole, WarmthInUseRole, WarmthKnownRole});
}

void ConversationListModel::setNow(qint64 nowMs) {
    std::vector<Conversation> conversations;
    for (const Row& row : m_rows)
        if (!row.isHeading())
            conversations.push_back(row.conversation);
    setConversations(std::move(conversations), nowMs);
}

void ConversationListModel::changed(int row, const QVector<int>& roles) {
    emit dataChanged(index(row), index(row), roles);
}

int ConversationListModel::rowOf(ConversationId id) const {
    if (id == kNoId)
        return -1;
    const auto it =
        std::find_if(m_rows.begin(), m_rows.end(), [id](const Row& row) { return row.conversation.id == id; });
    return it == m_rows.end() ? -1 : int(it - m_rows.begin());
}

ConversationId ConversationListModel::idAt(int row) const {
    return row < 0 || row >= int(m_rows.size()) ? kNoId : m_rows[std::size_t(row)].conversation.id;
}

const Conversation* ConversationListModel::find(ConversationId id) const {
    const int row = rowOf(id);
    return row < 0 ? nullptr : &m_rows[std::size_t(row)].conversation;
}

std::vector<ConversationId> ConversationListModel::ids() const {
    std::vector<ConversationId> out;
    for (const Row& row : m_rows)
        if (!row.isHeading())
            out.push_back(row.conversation.id);
    return out;
}

} // namespace kvscope::ui
