// SPDX-License-Identifier: GPL-3.0-or-later
#include <QKeyEvent>
#include <QMouseEvent>
#include <QWheelEvent>
#include <cmath>
#include <utility>

#include "ui/cockpit/block_map_view.h"
#include "ui/cockpit/look.h"
#include "ui/models/format.h"

namespace kvscope::ui {
namespace {
constexpr double kWheelStep = 120; // eighths of a degree of one notch
constexpr int kDragThreshold = 4;
} // namespace

void BlockMapView::showEvent(QShowEvent* event) {
    relayout();
    QWidget::showEvent(event);
}

void BlockMapView::resizeEvent(QResizeEvent*) {
    relayout();
    emit zoomChanged();
}

void BlockMapView::setPointed(int cell) {
    if (cell == m_pointed)
        return;
    const double ratio = devicePixelRatioF();
    const int reach = int(std::ceil(4 / ratio)) + 4;
    for (const int changed : {std::exchange(m_pointed, cell), cell})
        if (changed >= 0)
            update(toLogical(m_viewport.cellRect(changed)).toAlignedRect().adjusted(-reach, -reach, reach, reach));
    if (cell >= 0 && cell < m_raster.layout().cells()) {
        const std::int32_t block = m_raster.layout().blocksOf(cell).begin;
        setAccessibleDescription(
            tr("Block %1, %2").arg(formatNumber(block), stateWord(m_map.cells[std::size_t(block)].state)));
    }
    emit pointedChanged();
}

void BlockMapView::mouseMoveEvent(QMouseEvent* event) {
    const QPoint at = toDevice(event->position());
    if (m_drag && (event->buttons() & (Qt::LeftButton | Qt::MiddleButton))) {
        const QPoint moved = at - *m_drag;
        if (m_dragsMinimap) {
            const QRect mini = minimapRect();
            const QSize whole = m_viewport.layout().size();
            m_viewport.centreOn(QPoint(int((event->position().x() - mini.left()) * whole.width() / mini.width()),
                                       int((event->position().y() - mini.top()) * whole.height() / mini.height())));
            repaintAll();
            emit zoomChanged();
        } else if (zoomed() && (m_dragged || moved.manhattanLength() >= kDragThreshold)) {
            m_dragged = true;
            m_drag = at;
            m_viewport.panBy(moved);
            setPointed(-1);
            repaintAll();
            emit zoomChanged();
        }
        return;
    }
    m_byKeyboard = false;
    const bool onMinimap = zoomed() && minimapRect().contains(event->position().toPoint());
    const bool onMap = mapRect().contains(event->position().toPoint());
    setPointed(onMap && !onMinimap ? m_viewport.cellAt(at) : -1);
}

void BlockMapView::mousePressEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton && event->button() != Qt::MiddleButton)
        return;
    m_drag = toDevice(event->position());
    m_dragged = false;
    m_dragsMinimap = zoomed() && minimapRect().contains(event->position().toPoint());
    if (m_dragsMinimap)
        mouseMoveEvent(event);
}

void BlockMapView::mouseReleaseEvent(QMouseEvent* event) {
    const bool click = m_drag && !m_dragged && !m_dragsMinimap && event->button() == Qt::LeftButton;
    m_drag.reset();
    m_dragsMinimap = false;
    const int cell = m_viewport.cellAt(toDevice(event->position()));
    if (click && cell >= 0)
        emit blockSelected(BlockId(m_raster.layout().blocksOf(cell).begin));
}

void BlockMapView::wheelEvent(QWheelEvent* event) {
    m_wheelRest += event->angleDelta().y() / kWheelStep; // touch pads send parts of a notch
    const int steps = int(m_wheelRest);
    m_wheelRest -= steps;
    if (steps != 0)
        changeZoom(steps, event->position());
    event->accept();
}

void BlockMapView::changeZoom(int steps, QPointF at) {
    const int before = m_viewport.layout().pitch();
    const std::optional<BlockId> cursor = m_byKeyboard ? pointedBlock() : std::nullopt;
    m_viewport.zoom(steps, toDevice(at));
    if (m_viewport.layout().pitch() == before)
        return;
    m_glows.clear();
    setPointed(-1);
    const int cell = cursor ? m_viewport.layout().cellOf(cursor->value()) : -1;
    m_viewport.reveal(cell);
    repaintAll();
    setPointed(cell); // the keyboard's cursor stays on its block
    emit zoomChanged();
}

void BlockMapView::zoomIn() {
    changeZoom(1, m_pointed >= 0 ? toLogical(m_viewport.cellRect(m_pointed)).center() : QPointF(rect().center()));
}

void BlockMapView::zoomOut() {
    changeZoom(-1, m_pointed >= 0 ? toLogical(m_viewport.cellRect(m_pointed)).center() : QPointF(rect().center()));
}

void BlockMapView::fit() {
    m_viewport.fit();
    setPointed(-1);
    repaintAll();
    emit zoomChanged();
}

void BlockMapView::leaveEvent(QEvent*) {
    if (!m_byKeyboard)
        setPointed(-1);
}

void BlockMapView::focusOutEvent(QFocusEvent* event) {
    if (std::exchange(m_byKeyboard, false))
        setPointed(-1);
    QWidget::focusOutEvent(event);
}

void BlockMapView::keyPressEvent(QKeyEvent* event) {
    const int columns = m_viewport.layout().columns(), cells = m_viewport.layout().cells();
    const auto moveTo = [&](int target) {
        if (cells == 0)
            return;
        m_byKeyboard = true;
        const int cell = qBound(0, target, cells - 1);
        const QPoint before = m_viewport.origin();
        m_viewport.reveal(cell);
        if (m_viewport.origin() != before)
            repaintAll();
        setPointed(cell);
    };
    const auto move = [&](int by) { moveTo(m_pointed >= 0 ? m_pointed + by : by < 0 ? cells - 1 : 0); };
    constexpr int kPage = 10; // rows
    switch (event->key()) {
    case Qt::Key_Left:
        return move(-1);
    case Qt::Key_Right:
        return move(1);
    case Qt::Key_Up:
        return move(-columns);
    case Qt::Key_Down:
        return move(columns);
    case Qt::Key_PageUp:
        return move(-kPage * columns);
    case Qt::Key_PageDown:
        return move(kPage * columns);
    case Qt::Key_Home:
        return moveTo(0);
    case Qt::Key_End:
        return moveTo(cells - 1);
    case Qt::Key_Plus:
    case Qt::Key_Equal:
        return zoomIn();
    case Qt::Key_Minus:
        return zoomOut();
    case Qt::Key_0:
        return fit();
    case Qt::Key_D:
        return setDimRest(!m_dimRest);
    case Qt::Key_Return:
    case Qt::Key_Enter:
    case Qt::Key_Space:
        if (const auto block = pointedBlock())
            emit blockSelected(*block);
        return;
    default:
        QWidget::keyPressEvent(event);
    }
}

} // namespace kvscope::ui
