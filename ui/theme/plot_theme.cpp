// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/theme/plot_theme.h"

#include <qcustomplot.h>

namespace kvscope::ui {

QFont PlotTheme::tickFont() {
    QFont font = figureFont(TextRole::Axis);
    font.setPixelSize(kTickPixels);
    return font;
}

void PlotTheme::apply(QCustomPlot& plot, const Theme& theme) {
    plot.setBackground(theme.bg1);
    const QList<QCPAxisRect*> rects = plot.axisRects();
    for (QCPAxisRect* rect : rects) {
        rect->setBackground(theme.well);
        const QList<QCPAxis*> axes = rect->axes();
        for (QCPAxis* axis : axes) {
            axis->setBasePen(QPen(theme.line1));
            axis->setTickPen(QPen(theme.line1));
            axis->setSubTickPen(Qt::NoPen);
            axis->setTickLabelColor(theme.text3);
            axis->setLabelColor(theme.text2);
            axis->setTickLabelFont(tickFont());
            axis->setLabelFont(tickFont());
            axis->grid()->setPen(QPen(theme.line1));
            axis->grid()->setZeroLinePen(QPen(theme.line1));
            axis->grid()->setSubGridVisible(false);
        }
    }
}

} // namespace kvscope::ui
