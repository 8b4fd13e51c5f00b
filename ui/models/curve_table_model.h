// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractTableModel>
#include <vector>

#include "ui/models/curve_window.h"

namespace kvscope::ui {

/// The curves as a table: one row for each stretch of time in view, newest first. For those who read rather than see,
/// and for export.
class CurveTableModel final : public QAbstractTableModel {
    Q_OBJECT
public:
    enum Column {
        Time,
        InUse,
        Cached,
        Empty,
        HitRate,
        Fragmentation,
        KvInUse,
        Weights,
        Activations,
        Other,
        Writing,
        Reading,
        kColumns
    };
    explicit CurveTableModel(const CurveWindow& window, QObject* parent = nullptr);

    /// The window has moved or holds more. `sessionStart`: times count from it.
    void refresh(Nanos sessionStart);
    /// All rows, oldest first, plain figures (no thousands, a point for decimals), as RFC 4180 asks.
    QByteArray csv() const;

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

private:
    static double value(const CurveBucket& bucket, int column); ///< NaN = not reported or none

    const CurveWindow& m_window;
    Nanos m_sessionStart = 0;
    std::vector<CurveBucket> m_rows; ///< newest first
};

} // namespace kvscope::ui
