// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/cockpit/quiet_header.h"

#include <QPainter>

#include "ui/cockpit/look.h"

namespace kvscope::ui {
namespace {
constexpr int kHeight = 24;
constexpr int kPadding = 8;
} // namespace

QuietHeader::QuietHeader(const Theme& theme, QWidget* parent) : QHeaderView(Qt::Horizontal, parent), m_theme(theme) {
    setFixedHeight(kHeight);
    setHighlightSections(false);
    setSectionsClickable(false);
    setMinimumSectionSize(20);
}

void QuietHeader::setTheme(const Theme& theme) {
    m_theme = theme;
    viewport()->update();
}

QSize QuietHeader::sizeHint() const {
    return {QHeaderView::sizeHint().width(), kHeight};
}

QFont QuietHeader::wordFont() {
    return textFont(TextRole::Axis, QFont::Medium);
}

QMargins QuietHeader::padding(int visualIndex, int columns) {
    return {visualIndex == 0 ? kRightMargin : kPadding, 0, visualIndex == columns - 1 ? kRightMargin : kPadding, 0};
}

void QuietHeader::paintEvent(QPaintEvent* event) {
    QPainter painter(viewport());
    painter.fillRect(viewport()->rect(), m_theme.bg1);
    painter.fillRect(QRect(0, kHeight - 1, viewport()->width(), 1), m_theme.line1);
    painter.end();
    QHeaderView::paintEvent(event);
}

void QuietHeader::paintSection(QPainter* painter, const QRect& rect, int logicalIndex) const {
    painter->fillRect(rect, m_theme.bg1);
    painter->fillRect(QRect(rect.left(), rect.bottom(), rect.width(), 1), m_theme.line1);
    painter->setFont(wordFont());
    painter->setPen(m_theme.text3);
    const auto alignment =
        Qt::Alignment(model()->headerData(logicalIndex, Qt::Horizontal, Qt::TextAlignmentRole).toInt());
    painter->drawText(rect.marginsRemoved(padding(logicalIndex, count())), alignment | Qt::AlignVCenter,
                      model()->headerData(logicalIndex, Qt::Horizontal).toString());
}

} // namespace kvscope::ui
