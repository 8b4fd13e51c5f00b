// SPDX-License-Identifier: GPL-3.0-or-later
//
// ChatView: selection, mouse, clipboard. Keyboard and edits in place: chat_view_keys.cpp.
#include <QClipboard>
#include <QGuiApplication>
#include <QHelpEvent>
#include <QMenu>
#include <QMouseEvent>
#include <QScrollBar>
#include <QToolTip>
#include <algorithm>
#include <climits>

#include "ui/chat/attachment_view.h"
#include "ui/chat/chat_view.h"
#include "ui/chat/link_question.h"
#include "ui/models/attachment.h"
#include "ui/theme/icons.h"

namespace kvscope::ui {
namespace {

constexpr int kAutoScrollMs = 30;
constexpr int kDoneMs = 1500; // how long a copy shows that it is done

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
    if (!r.item.measured())
        return {row, 0};
    return {row, r.item.text().positionAt(content - QPoint(0, r.y) - r.item.textRect().topLeft())};
}

TextRange ChatView::selectionOf(int row) const {
    if (m_selectFrom.row < 0 || m_selectFrom == m_selectTo)
        return {};
    const Spot& from = std::min(m_selectFrom, m_selectTo);
    const Spot& to = std::max(m_selectFrom, m_selectTo);
    if (row < from.row || row > to.row || row >= m_model->size())
        return {};
    return {row == from.row ? from.position : 0, row == to.row ? to.position : INT_MAX};
}

QString ChatView::selectedText() const {
    if (!m_model || m_selectFrom.row < 0)
        return {};
    QStringList parts;
    for (int row = std::min(m_selectFrom, m_selectTo).row; row <= std::max(m_selectFrom, m_selectTo).row; ++row) {
        const TextRange range = selectionOf(row);
        if (range.empty())
            continue;
        // A message that nobody has looked at can only be selected as a whole.
        const MessageItem& item = m_rows[std::size_t(row)].item;
        const QString part = item.measured() ? item.text().copied(range) : m_model->at(row).text;
        if (!part.isEmpty())
            parts << part;
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

MessageHit ChatView::partAt(QPoint point, int& row) const {
    const QPoint content = point - columnOrigin();
    row = rowAt(content.y());
    if (row < 0 || !m_rows[std::size_t(row)].item.measured())
        return {};
    const Row& r = m_rows[std::size_t(row)];
    return r.item.hitAt(content - QPoint(0, r.y));
}

void ChatView::hover(QPoint point) {
    int row = -1;
    const MessageHit hit = partAt(point, row);
    if (row == m_hoverRow && hit == m_under)
        return;
    m_hoverRow = row;
    m_under = hit;
    viewport()->setCursor(hit.part == MessagePart::Text   ? Qt::IBeamCursor
                          : hit.part == MessagePart::None ? Qt::ArrowCursor
                                                          : Qt::PointingHandCursor);
    viewport()->update();
}

void ChatView::mousePressEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton)
        return;
    int row = -1;
    const MessageHit hit = partAt(event->position().toPoint(), row);
    m_currentRow = row >= 0 ? row : m_currentRow;
    m_focused = {};
    if (hit.part != MessagePart::None && hit.part != MessagePart::Text) {
        m_pressed = hit;
        m_pressedRow = row;
        viewport()->update();
        return;
    }
    const Spot spot = spotAt(event->position().toPoint());
    if (!(event->modifiers() & Qt::ShiftModifier) || m_selectFrom.row < 0)
        m_selectFrom = spot;
    m_selectTo = spot;
    m_selecting = true;
    m_followedBefore = std::exchange(m_follow, false); // what is being selected stays where it is
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
    if (event->timerId() == m_doneTimer) {
        killTimer(std::exchange(m_doneTimer, 0));
        m_doneRow = -1;
        viewport()->update();
        return;
    }
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
        if (selected.isEmpty() && m_followedBefore)
            scrollToEnd();
        if (!selected.isEmpty() && QGuiApplication::clipboard()->supportsSelection())
            QGuiApplication::clipboard()->setText(selected, QClipboard::Selection);
        hover(event->position().toPoint());
        return;
    }
    int row = -1;
    const MessageHit hit = partAt(event->position().toPoint(), row);
    const MessageHit pressed = std::exchange(m_pressed, {});
    const int pressedRow = std::exchange(m_pressedRow, -1);
    viewport()->update();
    if (hit == pressed && row == pressedRow)
        activate(hit, row);
}

void ChatView::mouseDoubleClickEvent(QMouseEvent* event) {
    const Spot spot = spotAt(event->position().toPoint());
    if (event->button() != Qt::LeftButton || spot.row < 0 || !m_rows[std::size_t(spot.row)].item.measured())
        return;
    const TextRange word = m_rows[std::size_t(spot.row)].item.text().wordAt(spot.position);
    m_selectFrom = {spot.row, word.from};
    m_selectTo = {spot.row, word.to};
    viewport()->update();
}

void ChatView::leaveEvent(QEvent* event) {
    QAbstractScrollArea::leaveEvent(event);
    m_hoverRow = -1;
    m_under = {};
    viewport()->update();
}

bool ChatView::viewportEvent(QEvent* event) {
    if (event->type() == QEvent::ToolTip) {
        const auto* help = static_cast<QHelpEvent*>(event);
        int row = -1;
        const MessageHit part = partAt(help->pos(), row);
        const QString hint = row >= 0 ? m_rows[std::size_t(row)].item.hint(part) : QString();
        QToolTip::showText(help->globalPos(), hint, viewport());
        return true;
    }
    if (event->type() == QEvent::Leave)
        leaveEvent(event);
    return QAbstractScrollArea::viewportEvent(event);
}

