// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/widgets/segmented_control.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>

namespace kvscope::ui {
namespace {
constexpr int kFrame = 3; // 1 px border and 2 px inside it
constexpr int kPadding = 10;
constexpr int kGap = 1;
QFont labelFont() {
    return textFont(TextRole::Table, QFont::Medium);
}
} // namespace

SegmentedControl::SegmentedControl(const QString& name, const QStringList& options, const Theme& theme, QWidget* parent,
                                   int segmentHeight)
    : QWidget(parent)
    , m_name(name)
    , m_options(options)
    , m_segmentHeight(segmentHeight)
    , m_theme(theme) {
    setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
    setFocusPolicy(Qt::TabFocus);
    setAccessibleName(QStringLiteral("%1: %2").arg(m_name, m_options.value(m_current)));
}

std::vector<int> SegmentedControl::edges() const {
    const QFontMetrics metrics(labelFont());
    std::vector<int> out{kFrame};
    for (const QString& option : m_options)
        out.push_back(out.back() + metrics.horizontalAdvance(option) + 2 * kPadding + kGap);
    return out;
}

QSize SegmentedControl::sizeHint() const {
    return {edges().back() - kGap + kFrame, m_segmentHeight + 2 * kFrame};
}

void SegmentedControl::setCurrent(int index) {
    index = qBound(0, index, int(m_options.size()) - 1);
    if (index == m_current)
        return;
    m_current = index;
    setAccessibleName(QStringLiteral("%1: %2").arg(m_name, m_options.value(m_current)));
    update();
    emit currentChanged(m_current);
}

void SegmentedControl::setTheme(const Theme& theme) {
    m_theme = theme;
    update();
}

void SegmentedControl::paintEvent(QPaintEvent*) {
    QPainter p(this);
    p.setRenderHint(QPainter::Antialiasing);
    p.setPen(m_theme.line1);
    p.setBrush(m_theme.bg0);
    p.drawRoundedRect(QRectF(rect()).adjusted(.5, .5, -.5, -.5), 7, 7);
    p.setFont(labelFont());
    const std::vector<int> edge = edges();
    for (int i = 0; i < m_options.size(); ++i) {
        const QRectF segment(edge[std::size_t(i)], kFrame, edge[std::size_t(i) + 1] - edge[std::size_t(i)] - kGap,
                             m_segmentHeight);
        if (i == m_current) {
            const bool light = m_theme.kind == ThemeKind::Light;
            p.setPen(light ? QPen(m_theme.line2) : QPen(Qt::NoPen));
            p.setBrush(light ? m_theme.bg1 : m_theme.bg4);
            p.drawRoundedRect(light ? segment.adjusted(-.5, -.5, .5, .5) : segment, 5, 5);
        }
        p.setPen(i == m_current ? m_theme.text1 : m_theme.text3);
        p.drawText(segment, Qt::AlignCenter, m_options[i]);
    }
}

void SegmentedControl::mousePressEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton)
        return;
    const std::vector<int> edge = edges();
    for (int i = 0; i < m_options.size(); ++i)
        if (event->position().x() < edge[std::size_t(i) + 1]) {
            setCurrent(i);
            return;
        }
}

void SegmentedControl::keyPressEvent(QKeyEvent* event) {
    const bool forward = event->key() == Qt::Key_Right || event->key() == Qt::Key_Down;
    const bool back = event->key() == Qt::Key_Left || event->key() == Qt::Key_Up;
    if (forward || back)
        setCurrent(m_current + (forward ? 1 : -1));
    else
        QWidget::keyPressEvent(event);
}

} // namespace kvscope::ui
