// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/widgets/field_frame.h"

#include <QPainter>
#include <QWidget>

namespace kvscope::ui {

void paintFieldFrame(QWidget& box, const Theme& theme, bool focused) {
    QPainter painter(&box);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen(focused ? theme.focus : theme.line3, focused ? 2 : 1));
    painter.setBrush(theme.kind == ThemeKind::Light ? theme.bg1 : theme.bg2);
    const double inset = focused ? 1 : 0.5;
    painter.drawRoundedRect(QRectF(box.rect()).adjusted(inset, inset, -inset, -inset), 10, 10);
}

} // namespace kvscope::ui
