// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/widgets/dock_title.h"

#include <QHBoxLayout>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>

namespace kvscope::ui {
namespace {
constexpr int kHeight = 34;
constexpr int kLeft = 14;
constexpr int kRight = 6;
constexpr int kTabPadding = 2;
constexpr int kTabGap = 12;
constexpr int kGap = 8;
QFont nameFont(bool current) {
    return textFont(TextRole::Table, current ? QFont::DemiBold : QFont::Medium);
}
} // namespace

DockTitle::DockTitle(const QString& name, const Theme& theme, QWidget* parent)
    : QWidget(parent)
    , m_names{name}
    , m_theme(theme) {
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    setAccessibleName(name);
    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(kLeft, 0, kRight, 1);
    layout->setSpacing(kGap);
    layout->addStretch();
    m_actions = new QHBoxLayout;
    m_actions->setSpacing(0);
    layout->addLayout(m_actions);
}

void DockTitle::setNames(const QStringList& names) {
    m_names = names;
    m_current = qBound(0, m_current, int(names.size()) - 1);
    setFocusPolicy(names.size() > 1 ? Qt::TabFocus : Qt::NoFocus);
    setAccessibleName(names.value(m_current));
    update();
}

void DockTitle::setCurrent(int index) {
    index = qBound(0, index, int(m_names.size()) - 1);
    if (index == m_current)
        return;
    m_current = index;
    setAccessibleName(m_names.value(index));
    update();
    emit currentChanged(index);
}

void DockTitle::setNote(const QString& note) {
    if (note == m_note)
        return;
    m_note = note;
    update();
}

void DockTitle::setTrailingNote(const QString& note) {
    if (note == m_trailing)
        return;
    m_trailing = note;
    update();
}

void DockTitle::addAction(QWidget* widget) {
    m_actions->addWidget(widget, 0, Qt::AlignVCenter);
}

void DockTitle::setTheme(const Theme& theme) {
    m_theme = theme;
    update();
}

QSize DockTitle::sizeHint() const {
    const QRect last = tabRect(int(m_names.size()) - 1);
    return {last.right() + kGap + m_actions->sizeHint().width() + kRight, kHeight};
}

QRect DockTitle::tabRect(int index) const {
    int x = kLeft;
    // Widths are those of the bolder current name, so that choosing a tab moves none of them.
    const QFontMetrics metrics(nameFont(true));
    for (int i = 0; i < index; ++i)
        x += metrics.horizontalAdvance(m_names[i]) + 2 * kTabPadding + kTabGap;
    return {x, 0, metrics.horizontalAdvance(m_names.value(index)) + 2 * kTabPadding, kHeight};
}

void DockTitle::paintEvent(QPaintEvent*) {
    QPainter p(this);
    p.fillRect(rect(), m_theme.bg2);
    p.fillRect(QRect(0, height() - 1, width(), 1), m_theme.line1);
    const bool tabs = m_names.size() > 1;
    int x = kLeft;
    if (tabs) {
        for (int i = 0; i < m_names.size(); ++i) {
            const QRect tab = tabRect(i);
            p.setFont(nameFont(i == m_current));
            p.setPen(i == m_current ? m_theme.text1 : m_theme.text3);
            p.drawText(tab, Qt::AlignCenter, m_names[i]);
            if (i == m_current)
                p.fillRect(QRect(tab.left(), height() - 2, tab.width(), 2), m_theme.accent);
            x = tab.right() + kGap;
        }
    } else {
        p.setFont(nameFont(true));
        p.setPen(m_theme.text1);
        p.drawText(QRect(x, 0, width() - x, height() - 1), Qt::AlignVCenter, m_names.value(0));
        x += p.fontMetrics().horizontalAdvance(m_names.value(0)) + kGap;
    }
    int right = m_actions->isEmpty() ? width() - kRight - kGap : m_actions->geometry().left() - kGap;
    p.setFont(figureFont(TextRole::Table));
    p.setPen(m_theme.text3);
    if (!m_trailing.isEmpty()) {
        const int w = p.fontMetrics().horizontalAdvance(m_trailing);
        if (right - w > x) {
            p.drawText(QRect(right - w, 0, w + 1, height() - 1), Qt::AlignVCenter, m_trailing);
            right -= w + kGap;
        }
    }
    if (right > x)
        p.drawText(QRect(x, 0, right - x, height() - 1), Qt::AlignVCenter,
                   p.fontMetrics().elidedText(m_note, Qt::ElideRight, right - x));
}

void DockTitle::mousePressEvent(QMouseEvent* event) {
    for (int i = 0; m_names.size() > 1 && i < m_names.size(); ++i)
        if (tabRect(i).adjusted(-kTabGap / 2, 0, kTabGap / 2, 0).contains(event->position().toPoint())) {
            setCurrent(i);
            return;
        }
    QWidget::mousePressEvent(event); // a dock is dragged by its title
}

void DockTitle::keyPressEvent(QKeyEvent* event) {
    if (m_names.size() > 1 && (event->key() == Qt::Key_Left || event->key() == Qt::Key_Right))
        setCurrent(m_current + (event->key() == Qt::Key_Right ? 1 : -1));
    else
        QWidget::keyPressEvent(event);
}

} // namespace kvscope::ui
