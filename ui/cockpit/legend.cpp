// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/cockpit/legend.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>

#include "ui/cockpit/look.h"
#include "ui/models/format.h"

namespace kvscope::ui {
namespace {
constexpr int kGlyph = 12;
constexpr int kGlyphGap = 6;
constexpr int kRow = 20;
constexpr int kLeastGap = 12;
constexpr int kTop = 4;
} // namespace

const std::array<kv::BlockState, 7> Legend::kOrder = {
    kv::BlockState::Active,  kv::BlockState::Shared,     kv::BlockState::Cached, kv::BlockState::Pinned,
    kv::BlockState::Filling, kv::BlockState::InTransfer, kv::BlockState::Empty};

QImage cellGlyph(const Theme& theme, ColourBy colourBy, int key, int side, double devicePixelRatio) {
    const int pixels = qRound(side * devicePixelRatio);
    BlockMapRaster raster;
    raster.setLook(blockPalette(theme), colourBy);
    raster.setBlockSize(20);
    metrics::BlockCell cell;
    cell.fill = 11; // a level that reads as "half full" at any size
    std::vector<int> numbers{0};
    if (colourBy == ColourBy::Owner) {
        cell.state = key == 0 ? kv::BlockState::Empty : kv::BlockState::Active;
        cell.owner = 1;
        numbers.push_back(key);
    } else {
        cell.state = kv::BlockState(key);
    }
    const std::array cells{cell};
    // One gap is painted beside the square; the copy leaves it out.
    raster.setLayout(
        BlockMapLayout::fit(1, {64, 1}, devicePixelRatio).withPitch(pixels + qMax(1, int(devicePixelRatio))));
    QImage image(pixels, pixels, QImage::Format_RGB32);
    raster.paint(image, {0, 0}, {cells, numbers, {}});
    image.setDevicePixelRatio(devicePixelRatio);
    return image;
}

Legend::Legend(const Theme& theme, QWidget* parent) : QWidget(parent), m_theme(theme) {
    setFocusPolicy(Qt::TabFocus);
    setAccessibleName(tr("Legend: click an entry to see only its blocks"));
    setCursor(Qt::PointingHandCursor);
}

void Legend::setTheme(const Theme& theme) {
    m_theme = theme;
    m_glyphs.clear();
    update();
}

void Legend::setEntries(std::vector<Entry> entries, ColourBy colourBy) {
    if (colourBy != m_colourBy) {
        m_colourBy = colourBy;
        m_glyphs.clear();
        m_current = -1;
        clearFilter();
    } else if (entries == m_entries) {
        return;
    }
    const int before = heightForWidth(width());
    m_entries = std::move(entries);
    m_widths.clear();
    const QFontMetrics metrics(figureFont(TextRole::Table));
    for (const Entry& entry : m_entries)
        m_widths.push_back(kGlyph + kGlyphGap +
                           metrics.horizontalAdvance(entry.name + u' ' + formatNumber(entry.count)));
    if (heightForWidth(width()) != before)
        updateGeometry();
    update();
}

void Legend::clearFilter() {
    if (!m_filter)
        return;
    m_filter.reset();
    emit filterChanged(m_filter);
    update();
}

std::vector<QRect> Legend::places(int width) const {
    const int room = width - kGutter - kRightMargin;
    int sum = 0, widest = 0;
    for (const int entry : m_widths) {
        sum += entry;
        widest = qMax(widest, entry);
    }
    const int count = int(m_entries.size());
    std::vector<QRect> out;
    if (count == 0)
        return out;
    if (sum + (count - 1) * kLeastGap <= room) { // one row, from edge to edge where it is long enough
        const double gap = count > 1 ? qMin(double(room - sum) / (count - 1), 44.0) : 0;
        double x = kGutter;
        for (const int entry : m_widths) {
            out.push_back({qRound(x), kTop, entry, kRow});
            x += entry + gap;
        }
        return out;
    }
    const int columns = qMax(1, (room + kLeastGap) / (widest + kLeastGap));
    const int step = room / columns;
    for (int i = 0; i < count; ++i)
        out.push_back(
            {kGutter + i % columns * step, kTop + i / columns * kRow, qMin(m_widths[std::size_t(i)], step), kRow});
    return out;
}

int Legend::heightForWidth(int width) const {
    const std::vector<QRect> rects = places(width);
    return (rects.empty() ? kTop + kRow : rects.back().bottom() + 1) + kTop;
}

const QImage& Legend::glyph(int key) {
    const double ratio = devicePixelRatioF();
    for (const auto& [known, image] : m_glyphs)
        if (known == key && image.devicePixelRatio() == ratio)
            return image;
    m_glyphs.emplace_back(key, cellGlyph(m_theme, m_colourBy, key, kGlyph, ratio));
    return m_glyphs.back().second;
}

void Legend::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.fillRect(rect(), m_theme.bg1);
    painter.setFont(figureFont(TextRole::Table));
    const QFontMetrics metrics = painter.fontMetrics();
    const std::vector<QRect> rects = places(width());
    for (std::size_t i = 0; i < m_entries.size(); ++i) {
        const Entry& entry = m_entries[i];
        const QRect& place = rects[i];
        const bool off = m_filter && *m_filter != entry.key;
        painter.setOpacity(off ? 0.5 : 1);
        painter.drawImage(QPoint(place.left(), place.top() + (kRow - kGlyph) / 2), glyph(entry.key));
        const int x = place.left() + kGlyph + kGlyphGap;
        painter.setPen(m_theme.text2);
        painter.drawText(QRect(x, place.top(), place.width(), kRow), Qt::AlignVCenter, entry.name);
        painter.setPen(m_theme.text1);
        const QString count = formatNumber(entry.count);
        painter.drawText(QRect(x + metrics.horizontalAdvance(entry.name + u' '), place.top(), place.width(), kRow),
                         Qt::AlignVCenter, count);
        painter.setOpacity(1);
        if (m_filter && *m_filter == entry.key)
            painter.fillRect(QRect(place.left(), place.bottom() - 1, place.width(), 2), m_theme.accent);
        if (hasFocus() && int(i) == m_current) {
            painter.setPen(QPen(m_theme.focus, 1));
            painter.drawRect(place.adjusted(-3, 1, 2, -1));
        }
    }
}

