// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/block_map_viewport.h"

#include <algorithm>
#include <cmath>

namespace kvscope::ui {
namespace {
constexpr double kLargestPitch = 40; // logical: enough for level and count, still an overview
constexpr double kStep = 1.25;
} // namespace

bool BlockMapViewport::setArea(std::int32_t blocks, QSize area, double scale) {
    if (blocks == m_blocks && area == m_area && scale == m_scale)
        return false;
    const bool otherPool = blocks != m_blocks || scale != m_scale;
    const QPoint middle = m_offset + QPoint(m_area.width() / 2, m_area.height() / 2);
    m_blocks = blocks;
    m_area = area;
    m_scale = scale;
    m_fit = BlockMapLayout::fit(blocks, area, scale);
    if (otherPool || fitted() || m_pitch <= m_fit.pitch() || m_layout.blocksPerRow() != m_fit.blocksPerRow()) {
        fit();
        return true;
    }
    centreOn(middle);
    return true;
}

int BlockMapViewport::largestPitch() const {
    return std::max(int(kLargestPitch * m_scale), m_fit.pitch());
}

bool BlockMapViewport::canZoomIn() const {
    return m_layout.pitch() < largestPitch();
}

void BlockMapViewport::fit() {
    m_pitch = 0;
    m_layout = m_fit;
    m_offset = {};
}

void BlockMapViewport::zoom(int steps, QPoint anchor) {
    if (m_blocks == 0)
        return;
    int pitch = m_layout.pitch();
    for (; steps > 0; --steps) {
        if (m_layout.blocksPerCell() > 1 && m_pitch == 0) {
            pitch = 1; // the first step shows single blocks
            setPitch(pitch, anchor);
            continue;
        }
        pitch = std::max(pitch + 1, int(std::lround(pitch * kStep)));
    }
    for (; steps < 0; ++steps)
        pitch = std::min(pitch - 1, int(std::lround(pitch / kStep)));
    setPitch(std::min(pitch, largestPitch()), anchor);
}

void BlockMapViewport::setPitch(int pitch, QPoint anchor) {
    const bool showsAll = m_fit.blocksPerCell() == 1 ? pitch <= m_fit.pitch() : pitch < 1;
    if (showsAll) {
        fit();
        return;
    }
    // Where in its cell the middle of the anchored pixel lies: rounding down below keeps it in that cell, however many
    // steps are taken.
    const double perCell = m_layout.blocksPerCell();
    const double column = (anchor.x() + m_offset.x() + 0.5) / double(m_layout.pitch()) * perCell;
    const double row = (anchor.y() + m_offset.y() + 0.5) / double(m_layout.pitch());
    m_pitch = pitch;
    m_layout = m_fit.withPitch(pitch);
    m_offset = QPoint(int(column * pitch), int(row * pitch)) - anchor;
    clampOffset();
}

void BlockMapViewport::panBy(QPoint delta) {
    if (fitted())
        return;
    m_offset -= delta;
    clampOffset();
}

void BlockMapViewport::centreOn(QPoint point) {
    if (fitted())
        return;
    m_offset = point - QPoint(m_area.width() / 2, m_area.height() / 2);
    clampOffset();
}

void BlockMapViewport::reveal(int cell) {
    if (fitted() || cell < 0)
        return;
    const int margin = 2 * m_layout.pitch();
    const QRect rect = m_layout.cellRect(cell).adjusted(-margin, -margin, margin, margin);
    const auto into = [](int offset, int from, int to, int length) {
        return from < offset ? from : to > offset + length ? to - length : offset;
    };
    m_offset.setX(into(m_offset.x(), rect.left(), rect.right() + 1, m_area.width()));
    m_offset.setY(into(m_offset.y(), rect.top(), rect.bottom() + 1, m_area.height()));
    clampOffset();
}

void BlockMapViewport::clampOffset() {
    const QSize size = m_layout.size();
    m_offset.setX(std::clamp(m_offset.x(), 0, std::max(0, size.width() - m_area.width())));
    m_offset.setY(std::clamp(m_offset.y(), 0, std::max(0, size.height() - m_area.height())));
}

} // namespace kvscope::ui
