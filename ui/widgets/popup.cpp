// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/widgets/popup.h"

#include <QBitmap>
#include <QPainter>

namespace kvscope::ui {
namespace {

constexpr int kRadius = 8;

} // namespace

Popup::Popup(const Theme& theme, QWidget* parent)
    : QFrame(parent, Qt::Popup | Qt::FramelessWindowHint)
    , m_theme(theme) {
    setAttribute(Qt::WA_TranslucentBackground);
}

void Popup::setTheme(const Theme& theme) {
    m_theme = theme;
    update();
}

void Popup::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(m_theme.line2);
    painter.setBrush(m_theme.kind == ThemeKind::Light ? m_theme.bg1 : m_theme.bg3);
    painter.drawRoundedRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5), kRadius, kRadius);
}

void Popup::resizeEvent(QResizeEvent* event) {
    QFrame::resizeEvent(event);
    QBitmap shape(size());
    shape.clear();
    QPainter painter(&shape);
    painter.setPen(Qt::NoPen);
    painter.setBrush(Qt::color1);
    painter.drawRoundedRect(rect(), kRadius, kRadius);
    painter.end();
    setMask(shape);
}

} // namespace kvscope::ui
