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

QSize QuietHeader::sectionSizeFromContents(int logicalIndex) const {
    const QMargins room = padding(logicalIndex, count());
    const QString words = model()->headerData(logicalIndex, Qt::Horizontal).toString();
    return {QFontMetrics(wordFont()).horizontalAdvance(words) + room.left() + room.right() + 2, kHeight};
}

void QuietDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const {
    const bool chosen = (option.state & QStyle::State_Selected) != 0;
    painter->fillRect(option.rect, chosen ? m_theme.sel : m_theme.bg1);
    painter->fillRect(QRect(option.rect.left(), option.rect.bottom(), option.rect.width(), 1), m_theme.line1);
    painter->setFont(figureFont(TextRole::Table));
    painter->setPen(m_theme.text1);
    const auto alignment = Qt::Alignment(index.data(Qt::TextAlignmentRole).toInt());
    const QMargins padding = QuietHeader::padding(index.column(), index.model()->columnCount());
    painter->drawText(option.rect.marginsRemoved(padding), alignment | Qt::AlignVCenter, index.data().toString());
    if (option.state & QStyle::State_HasFocus) {
        painter->setPen(QPen(m_theme.focus, 2));
        painter->drawRect(option.rect.adjusted(1, 1, -1, -1));
    }
}

QSize QuietDelegate::sizeHint(const QStyleOptionViewItem&, const QModelIndex& index) const {
    const QMargins padding = QuietHeader::padding(index.column(), index.model()->columnCount());
    const int text = QFontMetrics(figureFont(TextRole::Table)).horizontalAdvance(index.data().toString());
    return {text + padding.left() + padding.right() + 2, kHeight};
}

} // namespace kvscope::ui
