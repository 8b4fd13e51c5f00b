// SPDX-License-Identifier: GPL-3.0-or-later
//
// ChatView: selection, mouse, keyboard, clipboard.
#include <QClipboard>
#include <QGuiApplication>
#include <QHelpEvent>
#include <QMenu>
#include <QMouseEvent>
#include <QScrollBar>
#include <QToolTip>
#include <algorithm>

#include "ui/chat/chat_view.h"

namespace kvscope::ui {
namespace {

constexpr int kAutoScrollMs = 30;

} // namespace

// ---- selection ----

ChatView::Spot ChatView::spotAt(QPoint point) const {
    if (m_rows.empty())
        return {};
    const QPoint content = point - columnOrigin();
    int row = rowAt(content.y());
    if (row < 0)
        row = content.y() < 0 ? 0 : int(m_rows.size()) - 1;
    const Row& r = m_rows[std::size_t(row)];
    return {row, r.item.text().positionAt(content - QPoint(0, r.y) - r.item.textRect().topLeft())};
}

TextRange ChatView::selectionOf(int row) const {
    if (m_selectFrom.row < 0 || m_selectFrom == m_selectTo)
        return {};
    const Spot& from = std::min(m_selectFrom, m_selectTo);
    const Spot& to = std::max(m_selectFrom, m_selectTo);
    if (row < from.row || row > to.row || row >= m_model->size())
        return {};
    return {row == from.row ? from.position : 0, row == to.row ? to.position : int(m_model->at(row).text.size())};
}

QString ChatView::selectedText() const {
    if (!m_model || m_selectFrom.row < 0)
        return {};
    QStringList parts;
    for (int row = std::min(m_selectFrom, m_selectTo).row; row <= std::max(m_selectFrom, m_selectTo).row; ++row) {
        const TextRange range = selectionOf(row);
        if (!range.empty())
            parts << m_model->at(row).text.mid(range.from, range.to - range.from);
    }
    return parts.join(QStringLiteral("\n\n"));
}

void ChatView::clearSelection() {
    m_selectFrom = m_selectTo = Spot();
    viewport()->update();
}

void ChatView::copyText(const QString& text) {
    if (text.isEmpty())
        return;
    QGuiApplication::clipboard()->setText(text);
    emit copied();
}

// ---- mouse ----

MessagePart ChatView::partAt(QPoint point, int& row) const {
    const QPoint content = point - columnOrigin();
    row = rowAt(content.y());
    if (row < 0)
        return MessagePart::None;
    const Row& r = m_rows[std::size_t(row)];
    return r.item.partAt(content - QPoint(0, r.y));
}

void ChatView::hover(QPoint point) {
    int row = -1;
    const MessagePart part = partAt(point, row);
    if (row == m_hoverRow && part == m_under)
        return;
    m_hoverRow = row;
    m_under = part;
    viewport()->setCursor(part == MessagePart::Text   ? Qt::IBeamCursor
                          : part == MessagePart::None ? Qt::ArrowCursor
                                                      : Qt::PointingHandCursor);
    viewport()->update();
}

void ChatView::mousePressEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton)
        return;
    int row = -1;
    const MessagePart part = partAt(event->position().toPoint(), row);
    m_currentRow = row >= 0 ? row : m_currentRow;
    if (part != MessagePart::None && part != MessagePart::Text) {
        m_pressed = part;
        m_pressedRow = row;
        viewport()->update();
        return;
    }
    const Spot spot = spotAt(event->position().toPoint());
    if (!(event->modifiers() & Qt::ShiftModifier) || m_selectFrom.row < 0)
        m_selectFrom = spot;
    m_selectTo = spot;
    m_selecting = true;
    viewport()->update();
}

