// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/models/block_map_layout.h"

namespace kvscope::ui {

/// Which part of a block map is seen, and how large. Pure geometry in device pixels; the view draws what this says.
class BlockMapViewport {
public:
    /// Size of the view and the pool. Keeps the zoom where that makes sense; a map that follows the size stays fitted.
    /// False = all of it is as before.
    bool setArea(std::int32_t blocks, QSize area, double scale);
    const BlockMapLayout& layout() const { return m_layout; }
    QSize area() const { return m_area; }
    double scale() const { return m_scale; }
    /// Where the layout's first cell lies in the view.
    QPoint origin() const { return -m_offset; }
    bool fitted() const { return m_pitch == 0; }
    bool canZoomIn() const;

    /// One step in (1) or out (-1); what lies under `anchor` stays there. Zooming out of the smallest step fits again.
    void zoom(int steps, QPoint anchor);
    void fit();
    void panBy(QPoint delta); ///< the map moves by delta
    /// Pans as little as needed to show a cell with some neighbours around it.
    void reveal(int cell);

    /// Cell under a point of the view, -1 = none.
    int cellAt(QPoint point) const { return m_layout.cellAt(point + m_offset); }
    QRect cellRect(int cell) const { return m_layout.cellRect(cell).translated(-m_offset); }
    /// What is seen, in coordinates of the layout.
    QRect visible() const { return QRect(m_offset, m_area) & QRect(QPoint(0, 0), m_layout.size()); }
    /// Moves so that `point` of the layout lies in the middle of the view.
    void centreOn(QPoint point);

private:
    void setPitch(int pitch, QPoint anchor);
    void clampOffset();
    int largestPitch() const;

    std::int32_t m_blocks = 0;
    QSize m_area;
    double m_scale = 1;
    int m_pitch = 0; ///< chosen by zooming; 0 = fitted
    BlockMapLayout m_fit, m_layout;
    QPoint m_offset; ///< of the view's corner in the layout
};

} // namespace kvscope::ui