void ChatView::activate(MessageHit hit, int row) {
    if (!valid(row))
        return;
    const MessageText& text = textOf(row);
    switch (hit.part) {
    case MessagePart::Stop:
        return emit stopRequested();
    case MessagePart::Copy:
        return copyFrom(hit, row, wholeText(m_model->at(row)));
    case MessagePart::Attachment:
        return openAttachment(row, hit.index);
    case MessagePart::CopyCode:
        return copyFrom(hit, row, text.codeOf(hit.index));
    case MessagePart::Link:
        askToOpen(text.linkOf(hit.index), this);
        return;
    case MessagePart::Thought:
        return toggleThought(row);
    case MessagePart::ShowBlocks:
        return emit showBlocksRequested(row);
    case MessagePart::Receipt:
        return toggleReceipt(row);
    case MessagePart::Again:
        return emit againRequested(row);
    case MessagePart::Edit:
        return beginEdit(row);
    case MessagePart::Branch:
        return emit branchRequested(row);
    case MessagePart::Continue:
        return emit continueRequested(row);
    case MessagePart::Discard:
        return emit discardRequested(row);
    case MessagePart::Previous:
    case MessagePart::Next: {
        const ChatMessage& message = m_model->at(row);
        const int step = hit.part == MessagePart::Next ? 1 : -1;
        if (message.version + step < 1 || message.version + step > message.versions)
            return;
        m_pin = {row, partRect(row, MessagePart::Previous).top(), m_focused};
        emit versionRequested(row, step);
        return;
    }
    case MessagePart::Text:
    case MessagePart::None:
        return;
    }
}

void ChatView::openAttachment(int row, int index) {
    if (!valid(row) || index < 0 || index >= int(m_model->at(row).attachments.size()))
        return;
    auto* view = new AttachmentView(m_model->at(row).attachments[std::size_t(index)], m_theme, this);
    view->show();
}

void ChatView::copyFrom(MessageHit hit, int row, const QString& text) {
    copyText(text);
    m_done = hit;
    m_doneRow = row;
    if (m_doneTimer != 0)
        killTimer(m_doneTimer);
    m_doneTimer = startTimer(kDoneMs);
    viewport()->update();
}

/// What is below a part that opens or closes moves; the part itself stays where it is on the screen, and the end is not
/// followed any more while there is writing. `keepEnd`: at the end it is the end that stays in view.
void ChatView::refit(int row, bool keepEnd, const std::function<void(MessageItem&)>& change) {
    const bool running = isRunning(m_model->at(m_model->size() - 1).status);
    const bool end = keepEnd && m_follow && row + 1 == int(m_rows.size()) && !running;
    Anchor keep{end, row, -1, m_rows[std::size_t(row)].y - verticalScrollBar()->value()};
    m_follow = end;
    MessageItem& item = m_rows[std::size_t(row)].item;
    change(item);
    item.update(m_model->at(row), m_style, columnWidth(), false);
    relayout(keep);
    m_follow = !running && atEnd();
}

void ChatView::toggleReceipt(int row) {
    if (valid(row) && m_model->at(row).receipt)
        refit(row, true, [](MessageItem& item) { item.setReceiptOpen(!item.receiptOpen()); });
}

void ChatView::toggleThought(int row) {
    if (valid(row))
        refit(row, false, [](MessageItem& item) { item.setThoughtOpen(!item.thoughtOpen()); });
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
    menu.addAction(tr("Copy message"), this, [this, text = wholeText(message)] { copyText(text); });
    for (std::size_t i = 0; i < message.attachments.size(); ++i)
        menu.addAction(tr("Open %1").arg(attachmentTitle(message.attachments[i])), this,
                       [this, row, i] { openAttachment(row, int(i)); });
    const std::vector<MessageHit> parts = targets(row);
    const auto offer = [&](MessagePart part, const QString& words) {
        if (std::find(parts.begin(), parts.end(), MessageHit{part, 0}) != parts.end())
            menu.addAction(words, this, [this, part, row] { activate({part, 0}, row); });
    };
    offer(MessagePart::Again, tr("Write another answer"));
    offer(MessagePart::Edit, tr("Edit"));
    if (!isRunning(message.status))
        menu.addAction(tr("New chat from here"), this, [this, row] { emit branchRequested(row); });
    offer(MessagePart::Continue, tr("Continue"));
    offer(MessagePart::Discard, tr("Discard"));
    if (message.tokenRange.second > message.tokenRange.first)
        menu.addAction(tr("Show its blocks"), this, [this, row] { emit showBlocksRequested(row); });
    if (message.receipt)
        menu.addAction(m_rows[std::size_t(row)].item.receiptOpen() ? tr("Close the receipt") : tr("Open the receipt"),
                       this, [this, row] { toggleReceipt(row); });
    if (!isRunning(message.status) && message.id != kNoId) {
        menu.addSeparator();
        menu.addAction(makeIcon(Icon::Trash, m_theme.text2, m_theme.textOff), tr("Delete message\tDel"), this,
                       [this, row] { requestDelete(row); });
    }
    const QPoint at = event->reason() == QContextMenuEvent::Mouse
                          ? event->globalPos()
                          : viewport()->mapToGlobal(rowRect(row).topLeft() + QPoint(40, 20));
    menu.exec(at);
}

} // namespace kvscope::ui
