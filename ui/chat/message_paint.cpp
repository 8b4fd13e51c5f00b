// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/chat/message_paint.h"

#include <QFontMetrics>
#include <QTextLayout>
#include <algorithm>

namespace kvscope::ui {
namespace {

int layWrapped(QTextLayout& layout, int lineHeight, int width) {
    QTextOption option;
    option.setWrapMode(QTextOption::WrapAtWordBoundaryOrAnywhere);
    layout.setTextOption(option);
    layout.beginLayout();
    int y = 0;
    for (QTextLine line = layout.createLine(); line.isValid(); line = layout.createLine()) {
        line.setLineWidth(std::max(20, width));
        line.setPosition({0, y + (lineHeight - line.height()) / 2});
        y += lineHeight;
    }
    layout.endLayout();
    return y;
}

bool isFigure(QChar c) {
    return c.isDigit() || c == QLatin1Char(',') || c == QLatin1Char('.');
}

} // namespace

int paintFigures(QPainter& painter, const QRect& rect, const QString& text, const QFont& font, const QColor& words,
                 const QColor& figures) {
    const QFontMetrics metrics(font);
    const QString shown = metrics.elidedText(text, Qt::ElideRight, rect.width());
    painter.setFont(font);
    int x = rect.left();
    for (qsizetype from = 0; from < shown.size();) {
        // A comma or point counts as part of a figure only between digits.
        const bool figure = shown[from].isDigit();
        qsizetype to = from + 1;
        while (to < shown.size() && (figure ? isFigure(shown[to]) && (shown[to].isDigit() || (to + 1 < shown.size() &&
                                                                                              shown[to + 1].isDigit()))
                                            : !shown[to].isDigit()))
            ++to;
        const QString part = shown.mid(from, to - from);
        painter.setPen(figure ? figures : words);
        painter.drawText(QRect(x, rect.top(), rect.right() - x + 8, rect.height()),
                         Qt::AlignVCenter | Qt::TextSingleLine, part);
        x += metrics.horizontalAdvance(part);
        from = to;
    }
    return x;
}

int wrappedHeight(const QString& text, const QFont& font, int lineHeight, int width) {
    QTextLayout layout(text, font);
    return layWrapped(layout, lineHeight, width);
}

void paintWrapped(QPainter& painter, const QRect& rect, const QString& text, const QFont& font, int lineHeight,
                  const QColor& color) {
    QTextLayout layout(text, font);
    layWrapped(layout, lineHeight, rect.width());
    painter.setPen(color);
    layout.draw(&painter, rect.topLeft());
}

int factsHeight(const Facts& facts, int width, int nameWidth) {
    int height = 0;
    for (const auto& [name, value] : facts)
        height += wrappedHeight(value, figureFont(TextRole::Table), lineHeight(TextRole::Table), width - nameWidth) + 2;
    return std::max(0, height - 2);
}

void paintFacts(QPainter& painter, const QRect& rect, const Facts& facts, int nameWidth, const Theme& theme) {
    const int line = lineHeight(TextRole::Table);
    int y = rect.top();
    for (const auto& [name, value] : facts) {
        painter.setFont(textFont(TextRole::Table));
        painter.setPen(theme.text3);
        painter.drawText(QRect(rect.left(), y, nameWidth - 8, line), Qt::AlignVCenter, name);
        const QRect valueRect(rect.left() + nameWidth, y, rect.width() - nameWidth, line);
        paintWrapped(painter, valueRect, value, figureFont(TextRole::Table), line, theme.text2);
        y += wrappedHeight(value, figureFont(TextRole::Table), line, valueRect.width()) + 2;
    }
}

void fillCrisp(QPainter& painter, const QRectF& rect, const QColor& color) {
    const bool smooth = painter.testRenderHint(QPainter::Antialiasing);
    painter.setRenderHint(QPainter::Antialiasing, false);
    painter.fillRect(rect, color);
    painter.setRenderHint(QPainter::Antialiasing, smooth);
}

void paintIcon(QPainter& painter, QRect rect, Icon icon, int size, const QColor& color, double devicePixelRatio) {
    const QPixmap pixmap = iconPixmap(icon, size, color, devicePixelRatio);
    painter.drawPixmap(rect.left() + (rect.width() - size) / 2, rect.top() + (rect.height() - size) / 2, size, size,
                       pixmap);
}

} // namespace kvscope::ui
