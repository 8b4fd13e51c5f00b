// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/widgets/bar.h"

#include <QPainter>
#include <QPainterPath>

namespace kvscope::ui {

void paintBar(QPainter& painter, const QRectF& rect, const std::vector<BarPart>& parts, const QColor& track,
              const QColor& gap) {
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    QPainterPath outline;
    outline.addRoundedRect(rect, 2, 2);
    painter.setClipPath(outline);
    painter.fillRect(rect, track);
    painter.setRenderHint(QPainter::Antialiasing, false);
    qreal x = rect.left();
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const qreal width = parts[i].share * rect.width();
        if (width <= 0)
            continue;
        painter.fillRect(QRectF(x, rect.top(), width, rect.height()), parts[i].color);
        if (x > rect.left())
            painter.fillRect(QRectF(qRound(x), rect.top(), 1, rect.height()), gap);
        x += width;
    }
    painter.restore();
}

Bar::Bar(const Theme& theme, QWidget* parent, int height, Track track)
    : QWidget(parent)
    , m_height(height)
    , m_track(track)
    , m_theme(theme) {
    setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
}

void Bar::setParts(std::vector<BarPart> parts, const QString& description) {
    setAccessibleName(description);
    if (parts == m_parts)
        return;
    m_parts = std::move(parts);
    update();
}

void Bar::setTheme(const Theme& theme) {
    m_theme = theme;
    update();
}

void Bar::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    paintBar(painter, rect(), m_parts, m_track == Track::Empty ? m_theme.stateEmpty : m_theme.bg4, m_theme.well);
}

} // namespace kvscope::ui
