// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QPoint>
#include <QRect>
#include <array>

#include "ui/chat/message_chips.h"
#include "ui/chat/message_text.h"
#include "ui/models/chat_types.h"

class QPainter;

namespace kvscope::ui {

/// What in a message answers to mouse and keyboard.
enum class MessagePart {
    None,
    Text,
    Thought,
    CopyCode,
    Link,
    Attachment, ///< of the user's message
    Receipt,
    Continue,
    Discard,
    Previous, ///< to the version before this one
    Next,
    Stop,
    Copy,
    Again,
    Edit,
    Branch,
    ShowBlocks,
};
struct MessageHit {
    MessagePart part = MessagePart::None;
    int index = 0; ///< which link, code or thought of the text, or which attachment
    bool operator==(const MessageHit&) const = default;
};

/// The same as a part of the text; nothing for what is not in it.
TextHit textHitOf(MessageHit hit);

/// Everything that decides how a message looks beside its own content.
struct MessageLook {
    const Theme* theme = nullptr;
    bool hovered = false; ///< or the current message while the view has the keyboard
    bool ringed = false;  ///< focus ring around the message
    bool blocksLit = false;
    int litBlocks = 0; ///< of those, how many the map shows
    MessageHit pressed, under;
    MessageHit focused; ///< the part that carries the ring instead of the message
    MessageHit done;    ///< what has just been copied
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
    /// Real heights for what lies between two heights of the row; true when the row's geometry changed.
    bool measure(const ChatMessage& message, int top, int bottom);
    void release() { m_text.release(); }
    bool hasLayouts() const { return m_text.hasLayouts(); }
    void setLinkColor(const QColor& color) { m_text.setLinkColor(color); }

    int height() const { return m_height; }
    const MessageText& text() const { return m_text; }
    QRect textRect() const { return m_textRect; }
    /// Above this, `update` with `appendedOnly` changed nothing; below the text neither.
    int dirtyTop() const { return m_textRect.top() + m_text.dirtyTop(); }

    bool receiptOpen() const { return m_receiptOpen; }
    void setReceiptOpen(bool open) { m_receiptOpen = open; }
    bool thoughtOpen() const { return m_thoughtOpen; }
    void setThoughtOpen(bool open) { m_thoughtOpen = open; }
    /// Room for a box that stands in the place of the text; 0 = none.
    void setEditHeight(int height) { m_editHeight = height; }
    int editHeight() const { return m_editHeight; }
    /// The last message: only it can be written on. Takes effect with the next `update`.
    void setLast(bool last) { m_last = last; }
    bool last() const { return m_last; }
    QRect editRect() const;

    MessageHit hitAt(QPoint point) const;
    QRect rectOf(MessageHit hit) const;
    /// What the keyboard can reach, in the order in which it is reached.
    std::vector<MessageHit> targets() const;
    /// Tooltip of a part; empty = none.
    QString hint(MessageHit hit) const;

    void paint(QPainter& painter, QPoint origin, const QRect& clip, const MessageLook& look,
               const ChatMessage& message) const;

private:
    int textWidth(int width) const;
    void place(const ChatMessage& message);
    void placeOwn(const ChatMessage& message);
    void placeAnswer(const ChatMessage& message);
    int placeState(const ChatMessage& message, int left, int y);
    int placeReceipt(const ChatMessage& message, int left, int y);
    void placeActions(const ChatMessage& message, int left, int y);
    int placeVersions(const ChatMessage& message, int left, int y);
    QSize bubbleSize(const ChatMessage& message);
    QRect& rectOfPart(MessagePart part) { return m_parts[std::size_t(part)]; }
    const QRect& rectOfPart(MessagePart part) const { return m_parts[std::size_t(part)]; }

    void paintCut(QPainter& painter, QPoint origin, const MessageLook& look) const;
    void paintOwn(QPainter& painter, QPoint origin, const QRect& clip, const MessageLook& look,
                  const ChatMessage& message) const;
    void paintAnswer(QPainter& painter, QPoint origin, const QRect& clip, const MessageLook& look,
                     const ChatMessage& message) const;
    void paintChips(QPainter& painter, QPoint origin, const MessageLook& look) const;
    void paintText(QPainter& painter, QPoint origin, const QRect& clip, const MessageLook& look) const;
    void paintCaret(QPainter& painter, QPoint origin, const MessageLook& look, const ChatMessage& message) const;
    void paintState(QPainter& painter, QPoint origin, const MessageLook& look, const ChatMessage& message) const;
    void paintReading(QPainter& painter, const QRect& line, const MessageLook& look, const ChatMessage& message) const;
    void paintReceipt(QPainter& painter, QPoint origin, const MessageLook& look, const ChatMessage& message) const;
    void paintDetails(QPainter& painter, QPoint origin, const MessageLook& look, const ChatMessage& message) const;
    void paintVersions(QPainter& painter, QPoint origin, const MessageLook& look, const ChatMessage& message) const;
    void paintActions(QPainter& painter, QPoint origin, const MessageLook& look, const ChatMessage& message) const;

    MessageText m_text;
    int m_width = 0, m_height = 0, m_editHeight = 0;
    bool m_measured = false;
    bool m_receiptOpen = false, m_thoughtOpen = false;
    bool m_own = false, m_last = false;
    ChatStyle m_style;
    std::vector<MessageChip> m_chips;
    QPoint m_chipsAt;
    QRect m_cutRect, m_bubble, m_textRect, m_stateRect, m_detailsRect, m_actionsRect, m_versionRect;
    std::array<QRect, std::size_t(MessagePart::ShowBlocks) + 1> m_parts; ///< those that are not in the text
};

} // namespace kvscope::ui
