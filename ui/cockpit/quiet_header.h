// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QHeaderView>
#include <QStyledItemDelegate>

#include "ui/theme/theme.h"

namespace kvscope::ui {

/// The head of a table: 24 px, quiet words, a hairline below. Its first and last columns end with the panel's margins.
class QuietHeader final : public QHeaderView {
    Q_OBJECT
public:
    QuietHeader(const Theme& theme, QWidget* parent);
    void setTheme(const Theme& theme);
    QSize sizeHint() const override;
    static QFont wordFont();
    /// Left and right padding of a column's cells, which the header shares.
    static QMargins padding(int visualIndex, int columns);

protected:
    void paintSection(QPainter* painter, const QRect& rect, int logicalIndex) const override;
    void paintEvent(QPaintEvent* event) override;
    QSize sectionSizeFromContents(int logicalIndex) const override;

private:
    Theme m_theme;
};

/// Cells of a plain table under a QuietHeader: figures, padded as the header is.
class QuietDelegate final : public QStyledItemDelegate {
    Q_OBJECT
public:
    QuietDelegate(const Theme& theme, QObject* parent) : QStyledItemDelegate(parent), m_theme(theme) {}
    void setTheme(const Theme& theme) { m_theme = theme; }
    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
    QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;

private:
    Theme m_theme;
};

} // namespace kvscope::ui
