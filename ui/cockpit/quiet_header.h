// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QHeaderView>

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

private:
    Theme m_theme;
};

} // namespace kvscope::ui