void ChatView::mouseMoveEvent(QMouseEvent* event) {
    const QPoint point = event->position().toPoint();
    if (!m_selecting) {
        hover(point);
        return;
    }
    m_selectTo = spotAt(point);
    const bool outside = point.y() < 0 || point.y() > viewport()->height();
    if (outside && m_autoScroll == 0)
        m_autoScroll = startTimer(kAutoScrollMs);
    else if (!outside && m_autoScroll != 0) {
        killTimer(m_autoScroll);
        m_autoScroll = 0;
    }
    viewport()->update();
}

void ChatView::timerEvent(QTimerEvent* event) {
    if (event->timerId() != m_autoScroll) {
        QAbstractScrollArea::timerEvent(event);
        return;
    }
    const QPoint point = viewport()->mapFromGlobal(QCursor::pos());
    const int beyond = point.y() < 0 ? point.y() : point.y() - viewport()->height();
    verticalScrollBar()->setValue(verticalScrollBar()->value() + std::clamp(beyond, -60, 60));
    m_selectTo = spotAt(point);
    viewport()->update();
}

void ChatView::mouseReleaseEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton)
        return;
    if (m_autoScroll != 0) {
        killTimer(m_autoScroll);
        m_autoScroll = 0;
    }
    if (m_selecting) {
        m_selecting = false;
        const QString selected = selectedText();
        if (!selected.isEmpty() && QGuiApplication::clipboard()->supportsSelection())
            QGuiApplication::clipboard()->setText(selected, QClipboard::Selection);
        hover(event->position().toPoint());
        return;
    }
    int row = -1;
    const MessagePart part = partAt(event->position().toPoint(), row);
    const MessagePart pressed = std::exchange(m_pressed, MessagePart::None);
    const int pressedRow = std::exchange(m_pressedRow, -1);
    viewport()->update();
    if (part == pressed && row == pressedRow)
        activate(part, row);
}

void ChatView::mouseDoubleClickEvent(QMouseEvent* event) {
    const Spot spot = spotAt(event->position().toPoint());
    if (event->button() != Qt::LeftButton || spot.row < 0)
        return;
    const TextRange word = m_rows[std::size_t(spot.row)].item.text().wordAt(spot.position);
    m_selectFrom = {spot.row, word.from};
    m_selectTo = {spot.row, word.to};
    viewport()->update();
}

void ChatView::leaveEvent(QEvent* event) {
    QAbstractScrollArea::leaveEvent(event);
    m_hoverRow = -1;
    m_under = MessagePart::None;
    viewport()->update();
}

bool ChatView::viewportEvent(QEvent* event) {
    if (event->type() == QEvent::ToolTip) {
        const auto* help = static_cast<QHelpEvent*>(event);
        int row = -1;
        const MessagePart part = partAt(help->pos(), row);
        const QString hint = row >= 0 ? m_rows[std::size_t(row)].item.hint(part) : QString();
        QToolTip::showText(help->globalPos(), hint, viewport());
        return true;
    }
    if (event->type() == QEvent::Leave)
        leaveEvent(event);
    return QAbstractScrollArea::viewportEvent(event);
}

void ChatView::activate(MessagePart part, int row) {
    switch (part) {
    case MessagePart::Stop:
        emit stopRequested();
        break;
    case MessagePart::Copy:
        copyText(m_model->at(row).text);
        break;
    case MessagePart::ShowBlocks:
        emit showBlocksRequested(row);
        break;
    case MessagePart::Receipt:
        toggleReceipt(row);
        break;
    case MessagePart::Text:
    case MessagePart::None:
        break;
    }
}

void ChatView::toggleReceipt(int row) {
    if (row < 0 || row >= m_model->size() || !m_model->at(row).receipt)
        return;
    // What is below moves down; the receipt itself stays under the pointer.
    Anchor keep = anchor();
    const bool last = row + 1 == int(m_rows.size()) && m_follow;
    keep.end = last;
    if (!last && m_follow) {
        keep.row = row;
        keep.offset = m_rows[std::size_t(row)].y - verticalScrollBar()->value();
    }
    MessageItem& item = m_rows[std::size_t(row)].item;
    item.setReceiptOpen(!item.receiptOpen());
    item.update(m_model->at(row), m_style, columnWidth(), false);
    relayout(keep);
}

