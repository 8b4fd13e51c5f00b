// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/sequence_model.h"

#include <algorithm>
#include <utility>

#include "ui/models/format.h"

namespace kvscope::ui {
namespace {

double readShare(const api::SequenceRow& row) {
    const auto toRead = double(row.promptTokens - row.cachedPrefix);
    const auto read = double(row.computedTokens - row.cachedPrefix);
    return toRead <= 0 ? 1 : std::clamp(read / toRead, 0.0, 1.0);
}

} // namespace

QString waitingReason(const api::SequenceRow& row) {
    if (row.runningLimit > 0)
        return SequenceModel::tr("all %1 places are taken").arg(formatNumber(row.runningLimit));
    if (row.longPrefillLimit > 0)
        return row.longPrefillLimit == 1
                   ? SequenceModel::tr("another long prompt is being read")
                   : SequenceModel::tr("%1 other long prompts are being read").arg(formatNumber(row.longPrefillLimit));
    if (row.neededBlocks > 0)
        return (row.neededBlocks == 1 ? SequenceModel::tr("needs %1 block, %2 are available")
                                      : SequenceModel::tr("needs %1 blocks, %2 are available"))
            .arg(formatNumber(row.neededBlocks), formatNumber(row.availableBlocks));
    return SequenceModel::tr("for its turn");
}

SequenceModel::SequenceModel(TitleOf titleOf, NumberOf numberOf, QObject* parent)
    : QAbstractTableModel(parent)
    , m_titleOf(std::move(titleOf))
    , m_numberOf(std::move(numberOf)) {}

int SequenceModel::running() const {
    return int(std::count_if(m_rows.begin(), m_rows.end(),
                             [](const auto& row) { return row.state != api::SequenceState::Waiting; }));
}

int SequenceModel::waiting() const {
    return int(m_rows.size()) - running();
}

void SequenceModel::setRows(const std::vector<api::SequenceRow>& rows) {
    const auto find = [](auto& in, RequestId id) {
        return std::find_if(in.begin(), in.end(), [id](const auto& row) { return row.request == id; });
    };
    for (int i = int(m_rows.size()) - 1; i >= 0; --i)
        if (find(rows, m_rows[std::size_t(i)].request) == rows.end()) {
            beginRemoveRows({}, i, i);
            m_rows.erase(m_rows.begin() + i);
            endRemoveRows();
        }
    for (const api::SequenceRow& row : rows) {
        const auto known = find(m_rows, row.request);
        if (known != m_rows.end()) {
            updateRow(int(known - m_rows.begin()), row);
            continue;
        }
        const int at = int(m_rows.size());
        beginInsertRows({}, at, at);
        m_rows.push_back(row);
        endInsertRows();
    }
}

void SequenceModel::updateRow(int row, const api::SequenceRow& now) {
    const api::SequenceRow before = std::exchange(m_rows[std::size_t(row)], now);
    const auto differs = [&](int column) {
        if (column == State) // its progress bar moves by less than its text shows
            return before.state != now.state || before.computedTokens != now.computedTokens ||
                   text(before, column) != text(now, column);
        return text(before, column) != text(now, column);
    };
    for (int column = 0; column < kColumns; ++column) {
        if (!differs(column))
            continue;
        const int first = column;
        while (column + 1 < kColumns && differs(column + 1))
            ++column;
        emit dataChanged(index(row, first), index(row, column));
    }
}

void SequenceModel::refreshTitles() {
    if (!m_rows.empty())
        emit dataChanged(index(0, Conversation), index(int(m_rows.size()) - 1, Conversation));
}

int SequenceModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : int(m_rows.size());
}

int SequenceModel::columnCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : kColumns;
}

QString SequenceModel::text(const api::SequenceRow& row, int column) const {
    const auto orDash = [](double ms, auto format) { return ms < 0 ? QString(kEnDash) : format(ms); };
    switch (column) {
    case Conversation:
        return m_titleOf ? m_titleOf(row.owner) : QString();
    case State:
        switch (row.state) {
        case api::SequenceState::Waiting:
            return tr("Waiting: %1").arg(waitingReason(row));
        case api::SequenceState::Reading:
            return tr("Reading %1").arg(formatPercent(readShare(row)));
        case api::SequenceState::Writing:
            return tr("Writing");
        }
        return {};
    case Tokens:
        return formatNumber(row.tokens);
    case Blocks:
        return formatNumber(row.blocks);
    case Shared:
        return formatNumber(row.sharedBlocks);
    case CachedPrefix:
        return formatNumber(row.cachedPrefix);
    case FirstToken:
        return orDash(row.ttftMs, [](double ms) { return formatSeconds(ms / 1000); });
    case PerToken:
        return orDash(row.itlMs, formatMilliseconds);
    default:
        return {};
    }
}

QVariant SequenceModel::data(const QModelIndex& index, int role) const {
    if (!index.isValid() || index.row() >= int(m_rows.size()))
        return {};
    const api::SequenceRow& row = m_rows[std::size_t(index.row())];
    const bool waiting = row.state == api::SequenceState::Waiting;
    switch (role) {
    case Qt::DisplayRole:
        return waiting && index.column() > State ? QVariant(QString()) : QVariant(text(row, index.column()));
    case Qt::AccessibleTextRole:
    case Qt::ToolTipRole:
        return index.column() == Conversation
                   ? QVariant(tr("Owner %1: %2").arg(m_numberOf(row.owner)).arg(text(row, Conversation)))
                   : QVariant(text(row, index.column()));
    case Qt::TextAlignmentRole:
        return int((index.column() >= Tokens ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
    case OwnerRole:
        return qint64(row.owner.value());
    case OwnerNumberRole:
        return m_numberOf(row.owner);
    case ProgressRole:
        return row.state == api::SequenceState::Reading ? QVariant(readShare(row)) : QVariant();
    case WaitingRole:
        return waiting ? QVariant(text(row, State)) : QVariant();
    default:
        return {};
    }
}

QVariant SequenceModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal)
        return {};
    if (role == Qt::TextAlignmentRole)
        return int((section >= Tokens ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
    if (role != Qt::DisplayRole)
        return {};
    switch (section) {
    case Conversation:
        return tr("Conversation");
    case State:
        return tr("State");
    case Tokens:
        return tr("Tokens");
    case Blocks:
        return tr("Blocks");
    case Shared:
        return tr("Shared");
    case CachedPrefix:
        return tr("Cached prefix");
    case FirstToken:
        return tr("First token");
    case PerToken:
        return tr("Per token");
    default:
        return {};
    }
}

} // namespace kvscope::ui
