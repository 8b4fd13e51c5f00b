// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/sequence_model.h"

#include <algorithm>
#include <utility>

#include "ui/models/chat_types.h"
#include "ui/models/format.h"

namespace kvscope::ui {
namespace {

double readShare(const api::SequenceRow& row) {
    const auto toRead = double(row.promptTokens - row.cachedPrefix);
    const auto read = double(row.computedTokens - row.cachedPrefix);
    return toRead <= 0 ? 1 : std::clamp(read / toRead, 0.0, 1.0);
}

QString idleReason(const api::SequenceRow& row) {
    const QString back = SequenceModel::tr("Idle: its blocks went back to the cache. ");
    if (row.cachedBlocks == 0)
        return back + SequenceModel::tr("All were evicted since; the next message reads the chat again.");
    if (row.cachedBlocks == row.blocks)
        return back + SequenceModel::tr("All %1 are still there for the next message.").arg(formatNumber(row.blocks));
    return back + SequenceModel::tr("%1 of %2 are still there; the rest was evicted.")
                      .arg(formatNumber(row.cachedBlocks), formatNumber(row.blocks));
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
    return int(m_rows.size()) - waiting() - idle();
}

int SequenceModel::waiting() const {
    return count(api::SequenceState::Waiting);
}

int SequenceModel::idle() const {
    return count(api::SequenceState::Idle);
}

bool SequenceModel::isChat(OwnerId owner) const {
    return owner != OwnerId(kTitleOwner) && m_titleOf && !m_titleOf(owner).isEmpty();
}

int SequenceModel::count(api::SequenceState state) const {
    return int(std::count_if(m_rows.begin(), m_rows.end(), [state](const auto& row) { return row.state == state; }));
}

void SequenceModel::setRows(const std::vector<api::SequenceRow>& rows) {
    const auto find = [](auto& in, const api::SequenceRow& wanted) {
        return std::find_if(in.begin(), in.end(), [&](const auto& row) {
            return row.request == wanted.request && row.owner == wanted.owner;
        });
    };
    const auto gone = [&](const api::SequenceRow& row) {
        return find(rows, row) == rows.end() || (row.state == api::SequenceState::Idle && !isChat(row.owner));
    };
    for (int i = int(m_rows.size()) - 1; i >= 0; --i)
        if (gone(m_rows[std::size_t(i)])) {
            beginRemoveRows({}, i, i);
            m_rows.erase(m_rows.begin() + i);
            endRemoveRows();
        }
    for (const api::SequenceRow& row : rows) {
        const auto known = find(m_rows, row);
        if (known != m_rows.end()) {
            updateRow(int(known - m_rows.begin()), row);
            continue;
        }
        const bool idles = row.state == api::SequenceState::Idle;
        if (idles && !isChat(row.owner))
            continue;
        const int at = int(m_rows.size()) - (idles ? 0 : idle());
        beginInsertRows({}, at, at);
        m_rows.insert(m_rows.begin() + at, row);
        endInsertRows();
    }
}

void SequenceModel::updateRow(int row, const api::SequenceRow& now) {
    const api::SequenceRow before = std::exchange(m_rows[std::size_t(row)], now);
    const auto differs = [&](int column) {
        if (column == State) // its bar moves by less than its text shows
            return before.state != now.state || before.computedTokens != now.computedTokens ||
                   before.cachedBlocks != now.cachedBlocks || text(before, column) != text(now, column);
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
    const bool idles = row.state == api::SequenceState::Idle;
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
        case api::SequenceState::Idle:
            return tr("Idle");
        }
        return {};
    case Tokens:
        return formatNumber(row.tokens);
    case Blocks:
        return formatNumber(idles ? row.cachedBlocks : row.blocks);
    case Shared:
        return idles ? QString(kEnDash) : formatNumber(row.sharedBlocks);
    case CachedPrefix:
        return idles ? QString(kEnDash) : formatNumber(row.cachedPrefix);
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
        if (index.column() == Conversation)
            return tr("Owner %1: %2").arg(m_numberOf(row.owner)).arg(text(row, Conversation));
        return index.column() == State && row.state == api::SequenceState::Idle ? idleReason(row)
                                                                                : text(row, index.column());
    case Qt::TextAlignmentRole:
        return int((index.column() >= Tokens ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
    case OwnerRole:
        return qint64(row.owner.value());
    case OwnerNumberRole:
        return m_numberOf(row.owner);
    case ProgressRole:
        return row.state == api::SequenceState::Reading ? QVariant(readShare(row)) : QVariant();
    case IdleRole:
        return row.state == api::SequenceState::Idle;
    case StillCachedRole:
        return row.state == api::SequenceState::Idle && row.blocks > 0 ? QVariant(double(row.cachedBlocks) / row.blocks)
                                                                       : QVariant();
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
