// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <qcustomplot.h>

#include <optional>
#include <vector>

#include "ui/cockpit/curve_strips.h"
#include "ui/theme/apply_theme.h"

namespace kvscope::ui {

/// The four strips over one time axis, with one cursor through all of them. Draws what a CurveWindow holds.
///
/// Wheel zooms, dragging pans, a double click is live again. Keys: left and right move the cursor, + and - zoom,
/// Home and End go to the oldest and the newest sample, Space pauses.
class CurvesPlot final : public QCustomPlot, public Themed {
    Q_OBJECT
public:
    CurvesPlot(CurveWindow& window, const Theme& theme, QWidget* parent = nullptr);

    /// The window has other data, or shows another time: redraws the data, and the grid where a scale has changed.
    void refresh(Nanos sessionStart);
    void setTheme(const Theme& theme) override;
    /// How many strips there is room for: all four, or the first three.
    int strips() const { return m_strips; }
    QRect stripRect(int index) const;
    /// The column that the values belong to: under the pointer or the keyboard's cursor, else the newest.
    int cursorColumn() const;
    const StripScales& scales() const { return m_scales; }

signals:
    void cursorMoved();
    void windowMoved(); ///< paused, resumed, zoomed or panned by the user

protected:
    void resizeEvent(QResizeEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    void arrange();
    void drawFrames(QPainter& painter) const;
    void drawData(QPainter& painter) const;
    void drawTimeAxis(QPainter& painter) const;
    void drawCursor(QPainter& painter) const;
    void setCursorColumn(std::optional<int> column);
    int columnAt(double x) const;
    StripPainter painter() const { return {m_window, m_scales, m_theme}; }

    CurveWindow& m_window;
    Theme m_theme;
    StripScales m_scales;
    Nanos m_sessionStart = 0;
    int m_strips = 4;
    std::vector<QCPAxisRect*> m_rects;
    std::optional<int> m_cursor;
    std::optional<double> m_dragX;
    double m_wheelRest = 0;
    double m_dragRest = 0;
};

} // namespace kvscope::ui
