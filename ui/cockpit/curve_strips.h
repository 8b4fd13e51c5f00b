// SPDX-License-Identifier: GPL-3.0-or-later
//
// The four strips of the curves, drawn from one column a pixel: blocks by state, per cent, memory by part, tokens/s.
#pragma once

#include <QRect>
#include <QString>
#include <array>
#include <vector>

#include "ui/models/curve_window.h"
#include "ui/theme/theme.h"

class QPainter;

namespace kvscope::ui {

enum class Strip { Blocks, Percent, Memory, Rates };
inline constexpr std::array kStrips = {Strip::Blocks, Strip::Percent, Strip::Memory, Strip::Rates};
/// Share of the height, in pixels of the default window.
inline constexpr std::array kStripHeights = {60, 44, 44, 40};

/// What the value axes reach to. Changes seldom, so that grid and labels stay where they are.
struct StripScales {
    double blocks = 0;      ///< of the pool; 0 = not reported
    double memoryTop = 0;   ///< bytes at the upper edge; 0 = not reported
    double memoryLimit = 0; ///< bytes of the device
    double rateLow = 8, rateHigh = 2400;
    friend bool operator==(const StripScales&, const StripScales&) = default;
    static StripScales of(const CurveWindow& window);
};

/// One line of the column beside the strips.
struct CurveValue {
    enum class Mark { Area, Line, Column, Outline, Eviction, Preemption };
    Mark mark = Mark::Area;
    QColor color;
    QString name, note, value;
    friend bool operator==(const CurveValue&, const CurveValue&) = default;
};

class StripPainter {
public:
    StripPainter(const CurveWindow& window, const StripScales& scales, const Theme& theme)
        : m_window(window)
        , m_scales(scales)
        , m_theme(theme) {}

    /// Well, grid and tick labels; `rect` is the strip's plot area, labels stand left of it.
    void frame(QPainter& painter, Strip strip, const QRect& rect) const;
    /// Data, title and event marks.
    void data(QPainter& painter, Strip strip, const QRect& rect, double devicePixelRatio) const;
    /// The dots where the cursor crosses lines.
    void dots(QPainter& painter, Strip strip, const QRect& rect, int column) const;
    /// The values at a column, in the order of the design.
    std::vector<CurveValue> values(Strip strip, int column) const;
    QString title(Strip strip) const;
    bool reported(Strip strip) const;

private:
    double y(Strip strip, double value, const QRect& rect) const;
    struct Tick {
        double value;
        QString label;
    };
    std::vector<Tick> ticks(Strip strip) const;
    void blocks(QPainter& painter, const QRect& rect, double ratio) const;
    void percent(QPainter& painter, const QRect& rect) const;
    void memory(QPainter& painter, const QRect& rect, double ratio) const;
    void rates(QPainter& painter, const QRect& rect) const;
    void line(QPainter& painter, const QRect& rect, MinMax CurveBucket::*series, const QColor& color) const;
    void events(QPainter& painter, const QRect& rect) const;
    QColor stateColor(kv::BlockState state) const;

    const CurveWindow& m_window;
    const StripScales& m_scales;
    const Theme& m_theme;
};

} // namespace kvscope::ui
