// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <optional>

#include "ui/models/minmax.h"

namespace kvscope::ui {

/// The stretch of time that the curves show, and its samples as one column a pixel. While it follows the newest sample
/// it grows with the session, from one minute to ten, so that the first answer already fills the view.
class CurveWindow {
public:
    CurveWindow(const History<CurveSample>& samples, const History<metrics::MemorySample>& memory);

    void setColumns(int pixels);
    int columns() const { return m_columns; }
    /// Takes in what is new and, if it follows, moves on. True when the window stands on another stretch than before.
    bool refresh(Nanos sessionStart);
    /// The history begins anew.
    void reset();

    bool live() const { return !m_end; }
    void pause();  ///< stays on what is shown
    void resume(); ///< follows the newest sample with the span that fits the session
    /// Zooms by `factor` (> 1 = closer) around the column `anchor`. A live view stays live while its end is in sight.
    void zoom(double factor, int anchor);
    /// Moves the view by columns; positive = towards older samples. Reaching the newest sample makes it live again.
    void pan(int columns);

    Nanos span() const { return m_span; }
    Nanos begin() const { return m_viewEnd - m_span; }
    Nanos end() const { return m_viewEnd; } ///< exclusive
    Nanos timeOf(int column) const;
    /// What a column shows: its own samples, or those of up to a second before. nullptr = a gap.
    const CurveBucket* column(int column) const;

    /// Rates are means of bins on an absolute grid.
    Nanos binWidth() const { return m_bins ? m_bins->width() : 0; }
    std::int64_t binOf(int column) const;
    const CurveBucket* bin(std::int64_t index) const { return m_bins ? m_bins->bucket(index) : nullptr; }
    /// First and one past the last column of a bin; may reach out of the view.
    std::pair<int, int> columnsOfBin(std::int64_t index) const;

private:
    void rebuild();
    Nanos newest() const;

    const History<CurveSample>& m_samples;
    const History<metrics::MemorySample>& m_memory;
    int m_columns = 0;
    Nanos m_span = 0;
    std::optional<Nanos> m_chosenSpan, m_end;
    Nanos m_viewEnd = 0;
    std::unique_ptr<CurveBuckets> m_buckets, m_bins;
};

} // namespace kvscope::ui
