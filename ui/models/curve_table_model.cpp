// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/curve_table_model.h"

#include <cmath>
#include <limits>

#include "ui/models/format.h"

namespace kvscope::ui {

CurveTableModel::CurveTableModel(const CurveWindow& window, QObject* parent)
    : QAbstractTableModel(parent)
    , m_window(window) {}

void CurveTableModel::refresh(Nanos sessionStart) {
    m_sessionStart = sessionStart;
    std::vector<CurveBucket> rows;
    if (m_window.columns() > 0)
        for (std::int64_t i = m_window.binOf(m_window.columns() - 1); i >= m_window.binOf(0); --i)
            if (const CurveBucket* bin = m_window.bin(i))
                rows.push_back(*bin);
    const auto shift = [&] { // rows that came in above what is known
        std::size_t n = 0;
        while (n < rows.size() && !m_rows.empty() && rows[n].index > m_rows.front().index)
            ++n;
        return n;
    }();
    const bool follows = !m_rows.empty() && shift < rows.size() && rows[shift].index == m_rows.front().index;
    if (!follows) {
        beginResetModel();
        m_rows = std::move(rows);
        endResetModel();
        return;
    }
    if (shift > 0) {
        beginInsertRows({}, 0, int(shift) - 1);
        m_rows.insert(m_rows.begin(), rows.begin(), rows.begin() + std::ptrdiff_t(shift));
        endInsertRows();
    }
    if (m_rows.size() > rows.size()) {
        beginRemoveRows({}, int(rows.size()), int(m_rows.size()) - 1);
        m_rows.resize(rows.size());
        endRemoveRows();
    }
    // Only the newest known stretch can have grown.
    m_rows[shift] = rows[shift];
    emit dataChanged(index(int(shift), 0), index(int(shift), kColumns - 1));
}

int CurveTableModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : int(m_rows.size());
}

int CurveTableModel::columnCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : kColumns;
}

double CurveTableModel::value(const CurveBucket& b, int column) {
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    const auto state = [&b](kv::BlockState s) { return double(b.last.blocks[std::size_t(s)]); };
    const MemoryParts memory = b.memory();
    const auto engine = [&](MemoryParts::Part part) { return memory.hasEngine ? double(memory.bytes[part]) : kNone; };
    switch (column) {
    case InUse: {
        double used = 0;
        for (const std::uint32_t count : b.last.blocks)
            used += count;
        return b.hasBlocks() ? used - state(kv::BlockState::Cached) - state(kv::BlockState::Empty) : kNone;
    }
    case Cached:
        return b.hasBlocks() ? state(kv::BlockState::Cached) : kNone;
    case Empty:
        return b.hasBlocks() ? state(kv::BlockState::Empty) : kNone;
    case HitRate:
        return b.hitRate.empty() ? kNone : double(b.hitRate.last);
    case Fragmentation:
        return b.fragmentation.empty() ? kNone : double(b.fragmentation.last);
    case KvInUse:
        return engine(MemoryParts::KvInUse);
    case Weights:
        return engine(MemoryParts::Weights);
    case Activations:
        return engine(MemoryParts::Activations);
    case Other:
        return memory.hasHost ? double(memory.other()) : kNone;
    case Writing:
        return b.writeRate() < 0 ? kNone : b.writeRate();
    case Reading:
        return b.readRate() < 0 ? kNone : b.readRate();
    default:
        return kNone;
    }
}

QVariant CurveTableModel::data(const QModelIndex& index, int role) const {
    if (!index.isValid() || index.row() >= int(m_rows.size()))
        return {};
    if (role == Qt::TextAlignmentRole)
        return int((index.column() == Time ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
    if (role != Qt::DisplayRole)
        return {};
    const CurveBucket& b = m_rows[std::size_t(index.row())];
    if (index.column() == Time)
        return formatClock(double(b.index * m_window.binWidth() - m_sessionStart) * 1e-9);
    const double v = value(b, index.column());
    if (std::isnan(v))
        return QString(kEnDash);
    switch (index.column()) {
    case HitRate:
        return formatPercent(v);
    case Fragmentation:
        return formatPercent(v, 1);
    case KvInUse:
    case Weights:
    case Activations:
    case Other:
        return formatBytes(std::uint64_t(v));
    case Writing:
    case Reading:
        return formatRate(v);
    default:
        return formatNumber(std::llround(v));
    }
}

QVariant CurveTableModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal)
        return {};
    if (role == Qt::TextAlignmentRole)
        return int((section == Time ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
    if (role != Qt::DisplayRole)
        return {};
    switch (section) {
    case Time:
        return tr("Time");
    case InUse:
        return tr("In use");
    case Cached:
        return tr("Cached");
    case Empty:
        return tr("Empty");
    case HitRate:
        return tr("Hits");
    case Fragmentation:
        return tr("Fragmentation");
    case KvInUse:
        return tr("KV in use");
    case Weights:
        return tr("Weights");
    case Activations:
        return tr("Activations");
    case Other:
        return tr("Other");
    case Writing:
        return tr("Writing");
    case Reading:
        return tr("Reading");
    default:
        return {};
    }
}

QByteArray CurveTableModel::csv() const {
    QByteArray out = "seconds,blocks_in_use,blocks_cached,blocks_empty,hit_rate,internal_fragmentation,"
                     "kv_in_use_bytes,weights_bytes,activations_bytes,other_bytes,written_tokens_per_second,"
                     "read_tokens_per_second\r\n";
    for (auto row = m_rows.rbegin(); row != m_rows.rend(); ++row) {
        out += QByteArray::number(double(row->index * m_window.binWidth() - m_sessionStart) * 1e-9, 'f', 1);
        for (int column = InUse; column < kColumns; ++column) {
            const double v = value(*row, column);
            const bool whole = column != HitRate && column != Fragmentation && column != Writing && column != Reading;
            out += ',';
            if (!std::isnan(v)) // what was not reported is an empty field, never 0
                out += QByteArray::number(v, 'f', whole ? 0 : 4);
        }
        out += "\r\n";
    }
    return out;
}

} // namespace kvscope::ui
