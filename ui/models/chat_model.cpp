// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/chat_model.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "ui/models/chat_words.h"

namespace kvscope::ui {

ChatModel::ChatModel(QObject* parent) : QAbstractListModel(parent) {}

int ChatModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : size();
}

QVariant ChatModel::data(const QModelIndex& index, int role) const {
    if (!index.isValid())
        return {};
    const ChatMessage& message = at(index.row());
    switch (role) {
    case Qt::DisplayRole:
        return message.text;
    case MessageRoleRole:
        return int(message.role);
    case StatusRole:
        return int(message.status);
    case ErrorRole:
        return message.error;
    case EndLineRole:
        return words::endLine(message);
    case ReceiptLineRole:
        return message.receipt ? words::receiptLine(*message.receipt) : QString();
    default:
        return {};
    }
}

void ChatModel::setMessages(std::vector<ChatMessage> messages) {
    beginResetModel();
    m_messages = std::move(messages);
    m_changes.clear();
    endResetModel();
}

int ChatModel::rowOf(MessageId id) const {
    for (int row = size() - 1; row >= 0 && id != kNoId; --row)
        if (at(row).id == id)
            return row;
    return -1;
}

void ChatModel::showPath(std::vector<ChatMessage> path) {
    int same = 0;
    while (same < size() && same < int(path.size()) && at(same).id == path[std::size_t(same)].id)
        ++same;
    for (int row = 0; row < same; ++row) {
        ChatMessage& known = path[std::size_t(row)];
        if (known.versions == at(row).versions && known.version == at(row).version && known.parent == at(row).parent &&
            known.siblings == at(row).siblings)
            continue;
        edit(row, [&](ChatMessage& m) {
            m.parent = known.parent;
            m.version = known.version;
            m.versions = known.versions;
            m.siblings = std::move(known.siblings);
        });
    }
    divert(same);
    if (same == int(path.size()))
        return;
    beginInsertRows({}, same, int(path.size()) - 1);
    std::move(path.begin() + same, path.end(), std::back_inserter(m_messages));
    endInsertRows();
}

std::vector<ChatMessage> ChatModel::divert(int row) {
    if (row >= size())
        return {};
    flush(); // rows of pending changes are about to go
    beginRemoveRows({}, row, size() - 1);
    std::vector<ChatMessage> out(std::make_move_iterator(m_messages.begin() + row),
                                 std::make_move_iterator(m_messages.end()));
    m_messages.erase(m_messages.begin() + row, m_messages.end());
    endRemoveRows();
    return out;
}

int ChatModel::append(ChatMessage message) {
    const int row = size();
    beginInsertRows({}, row, row);
    m_messages.push_back(std::move(message));
    endInsertRows();
    return row;
}

void ChatModel::remove(int row) {
    flush(); // the rows of pending changes are about to shift
    beginRemoveRows({}, row, row);
    m_messages.erase(m_messages.begin() + row);
    endRemoveRows();
}

void ChatModel::edit(int row, const std::function<void(ChatMessage&)>& change) {
    change(m_messages[std::size_t(row)]);
    note(row, false);
}

void ChatModel::appendTokens(int row, const QString& text, const std::vector<TokenId>& tokens, double tokensPerSecond) {
    ChatMessage& message = m_messages[std::size_t(row)];
    message.text += text;
    message.tokens.insert(message.tokens.end(), tokens.begin(), tokens.end());
    message.tokensPerSecond = tokensPerSecond;
    note(row, true);
}

void ChatModel::setTokenEnd(int row, std::int64_t end) {
    auto& range = m_messages[std::size_t(row)].tokenRange;
    range.second = std::max(range.first, end);
    note(row, true);
}

void ChatModel::note(int row, bool appendedOnly) {
    const auto it = std::find_if(m_changes.begin(), m_changes.end(), [row](const Change& c) { return c.row == row; });
    if (it == m_changes.end())
        m_changes.push_back({row, appendedOnly});
    else
        it->appendedOnly = it->appendedOnly && appendedOnly;
}

void ChatModel::flush() {
    const std::vector<Change> changes = std::exchange(m_changes, {});
    for (const Change& change : changes)
        emit dataChanged(index(change.row), index(change.row),
                         change.appendedOnly ? QVector<int>{Qt::DisplayRole} : QVector<int>{});
}

} // namespace kvscope::ui
