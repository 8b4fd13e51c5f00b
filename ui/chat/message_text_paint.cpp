// SPDX-License-Identifier: GPL-3.0-or-later
//
// MessageText: how it looks.
#include <QCoreApplication>
#include <QFontMetricsF>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "ui/chat/message_paint.h"
#include "ui/chat/message_text.h"

namespace kvscope::ui {
namespace {

QString tr(const char* text) {
    return QCoreApplication::translate("MessageText", text);
}

} // namespace

/// What all drawing of one call shares.
struct MessageText::Brush {
    QPainter& painter;
    QPointF origin;
    QRectF clip;
    const TextLook& look;
    TextColors colors;
};

void MessageText::paint(QPainter& painter, QPointF origin, const QRectF& clip, const TextLook& look) const {
    const Brush brush{painter, origin, clip, look, TextColors::of(*look.theme, look.own)};
    const auto first = std::lower_bound(m_units.begin(), m_units.end(), clip.top() - origin.y(),
                                        [](const Unit& unit, double y) { return unit.y + unit.height < y; });
    for (auto unit = first; unit != m_units.end() && origin.y() + unit->y - unit->gap <= clip.bottom(); ++unit)
        if (unit->measured)
            paintUnit(brush, std::size_t(unit - m_units.begin()));
    for (const TextHit hit : {look.focused})
        if (hit.part == TextPart::Link || hit.part == TextPart::Thought || hit.part == TextPart::CopyCode)
            paintFocus(brush, rectOf(hit));
}

void MessageText::paintUnit(const Brush& brush, std::size_t index) const {
    const Unit& unit = m_units[index];
    if (unit.block < 0)
        return paintThoughtLine(brush, unit);
    paintQuotes(brush, index);
    const md::Block& block = blockOf(unit);
    QPainter& painter = brush.painter;
    const QPointF at = brush.origin + flowOrigin(unit);
    if (block.kind == md::Kind::Rule) {
        fillCrisp(painter, QRectF(at.x(), at.y(), m_width - unit.indent, 1), brush.colors.rule);
        return;
    }
    if (block.kind == md::Kind::Code)
        paintCode(brush, index);
    if (unit.piece == 0 && !block.marker.isEmpty())
        paintMarker(brush, unit);
    if (unit.table)
        unit.table->paintGround(painter, at, brush.colors);
    paintSpans(brush, unit);
    paintRange(brush, unit, brush.look.lit, brush.colors.lit);
    paintRange(brush, unit, brush.look.selection, brush.colors.selection);
    const QColor text = unit.thought ? brush.colors.thought : brush.colors.text;
    if (unit.table)
        return unit.table->paintText(painter, at, brush.clip, text);
    painter.setPen(text);
    unit.flow.draw(painter, at, brush.clip);
}

/// The rules at the left of quotes and of a thought, without gaps between the blocks of the same one.
void MessageText::paintQuotes(const Brush& brush, std::size_t index) const {
    const Unit& unit = m_units[index];
    const md::Block& block = blockOf(unit);
    const Unit* above = index > 0 && m_units[index - 1].thought == unit.thought && m_units[index - 1].block >= 0
                            ? &m_units[index - 1]
                            : nullptr;
    const auto rule = [&](double x, bool joined, const QColor& color) {
        const double top = unit.y - (joined ? unit.gap : 0);
        fillCrisp(brush.painter, QRectF(brush.origin.x() + x, brush.origin.y() + top, 2, unit.y + unit.height - top),
                  color);
    };
    if (unit.thought)
        rule(7, above != nullptr, brush.colors.rule);
    double x = unit.thought ? measure::kThoughtIndent : 0;
    for (std::size_t i = 0; i < block.containers.size(); ++i) {
        const md::Container& container = block.containers[i];
        if (!container.quote) {
            x += listIndent(container.id);
            continue;
        }
        const bool joined =
            above && blockOf(*above).containers.size() > i && blockOf(*above).containers[i] == container;
        if (x < unit.indent)
            rule(x + 2, joined, brush.look.theme->line3);
        x += measure::kQuoteIndent;
    }
}

/// The card of the code that the unit is a piece of, as a whole: a clip keeps what is out of sight from costing.
void MessageText::paintCode(const Brush& brush, std::size_t index) const {
    std::size_t first = index, last = index;
    while (first > 0 && m_units[first].piece > 0)
        --first;
    while (last + 1 < m_units.size() && m_units[last + 1].piece > 0)
        ++last;
    const Unit& head = m_units[first];
    QPainter& painter = brush.painter;
    const double top = brush.origin.y() + head.y;
    QRectF card(brush.origin.x() + head.indent, top, m_width - head.indent,
                m_units[last].y + m_units[last].height - head.y);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(brush.colors.cardLine);
    painter.setBrush(brush.colors.card);
    painter.drawRoundedRect(card.adjusted(0.5, 0.5, -0.5, -0.5), measure::kCardRadius, measure::kCardRadius);
    if (index != first)
        return;
    fillCrisp(painter, QRectF(card.left() + 1, top + measure::kCodeHead - 1, card.width() - 2, 1),
              brush.colors.cardLine);
    const QRectF copy = copyRect(head).translated(brush.origin);
    const QFont font = textFont(TextRole::Table);
    painter.setFont(font);
    painter.setPen(brush.colors.codeHead);
    const QRectF name(card.left() + measure::kCodePadX, top,
                      std::max(0.0, copy.left() - card.left() - measure::kCodePadX - 8), measure::kCodeHead);
    painter.drawText(name, Qt::AlignVCenter | Qt::TextSingleLine,
                     QFontMetricsF(font).elidedText(blockOf(head).language, Qt::ElideRight, name.width()));
    const TextHit hit{TextPart::CopyCode, indexOf(head)};
    const bool over = brush.look.under == hit, done = brush.look.done == hit;
    if (over) {
        painter.setPen(Qt::NoPen);
        painter.setBrush(brush.look.theme->bg3);
        painter.drawRoundedRect(copy, 5, 5);
    }
    const QColor color = over || done ? brush.look.theme->text1 : brush.look.theme->text2;
    paintIcon(painter, QRect(int(copy.left()) + 4, int(copy.top()), 16, int(copy.height())),
              done ? Icon::Check : Icon::Copy, 16, color, brush.look.devicePixelRatio);
    painter.setPen(color);
    painter.drawText(copy.adjusted(24, 0, 0, 0), Qt::AlignVCenter | Qt::TextSingleLine,
                     done ? tr("Copied") : tr("Copy"));
}

void MessageText::paintMarker(const Brush& brush, const Unit& unit) const {
    const md::Block& block = blockOf(unit);
    const FlowStyle style = flowStyleOf(unit);
    QPainter& painter = brush.painter;
    const QPointF at = brush.origin + QPointF(unit.indent, unit.y);
    const bool mirrored = isMirrored(unit);
    const double edge = mirrored ? brush.origin.x() + m_width - unit.indent : at.x(); // of the words
    const QColor color = unit.thought ? brush.colors.thought : brush.colors.text;
    const double line = block.kind == md::Kind::Code ? measure::kCodeHead : style.line;
    if (block.task != md::Task::None) {
        const double side = std::round(styleOf(unit).text.pixelSize() * 0.93);
        const QRectF box(mirrored ? edge + 7 : edge - side - 7, std::round(at.y() + (line - side) / 2), side, side);
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setPen(QPen(brush.look.theme->line3, 1));
        painter.setBrush(Qt::NoBrush);
        painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), 3, 3);
        if (block.task == md::Task::Done)
            paintIcon(painter, box.toAlignedRect(), Icon::Check, int(side), color, brush.look.devicePixelRatio);
        return;
    }
    if (!block.marker.front().isDigit()) {
        const double r = styleOf(unit).text.pixelSize() / 5.6;
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setPen(Qt::NoPen);
        painter.setBrush(color);
        painter.drawEllipse(QPointF(mirrored ? edge + 11 : edge - 11, at.y() + line / 2 + 0.5), r, r);
        return;
    }
    painter.setFont(styleOf(unit).text);
    painter.setPen(color);
    painter.drawText(QRectF(mirrored ? edge + 7 : edge - 207, at.y(), 200, line),
                     (mirrored ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter, block.marker);
}

