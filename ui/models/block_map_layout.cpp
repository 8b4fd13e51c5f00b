// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/block_map_layout.h"

#include <algorithm>
#include <array>

namespace kvscope::ui {
namespace {

constexpr std::array kColumnCounts = {64, 80, 100, 200, 400, 500, 800, 1000};
constexpr int kGapFromPitch = 5;
constexpr double kCountsFromPitch = 20; // logical: a number needs room for 11 px type
constexpr double kRulerSpacing = 40;    // logical, at least, between two labels

constexpr int ceilDiv(std::int64_t a, std::int64_t b) {
    return int((a + b - 1) / b);
}

} // namespace

BlockMapLayout BlockMapLayout::fit(std::int32_t blocks, QSize area, double scale) {
    BlockMapLayout out;
    out.m_blocks = std::max(blocks, 0);
    out.m_scale = std::max(scale, 0.25);
    if (out.m_blocks == 0)
        return out;
    for (std::int32_t perCell = 1; perCell <= out.m_blocks && perCell < (1 << 24); perCell *= 2) {
        const int cells = ceilDiv(out.m_blocks, perCell);
        int best = 0;
        for (const int columns : kColumnCounts) {
            const int pitch = std::min(area.width() / columns, area.height() / ceilDiv(cells, columns));
            if (pitch > best) {
                best = pitch;
                out.m_columns = columns;
            }
        }
        if (best > 0) {
            out.m_blocksPerCell = perCell;
            out.setPitch(best);
            return out;
        }
    }
    return out; // not even one row fits: the smallest layout, cut off by the view
}

BlockMapLayout BlockMapLayout::withPitch(int pitch) const {
    BlockMapLayout out = *this;
    out.m_columns = blocksPerRow();
    out.m_blocksPerCell = 1;
    out.setPitch(std::max(pitch, 1));
    return out;
}

void BlockMapLayout::setPitch(int pitch) {
    m_pitch = pitch;
    // One logical pixel of gap, but never so much that the squares lose more than a fifth.
    m_gap = pitch < kGapFromPitch ? 0 : std::clamp(int(m_scale), 1, pitch / kGapFromPitch);
    m_showsCounts = pitch >= kCountsFromPitch * m_scale;
}

int BlockMapLayout::cells() const {
    return ceilDiv(m_blocks, m_blocksPerCell);
}

int BlockMapLayout::rows() const {
    return ceilDiv(cells(), m_columns);
}

BlockRange BlockMapLayout::blocksOf(int cell) const {
    const std::int32_t begin = cell * m_blocksPerCell;
    return {begin, std::min(begin + m_blocksPerCell, m_blocks)};
}

QRect BlockMapLayout::cellRect(int cell) const {
    return {cell % m_columns * m_pitch, cell / m_columns * m_pitch, side(), side()};
}

int BlockMapLayout::cellAt(QPoint point) const {
    if (point.x() < 0 || point.y() < 0 || point.x() >= m_columns * m_pitch)
        return -1;
    const std::int64_t cell = std::int64_t(point.y() / m_pitch) * m_columns + point.x() / m_pitch;
    return cell < cells() ? int(cell) : -1;
}

QRect BlockMapLayout::cellsIn(const QRect& area) const {
    const QRect inside = area & QRect(QPoint(0, 0), size());
    if (inside.isEmpty())
        return {};
    return {QPoint(inside.left() / m_pitch, inside.top() / m_pitch),
            QPoint(inside.right() / m_pitch, inside.bottom() / m_pitch)};
}

std::vector<RulerLabel> BlockMapLayout::ruler() const {
    int step = 1; // 1, 2, 5, 10, 20, 50, ... rows
    for (int i = 0; step * m_pitch < kRulerSpacing * m_scale; ++i)
        step = i % 3 == 1 ? step / 2 * 5 : step * 2;
    std::vector<RulerLabel> out;
    for (int row = 0; row < rows(); row += step)
        out.push_back({row, row * blocksPerRow()});
    return out;
}

} // namespace kvscope::ui
