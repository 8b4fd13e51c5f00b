// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractListModel>
#include <vector>

#include "ui/models/chat_types.h"

namespace kvscope::ui {

/// How much of a conversation the cache still holds, as shares of its tokens.
struct Warmth {
    float cached = 0;   ///< gold: no references, can be taken up again
    float inUse = 0;    ///< blue: a running sequence holds it
    bool known = false; ///< false = its length is not known: nothing is drawn
    friend bool operator==(const Warmth&, const Warmth&) = default;
};

/// Conversations, newest first, under day headings. Headings are rows of their own that can be neither selected nor
/// edited; row numbers of conversations are therefore found by `rowOf`.
class ConversationListModel final : public QAbstractListModel {
    Q_OBJECT
public:
    enum Role {
        IdRole = Qt::UserRole, ///< ConversationId; kNoId on headings
        HeadingRole,           ///< bool
        SubtitleRole,
        TimeRole,
        RunningRole, ///< bool
        WarmthCachedRole,
        WarmthInUseRole,
        WarmthKnownRole,
        UnsavedRole, ///< bool: it is only in memory
    };

    explicit ConversationListModel(QObject* parent = nullptr);

    int rowCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role) const override;
    /// Renaming in place: emits `renamed`, the owner of the data decides.
    bool setData(const QModelIndex& index, const QVariant& value, int role) override;
    Qt::ItemFlags flags(const QModelIndex& index) const override;

    void setConversations(std::vector<Conversation> conversations, qint64 nowMs);
    /// Adds it or replaces the one with its id, and moves it to where its time belongs.
    void put(const Conversation& conversation, qint64 nowMs);
    void remove(ConversationId id);
    /// Empty = the preview is shown instead.
    void setActivity(ConversationId id, const QString& activity, bool running);
    void setWarmth(ConversationId id, Warmth warmth);
    /// After midnight, headings and times change.
    void setNow(qint64 nowMs);

    int rowOf(ConversationId id) const; ///< -1 = not there
    ConversationId idAt(int row) const; ///< kNoId on headings and outside
    const Conversation* find(ConversationId id) const;
    std::vector<ConversationId> ids() const;

signals:
    void renamed(qint64 id, const QString& title);

private:
    struct Row {
        QString heading; ///< set on headings
        Conversation conversation;
        QString activity;
        bool running = false;
        Warmth warmth;
        bool isHeading() const { return conversation.id == kNoId; }
    };
    void changed(int row, const QVector<int>& roles);
    void insertSorted(Row row);
    void removeRow(int row);

    std::vector<Row> m_rows;
    qint64 m_nowMs = 0;
};

} // namespace kvscope::ui
