// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QPoint>
#include <QRect>
#include <optional>

#include "ui/chat/message_text.h"
#include "ui/models/chat_types.h"

class QPainter;

namespace kvscope::ui {

/// What in a message answers to the mouse.
enum class MessagePart { None, Text, Receipt, Copy, ShowBlocks, Stop };

/// Everything that decides how a message looks beside its own content.
struct MessageLook {
    const Theme* theme = nullptr;
    bool hovered = false; ///< or the current message while the view has the keyboard
    bool ringed = false;  ///< focus ring
    bool blocksLit = false;
    int litBlocks = 0; ///< of those, how many the map shows
    MessagePart pressed = MessagePart::None, under = MessagePart::None;
    TextRange selection, lit;
    double devicePixelRatio = 1;
};

/// Geometry and drawing of one message: bubble or answer, its status line, receipt and actions. Coordinates are
/// relative to the upper left corner of the message's row, which is as wide as the column.
class MessageItem {
public:
    /// Takes over what `message` says. `appendedOnly`: only text was added at the end.
    void update(const ChatMessage& message, const ChatStyle& style, int width, bool appendedOnly);
    /// Before anybody looked at it: a guess that costs nothing.
    void guess(const ChatMessage& message, const ChatStyle& style, int width);
    bool measured() const { return m_measured; }
    void forgetMeasure() { m_measured = false; }
    void release() { m_text.release(); }
    bool hasLayouts() const { return m_text.hasLayouts(); }

    int height() const { return m_height; }
    const MessageText& text() const { return m_text; }
    QRect textRect() const { return m_textRect; }
    /// The last line of the text, insertion mark included: all that appended words can change.
    QRect tailRect() const;

    bool receiptOpen() const { return m_receiptOpen; }
    void setReceiptOpen(bool open) { m_receiptOpen = open; }
    MessagePart partAt(QPoint point) const;
    QRect partRect(MessagePart part) const;
    /// Tooltip of a part; empty = none.
    QString hint(MessagePart part) const;

    void paint(QPainter& painter, QPoint origin, const QRect& clip, const MessageLook& look,
               const ChatMessage& message) const;

private:
    void placeOwn(const ChatMessage& message, int width);
    void placeAnswer(const ChatMessage& message, int width);
    void paintOwn(QPainter& painter, QPoint origin, const QRect& clip, const MessageLook& look,
                  const ChatMessage& message) const;
    void paintAnswer(QPainter& painter, QPoint origin, const QRect& clip, const MessageLook& look,
                     const ChatMessage& message) const;
    void paintText(QPainter& painter, QPoint origin, const QRect& clip, const MessageLook& look) const;
    void paintCaret(QPainter& painter, QPoint origin, const MessageLook& look) const;
    void paintState(QPainter& painter, QPoint origin, const MessageLook& look, const ChatMessage& message) const;
    void paintReading(QPainter& painter, const QRect& line, const MessageLook& look, const ChatMessage& message) const;
    void paintReceipt(QPainter& painter, QPoint origin, const MessageLook& look, const ChatMessage& message) const;
    void paintDetails(QPainter& painter, QPoint origin, const MessageLook& look, const ChatMessage& message) const;
    void paintActions(QPainter& painter, QPoint origin, const MessageLook& look, const ChatMessage& message) const;

    MessageText m_text;
    int m_width = 0, m_height = 0;
    bool m_measured = false;
    bool m_receiptOpen = false;
    bool m_own = false;
    ChatStyle m_style;
    QRect m_bubble, m_textRect, m_stateRect, m_receiptRect, m_detailsRect, m_actionsRect;
    QRect m_copyRect, m_showRect, m_stopRect;
};

} // namespace kvscope::ui
