// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/widgets/icon_button.h"

#include <QEvent>
#include <QPainter>

namespace kvscope::ui {

IconButton::IconButton(Icon icon, const QString& name, const Theme& theme, QWidget* parent, int iconSize)
    : QAbstractButton(parent)
    , m_icon(icon)
    , m_iconSize(iconSize)
    , m_theme(theme) {
    setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
    setFocusPolicy(Qt::TabFocus); // a click does not take the keyboard away from what it acts on
    setCursor(Qt::ArrowCursor);
    setName(name);
}

void IconButton::setGlyph(Icon icon) {
    m_icon = icon;
    update();
}

void IconButton::setName(const QString& name) {
    setToolTip(name);
    setAccessibleName(name);
}

void IconButton::setSide(int pixels) {
    m_side = pixels;
    updateGeometry();
}

void IconButton::setTheme(const Theme& theme) {
    m_theme = theme;
    update();
}

void IconButton::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    const bool lit = isChecked() || isDown();
    if (isEnabled() && (lit || underMouse())) {
        painter.setPen(Qt::NoPen);
        painter.setBrush(isDown() ? m_theme.bg4 : m_theme.bg3);
        painter.drawRoundedRect(rect(), 6, 6);
    }
    const QColor ink = !isEnabled() ? m_theme.textOff : lit || underMouse() ? m_theme.text1 : m_theme.text2;
    const QPixmap pixmap = iconPixmap(m_icon, m_iconSize, ink, devicePixelRatioF());
    painter.drawPixmap(QPointF((width() - m_iconSize) / 2.0, (height() - m_iconSize) / 2.0), pixmap);
}

bool IconButton::event(QEvent* event) {
    if (event->type() == QEvent::Enter || event->type() == QEvent::Leave)
        update();
    return QAbstractButton::event(event);
}

} // namespace kvscope::ui
