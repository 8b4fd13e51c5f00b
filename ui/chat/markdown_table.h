// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

#include "ui/chat/markdown_style.h"

class QPainter;

namespace kvscope::ui {

/// A table within a given width: columns as wide as their text where there is room, else cells wrap. Positions are
/// those of the block's shown text; points are relative to the upper left corner.
class MarkdownTable {
public:
    void set(const md::Block& block, const ChatStyle& style, double width, const QColor& link);
    void recolour(const md::Block& block, const ChatStyle& style, const QColor& link);
    void release();
    bool hasLayouts() const;
    int height() const { return m_rowTops.empty() ? 0 : m_rowTops.back(); }
    double width() const { return m_columns.empty() ? 0 : m_columns.back(); }

    void paintGround(QPainter& painter, QPointF origin, const TextColors& colors) const;
    void paintText(QPainter& painter, QPointF origin, const QRectF& clip, const QColor& text) const;
    int positionAt(QPointF point) const;
    QRectF caret(int position) const;
    std::vector<QRectF> rects(int from, int to) const;

private:
    struct Cell {
        int row = 0, column = 0, from = 0, to = 0;
        TextFlow flow;
    };
    QPointF corner(const Cell& cell) const;
    std::vector<double> widths(const md::Block& block, double width);

    std::vector<Cell> m_cells;
    std::vector<double> m_columns; ///< left edges, and the right one
    std::vector<int> m_rowTops;    ///< and the bottom
    int m_line = 22;
    QFont m_headFont;
};

} // namespace kvscope::ui
