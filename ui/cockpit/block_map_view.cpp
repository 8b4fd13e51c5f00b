// SPDX-License-Identifier: GPL-3.0-or-later
//
// State of the view: snapshots, zoom, selection, glow. Painting stands in block_map_paint.cpp, input in
// block_map_input.cpp.
#include "ui/cockpit/block_map_view.h"

#include <QTimerEvent>
#include <algorithm>
#include <cmath>
#include <utility>

#include "ui/cockpit/look.h"
#include "ui/theme/focus_ring.h"

namespace kvscope::ui {
namespace {

constexpr Nanos kGlowTime = 600'000'000;
constexpr int kGlowTickMs = 50;
constexpr std::size_t kMostGlows = 4096; // more at once is a rebuilt pool, not something to follow with the eye
constexpr std::size_t kMostRects = 48;   // of a dirty region, before its bounding box is cheaper
constexpr int kMinimapWidth = 100;
constexpr int kMinimapHeight = 64;

bool sameCell(const metrics::BlockCell& a, const metrics::BlockCell& b) {
    // lastRead moves with every step and is not drawn
    return a.state == b.state && a.fill == b.fill && a.owner == b.owner && a.references == b.references;
}

} // namespace

BlockMapView::BlockMapView(const Clock& clock, const Theme& theme, QWidget* parent)
    : QWidget(parent)
    , m_clock(clock)
    , m_theme(theme) {
    setAttribute(Qt::WA_OpaquePaintEvent);
    setMouseTracking(true);
    setFocusPolicy(Qt::StrongFocus);
    setAccessibleName(tr("Block map"));
    setTheme(theme);
}

BlockMapView::~BlockMapView() = default;

BlockMapRaster::Source BlockMapView::source() const {
    return {m_map.cells, m_ownerNumbers, m_dimmed};
}

void BlockMapView::setTheme(const Theme& theme) {
    m_theme = theme;
    const BlockPalette palette = blockPalette(theme);
    m_raster.setLook(palette, m_raster.colourBy());
    m_mini.setLook(palette, m_raster.colourBy());
    m_glows.clear();
    repaintAll();
}

void BlockMapView::setColourBy(ColourBy colourBy) {
    if (colourBy == m_raster.colourBy())
        return;
    const BlockPalette palette = blockPalette(m_theme);
    m_raster.setLook(palette, colourBy);
    m_mini.setLook(palette, colourBy);
    m_filter.reset();
    m_glows.clear();
    updateDimming();
    repaintAll();
}

void BlockMapView::relayout() {
    const double ratio = devicePixelRatioF();
    const QSize room(int((width() - kGutter - kRightMargin) * ratio), int(height() * ratio));
    const bool moved = m_viewport.setArea(std::int32_t(m_map.cells.size()), room, ratio);
    m_raster.setBlockSize(m_map.blockSize);
    m_mini.setBlockSize(m_map.blockSize);
    if (moved)
        repaintAll();
}

void BlockMapView::repaintAll() {
    m_raster.setLayout(m_viewport.layout());
    setProperty(FocusRing::kFocusRect, mapRect());
    const QSize seen = m_viewport.visible().size();
    if (m_image.size() != seen)
        m_image = QImage(seen, QImage::Format_RGB32);
    if (!m_image.isNull())
        m_raster.paint(m_image, m_viewport.origin(), source());
    m_miniImage = {};
    updateContour();
    update();
}

void BlockMapView::setMap(const metrics::BlockMapSnapshot& map, const std::vector<int>& ownerNumbers) {
    const bool otherPool = map.cells.size() != m_map.cells.size() || map.blockSize != m_map.blockSize;
    if (otherPool) {
        m_map = map;
        m_ownerNumbers = ownerNumbers;
        m_glows.clear();
        m_pointed = -1;
        m_selection.clear();
        updateDimming();
        relayout();
        repaintAll();
        emit pointedChanged();
        return;
    }
    std::vector<std::int32_t> changed;
    const bool owners = ownerNumbers != m_ownerNumbers && m_raster.colourBy() == ColourBy::Owner;
    for (std::size_t i = 0; i < map.cells.size(); ++i)
        if (!sameCell(map.cells[i], m_map.cells[i]))
            changed.push_back(std::int32_t(i));
    const bool pointedChanges = m_pointed >= 0 && !changed.empty();
    noteChanges(map, changed);
    m_map.time = map.time;
    m_map.epoch = map.epoch;
    m_map.owners = map.owners;
    std::copy(map.cells.begin(), map.cells.end(), m_map.cells.begin());
    m_ownerNumbers = ownerNumbers;
    if (owners || m_filter) {
        updateDimming();
        repaintAll();
    } else {
        repaintCells(changed);
    }
    if (pointedChanges)
        emit pointedChanged();
}

void BlockMapView::noteChanges(const metrics::BlockMapSnapshot& now, const std::vector<std::int32_t>& changed) {
    using kv::BlockState;
    if (!isVisible() || changed.size() > kMostGlows || m_glows.size() + changed.size() > kMostGlows)
        return;
    const Nanos time = m_clock.now();
    const BlockPalette palette = blockPalette(m_theme);
    for (const std::int32_t block : changed) {
        const metrics::BlockCell& was = m_map.cells[std::size_t(block)];
        const BlockState is = now.cells[std::size_t(block)].state;
        const bool fresh = (was.state == BlockState::Empty && is != BlockState::Empty) ||
                           (was.state == BlockState::Cached && is == BlockState::Filling);
        const bool freed = was.state != BlockState::Empty && is == BlockState::Empty;
        if (!fresh && (!freed || m_reducedMotion))
            continue;
        const int number = was.owner < m_ownerNumbers.size() ? m_ownerNumbers[was.owner] : 0;
        const QRgb before =
            m_raster.colourBy() == ColourBy::Owner ? palette.ownerColor(number) : palette.stateColor(was.state);
        std::erase_if(m_glows, [block](const Glow& glow) { return glow.block == block; });
        m_glows.push_back({block, time, fresh ? palette.contrast : before, fresh});
    }
    if (!m_glows.empty() && !m_glowTimer.isActive())
        m_glowTimer.start(kGlowTickMs, this);
}

void BlockMapView::repaintCells(const std::vector<std::int32_t>& blocks) {
    if (m_image.isNull() || blocks.empty())
        return;
    QRegion dirty;
    QRect bounds;
    const QRect seen(QPoint(0, 0), m_image.size());
    int lastCell = -1;
    std::size_t rects = 0;
    for (const std::int32_t block : blocks) {
        const int cell = m_raster.layout().cellOf(block);
        if (cell == std::exchange(lastCell, cell))
            continue;
        const QRect rect = m_viewport.cellRect(cell);
        if (!rect.intersects(seen))
            continue;
        m_raster.paintCell(m_image, m_viewport.origin(), source(), cell);
        bounds |= rect;
        if (++rects <= kMostRects)
            dirty += toLogical(rect).toAlignedRect();
    }
    m_miniImage = {};
    if (zoomed())
        dirty += minimapRect();
    update(rects > kMostRects ? QRegion(toLogical(bounds).toAlignedRect()) : dirty);
}

void BlockMapView::stepGlows() {
    const Nanos now = m_clock.now();
    QRegion dirty;
    const QRect seen(QPoint(0, 0), m_image.size());
    const std::vector<Glow> glows = std::move(m_glows);
    m_glows.clear();
    for (const Glow& glow : glows) {
        const double done = std::clamp(double(now - glow.start) / double(kGlowTime), 0.0, 1.0);
        if (done < 1)
            m_glows.push_back(glow);
        const int cell = m_raster.layout().cellOf(glow.block);
        const QRect rect = m_viewport.cellRect(cell);
        if (!rect.intersects(seen))
            continue;
        if (m_reducedMotion && done < 1) {
            m_raster.paintCellFramed(m_image, m_viewport.origin(), source(), cell, blockPalette(m_theme).contrast);
        } else {
            const double settled = 1 - (1 - done) * (1 - done); // fast at first, then calm
            m_raster.paintCellBlended(m_image, m_viewport.origin(), source(), cell, glow.from, settled);
        }
        dirty += toLogical(rect).toAlignedRect();
    }
    if (dirty.rectCount() > int(kMostRects))
        dirty = dirty.boundingRect();
    update(dirty);
    if (m_glows.empty())
        m_glowTimer.stop();
}

void BlockMapView::timerEvent(QTimerEvent* event) {
    if (event->timerId() == m_glowTimer.timerId())
        stepGlows();
    else
        QWidget::timerEvent(event);
}

void BlockMapView::setSelection(std::vector<BlockId> blocks, const QString& tag) {
    std::erase_if(blocks, [this](BlockId b) { return b.value() < 0 || std::size_t(b.value()) >= m_map.cells.size(); });
    m_selection = std::move(blocks);
    m_tag = tag;
    updateDimming();
    repaintAll();
}

void BlockMapView::setDimRest(bool on) {
    m_dimRest = on;
    updateDimming();
    repaintAll();
}

void BlockMapView::setFilter(std::optional<int> stateOrOwner) {
    m_filter = stateOrOwner;
    updateDimming();
    repaintAll();
}

void BlockMapView::updateDimming() {
    const bool bySelection = m_dimRest && !m_selection.empty();
    if (!bySelection && !m_filter) {
        m_dimmed.clear();
        return;
    }
    m_dimmed.assign(m_map.cells.size(), bySelection ? 1 : 0);
    if (bySelection)
        for (const BlockId block : m_selection)
            m_dimmed[std::size_t(block.value())] = 0;
    if (!m_filter)
        return;
    for (std::size_t i = 0; i < m_map.cells.size(); ++i) {
        const metrics::BlockCell& cell = m_map.cells[i];
        const int is = m_raster.colourBy() == ColourBy::State ? int(cell.state)
                       : cell.state == kv::BlockState::Empty  ? 0
                       : cell.owner < m_ownerNumbers.size()   ? m_ownerNumbers[cell.owner]
                                                              : 0;
        if (is != *m_filter)
            m_dimmed[i] = 1;
    }
}

void BlockMapView::updateContour() {
    m_contour = {};
    m_runs.clear();
    if (m_selection.empty() || m_map.cells.empty())
        return;
    const BlockMapLayout& layout = m_raster.layout();
    std::vector<std::uint8_t> chosen(std::size_t(layout.cells()), 0);
    for (const BlockId block : m_selection)
        chosen[std::size_t(layout.cellOf(block.value()))] = 1;
    const int columns = layout.columns(), pitch = layout.pitch(), cells = layout.cells();
    const auto at = [&](int cell) { return cell >= 0 && cell < cells && chosen[std::size_t(cell)] != 0; };
    const double ratio = devicePixelRatioF();
    const QPointF origin = QPointF(m_viewport.origin()) / ratio + QPointF(kGutter, 0);
    const double half = layout.gap() / 2.0;
    const auto edge = [&](double x0, double y0, double x1, double y1) {
        m_contour.moveTo(origin + QPointF(x0 - half, y0 - half) / ratio);
        m_contour.lineTo(origin + QPointF(x1 - half, y1 - half) / ratio);
    };
    for (int cell = 0; cell < cells; ++cell) {
        if (!at(cell))
            continue;
        const int column = cell % columns;
        const double x = column * pitch, y = cell / columns * pitch;
        if (!at(cell - columns))
            edge(x, y, x + pitch, y);
        if (!at(cell + columns))
            edge(x, y + pitch, x + pitch, y + pitch);
        if (column == 0 || !at(cell - 1))
            edge(x, y, x, y + pitch);
        if (column == columns - 1 || !at(cell + 1))
            edge(x + pitch, y, x + pitch, y + pitch);
        const QRect rect = m_viewport.cellRect(cell);
        if (!m_runs.empty() && column > 0 && at(cell - 1) && m_runs.back().top() == rect.top())
            m_runs.back().setRight(rect.right());
        else
            m_runs.push_back(rect);
    }
}

int BlockMapView::heightFor(QSize size) const {
    const double ratio = devicePixelRatioF();
    const QSize room(int((size.width() - kGutter - kRightMargin) * ratio), int(size.height() * ratio));
    const auto blocks = std::int32_t(m_map.cells.size());
    const int rows = int(std::ceil(BlockMapLayout::fit(blocks, room, ratio).size().height() / ratio));
    return std::max(rows, lineHeight(TextRole::Axis) - 2); // a pool of one row still has its number beside it
}

QRect BlockMapView::mapRect() const {
    return toLogical(QRect(QPoint(0, 0), m_viewport.visible().size())).toAlignedRect();
}

std::optional<BlockId> BlockMapView::pointedBlock() const {
    if (m_pointed < 0 || m_pointed >= m_raster.layout().cells())
        return std::nullopt;
    return BlockId(m_raster.layout().blocksOf(m_pointed).begin);
}

QRect BlockMapView::blockRect(BlockId block) const {
    if (block.value() < 0 || std::size_t(block.value()) >= m_map.cells.size())
        return {};
    const QRect rect = m_viewport.cellRect(m_raster.layout().cellOf(block.value()));
    return rect.intersects(QRect(QPoint(0, 0), m_image.size())) ? toLogical(rect).toAlignedRect() : QRect();
}

QRect BlockMapView::selectionRect() const {
    QRect bounds;
    for (const QRect& run : m_runs)
        bounds |= run & QRect(QPoint(0, 0), m_image.size());
    if (bounds.isEmpty())
        return {};
    return toLogical(bounds).toAlignedRect().adjusted(-3, -3, 3, 3) | tagRect();
}

QPoint BlockMapView::toDevice(QPointF point) const {
    const QPointF inside = (point - QPointF(kGutter, 0)) * devicePixelRatioF();
    return {int(std::floor(inside.x())), int(std::floor(inside.y()))};
}

QRectF BlockMapView::toLogical(const QRect& rect) const {
    const double ratio = devicePixelRatioF();
    return QRectF(rect.left() / ratio + kGutter, rect.top() / ratio, rect.width() / ratio, rect.height() / ratio);
}

QRect BlockMapView::minimapRect() const {
    const QRect map = mapRect();
    const int w = kMinimapWidth + 2, h = kMinimapHeight + 2;
    return {map.right() - w - 7, map.bottom() - h - 7, w, h};
}

} // namespace kvscope::ui
