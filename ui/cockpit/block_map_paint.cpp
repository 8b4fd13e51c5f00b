// SPDX-License-Identifier: GPL-3.0-or-later
#include <QPaintEvent>
#include <QPainter>

#include "ui/cockpit/block_map_view.h"
#include "ui/cockpit/look.h"
#include "ui/models/format.h"

namespace kvscope::ui {
namespace {

constexpr int kTagHeight = 16;
constexpr int kTagPadding = 6;
constexpr int kTagGap = 5; // between the contour and the tag
constexpr int kMinimapHeight = 64;
constexpr int kMinimapWidth = 100;

QFont tagFont() {
    return figureFont(TextRole::Axis);
}

} // namespace

void BlockMapView::paintEvent(QPaintEvent* event) {
    QPainter painter(this);
    const QRect dirty = event->rect();
    const QRect cells = mapRect();
    if (!cells.contains(dirty)) {
        for (const QRect& rect : QRegion(dirty) - cells)
            painter.fillRect(rect, m_theme.bg1);
        if (dirty.left() < kGutter)
            paintRuler(painter, dirty);
    }
    if (m_image.isNull() || m_map.cells.empty())
        return;
    const double ratio = devicePixelRatioF();
    for (const QRect& rect : event->region() & cells) {
        const QRectF from((rect.left() - kGutter) * ratio, rect.top() * ratio, rect.width() * ratio,
                          rect.height() * ratio);
        painter.drawImage(QRectF(rect), m_image, from);
    }
    if (!m_runs.empty())
        paintSelection(painter, dirty);
    if (m_pointed >= 0)
        paintPointed(painter);
    if (zoomed() && minimapRect().intersects(dirty))
        paintMinimap(painter);
}

void BlockMapView::paintRuler(QPainter& painter, const QRect& dirty) const {
    painter.setFont(figureFont(TextRole::Axis));
    painter.setPen(m_theme.text3);
    const double ratio = devicePixelRatioF();
    const BlockMapLayout& layout = m_viewport.layout();
    const int line = lineHeight(TextRole::Axis);
    for (const RulerLabel& label : layout.ruler()) {
        const QRect cell = m_viewport.cellRect(label.row * layout.columns());
        const double middle = (cell.top() + layout.side() / 2.0) / ratio;
        if (middle < 0 || middle > height())
            continue;
        // The first and the last row's numbers stay whole, a little off their row.
        const QRectF rect(0, qBound(-3.0, middle - line / 2.0, height() - line + 1.0), kGutter - 8, line);
        if (rect.toAlignedRect().intersects(dirty))
            painter.drawText(rect, Qt::AlignRight | Qt::AlignVCenter, formatNumber(label.block));
    }
}

void BlockMapView::paintSelection(QPainter& painter, const QRect& dirty) const {
    if (!m_contour.boundingRect().adjusted(-8, -8, 8, 40).toAlignedRect().intersects(dirty) &&
        !tagRect().intersects(dirty))
        return;
    painter.save();
    painter.setClipRect(mapRect().adjusted(-3, -3, 3, 3));
    painter.strokePath(m_contour, QPen(m_theme.well, 6, Qt::SolidLine, Qt::SquareCap));
    const QRect seen(QPoint(0, 0), m_image.size());
    for (const QRect& run : m_runs)
        if (const QRect part = run & seen; !part.isEmpty())
            painter.drawImage(toLogical(part), m_image, QRectF(part));
    painter.strokePath(m_contour, QPen(m_theme.text1, 2, Qt::SolidLine, Qt::SquareCap));
    painter.restore();
    const QRect tag = tagRect();
    if (tag.isEmpty())
        return;
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(Qt::NoPen);
    painter.setBrush(m_theme.text1);
    painter.drawRoundedRect(tag, 3, 3);
    painter.setRenderHint(QPainter::Antialiasing, false);
    painter.setFont(tagFont());
    painter.setPen(m_theme.bg1);
    painter.drawText(tag, Qt::AlignCenter, m_tag);
}

QRect BlockMapView::tagRect() const {
    if (m_runs.empty() || m_tag.isEmpty())
        return {};
    const QRect map = mapRect();
    // Below the last run that is in sight, where an answer ends; above it where there is no room.
    QRect last;
    for (const QRect& run : m_runs)
        if (run.intersects(QRect(QPoint(0, 0), m_image.size())))
            last = toLogical(run).toAlignedRect();
    if (last.isEmpty())
        return {};
    const int width = QFontMetrics(tagFont()).horizontalAdvance(m_tag) + 2 * kTagPadding;
    int y = last.bottom() + 1 + kTagGap;
    if (y + kTagHeight > height())
        y = last.top() - kTagGap - kTagHeight;
    const int x = qBound(map.left(), last.left() - 1, qMax(map.left(), map.right() + 1 - width));
    return {x, y, width, kTagHeight};
}

void BlockMapView::paintPointed(QPainter& painter) const {
    const QRect cell = m_viewport.cellRect(m_pointed);
    if (!cell.intersects(QRect(QPoint(0, 0), m_image.size())))
        return;
    // The painter's lines lie around the square: a halo first, so that the frame stands off any colour.
    const QRectF square = toLogical(cell);
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(m_theme.well, 4, Qt::SolidLine, Qt::SquareCap, Qt::MiterJoin));
    painter.drawRect(square.adjusted(-1, -1, 1, 1));
    painter.setPen(QPen(m_theme.focus, 2, Qt::SolidLine, Qt::SquareCap, Qt::MiterJoin));
    painter.drawRect(square.adjusted(-1, -1, 1, 1));
}

void BlockMapView::paintMinimap(QPainter& painter) const {
    auto* self = const_cast<BlockMapView*>(this); // the small image is a cache of the large one
    const double ratio = devicePixelRatioF();
    const QRect frame = minimapRect();
    if (m_miniImage.isNull()) {
        const QSize room(int(kMinimapWidth * ratio), int(kMinimapHeight * ratio));
        self->m_mini.setLayout(BlockMapLayout::fit(std::int32_t(m_map.cells.size()), room, ratio));
        self->m_miniImage = QImage(m_mini.layout().size(), QImage::Format_RGB32);
        self->m_mini.paint(self->m_miniImage, {0, 0}, source());
    }
    painter.fillRect(frame.adjusted(-3, -3, 3, 3), m_theme.bg1);
    painter.fillRect(frame.adjusted(-1, -1, 1, 1), m_theme.line2);
    painter.fillRect(frame, m_theme.well);
    const QRectF inside(frame.left() + 1, frame.top() + 1, kMinimapWidth, kMinimapHeight);
    painter.setRenderHint(QPainter::SmoothPixmapTransform);
    painter.drawImage(inside, m_miniImage);
    painter.setRenderHint(QPainter::SmoothPixmapTransform, false);
    const QRect seen = m_viewport.visible();
    const QSize whole = m_viewport.layout().size();
    const auto share = [](int part, int of, double length) { return of > 0 ? part * length / of : 0.0; };
    const QRectF shown(inside.left() + share(seen.left(), whole.width(), inside.width()),
                       inside.top() + share(seen.top(), whole.height(), inside.height()),
                       share(seen.width(), whole.width(), inside.width()),
                       share(seen.height(), whole.height(), inside.height()));
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(m_theme.text1, 2, Qt::SolidLine, Qt::SquareCap, Qt::MiterJoin));
    painter.drawRect(shown.toAlignedRect().adjusted(1, 1, -1, -1));
}

} // namespace kvscope::ui
