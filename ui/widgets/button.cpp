// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/widgets/button.h"

#include <QEvent>
#include <QPainter>

namespace kvscope::ui {
namespace {
constexpr int kGlyph = 16;
constexpr int kGap = 6;
constexpr int kKeyPadding = 4;
} // namespace

Button::Button(const QString& text, Kind kind, const Theme& theme, QWidget* parent)
    : QAbstractButton(parent)
    , m_kind(kind)
    , m_theme(theme) {
    setText(text);
    setAccessibleName(text);
    setSizePolicy(QSizePolicy::Minimum, QSizePolicy::Fixed);
    setFocusPolicy(Qt::TabFocus);
}

void Button::setGlyph(std::optional<Icon> icon) {
    m_icon = icon;
    updateGeometry();
    update();
}

void Button::setTrailingGlyph(std::optional<Icon> icon) {
    m_trailing = icon;
    updateGeometry();
    update();
}

void Button::setKeyHint(const QString& key) {
    m_key = key;
    updateGeometry();
    update();
}

void Button::setHeight(int pixels) {
    m_height = pixels;
    updateGeometry();
}

void Button::setTheme(const Theme& theme) {
    m_theme = theme;
    update();
}

QFont Button::labelFont() const {
    return textFont(m_height >= 32 ? TextRole::Control : TextRole::Table, QFont::Medium);
}

int Button::padding() const {
    return m_height >= 32 ? 16 : m_height >= 28 ? 12 : 8;
}

QSize Button::sizeHint() const {
    int width = 2 * padding();
    if (!text().isEmpty())
        width += QFontMetrics(labelFont()).horizontalAdvance(text());
    if (m_icon)
        width += kGlyph + (text().isEmpty() ? 0 : kGap);
    if (m_trailing)
        width += kGlyph + kGap;
    if (!m_key.isEmpty())
        width += kGap + QFontMetrics(monoFont(TextRole::Axis)).horizontalAdvance(m_key) + 2 * kKeyPadding + 2;
    return {qMax(width, m_height), m_height};
}

void Button::paintEvent(QPaintEvent*) {
    QPainter p(this);
    p.setRenderHint(QPainter::Antialiasing);
    QColor ground = m_theme.bg3, border = m_theme.line2, ink = m_theme.text1;
    if (!isEnabled()) {
        ground = Qt::transparent;
        ink = m_theme.textOff;
        border = m_kind == Kind::Ghost ? QColor(Qt::transparent) : m_theme.line1;
    } else if (m_kind == Kind::Primary) {
        ground = border = underMouse() ? m_theme.accentHover : m_theme.accentFill;
        ink = m_theme.onAccent;
    } else if (m_kind == Kind::Ghost) {
        ground = isDown() || isChecked() ? m_theme.bg4 : underMouse() ? m_theme.bg3 : QColor(Qt::transparent);
        border = Qt::transparent;
        ink = underMouse() || isChecked() ? m_theme.text1 : m_theme.text2;
    } else if (m_kind == Kind::Danger) {
        ground = isDown() ? m_theme.dangerFill : QColor(Qt::transparent);
        border = ink = m_theme.danger;
    } else if (isDown() || isChecked()) {
        ground = m_theme.bg4;
    } else if (underMouse()) {
        border = m_theme.line3;
    }
    p.setPen(border);
    p.setBrush(ground);
    p.drawRoundedRect(QRectF(rect()).adjusted(.5, .5, -.5, -.5), 6, 6);

    const int content = sizeHint().width() - 2 * padding();
    qreal x = qMax<qreal>(padding(), (width() - content) / 2.0);
    const qreal glyphTop = (height() - kGlyph) / 2.0;
    if (m_icon) {
        if (text().isEmpty())
            x = (width() - kGlyph) / 2.0;
        p.drawPixmap(QPointF(x, glyphTop), iconPixmap(*m_icon, kGlyph, ink, devicePixelRatioF()));
        x += kGlyph + kGap;
    }
    p.setFont(labelFont());
    p.setPen(ink);
    const int label = p.fontMetrics().horizontalAdvance(text());
    p.drawText(QRectF(x, 0, label + 1, height()), Qt::AlignVCenter | Qt::TextSingleLine, text());
    x += label + kGap;
    if (!m_key.isEmpty()) {
        p.setFont(monoFont(TextRole::Axis));
        const qreal width = p.fontMetrics().horizontalAdvance(m_key) + 2 * kKeyPadding;
        const QRectF key(x + .5, (height() - 16) / 2.0 + .5, width, 16);
        p.setPen(m_kind == Kind::Primary ? m_theme.onAccent : m_theme.line2);
        p.setBrush(Qt::NoBrush);
        p.drawRoundedRect(key, 3, 3);
        p.setPen(m_kind == Kind::Primary ? m_theme.onAccent : m_theme.text3);
        p.drawText(key, Qt::AlignCenter, m_key);
        x += width + kGap;
    }
    if (m_trailing)
        p.drawPixmap(QPointF(x, glyphTop), iconPixmap(*m_trailing, kGlyph, m_theme.text3, devicePixelRatioF()));
}

bool Button::event(QEvent* event) {
    if (event->type() == QEvent::Enter || event->type() == QEvent::Leave)
        update();
    return QAbstractButton::event(event);
}

} // namespace kvscope::ui
