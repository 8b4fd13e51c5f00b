// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QBasicTimer>
#include <QImage>
#include <QPainterPath>
#include <QWidget>
#include <optional>
#include <vector>

#include "engine/base/clock.h"
#include "ui/models/block_map_raster.h"
#include "ui/models/block_map_viewport.h"
#include "ui/theme/apply_theme.h"

namespace kvscope::ui {

/// The pool as a map: one cell a block, with a ruler at the left. Painted by palette into an image and shown by one
/// blit; a new snapshot repaints only the cells that changed.
///
/// Keys: arrows move a cell cursor, Enter selects, + - 0 zoom, D dims what is not selected.
class BlockMapView final : public QWidget, public Themed {
    Q_OBJECT
public:
    BlockMapView(const Clock& clock, const Theme& theme, QWidget* parent = nullptr);
    ~BlockMapView() override;

    /// The newest map. `ownerNumbers` as BlockMapRaster::Source.
    void setMap(const metrics::BlockMapSnapshot& map, const std::vector<int>& ownerNumbers);
    void setColourBy(ColourBy colourBy);
    ColourBy colourBy() const { return m_raster.colourBy(); }
    /// Draws one contour around the blocks and a tag beside them; an empty list removes both.
    void setSelection(std::vector<BlockId> blocks, const QString& tag);
    const std::vector<BlockId>& selection() const { return m_selection; }
    /// Everything but the selection at 45 %.
    void setDimRest(bool on);
    bool dimRest() const { return m_dimRest; }
    /// Only blocks of this state (State) or owner number (Owner) keep their colour; none = all do.
    void setFilter(std::optional<int> stateOrOwner);
    void setReducedMotion(bool on) { m_reducedMotion = on; }
    void setTheme(const Theme& theme) override;

    const metrics::BlockMapSnapshot& map() const { return m_map; }
    const BlockMapViewport& viewport() const { return m_viewport; }
    bool zoomed() const { return !m_viewport.fitted(); }
    /// Logical rectangle of the cells, the ruler left out; all of the view's room while zoomed.
    QRect mapRect() const;
    /// Lays out for the size that the view has now. A hidden view gets no resize events, so who places it says so.
    void relayout();
    /// Height that the whole map takes in a view of this size.
    int heightFor(QSize size) const;
    /// The block that pointer or keyboard cursor are on; none = no block.
    std::optional<BlockId> pointedBlock() const;
    /// Logical rectangle of a block's cell; empty when it is out of sight.
    QRect blockRect(BlockId block) const;
    /// Where the selection is seen, its tag included.
    QRect selectionRect() const;

public slots:
    void zoomIn();
    void zoomOut();
    void fit();

signals:
    /// The pointer or the cell cursor stands on another cell now (or on none).
    void pointedChanged();
    void blockSelected(kvscope::BlockId block);
    void zoomChanged();

protected:
    void paintEvent(QPaintEvent* event) override;
    void showEvent(QShowEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;
    void timerEvent(QTimerEvent* event) override;

private:
    struct Glow { ///< a block on its way from what it was to what it is
        std::int32_t block;
        Nanos start;
        QRgb from;
        bool fresh;
    };
    BlockMapRaster::Source source() const;
    QPoint toDevice(QPointF point) const; ///< of the widget to the image
    QRectF toLogical(const QRect& deviceRect) const;
    void repaintAll();
    void repaintCells(const std::vector<std::int32_t>& blocks);
    void noteChanges(const metrics::BlockMapSnapshot& before, const std::vector<std::int32_t>& changed);
    void stepGlows();
    void updateDimming();
    void updateContour();
    void setPointed(int cell);
    void changeZoom(int steps, QPointF at);
    void paintRuler(QPainter& painter, const QRect& dirty) const;
    void paintSelection(QPainter& painter, const QRect& dirty) const;
    void paintPointed(QPainter& painter) const;
    void paintMinimap(QPainter& painter) const;
    QRect minimapRect() const;
    QRect tagRect() const;

    const Clock& m_clock;
    Theme m_theme;
    BlockMapRaster m_raster, m_mini;
    BlockMapViewport m_viewport;
    metrics::BlockMapSnapshot m_map;
    std::vector<int> m_ownerNumbers{0};
    std::vector<std::uint8_t> m_dimmed;
    QImage m_image, m_miniImage;

    std::vector<BlockId> m_selection;
    QString m_tag;
    QPainterPath m_contour;    ///< logical
    std::vector<QRect> m_runs; ///< selected cells, run by run, device
    bool m_dimRest = false;
    std::optional<int> m_filter;

    int m_pointed = -1; ///< cell under pointer or cursor
    bool m_byKeyboard = false;
    std::optional<QPoint> m_drag; ///< last point of a drag, device
    bool m_dragged = false, m_dragsMinimap = false;
    double m_wheelRest = 0;

    std::vector<Glow> m_glows;
    QBasicTimer m_glowTimer;
    bool m_reducedMotion = false;
};

} // namespace kvscope::ui