void ChatView::contextMenuEvent(QContextMenuEvent* event) {
    int row = m_currentRow;
    if (event->reason() == QContextMenuEvent::Mouse)
        partAt(viewport()->mapFrom(this, event->pos()), row);
    if (!m_model || row < 0 || row >= m_model->size())
        return;
    m_currentRow = row;
    const ChatMessage& message = m_model->at(row);
    QMenu menu(this);
    if (!selectedText().isEmpty())
        menu.addAction(tr("Copy selection"), this, [this] { copyText(selectedText()); });
    menu.addAction(tr("Copy message"), this, [this, text = message.text] { copyText(text); });
    if (message.tokenRange.second > message.tokenRange.first)
        menu.addAction(tr("Show its blocks"), this, [this, row] { emit showBlocksRequested(row); });
    if (message.receipt)
        menu.addAction(m_rows[std::size_t(row)].item.receiptOpen() ? tr("Close the receipt") : tr("Open the receipt"),
                       this, [this, row] { toggleReceipt(row); });
    const QPoint at = event->reason() == QContextMenuEvent::Mouse
                          ? event->globalPos()
                          : viewport()->mapToGlobal(rowRect(row).topLeft() + QPoint(40, 20));
    menu.exec(at);
}

// ---- keyboard ----

void ChatView::focusInEvent(QFocusEvent* event) {
    QAbstractScrollArea::focusInEvent(event);
    if (event->reason() != Qt::MouseFocusReason && m_currentRow < 0)
        m_currentRow = int(m_rows.size()) - 1;
    viewport()->update();
}

void ChatView::focusOutEvent(QFocusEvent* event) {
    QAbstractScrollArea::focusOutEvent(event);
    viewport()->update();
}

void ChatView::moveCurrent(int by) {
    if (m_rows.empty())
        return;
    m_currentRow = std::clamp(m_currentRow + by, 0, int(m_rows.size()) - 1);
    ensureVisible(m_currentRow);
    viewport()->update();
}

void ChatView::keyPressEvent(QKeyEvent* event) {
    QScrollBar* bar = verticalScrollBar();
    const bool control = event->modifiers() & Qt::ControlModifier;
    if (event->matches(QKeySequence::Copy)) {
        const QString selected = selectedText();
        copyText(!selected.isEmpty()                                   ? selected
                 : m_currentRow >= 0 && m_currentRow < m_model->size() ? m_model->at(m_currentRow).text
                                                                       : QString());
        return;
    }
    if (event->matches(QKeySequence::SelectAll) && m_model && m_model->size() > 0) {
        m_selectFrom = {0, 0};
        m_selectTo = {m_model->size() - 1, int(m_model->at(m_model->size() - 1).text.size())};
        viewport()->update();
        return;
    }
    switch (event->key()) {
    case Qt::Key_Up:
        control ? moveCurrent(-1) : bar->setValue(bar->value() - bar->singleStep());
        return;
    case Qt::Key_Down:
        control ? moveCurrent(1) : bar->setValue(bar->value() + bar->singleStep());
        return;
    case Qt::Key_PageUp:
        bar->setValue(bar->value() - bar->pageStep() + m_style.textLine);
        return;
    case Qt::Key_PageDown:
        bar->setValue(bar->value() + bar->pageStep() - m_style.textLine);
        return;
    case Qt::Key_Home:
        bar->setValue(0);
        return;
    case Qt::Key_End:
        scrollToEnd();
        return;
    case Qt::Key_Return:
    case Qt::Key_Enter:
        toggleReceipt(m_currentRow);
        return;
    case Qt::Key_B:
        if (!control && m_currentRow >= 0) {
            emit showBlocksRequested(m_currentRow);
            return;
        }
        break;
    default:
        break;
    }
    QAbstractScrollArea::keyPressEvent(event);
}

} // namespace kvscope::ui
