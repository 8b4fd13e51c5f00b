// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/cockpit/curve_strips.h"

#include <QCoreApplication>
#include <QImage>
#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <cmath>
#include <span>

#include "ui/cockpit/look.h"
#include "ui/models/format.h"
#include "ui/models/palette.h"
#include "ui/theme/plot_theme.h"

namespace kvscope::ui {
namespace {

using kv::BlockState;

struct Words {
    Q_DECLARE_TR_FUNCTIONS(kvscope::ui::Curves)
};

constexpr double kGiB = 1024.0 * 1024 * 1024;
constexpr double kStackAlpha = 0.9;
constexpr double kCachedAlpha = 0.5;
constexpr int kPercentInset = 4;    // so that a line at 0 or 100 and its dot stay whole
constexpr double kLimitShare = 0.4; // below it the limit would press the stack flat: the axis ends sooner
constexpr int kLabelLine = 12;

/// 1, 2 or 5 times a power of ten, not below `value`.
double niceCeil(double value) {
    if (value <= 0)
        return 1;
    const double power = std::pow(10, std::floor(std::log10(value)));
    for (const double step : {1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 8.0})
        if (step * power >= value)
            return step * power;
    return 10 * power;
}

/// A stack, column by column, into pixels: bottom to top, a line of the ground between two parts.
class StackImage {
public:
    StackImage(QSize logical, double ratio, QRgb ground)
        : m_image((QSizeF(logical) * ratio).toSize(), QImage::Format_ARGB32_Premultiplied)
        , m_ratio(ratio)
        , m_ground(ground) {
        m_image.fill(Qt::transparent);
    }
    /// `heights`: of each part, 0..1 of the image's height. Parts thinner than a pixel but not nothing get one.
    void column(int logicalColumn, std::span<const double> heights, std::span<const QRgb> colors) {
        const int from = int(std::lround(logicalColumn * m_ratio));
        const int to = std::min(int(std::lround((logicalColumn + 1) * m_ratio)), m_image.width());
        const int rows = m_image.height();
        double base = 0;
        int below = rows; // first row that is taken
        for (std::size_t part = 0; part < heights.size(); ++part) {
            base += heights[part];
            int top = rows - int(std::lround(std::clamp(base, 0.0, 1.0) * rows));
            if (heights[part] > 0 && top >= below)
                top = below - 1;
            for (int y = std::max(top, 0); y < below; ++y) {
                const bool seam = y == top && below - top > 2 && part + 1 < heights.size();
                auto* line = reinterpret_cast<QRgb*>(m_image.scanLine(y));
                std::fill(line + from, line + to, seam ? m_ground : colors[part]);
            }
            below = std::min(below, std::max(top, 0));
        }
    }
    void draw(QPainter& painter, QPoint at) {
        m_image.setDevicePixelRatio(m_ratio);
        painter.drawImage(at, m_image);
    }

private:
    QImage m_image;
    double m_ratio;
    QRgb m_ground;
};

QRgb over(const QColor& color, const QColor& ground, double alpha) {
    return mixRgb(color.rgb(), ground.rgb(), alpha);
}

void drawDot(QPainter& painter, QPointF at, const QColor& color, const QColor& ground) {
    painter.setPen(QPen(ground, 2));
    painter.setBrush(color);
    painter.drawEllipse(at, 3.5, 3.5);
}

} // namespace

StripScales StripScales::of(const CurveWindow& window) {
    StripScales out;
    double top = 0, fastest = 0, slowest = 1e9;
    for (int x = 0; x < window.columns(); ++x) {
        const CurveBucket* b = window.column(x);
        if (!b)
            continue;
        double blocks = 0;
        if (b->hasBlocks())
            for (const std::uint32_t count : b->last.blocks)
                blocks += count;
        out.blocks = std::max(out.blocks, blocks);
        const MemoryParts parts = b->memory();
        if (parts.hasHost)
            out.memoryLimit = double(parts.total);
        if (parts.hasEngine || parts.hasHost)
            top = std::max(top, double(parts.sum() - parts.bytes[MemoryParts::Free]));
    }
    for (std::int64_t i = window.binOf(0); i <= window.binOf(window.columns() - 1); ++i)
        if (const CurveBucket* b = window.bin(i))
            for (const double rate : {b->writeRate(), b->readRate()})
                if (rate > 0) {
                    fastest = std::max(fastest, rate);
                    slowest = std::min(slowest, rate);
                }
    if (top > 0)
        out.memoryTop = out.memoryLimit > 0 && top >= kLimitShare * out.memoryLimit ? 1.125 * out.memoryLimit
                                                                                    : niceCeil(1.2 * top / kGiB) * kGiB;
    while (out.rateHigh < fastest)
        out.rateHigh *= 10;
    while (slowest < out.rateLow && out.rateLow > 0.01)
        out.rateLow /= 10;
    return out;
}

bool StripPainter::reported(Strip strip) const {
    for (int x = m_window.columns() - 1; x >= 0; --x)
        if (const CurveBucket* b = m_window.column(x)) {
            switch (strip) {
            case Strip::Blocks:
                return b->hasBlocks();
            case Strip::Percent:
                return (b->last.presence & (metrics::kHasPrefix | metrics::kHasBlocks)) != 0;
            case Strip::Memory:
                return m_scales.memoryTop > 0;
            case Strip::Rates:
                return (b->last.presence & metrics::kHasTokens) != 0;
            }
        }
    return true; // nothing at all has come yet: that is another thing than "not reported"
}

double StripPainter::y(Strip strip, double value, const QRect& rect) const {
    const double bottom = rect.bottom() + 1, height = rect.height();
    switch (strip) {
    case Strip::Blocks:
        return m_scales.blocks > 0 ? bottom - value / m_scales.blocks * height : bottom;
    case Strip::Percent:
        return bottom - kPercentInset - value / 100 * (height - 2 * kPercentInset);
    case Strip::Memory:
        return m_scales.memoryTop > 0 ? bottom - value / m_scales.memoryTop * height : bottom;
    case Strip::Rates: {
        const double low = std::log10(m_scales.rateLow), high = std::log10(m_scales.rateHigh);
        return bottom - (std::log10(std::max(value, m_scales.rateLow)) - low) / (high - low) * height;
    }
    }
    return bottom;
}

void StripPainter::frame(QPainter& painter, Strip strip, const QRect& rect) const {
    painter.fillRect(rect, m_theme.well);
    painter.setFont(PlotTheme::tickFont());
    painter.fillRect(QRect(rect.left(), rect.bottom(), rect.width(), 1), m_theme.line1);
    for (const Tick& tick : ticks(strip)) {
        const int at = std::min(int(std::lround(y(strip, tick.value, rect))), rect.bottom());
        painter.fillRect(QRect(rect.left(), at, rect.width(), 1), m_theme.line1);
        const int middle = std::clamp(at, rect.top() + 5, rect.bottom() - 4);
        painter.setPen(m_theme.text3);
        painter.drawText(QRect(0, middle - kLabelLine / 2, rect.left() - 8, kLabelLine),
                         Qt::AlignRight | Qt::AlignVCenter, tick.label);
    }
}

void StripPainter::data(QPainter& painter, Strip strip, const QRect& rect, double ratio) const {
    painter.save();
    painter.setClipRect(rect);
    const bool known = reported(strip);
    if (known) {
        switch (strip) {
        case Strip::Blocks:
            blocks(painter, rect, ratio);
            events(painter, rect);
            break;
        case Strip::Percent:
            percent(painter, rect);
            break;
        case Strip::Memory:
            memory(painter, rect, ratio);
            break;
        case Strip::Rates:
            rates(painter, rect);
            break;
        }
    }
    painter.setRenderHint(QPainter::Antialiasing, false);
    painter.setFont(PlotTheme::tickFont());
    const QString words = title(strip);
    const int width = painter.fontMetrics().horizontalAdvance(words);
    QColor ground = m_theme.well;
    ground.setAlphaF(0.85f);
    const QRect label(rect.left() + 1, rect.top() + (strip == Strip::Memory ? 6 : 1), width + 9, kLabelLine);
    painter.fillRect(label, ground);
    painter.setPen(m_theme.text2);
    painter.drawText(label.adjusted(4, 0, 0, 0), Qt::AlignVCenter, words);
    if (!known) {
        painter.setPen(m_theme.text3);
        painter.drawText(rect, Qt::AlignCenter, Words::tr("not reported"));
    }
    painter.restore();
}

QColor StripPainter::stateColor(BlockState state) const {
    switch (state) {
    case BlockState::Pinned:
        return m_theme.statePinned;
    case BlockState::Filling:
        return m_theme.stateFilling;
    case BlockState::Shared:
        return m_theme.stateShared;
    case BlockState::Cached:
        return m_theme.stateCachedRing;
    case BlockState::InTransfer:
        return m_theme.stateTransfer;
    case BlockState::Empty:
        return m_theme.stateEmpty;
    default:
        return m_theme.stateActive;
    }
}

void StripPainter::blocks(QPainter& painter, const QRect& rect, double ratio) const {
    if (m_scales.blocks <= 0)
        return;
    StackImage stack(rect.size(), ratio, m_theme.well.rgb());
    const QRgb colors[] = {over(m_theme.statePinned, m_theme.well, kStackAlpha),
                           over(m_theme.stateActive, m_theme.well, kStackAlpha),
                           over(m_theme.stateShared, m_theme.well, kStackAlpha),
                           over(m_theme.stateCachedRing, m_theme.well, kCachedAlpha)};
    for (int x = 0; x < m_window.columns(); ++x) {
        const CurveBucket* b = m_window.column(x);
        if (!b || !b->hasBlocks())
            continue;
        const auto& n = b->last.blocks;
        const auto of = [&](BlockState state) { return n[std::size_t(state)] / m_scales.blocks; };
        const double heights[] = {of(BlockState::Pinned),
                                  of(BlockState::Active) + of(BlockState::Filling) + of(BlockState::InTransfer) +
                                      of(BlockState::Reserved),
                                  of(BlockState::Shared), of(BlockState::Cached)};
        stack.column(x, heights, colors);
    }
    stack.draw(painter, rect.topLeft());
}

void StripPainter::events(QPainter& painter, const QRect& rect) const {
    constexpr int kHalf = 4, kTall = 7;
    constexpr int kApart = 24; // of marks of one kind: a pool that is full evicts all the time
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(Qt::NoPen);
    int lastEviction = -100, lastPreemption = -100;
    for (int x = 0; x < m_window.columns(); ++x) {
        const CurveBucket* b = m_window.column(x);
        if (!b || b->index != m_window.timeOf(x) / (m_window.span() / m_window.columns()))
            continue; // held from an earlier column: its events have been drawn
        const QPointF top(rect.left() + x + .5, rect.top());
        if (b->evictions > 0 && x - lastEviction >= kApart) {
            lastEviction = x;
            painter.setBrush(m_theme.warn);
            painter.drawPolygon(QPolygonF{top + QPointF(-kHalf, 0), top + QPointF(kHalf, 0), top + QPointF(0, kTall)});
        }
        if (b->preemptions > 0 && x - lastPreemption >= kApart) {
            lastPreemption = x;
            painter.setBrush(m_theme.danger);
            const QPointF at = top + QPointF(0, kTall + kHalf + 2);
            painter.drawPolygon(QPolygonF{at + QPointF(0, -kHalf), at + QPointF(kHalf, 0), at + QPointF(0, kHalf),
                                          at + QPointF(-kHalf, 0)});
        }
    }
}

void StripPainter::line(QPainter& painter, const QRect& rect, MinMax CurveBucket::*series, const QColor& color) const {
    painter.setPen(QPen(color, PlotTheme::kLineWidth, Qt::SolidLine, Qt::FlatCap, Qt::BevelJoin));
    QPolygonF points;
    const auto flush = [&] {
        if (points.size() == 1)
            points.append(points.front() + QPointF(1.5, 0)); // a lone value is a dash, not nothing
        if (points.size() > 1)
            painter.drawPolyline(points);
        points.clear();
    };
    for (int x = 0; x < m_window.columns(); ++x) {
        const CurveBucket* b = m_window.column(x);
        const MinMax* value = b ? &(b->*series) : nullptr;
        if (!value || value->empty()) {
            flush();
            continue;
        }
        const double at = rect.left() + x + .5;
        const double last = y(Strip::Percent, value->last * 100, rect);
        if (value->max - value->min > 0.005f) {
            points.append({at, y(Strip::Percent, value->min * 100, rect)});
            points.append({at, y(Strip::Percent, value->max * 100, rect)});
        }
        // A level stretch is one segment: its inner points cost and show nothing.
        const qsizetype n = points.size();
        if (n >= 2 && points[n - 1].y() == last && points[n - 2].y() == last)
            points[n - 1].setX(at);
        else
            points.append({at, last});
    }
    flush();
}

void StripPainter::percent(QPainter& painter, const QRect& rect) const {
    painter.setRenderHint(QPainter::Antialiasing);
    line(painter, rect, &CurveBucket::fragmentation, m_theme.plotLines[3]);
    line(painter, rect, &CurveBucket::hitRate, m_theme.plotLines[1]);
}

void StripPainter::memory(QPainter& painter, const QRect& rect, double ratio) const {
    if (m_scales.memoryTop <= 0)
        return;
    StackImage stack(rect.size(), ratio, m_theme.well.rgb());
    const QRgb colors[] = {over(m_theme.memoryWeights, m_theme.well, kStackAlpha),
                           over(m_theme.stateActive, m_theme.well, kStackAlpha),
                           over(m_theme.stateCachedRing, m_theme.well, kCachedAlpha),
                           over(m_theme.stateEmpty, m_theme.well, kStackAlpha),
                           hostTierColor(m_theme).rgb(),
                           over(m_theme.memoryActivations, m_theme.well, kStackAlpha),
                           over(m_theme.memoryOther, m_theme.well, kStackAlpha)};
    for (int x = 0; x < m_window.columns(); ++x) {
        const CurveBucket* b = m_window.column(x);
        if (!b)
            continue;
        const MemoryParts parts = b->memory();
        const auto of = [&](double bytes) { return bytes / m_scales.memoryTop; };
        const double heights[] = {of(double(parts.bytes[MemoryParts::Weights])),
                                  of(double(parts.bytes[MemoryParts::KvInUse])),
                                  of(double(parts.bytes[MemoryParts::KvCached])),
                                  of(double(parts.bytes[MemoryParts::KvEmpty])),
                                  of(double(parts.bytes[MemoryParts::HostTier])),
                                  of(double(parts.bytes[MemoryParts::Activations])),
                                  of(double(parts.other()))};
        stack.column(x, heights, colors);
    }
    stack.draw(painter, rect.topLeft());
    if (m_scales.memoryLimit <= 0)
        return;
    const bool inSight = m_scales.memoryLimit <= m_scales.memoryTop;
    const int at = inSight ? int(std::lround(y(Strip::Memory, m_scales.memoryLimit, rect))) : rect.top();
    painter.setFont(PlotTheme::tickFont());
    const QString figure = formatDecimal(m_scales.memoryLimit / kGiB, 1);
    const QString label = inSight ? Words::tr("limit %1").arg(figure) : Words::tr("limit %1 is above").arg(figure);
    const int width = painter.fontMetrics().horizontalAdvance(label);
    const QRect place(rect.right() - width - 14, at + 2, width + 8, kLabelLine);
    QColor ground = m_theme.well;
    ground.setAlphaF(0.85f);
    painter.fillRect(place, ground);
    painter.setPen(m_theme.text2);
    painter.drawText(place, Qt::AlignCenter, label);
    if (inSight) {
        QPen dashed(m_theme.text2, 1);
        dashed.setDashPattern({4, 3});
        painter.setPen(dashed);
        painter.drawLine(rect.left(), at, rect.right(), at);
    }
}

void StripPainter::rates(QPainter& painter, const QRect& rect) const {
    QColor column = m_theme.plotLines[2];
    column.setAlphaF(m_theme.kind == ThemeKind::Dark ? 0.42f : 0.38f);
    QPolygonF points;
    const std::int64_t first = m_window.binOf(0), last = m_window.binOf(m_window.columns() - 1);
    std::vector<QPolygonF> lines;
    for (std::int64_t i = first; i <= last; ++i) {
        const CurveBucket* b = m_window.bin(i);
        const auto [from, to] = m_window.columnsOfBin(i);
        if (b && b->readRate() > m_scales.rateLow) {
            const int top = int(std::lround(y(Strip::Rates, b->readRate(), rect)));
            const int right = to - from > 2 ? to - 1 : to;
            painter.fillRect(QRect(rect.left() + from, top, right - from, rect.bottom() + 1 - top), column);
        }
        if (!b || b->writeRate() < m_scales.rateLow) {
            if (!points.isEmpty())
                lines.push_back(std::exchange(points, {}));
            continue;
        }
        const double at = y(Strip::Rates, b->writeRate(), rect);
        if (points.isEmpty())
            points.append({double(rect.left() + from), at});
        else
            points.append({rect.left() + (from + to) / 2.0, at});
        const CurveBucket* next = i < last ? m_window.bin(i + 1) : nullptr;
        if (!next || next->writeRate() < m_scales.rateLow)
            points.append({double(rect.left() + to), at});
    }
    if (!points.isEmpty())
        lines.push_back(points);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen(m_theme.plotLines[0], PlotTheme::kLineWidth, Qt::SolidLine, Qt::FlatCap, Qt::BevelJoin));
    for (const QPolygonF& part : lines)
        painter.drawPolyline(part);
}

void StripPainter::dots(QPainter& painter, Strip strip, const QRect& rect, int column) const {
    painter.setRenderHint(QPainter::Antialiasing);
    const double x = rect.left() + column + .5;
    if (strip == Strip::Percent) {
        const CurveBucket* b = m_window.column(column);
        if (b && !b->fragmentation.empty())
            drawDot(painter, {x, y(strip, b->fragmentation.last * 100, rect)}, m_theme.plotLines[3], m_theme.well);
        if (b && !b->hitRate.empty())
            drawDot(painter, {x, y(strip, b->hitRate.last * 100, rect)}, m_theme.plotLines[1], m_theme.well);
    } else if (strip == Strip::Rates) {
        const CurveBucket* b = m_window.bin(m_window.binOf(column));
        if (b && b->readRate() > m_scales.rateLow)
            drawDot(painter, {x, y(strip, b->readRate(), rect)}, m_theme.plotLines[2], m_theme.well);
        if (b && b->writeRate() > m_scales.rateLow)
            drawDot(painter, {x, y(strip, b->writeRate(), rect)}, m_theme.plotLines[0], m_theme.well);
    }
}

} // namespace kvscope::ui
