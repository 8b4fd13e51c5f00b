// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/widgets/pill.h"

#include <QPainter>

namespace kvscope::ui {
namespace {
constexpr int kPadding = 8;
constexpr int kDot = 6;
constexpr int kGap = 6;
} // namespace

Pill::Pill(const QString& text, Kind kind, const Theme& theme, QWidget* parent)
    : QWidget(parent)
    , m_kind(kind)
    , m_theme(theme) {
    setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
    setText(text);
}

void Pill::setText(const QString& text) {
    if (text == m_text)
        return;
    m_text = text;
    setAccessibleName(text);
    updateGeometry();
    update();
}

void Pill::setKind(Kind kind) {
    m_kind = kind;
    update();
}

void Pill::setDot(bool on) {
    m_dot = on;
    updateGeometry();
    update();
}

void Pill::setHeight(int pixels) {
    m_height = pixels;
    updateGeometry();
}

void Pill::setTheme(const Theme& theme) {
    m_theme = theme;
    update();
}

QSize Pill::sizeHint() const {
    const int text = QFontMetrics(textFont(TextRole::Axis, QFont::Medium)).horizontalAdvance(m_text);
    return {2 * kPadding + text + (m_dot ? kDot + kGap : 0), m_height};
}

void Pill::paintEvent(QPaintEvent*) {
    QColor ground = m_theme.bg3, ink = m_theme.text2;
    switch (m_kind) {
    case Kind::Neutral:
        break;
    case Kind::Ok:
        ground = m_theme.okFill, ink = m_theme.ok;
        break;
    case Kind::Warn:
        ground = m_theme.warnFill, ink = m_theme.warn;
        break;
    case Kind::Danger:
        ground = m_theme.dangerFill, ink = m_theme.danger;
        break;
    case Kind::Accent:
        ground = m_theme.accentSoft, ink = m_theme.accent;
        break;
    }
    QPainter p(this);
    p.setRenderHint(QPainter::Antialiasing);
    p.setPen(Qt::NoPen);
    p.setBrush(ground);
    p.drawRoundedRect(rect(), 4, 4);
    int x = kPadding;
    if (m_dot) {
        p.setBrush(ink);
        p.drawEllipse(QRectF(x, (height() - kDot) / 2.0, kDot, kDot));
        x += kDot + kGap;
    }
    p.setPen(ink);
    p.setFont(textFont(TextRole::Axis, QFont::Medium));
    p.drawText(QRect(x, 0, width() - x, height()), Qt::AlignVCenter | Qt::TextSingleLine, m_text);
}

} // namespace kvscope::ui
