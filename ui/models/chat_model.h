// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractListModel>
#include <functional>
#include <vector>

#include "ui/models/chat_types.h"

namespace kvscope::ui {

/// The shown messages of one conversation, oldest first: one path through the tree that they form (an edited message or
/// a further answer is a version of the first one). Changes are collected: each row that changed since the last
/// `flush()` gets one dataChanged, so that a burst of tokens costs the view one layout of one tail.
class ChatModel final : public QAbstractListModel {
    Q_OBJECT
public:
    enum Role { MessageRoleRole = Qt::UserRole, StatusRole, ErrorRole, EndLineRole, ReceiptLineRole };

    explicit ChatModel(QObject* parent = nullptr);

    int rowCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role) const override;

    const ChatMessage& at(int row) const { return m_messages[std::size_t(row)]; }
    int size() const { return int(m_messages.size()); }

    int rowOf(MessageId id) const; ///< -1 = not shown

    void setMessages(std::vector<ChatMessage> messages);
    /// Shows another path. Rows that both begin with stay, so that a view does not jump.
    void showPath(std::vector<ChatMessage> path);
    /// Takes the rows from `row` on out; they may come back with `append`.
    std::vector<ChatMessage> divert(int row);
    int append(ChatMessage message); ///< its row
    void remove(int row);
    /// Changes a message; the view hears of it with the next flush.
    void edit(int row, const std::function<void(ChatMessage&)>& change);
    /// More of an answer. Tokens may be ahead of the text.
    void appendTokens(int row, const QString& text, const std::vector<TokenId>& tokens, double tokensPerSecond);
    /// The message reaches up to token `end` of its sequence now. Nothing that is drawn depends on how far it reaches.
    void setTokenEnd(int row, std::int64_t end);
    /// One dataChanged per changed row. `Qt::DisplayRole` alone in its roles: only text was appended.
    void flush();
    bool dirty() const { return !m_changes.empty(); }

private:
    struct Change {
        int row;
        bool appendedOnly;
    };
    void note(int row, bool appendedOnly);

    std::vector<ChatMessage> m_messages;
    std::vector<Change> m_changes;
};

} // namespace kvscope::ui
