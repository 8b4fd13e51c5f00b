// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/widgets/marked_text.h"

#include <QTextLayout>
#include <QTextOption>
#include <algorithm>

namespace kvscope::ui {
namespace {

constexpr qsizetype kLongest = 400; // more never fits on a line

/// The text as one shaped line, so that marks inside of joined letters do not tear them apart.
void lay(QTextLayout& layout, const QList<QTextLayout::FormatRange>& formats) {
    QTextOption option;
    option.setWrapMode(QTextOption::NoWrap);
    layout.setTextOption(option);
    layout.setFormats(formats);
    layout.beginLayout();
    QTextLine line = layout.createLine();
    if (line.isValid())
        line.setLineWidth(1e6);
    layout.endLayout();
}

} // namespace

int paintMarked(QPainter& painter, const QRect& rect, const MarkedText& text, const QFont& font, const QColor& plain,
                const QColor& marked, const QColor& ground) {
    QString shown = text.text.left(kLongest);
    shown.replace(QLatin1Char('\n'), QLatin1Char(' '));
    const qsizetype shift = text.elideLeft ? 1 : 0;
    if (text.elideLeft)
        shown.prepend(QChar(0x2026));
    const auto formatsFor = [&](qsizetype length) {
        QList<QTextLayout::FormatRange> formats;
        for (const auto& [begin, end] : text.marks) {
            QTextLayout::FormatRange range;
            range.start = int(begin + shift);
            range.length = int(std::min(end + shift, length) - range.start);
            if (range.length <= 0)
                continue;
            range.format.setForeground(marked);
            range.format.setFontWeight(QFont::DemiBold);
            if (ground.isValid())
                range.format.setBackground(ground);
            formats.append(range);
        }
        return formats;
    };
    QTextLayout whole(shown, font);
    lay(whole, formatsFor(shown.size()));
    QTextLine line = whole.lineCount() > 0 ? whole.lineAt(0) : QTextLine();
    if (!line.isValid())
        return rect.left();
    painter.save();
    painter.setClipRect(rect, Qt::IntersectClip);
    painter.setPen(plain);
    const double top = rect.top() + (rect.height() - line.height()) / 2;
    int end = 0;
    if (line.naturalTextWidth() <= rect.width()) {
        whole.draw(&painter, QPointF(rect.left(), top));
        end = rect.left() + int(line.naturalTextWidth()) + 1;
    } else {
        const int room = rect.width() - QFontMetrics(font).horizontalAdvance(QChar(0x2026));
        const qsizetype fits = std::max(0, line.xToCursor(std::max(0, room), QTextLine::CursorOnCharacter));
        QTextLayout cut(shown.left(fits) + QChar(0x2026), font);
        lay(cut, formatsFor(fits));
        cut.draw(&painter, QPointF(rect.left(), top));
        end = rect.right();
    }
    painter.restore();
    return end;
}

} // namespace kvscope::ui
