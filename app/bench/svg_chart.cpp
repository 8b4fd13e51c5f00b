// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/bench/svg_chart.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/base/figures.h"

namespace kvscope::bench {

namespace {

constexpr double kWidth = 560, kHeight = 280;
constexpr double kLeft = 52, kRight = 12, kTop = 12, kBottom = 44;
constexpr int kLines = 4; ///< of the grid, above the axis
constexpr std::size_t kColours = 7;

std::string number(double value) {
    return formatted("%.1f", value);
}

std::string text(double x, double y, const char* anchor, const std::string& words) {
    return "<text class=\"label\" x=\"" + number(x) + "\" y=\"" + number(y) + "\" text-anchor=\"" + anchor + "\">" +
           htmlEscaped(words) + "</text>";
}

std::string colour(std::size_t series) {
    return "s" + std::to_string(series % kColours);
}

class Plot {
public:
    explicit Plot(const Chart& chart) : m_chart(chart), m_top(topOf(chart)) {}

    std::string svg() const {
        std::string out = "<svg viewBox=\"0 0 " + number(kWidth) + " " + number(kHeight) +
                          "\" role=\"img\" aria-label=\"" + htmlEscaped(m_chart.title) + "\">";
        out += grid();
        out += m_chart.labels.size() > 1 ? lines() : bars();
        return out + "</svg>";
    }

private:
    static double topOf(const Chart& chart) {
        double most = 0;
        for (const Series& series : chart.series)
            for (const double value : series.values)
                if (std::isfinite(value))
                    most = std::max(most, value);
        return niceCeiling(most);
    }
    double y(double value) const { return kHeight - kBottom - value / m_top * (kHeight - kTop - kBottom); }
    double x(std::size_t label) const {
        const double room = (kWidth - kLeft - kRight) / static_cast<double>(m_chart.labels.size());
        return kLeft + room * (static_cast<double>(label) + 0.5);
    }

    std::string grid() const {
        std::string out;
        for (int i = 0; i <= kLines; ++i) {
            const double value = m_top * i / kLines;
            out += "<line class=\"" + std::string(i == 0 ? "axis" : "grid") + "\" x1=\"" + number(kLeft) + "\" x2=\"" +
                   number(kWidth - kRight) + "\" y1=\"" + number(y(value)) + "\" y2=\"" + number(y(value)) + "\"/>";
            out += text(kLeft - 6, y(value) + 4, "end", axisText(value));
        }
        if (m_chart.labels.size() > 1)
            for (std::size_t i = 0; i < m_chart.labels.size(); ++i)
                out += text(x(i), kHeight - kBottom + 16, "middle", m_chart.labels[i]);
        return out + text((kLeft + kWidth - kRight) / 2, kHeight - 8, "middle", m_chart.xTitle);
    }

    std::string lines() const {
        std::string out;
        for (std::size_t s = 0; s < m_chart.series.size(); ++s) {
            const std::vector<double>& values = m_chart.series[s].values;
            std::string path, dots;
            bool pen = false;
            for (std::size_t i = 0; i < values.size(); ++i) {
                if (!std::isfinite(values[i])) {
                    pen = false;
                    continue;
                }
                path += (pen ? "L" : "M") + number(x(i)) + " " + number(y(values[i]));
                dots += "<circle class=\"dot " + colour(s) + "\" cx=\"" + number(x(i)) + "\" cy=\"" +
                        number(y(values[i])) + "\" r=\"3\"><title>" +
                        htmlEscaped(m_chart.series[s].name + ", " + m_chart.labels[i] + ": " + axisText(values[i])) +
                        "</title></circle>";
                pen = true;
            }
            out += "<path class=\"line " + colour(s) + "\" d=\"" + path + "\" stroke-dasharray=\"" + dashes(s) +
                   "\"/>" + dots;
        }
        return out;
    }

    std::string bars() const {
        std::string out;
        const double room =
            (kWidth - kLeft - kRight) / static_cast<double>(std::max<std::size_t>(1, m_chart.series.size()));
        const double width = std::min(72.0, room * 0.6);
        for (std::size_t s = 0; s < m_chart.series.size(); ++s) {
            const double value = m_chart.series[s].values.empty() ? std::nan("") : m_chart.series[s].values.front();
            const double middle = kLeft + room * (static_cast<double>(s) + 0.5);
            if (!std::isfinite(value)) {
                out += text(middle, y(0) - 6, "middle", "none");
                continue;
            }
            out += "<rect class=\"bar " + colour(s) + "\" x=\"" + number(middle - width / 2) + "\" y=\"" +
                   number(y(value)) + "\" width=\"" + number(width) + "\" height=\"" + number(y(0) - y(value)) +
                   "\" rx=\"2\"><title>" + htmlEscaped(m_chart.series[s].name) + "</title></rect>";
            out += text(middle, y(value) - 5, "middle", axisText(value));
        }
        return out;
    }

    const Chart& m_chart;
    double m_top;
};

} // namespace

std::string htmlEscaped(const std::string& text) {
    std::string out;
    for (const char c : text) {
        switch (c) {
        case '&':
            out += "&amp;";
            break;
        case '<':
            out += "&lt;";
            break;
        case '>':
            out += "&gt;";
            break;
        case '"':
            out += "&quot;";
            break;
        case '\'':
            out += "&#39;";
            break;
        default:
            out += c;
        }
    }
    return out;
}

std::string axisText(double value) {
    const double size = std::fabs(value);
    const char* unit = size >= 999.5e6 ? "G" : size >= 999.5e3 ? "M" : size >= 9999.5 ? "k" : "";
    const double shown = size >= 999.5e6   ? value / 1e9
                         : size >= 999.5e3 ? value / 1e6
                         : size >= 9999.5  ? value / 1e3
                                           : value;
    return formatted(std::fabs(shown) >= 99.95 ? "%.0f" : "%.3g", shown) + unit;
}

double niceCeiling(double value) {
    if (!(value > 0))
        return 1;
    const double power = std::pow(10.0, std::floor(std::log10(value)));
    for (const double step : {1.0, 1.2, 1.6, 2.0, 2.4, 3.0, 4.0, 5.0, 6.0, 8.0})
        if (step * power >= value * (1 - 1e-12))
            return step * power;
    return 10 * power;
}

const char* dashes(std::size_t series) {
    constexpr std::array kDashes{"", "7 3", "2 3", "9 3 2 3", "5 2 1 2 1 2"};
    return kDashes[series % kDashes.size()];
}

std::string svgChart(const Chart& chart) {
    return Plot(chart).svg();
}

} // namespace kvscope::bench