void MessageText::paintThoughtLine(const Brush& brush, const Unit& unit) const {
    QPainter& painter = brush.painter;
    const QRectF row(brush.origin.x(), brush.origin.y() + unit.y, m_width, unit.height);
    const bool over = brush.look.under.part == TextPart::Thought;
    const QColor color = over ? brush.look.theme->text1 : brush.look.theme->text2;
    paintIcon(painter, QRect(int(row.left()), int(row.top()), 16, int(row.height())),
              m_thoughtOpen ? Icon::Down : Icon::Right, 16, color, brush.look.devicePixelRatio);
    paintIcon(painter, QRect(int(row.left()) + 20, int(row.top()), 16, int(row.height())), Icon::Brain, 16, color,
              brush.look.devicePixelRatio);
    paintFigures(painter, row.adjusted(44, 0, 0, 0).toAlignedRect(), m_thoughtLine, figureFont(TextRole::Table), color,
                 color);
}

void MessageText::paintRange(const Brush& brush, const Unit& unit, TextRange range, const QColor& color) const {
    const md::Block& block = blockOf(unit);
    if (range.empty() || block.source.from >= range.to || block.source.to <= range.from)
        return;
    const int from = std::max(block.shownAt(range.from), unit.from), to = std::min(block.shownAt(range.to), unit.to);
    const bool past = range.to > block.source.to || (unit.to < int(block.text.size()) && to == unit.to);
    if (from > to || (from == to && !(past && unit.from == unit.to)))
        return;
    const QPointF at = brush.origin + flowOrigin(unit);
    const auto rects =
        unit.table ? unit.table->rects(from, to) : unit.flow.rects(from - unit.from, to - unit.from, past);
    for (const QRectF& rect : rects)
        fillCrisp(brush.painter, rect.translated(at), color);
}

