// SPDX-License-Identifier: GPL-3.0-or-later
//
// ChatView: keyboard and edits in place.
#include <QApplication>
#include <QFocusEvent>
#include <QKeyEvent>
#include <QScrollBar>
#include <algorithm>
#include <climits>

#include "ui/chat/chat_view.h"
#include "ui/chat/message_edit.h"
#include "ui/models/attachment.h"

namespace kvscope::ui {

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
    m_focused = {};
    ensureVisible(m_currentRow);
    viewport()->update();
}

/// From part to part of the current message; false at its ends. Before the first part the message itself has the ring.
bool ChatView::moveFocus(int by) {
    if (!valid(m_currentRow))
        return false;
    if (!m_rows[std::size_t(m_currentRow)].item.measured())
        ensureVisible(m_currentRow);
    const std::vector<MessageHit> parts = targets(m_currentRow);
    const auto at = std::find(parts.begin(), parts.end(), m_focused);
    const int now = at == parts.end() ? -1 : int(at - parts.begin());
    const int next = now + by;
    if (next < -1 || next >= int(parts.size()))
        return false;
    m_focused = next < 0 ? MessageHit{} : parts[std::size_t(next)];
    const QRect rect = next < 0 ? QRect() : partRect(m_currentRow, m_focused);
    if (rect.isValid() && rect.top() < 0)
        verticalScrollBar()->setValue(verticalScrollBar()->value() + rect.top() - m_style.textLine);
    else if (rect.isValid() && rect.bottom() > viewport()->height())
        verticalScrollBar()->setValue(verticalScrollBar()->value() + rect.bottom() - viewport()->height() +
                                      m_style.textLine);
    viewport()->update();
    return true;
}

/// Tab goes through the parts of the current message, then on to the next widget.
bool ChatView::focusNextPrevChild(bool next) {
    if (hasFocus() && moveFocus(next ? 1 : -1))
        return true;
    m_focused = {};
    return QAbstractScrollArea::focusNextPrevChild(next);
}

/// The keys that do what a part of the current message does, if it has that part.
bool ChatView::activateByKey(int key) {
    if (!valid(m_currentRow))
        return false;
    const auto doPart = [&](MessagePart part) {
        const std::vector<MessageHit> parts = targets(m_currentRow);
        if (std::find(parts.begin(), parts.end(), MessageHit{part, 0}) != parts.end())
            activate({part, 0}, m_currentRow);
        return true;
    };
    switch (key) {
    case Qt::Key_Return:
    case Qt::Key_Enter:
    case Qt::Key_Space:
        activate(m_focused.part == MessagePart::None ? MessageHit{MessagePart::Receipt, 0} : m_focused, m_currentRow);
        return true;
    case Qt::Key_C:
        return doPart(MessagePart::Copy);
    case Qt::Key_R:
        return doPart(MessagePart::Again);
    case Qt::Key_E:
        return doPart(MessagePart::Edit);
    case Qt::Key_N:
        if (!isRunning(m_model->at(m_currentRow).status))
            emit branchRequested(m_currentRow);
        return true;
    case Qt::Key_Delete:
        requestDelete(m_currentRow);
        return true;
    case Qt::Key_B:
        emit showBlocksRequested(m_currentRow);
        return true;
    case Qt::Key_T:
        return doPart(MessagePart::Thought);
    case Qt::Key_Less:
    case Qt::Key_Comma:
        return doPart(MessagePart::Previous);
    case Qt::Key_Greater:
    case Qt::Key_Period:
        return doPart(MessagePart::Next);
    default:
        return false;
    }
}

void ChatView::keyPressEvent(QKeyEvent* event) {
    QScrollBar* bar = verticalScrollBar();
    const bool control = event->modifiers() & Qt::ControlModifier;
    if (event->matches(QKeySequence::Copy)) {
        const QString selected = selectedText();
        copyText(!selected.isEmpty()                                   ? selected
                 : m_currentRow >= 0 && m_currentRow < m_model->size() ? wholeText(m_model->at(m_currentRow))
                                                                       : QString());
        return;
    }
    if (event->matches(QKeySequence::SelectAll) && m_model && m_model->size() > 0) {
        m_selectFrom = {0, 0};
        m_selectTo = {m_model->size() - 1, INT_MAX};
        viewport()->update();
        return;
    }
    if (event->matches(QKeySequence::Undo)) {
        emit undoDeleteRequested();
        return;
    }
    if (!control && activateByKey(event->key()))
        return;
    switch (event->key()) {
    case Qt::Key_Left:
    case Qt::Key_Right:
        moveFocus(event->key() == Qt::Key_Right ? 1 : -1);
        return;
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
    default:
        break;
    }
    QAbstractScrollArea::keyPressEvent(event);
}

// ---- edits in place ----

/// Once the database has it, and nothing is written there.
void ChatView::requestDelete(int row) {
    if (valid(row) && m_model->at(row).id != kNoId && !isRunning(m_model->at(row).status))
        emit deleteRequested(row);
}

void ChatView::beginEdit(int row) {
    if (valid(row))
        beginEdit(row, m_model->at(row).text);
}

void ChatView::beginEdit(int row, const QString& text) {
    if (!valid(row) || isRunning(m_model->at(row).status))
        return;
    endEdit();
    ensureVisible(row);
    const ChatMessage& message = m_model->at(row);
    m_edit = new MessageEdit(text, message.role == MessageRole::User, m_style.text.pixelSize(), m_theme, viewport());
    m_edit->setMayBeEmpty(!message.attachments.empty());
    m_editRow = row;
    const auto fit = [this] {
        if (m_edit && valid(m_editRow))
            refit(m_editRow, false,
                  [this](MessageItem& item) { item.setEditHeight(m_edit->wantedHeight(columnWidth())); });
    };
    connect(m_edit, &MessageEdit::heightChanged, this, fit);
    connect(m_edit, &MessageEdit::cancelled, this, &ChatView::endEdit);
    connect(m_edit, &MessageEdit::accepted, this, [this] {
        const int edited = m_editRow;
        const QString text = m_edit->text();
        const bool changed = valid(edited) && text != m_model->at(edited).text;
        endEdit();
        if (changed)
            emit editRequested(edited, text);
    });
    fit();
    m_edit->show();
    m_edit->setFocus(Qt::OtherFocusReason);
}

void ChatView::endEdit() {
    if (!m_edit)
        return;
    const int row = std::exchange(m_editRow, -1);
    const bool hadFocus = m_edit->isAncestorOf(QApplication::focusWidget());
    m_edit->hide();
    m_edit->deleteLater();
    m_edit = nullptr;
    if (row >= 0 && row < int(m_rows.size()) && valid(row))
        refit(row, false, [](MessageItem& item) { item.setEditHeight(0); });
    if (hadFocus)
        setFocus(Qt::OtherFocusReason);
}

void ChatView::placeEdit() {
    if (!m_edit || !valid(m_editRow))
        return;
    const QRect rect = m_rows[std::size_t(m_editRow)].item.editRect().translated(rowRect(m_editRow).topLeft());
    if (m_edit->geometry() != rect)
        m_edit->setGeometry(rect);
}

} // namespace kvscope::ui
