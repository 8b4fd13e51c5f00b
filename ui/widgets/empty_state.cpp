// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/widgets/empty_state.h"

#include <QPainter>

namespace kvscope::ui {
namespace {
constexpr int kWidest = 320;
constexpr int kTallest = 112;
constexpr int kGlyph = 20;
constexpr int kMargin = 16;
} // namespace

EmptyState::EmptyState(Icon icon, const QString& text, const Theme& theme, QWidget* parent)
    : QWidget(parent)
    , m_icon(icon)
    , m_theme(theme) {
    setText(text);
}

void EmptyState::setText(const QString& text) {
    m_text = text;
    setAccessibleName(text);
    update();
}

void EmptyState::setTheme(const Theme& theme) {
    m_theme = theme;
    update();
}

void EmptyState::paintEvent(QPaintEvent*) {
    QPainter p(this);
    p.setRenderHint(QPainter::Antialiasing);
    const QSize box(qMin(kWidest, width() - 2 * kMargin), qMin(kTallest, height() - kMargin));
    const QRect frame(QPoint((width() - box.width()) / 2, (height() - box.height()) / 2), box);
    QPen dashed(m_theme.line3, 1);
    dashed.setDashPattern({3, 3});
    p.setPen(dashed);
    p.setBrush(m_theme.bg1);
    p.drawRoundedRect(QRectF(frame).adjusted(.5, .5, -.5, -.5), 8, 8);

    p.setFont(textFont(TextRole::Control));
    const QRect room = frame.adjusted(kMargin, 0, -kMargin, 0);
    const int textHeight = p.fontMetrics().boundingRect(room, Qt::AlignHCenter | Qt::TextWordWrap, m_text).height();
    const bool withIcon = kGlyph + 8 + textHeight <= frame.height() - 8;
    int y = frame.top() + (frame.height() - textHeight - (withIcon ? kGlyph + 8 : 0)) / 2;
    if (withIcon) {
        p.drawPixmap(QPoint(frame.center().x() - kGlyph / 2, y),
                     iconPixmap(m_icon, kGlyph, m_theme.text3, devicePixelRatioF()));
        y += kGlyph + 8;
    }
    p.setPen(m_theme.text2);
    p.drawText(QRect(room.left(), y, room.width(), textHeight + 2), Qt::AlignHCenter | Qt::TextWordWrap, m_text);
}

} // namespace kvscope::ui
