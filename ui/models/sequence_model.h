// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractTableModel>
#include <functional>
#include <vector>

#include "engine/api/sources.h"

namespace kvscope::ui {

/// The live sequences as a table, and the chats that stand idle: what is left of theirs in the cache. A row keeps its
/// identity (owner and request) across updates, so that a selection stays on its chat; an update only signals the cells
/// that changed.
class SequenceModel final : public QAbstractTableModel {
    Q_OBJECT
public:
    enum Column { Conversation, State, Tokens, Blocks, Shared, CachedPrefix, FirstToken, PerToken, kColumns };
    enum Role {
        OwnerRole = Qt::UserRole, ///< qint64: OwnerId
        OwnerNumberRole,          ///< int: 1, 2, ... as in the map
        ProgressRole,             ///< double 0..1 of a row that is reading, else invalid
        IdleRole,                 ///< bool
        StillCachedRole, ///< double 0..1 of an idle row: share of its blocks that are still there, else invalid
        WaitingRole,     ///< QString: why it waits, else invalid; it then takes the columns from State on
    };
    using TitleOf = std::function<QString(OwnerId)>;
    using NumberOf = std::function<int(OwnerId)>;

    /// `titleOf`: the chat's title; `numberOf`: the owner's number in the map.
    SequenceModel(TitleOf titleOf, NumberOf numberOf, QObject* parent = nullptr);

    /// The newest table. Rows keep their order as long as their requests live; new ones are appended, idle ones stand
    /// behind all others. Idle owners without a title (their chats were deleted) are left out.
    void setRows(const std::vector<api::SequenceRow>& rows);
    /// Titles have changed.
    void refreshTitles();
    const std::vector<api::SequenceRow>& rows() const { return m_rows; }
    int running() const;
    int waiting() const;
    int idle() const;

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

private:
    QString text(const api::SequenceRow& row, int column) const;
    void updateRow(int row, const api::SequenceRow& now);
    bool isChat(OwnerId owner) const;
    int count(api::SequenceState state) const;

    TitleOf m_titleOf;
    NumberOf m_numberOf;
    std::vector<api::SequenceRow> m_rows;
};

/// "needs 12 blocks, 9 are available" and the other reasons, as a sentence that follows "Waiting: ".
QString waitingReason(const api::SequenceRow& row);

} // namespace kvscope::ui
