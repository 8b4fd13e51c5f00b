// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace kvscope::bench {

/// One line of a chart, or one bar of a group. NaN = no value there.
struct Series {
    std::string name;
    std::vector<double> values; ///< one per label of the x axis
};

struct Chart {
    std::string title;               ///< with its unit
    std::string xTitle;              ///< what the labels are
    std::vector<std::string> labels; ///< evenly spaced
    std::vector<Series> series;
};

/// An inline SVG. Colours are classes (s0 to s6 for series, grid, axis, label), so that the page decides on light and
/// dark; lines differ by dashes and end markers too. Lines where there are at least two labels, else bars.
std::string svgChart(const Chart& chart);

/// &, <, >, " and ' as entities.
std::string htmlEscaped(const std::string& text);

/// How the line of a series is dashed: stroke-dasharray, empty = not at all.
const char* dashes(std::size_t series);

/// "0", "12", "1.5k", "2.3M": a number on an axis.
std::string axisText(double value);

/// The smallest of 1, 1.2, 1.6, 2, 2.4, 3, 4, 5, 6, 8 x 10^n that is not below `value` (a quarter of each is short to
/// write); 1 for what is not above 0.
double niceCeiling(double value);

} // namespace kvscope::bench
