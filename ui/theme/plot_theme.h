// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/theme/theme.h"

class QCustomPlot;

namespace kvscope::ui {

/// Every pen, brush and font of a plot out of the tokens. Call it when the plot is made and on each change of theme,
/// scale or language; it replots nothing.
struct PlotTheme {
    static void apply(QCustomPlot& plot, const Theme& theme);
    static constexpr double kLineWidth = 1.5;
    static constexpr int kTickPixels = 10; ///< type of ticks and of the titles inside a strip
    static QFont tickFont();
};

} // namespace kvscope::ui