void Legend::toggle(int index) {
    if (index < 0 || index >= int(m_entries.size()))
        return;
    const int key = m_entries[std::size_t(index)].key;
    if (m_filter && *m_filter == key)
        m_filter.reset();
    else
        m_filter = key;
    emit filterChanged(m_filter);
    update();
}

void Legend::mousePressEvent(QMouseEvent* event) {
    const std::vector<QRect> rects = places(width());
    for (std::size_t i = 0; i < rects.size(); ++i)
        if (rects[i].adjusted(-4, 0, 4, 0).contains(event->position().toPoint()))
            return toggle(int(i));
}

void Legend::keyPressEvent(QKeyEvent* event) {
    const int last = int(m_entries.size()) - 1;
    switch (event->key()) {
    case Qt::Key_Right:
    case Qt::Key_Down:
        m_current = qMin(m_current + 1, last);
        break;
    case Qt::Key_Left:
    case Qt::Key_Up:
        m_current = qMax(m_current - 1, 0);
        break;
    case Qt::Key_Return:
    case Qt::Key_Enter:
    case Qt::Key_Space:
        return toggle(m_current);
    default:
        return QWidget::keyPressEvent(event);
    }
    const Entry& entry = m_entries[std::size_t(qBound(0, m_current, last))];
    setAccessibleDescription(entry.name + u' ' + formatNumber(entry.count));
    update();
}

void Legend::focusInEvent(QFocusEvent* event) {
    m_current = qMax(m_current, 0);
    update();
    QWidget::focusInEvent(event);
}

void Legend::focusOutEvent(QFocusEvent* event) {
    update();
    QWidget::focusOutEvent(event);
}

} // namespace kvscope::ui