/// The ground of code within a sentence.
void MessageText::paintSpans(const Brush& brush, const Unit& unit) const {
    const md::Block& block = blockOf(unit);
    const QPointF at = brush.origin + flowOrigin(unit);
    brush.painter.setRenderHint(QPainter::Antialiasing);
    brush.painter.setPen(Qt::NoPen);
    brush.painter.setBrush(brush.colors.codeSpan);
    for (const md::Span& span : block.spans) {
        if (!(span.flags & md::CodeSpan) || span.to <= unit.from || span.from >= unit.to)
            continue;
        const int from = std::max(span.from, unit.from) - unit.from, to = std::min(span.to, unit.to) - unit.from;
        for (const QRectF& rect : unit.table ? unit.table->rects(span.from, span.to) : unit.flow.rects(from, to)) {
            const QRectF ground = rect.translated(at).adjusted(-2, 2, 2, -2);
            if (ground.intersects(brush.clip))
                brush.painter.drawRoundedRect(ground, 3, 3);
        }
    }
}

void MessageText::paintFocus(const Brush& brush, const QRectF& rect) const {
    if (rect.isEmpty())
        return;
    brush.painter.setRenderHint(QPainter::Antialiasing);
    brush.painter.setPen(QPen(brush.look.theme->focus, 2));
    brush.painter.setBrush(Qt::NoBrush);
    brush.painter.drawRoundedRect(rect.translated(brush.origin).adjusted(-2, 0, 2, 0), 4, 4);
}

} // namespace kvscope::ui
