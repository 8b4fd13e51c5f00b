// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/chat/markdown_table.h"

#include <QFontMetricsF>
#include <QPainter>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ui/chat/message_paint.h"

namespace kvscope::ui {
namespace {

constexpr double kPadX = 10;
constexpr int kPadY = 4;
constexpr double kNoWrap = 100'000;
constexpr double kLongWord = 140; // a longer word may be broken

double widestWord(const TextFlow& flow, const QFont& font) {
    const QFontMetricsF metrics(font);
    double widest = 0;
    for (const QStringView word : QStringView(flow.text()).split(u' ', Qt::SkipEmptyParts))
        widest = std::max(widest, word.size() > 40 ? kLongWord : metrics.horizontalAdvance(word.toString()));
    return std::min(widest, kLongWord);
}

} // namespace

/// Widths of the columns' texts, so that the table is as wide as it needs and at most `width`.
std::vector<double> MarkdownTable::widths(const md::Block& block, double width) {
    const auto columns = std::size_t(std::max(1, block.columns));
    std::vector<double> natural(columns, 8), least(columns, 8);
    for (const Cell& cell : m_cells) {
        const auto column = std::size_t(cell.column);
        natural[column] = std::max(natural[column], std::ceil(cell.flow.widest()) + 1);
        least[column] = std::max(least[column], widestWord(cell.flow, m_headFont) + 2);
    }
    for (std::size_t i = 0; i < columns; ++i)
        least[i] = std::min(least[i], natural[i]);
    const double room = std::max(double(columns), width - double(columns) * 2 * kPadX);
    const double wanted = std::accumulate(natural.begin(), natural.end(), 0.0);
    if (wanted <= room)
        return natural;
    const double needed = std::accumulate(least.begin(), least.end(), 0.0);
    for (std::size_t i = 0; i < columns; ++i)
        natural[i] =
            std::floor(needed >= room ? least[i] * room / needed
                                      : least[i] + (natural[i] - least[i]) * (room - needed) / (wanted - needed));
    return natural;
}

void MarkdownTable::set(const md::Block& block, const ChatStyle& style, double width, const QColor& link) {
    m_cells.clear();
    m_line = style.textLine;
    FlowStyle flow{style.text, style.textLine, kNoWrap, 0, Qt::AlignLeft | Qt::AlignAbsolute};
    m_headFont = style.text;
    m_headFont.setWeight(QFont::DemiBold);
    const auto styleOf = [&](const md::Cell& cell) {
        FlowStyle own = flow;
        own.font = cell.row == 0 ? m_headFont : style.text;
        return own;
    };
    for (const md::Cell& cell : block.cells) {
        if (cell.column >= block.columns)
            continue;
        m_cells.push_back({cell.row, cell.column, cell.from, cell.to, {}});
        m_cells.back().flow.set(block.text.mid(cell.from, cell.to - cell.from),
                                formatsOf(block, cell.from, cell.to, style, link), styleOf(cell));
    }
    const std::vector<double> texts = widths(block, width);
    m_columns.assign(1, 0);
    for (const double text : texts)
        m_columns.push_back(m_columns.back() + text + 2 * kPadX);
    const int rows = m_cells.empty() ? 0 : m_cells.back().row + 1;
    std::vector<int> heights(std::size_t(rows), style.textLine);
    std::size_t index = 0;
    for (const md::Cell& cell : block.cells) {
        if (cell.column >= block.columns)
            continue;
        Cell& own = m_cells[index++];
        FlowStyle set = styleOf(cell);
        set.width = texts[std::size_t(cell.column)];
        set.align = cell.align == md::Align::Center  ? Qt::AlignHCenter
                    : cell.align == md::Align::Right ? Qt::AlignRight | Qt::AlignAbsolute
                                                     : Qt::Alignment();
        own.flow.set(block.text.mid(cell.from, cell.to - cell.from), formatsOf(block, cell.from, cell.to, style, link),
                     set);
        heights[std::size_t(cell.row)] = std::max(heights[std::size_t(cell.row)], own.flow.height());
    }
    m_rowTops.assign(1, 0);
    for (const int height : heights)
        m_rowTops.push_back(m_rowTops.back() + height + 2 * kPadY + 1);
}

void MarkdownTable::recolour(const md::Block& block, const ChatStyle& style, const QColor& link) {
    for (Cell& cell : m_cells)
        cell.flow.recolour(formatsOf(block, cell.from, cell.to, style, link));
}

void MarkdownTable::release() {
    for (Cell& cell : m_cells)
        cell.flow.release();
}

bool MarkdownTable::hasLayouts() const {
    return std::any_of(m_cells.begin(), m_cells.end(), [](const Cell& cell) { return cell.flow.hasLayouts(); });
}

QPointF MarkdownTable::corner(const Cell& cell) const {
    return {m_columns[std::size_t(cell.column)] + kPadX, double(m_rowTops[std::size_t(cell.row)] + kPadY)};
}

void MarkdownTable::paintGround(QPainter& painter, QPointF origin, const TextColors& colors) const {
    if (m_rowTops.size() < 2)
        return;
    fillCrisp(painter, QRectF(origin.x(), origin.y(), width(), m_rowTops[1]), colors.tableHead);
    for (std::size_t i = 1; i < m_rowTops.size(); ++i)
        fillCrisp(painter, QRectF(origin.x(), origin.y() + m_rowTops[i] - 1, width(), 1),
                  i == 1 ? colors.rule : colors.cardLine);
}

void MarkdownTable::paintText(QPainter& painter, QPointF origin, const QRectF& clip, const QColor& text) const {
    painter.setPen(text);
    for (const Cell& cell : m_cells) {
        const QPointF at = origin + corner(cell);
        if (at.y() <= clip.bottom() && at.y() + cell.flow.height() >= clip.top())
            cell.flow.draw(painter, at, clip);
    }
}

int MarkdownTable::positionAt(QPointF point) const {
    const Cell* best = nullptr;
    double nearest = 0;
    for (const Cell& cell : m_cells) {
        const QRectF box(m_columns[std::size_t(cell.column)], m_rowTops[std::size_t(cell.row)],
                         m_columns[std::size_t(cell.column) + 1] - m_columns[std::size_t(cell.column)],
                         m_rowTops[std::size_t(cell.row) + 1] - m_rowTops[std::size_t(cell.row)]);
        const double dx = std::max({box.left() - point.x(), point.x() - box.right(), 0.0});
        const double dy = std::max({box.top() - point.y(), point.y() - box.bottom(), 0.0});
        const double far = dx + dy * 1000; // the row counts first
        if (!best || far < nearest) {
            best = &cell;
            nearest = far;
        }
    }
    return best ? best->from + best->flow.positionAt(point - corner(*best)) : 0;
}

QRectF MarkdownTable::caret(int position) const {
    for (const Cell& cell : m_cells)
        if (position <= cell.to)
            return cell.flow.caret(std::max(0, position - cell.from)).translated(corner(cell));
    return m_cells.empty() ? QRectF(0, 0, 0, m_line)
                           : m_cells.back().flow.caret(position).translated(corner(m_cells.back()));
}

std::vector<QRectF> MarkdownTable::rects(int from, int to) const {
    std::vector<QRectF> out;
    for (const Cell& cell : m_cells) {
        if (cell.from >= to || cell.to <= from)
            continue;
        for (const QRectF& rect : cell.flow.rects(std::max(0, from - cell.from), std::min(to, cell.to) - cell.from))
            out.push_back(rect.translated(corner(cell)));
    }
    return out;
}

} // namespace kvscope::ui
