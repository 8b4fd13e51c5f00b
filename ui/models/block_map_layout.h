// SPDX-License-Identifier: GPL-3.0-or-later
//
// Where each block of the pool is drawn. Pure geometry in device pixels, origin at the first cell: a whole device pixel
// per step keeps every cell of a map equally large, at any scale of the screen.
#pragma once

#include <QPoint>
#include <QRect>
#include <QSize>
#include <cstdint>
#include <vector>

namespace kvscope::ui {

/// Half-open range of block numbers.
struct BlockRange {
    std::int32_t begin = 0, end = 0;
    friend bool operator==(const BlockRange&, const BlockRange&) = default;
};

/// A number beside a row of the map: the id of the row's first block.
struct RulerLabel {
    int row = 0;
    std::int32_t block = 0;
    friend bool operator==(const RulerLabel&, const RulerLabel&) = default;
};

class BlockMapLayout {
public:
    BlockMapLayout() = default;

    /// The layout that shows all `blocks` in `area` (device pixels): the largest pitch at which one of the column
    /// counts 64, 80, 100, 200, 400, 500, 800, 1000 fits in width and height, and of those the smallest count. Where
    /// not even one pixel a block fits, a cell stands for 2^n blocks. `scale` = device pixels per logical pixel.
    static BlockMapLayout fit(std::int32_t blocks, QSize area, double scale);

    /// The same rows at another pitch. Zooming into a layout that aggregates shows single blocks.
    BlockMapLayout withPitch(int pitch) const;

    std::int32_t blocks() const { return m_blocks; }
    int columns() const { return m_columns; } ///< cells in a row
    int rows() const;
    int cells() const;
    int blocksPerCell() const { return m_blocksPerCell; }
    int blocksPerRow() const { return m_columns * m_blocksPerCell; }
    int pitch() const { return m_pitch; }              ///< from the left edge of a cell to the next one's
    int gap() const { return m_gap; }                  ///< 0 below pitch 5
    int side() const { return m_pitch - m_gap; }       ///< of the coloured square
    bool showsMarks() const { return side() >= 5; }    ///< room for the second cue of a state
    bool showsCounts() const { return m_showsCounts; } ///< room for the number of users
    QSize size() const { return {m_columns * m_pitch, rows() * m_pitch}; } ///< device pixels

    int cellOf(std::int32_t block) const { return block / m_blocksPerCell; }
    BlockRange blocksOf(int cell) const;
    /// The square of a cell, without its gap.
    QRect cellRect(int cell) const;
    /// The cell under a point, its gap included; -1 outside of the map.
    int cellAt(QPoint point) const;
    /// Cells that `area` touches, as rows [first, last] and columns [first, last]; empty when it touches none.
    QRect cellsIn(const QRect& area) const;

    /// Labels so far apart that they stay readable; ids are round because column counts are.
    std::vector<RulerLabel> ruler() const;

    friend bool operator==(const BlockMapLayout&, const BlockMapLayout&) = default;

private:
    void setPitch(int pitch);

    std::int32_t m_blocks = 0;
    int m_columns = 64;
    int m_blocksPerCell = 1;
    int m_pitch = 1;
    int m_gap = 0;
    bool m_showsCounts = false;
    double m_scale = 1;
};

} // namespace kvscope::ui
