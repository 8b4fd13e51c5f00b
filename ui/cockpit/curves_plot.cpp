// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/cockpit/curves_plot.h"

#include <cmath>
#include <functional>
#include <numeric>

#include "ui/cockpit/look.h"
#include "ui/models/format.h"
#include "ui/theme/plot_theme.h"

namespace kvscope::ui {
namespace {

constexpr int kStripGap = 6;
constexpr int kAxisHeight = 16;
constexpr int kFourStripsFrom = 196; // the fourth needs 40 px to be read
constexpr double kZoomStep = 1.25;
constexpr int kBadgeWidth = 40, kBadgeHeight = 14;
constexpr int kTimeLabel = 44; // room that a label of the time axis keeps

/// A drawing on a layer of the plot.
class Drawing final : public QCPLayerable {
public:
    Drawing(QCustomPlot* plot, const QString& layer, std::function<void(QPainter&)> draw)
        : QCPLayerable(plot, layer)
        , m_draw(std::move(draw)) {}

protected:
    void applyDefaultAntialiasingHint(QCPPainter* painter) const override { painter->setAntialiasing(false); }
    void draw(QCPPainter* painter) override { m_draw(*painter); }

private:
    std::function<void(QPainter&)> m_draw;
};

} // namespace

CurvesPlot::CurvesPlot(CurveWindow& window, const Theme& theme, QWidget* parent)
    : QCustomPlot(parent)
    , m_window(window)
    , m_theme(theme) {
    setFocusPolicy(Qt::StrongFocus);
    setMouseTracking(true);
    setAccessibleName(tr("Curves of blocks, hits and fragmentation, memory and speed"));
    setMinimumSize(160, 100);
    plotLayout()->clear();
    plotLayout()->setRowSpacing(kStripGap);
    for (std::size_t i = 0; i < kStrips.size(); ++i) {
        auto* rect = new QCPAxisRect(this, true);
        rect->setLayer(QStringLiteral("background"));
        rect->setAutoMargins(QCP::msNone);
        rect->setRangeDrag({});
        rect->setRangeZoom({});
        const QList<QCPAxis*> axes = rect->axes();
        for (QCPAxis* axis : axes) { // ticks and labels are drawn inside the strips, where the axes have no room
            axis->setVisible(false);
            axis->grid()->setVisible(false);
            axis->setLayer(QStringLiteral("grid"));
        }
        plotLayout()->addElement(int(i), 0, rect);
        m_rects.push_back(rect);
    }
    // Two buffers: what stands still, and what moves with each sample.
    removeLayer(layer(QStringLiteral("legend")));
    removeLayer(layer(QStringLiteral("axes")));
    removeLayer(layer(QStringLiteral("overlay")));
    layer(QStringLiteral("main"))->setMode(QCPLayer::lmBuffered);
    new Drawing(this, QStringLiteral("grid"), [this](QPainter& p) { drawFrames(p); });
    new Drawing(this, QStringLiteral("main"), [this](QPainter& p) { drawData(p); });
    CurvesPlot::setTheme(theme);
}

void CurvesPlot::setTheme(const Theme& theme) {
    m_theme = theme;
    PlotTheme::apply(*this, theme);
    replot(rpQueuedReplot);
}

void CurvesPlot::resizeEvent(QResizeEvent* event) {
    arrange();
    QCustomPlot::resizeEvent(event);
}

void CurvesPlot::arrange() {
    m_strips = height() >= kFourStripsFrom ? 4 : 3;
    const int room = height() - kAxisHeight - (m_strips - 1) * kStripGap;
    const int whole = std::accumulate(kStripHeights.begin(), kStripHeights.begin() + m_strips, 0);
    int top = 0, used = 0;
    for (int i = 0; i < int(m_rects.size()); ++i) {
        QCPAxisRect* rect = m_rects[std::size_t(i)];
        const bool shown = i < m_strips;
        used += shown ? kStripHeights[std::size_t(i)] : 0;
        const int bottom = shown ? room * used / whole + i * kStripGap : top;
        const int tall = shown ? bottom - top : 0;
        const bool last = i == m_strips - 1;
        rect->setVisible(shown);
        rect->setMargins(QMargins(kGutter, 0, 0, last ? kAxisHeight : 0));
        rect->setSizeConstraintRect(QCPLayoutElement::scrInnerRect);
        rect->setMinimumSize(QSize(10, tall));
        rect->setMaximumSize(QSize(QWIDGETSIZE_MAX, tall));
        top = bottom + kStripGap;
    }
    m_window.setColumns(qMax(0, width() - kGutter));
    m_window.refresh(m_sessionStart);
    m_scales = StripScales::of(m_window);
}

QRect CurvesPlot::stripRect(int index) const {
    return m_rects[std::size_t(index)]->rect();
}

void CurvesPlot::refresh(Nanos sessionStart) {
    m_sessionStart = sessionStart;
    const Nanos spanBefore = m_window.span();
    m_window.refresh(sessionStart);
    const StripScales scales = StripScales::of(m_window);
    const bool frames = scales != m_scales || m_window.span() != spanBefore;
    m_scales = scales;
    if (frames)
        replot(rpQueuedReplot);
    else
        layer(QStringLiteral("main"))->replot();
}

int CurvesPlot::cursorColumn() const {
    return qBound(0, m_cursor.value_or(m_window.columns() - 1), qMax(0, m_window.columns() - 1));
}

int CurvesPlot::columnAt(double x) const {
    return qBound(0, int(std::floor(x)) - kGutter, qMax(0, m_window.columns() - 1));
}

void CurvesPlot::setCursorColumn(std::optional<int> column) {
    if (column == m_cursor)
        return;
    m_cursor = column;
    layer(QStringLiteral("main"))->replot();
    emit cursorMoved();
}

void CurvesPlot::drawFrames(QPainter& p) const {
    for (int i = 0; i < m_strips; ++i)
        painter().frame(p, kStrips[std::size_t(i)], stripRect(i));
    drawTimeAxis(p);
}

void CurvesPlot::drawData(QPainter& p) const {
    for (int i = 0; i < m_strips; ++i)
        painter().data(p, kStrips[std::size_t(i)], stripRect(i), bufferDevicePixelRatio());
    drawCursor(p);
}

void CurvesPlot::drawTimeAxis(QPainter& p) const {
    const QRect last = stripRect(m_strips - 1);
    const double seconds = double(m_window.span()) * 1e-9;
    const bool minutes = seconds >= 120;
    const double unit = minutes ? 60 : 1;
    const double most = std::min(6, last.width() / kTimeLabel);
    double step = 1; // of the unit, so that six labels stand on the axis, or as many as have room
    for (const double candidate : {1.0, 2.0, 5.0, 10.0, 20.0, 30.0}) {
        step = candidate;
        if (seconds / unit / candidate <= most)
            break;
    }
    p.setFont(PlotTheme::tickFont());
    p.setPen(m_theme.text3);
    const int top = last.bottom() + 2;
    const double whole = seconds / unit;
    const QString first = minutes ? tr("−%1 min") : tr("−%1 s");
    QRectF taken;
    p.drawText(QRectF(last.left(), top, 80, kBadgeHeight), Qt::AlignLeft | Qt::AlignVCenter,
               first.arg(formatDecimal(whole, std::fmod(whole, 1) > 0.05 ? 1 : 0)), &taken);
    for (double back = std::floor((whole - step * 0.75) / step) * step; back > 0; back -= step) {
        const double x = last.left() + (1 - back / whole) * last.width();
        if (x - kTimeLabel / 2.0 < taken.right())
            continue;
        p.drawText(QRectF(x - 30, top, 60, kBadgeHeight), Qt::AlignCenter, kMinus + formatDecimal(back, 0));
    }
}

void CurvesPlot::drawCursor(QPainter& p) const {
    if (m_window.columns() == 0 || m_sessionStart == 0)
        return;
    const int column = cursorColumn();
    QColor ink = m_theme.text1;
    ink.setAlphaF(0.9f);
    for (int i = 0; i < m_strips; ++i) {
        const QRect rect = stripRect(i);
        p.setRenderHint(QPainter::Antialiasing, false);
        p.fillRect(QRect(rect.left() + column, rect.top(), 1, rect.height()), ink);
        painter().dots(p, kStrips[std::size_t(i)], rect, column);
    }
    const QRect last = stripRect(m_strips - 1);
    const Nanos time = m_window.timeOf(column);
    if (time < m_sessionStart)
        return;
    p.setRenderHint(QPainter::Antialiasing, false);
    const int x = qBound(last.left(), last.left() + column - kBadgeWidth / 2, last.right() + 1 - kBadgeWidth);
    const QRect badge(x, last.bottom() + 2, kBadgeWidth, kBadgeHeight);
    p.fillRect(badge, m_theme.text1);
    p.setFont(PlotTheme::tickFont());
    p.setPen(m_theme.bg1);
    p.drawText(badge, Qt::AlignCenter, formatClock(double(time - m_sessionStart) * 1e-9));
}

void CurvesPlot::mouseMoveEvent(QMouseEvent* event) {
    if (m_dragX) {
        m_dragRest += event->position().x() - *m_dragX;
        m_dragX = event->position().x();
        const int columns = int(m_dragRest);
        if (columns != 0) {
            m_dragRest -= columns;
            m_window.pan(columns);
            refresh(m_sessionStart);
            emit windowMoved();
        }
        return;
    }
    const bool inside = event->position().x() >= kGutter;
    setCursorColumn(inside ? std::optional(columnAt(event->position().x())) : std::nullopt);
}

void CurvesPlot::mousePressEvent(QMouseEvent* event) {
    if (event->button() == Qt::LeftButton) {
        m_dragX = event->position().x();
        m_dragRest = 0;
    }
}

void CurvesPlot::mouseReleaseEvent(QMouseEvent*) {
    m_dragX.reset();
}

void CurvesPlot::mouseDoubleClickEvent(QMouseEvent*) {
    m_window.resume();
    refresh(m_sessionStart);
    emit windowMoved();
}

void CurvesPlot::wheelEvent(QWheelEvent* event) {
    m_wheelRest += event->angleDelta().y() / 120.0; // touch pads send parts of a notch
    const int steps = int(m_wheelRest);
    m_wheelRest -= steps;
    if (steps != 0) {
        m_window.zoom(std::pow(kZoomStep, steps), columnAt(event->position().x()));
        refresh(m_sessionStart);
        emit windowMoved();
    }
    event->accept();
}

void CurvesPlot::leaveEvent(QEvent*) {
    if (!hasFocus())
        setCursorColumn(std::nullopt);
}

void CurvesPlot::keyPressEvent(QKeyEvent* event) {
    const int page = event->modifiers() & Qt::ShiftModifier ? 20 : 1;
    switch (event->key()) {
    case Qt::Key_Left:
        return setCursorColumn(qMax(0, cursorColumn() - page));
    case Qt::Key_Right:
        return setCursorColumn(qMin(m_window.columns() - 1, cursorColumn() + page));
    case Qt::Key_Plus:
    case Qt::Key_Equal:
        m_window.zoom(kZoomStep, cursorColumn());
        break;
    case Qt::Key_Minus:
        m_window.zoom(1 / kZoomStep, cursorColumn());
        break;
    case Qt::Key_Home:
        m_window.pan(1 << 20);
        break;
    case Qt::Key_End:
        m_window.resume();
        break;
    case Qt::Key_Space:
        if (m_window.live())
            m_window.pause();
        else
            m_window.resume();
        break;
    default:
        return QCustomPlot::keyPressEvent(event);
    }
    refresh(m_sessionStart);
    emit windowMoved();
}

} // namespace kvscope::ui
