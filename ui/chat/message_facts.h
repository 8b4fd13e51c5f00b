// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the lines around a message say and how they are marked.
#pragma once

#include <optional>

#include "ui/chat/message_item.h"
#include "ui/chat/message_paint.h"
#include "ui/models/chat_types.h"
#include "ui/widgets/bar.h"

namespace kvscope::ui {

/// The line between text and receipt: reading, waiting, stopped, interrupted, error. Empty = none.
QString stateSentence(const ChatMessage& message);

struct StateStyle {
    QColor color;
    std::optional<Icon> icon;
};
StateStyle stateStyle(const ChatMessage& message, const Theme& theme);

/// The table of an opened receipt.
Facts receiptFacts(const ChatMessage& message);
/// "29 blocks lit in the map"
QString litSentence(int blocks);

int stopButtonWidth();
void paintStopButton(QPainter& painter, const QRect& rect, const MessageLook& look);
void paintActionIcon(QPainter& painter, const QRect& rect, Icon icon, const MessageLook& look, MessagePart part,
                     bool on);
/// Own message: round corners, but the one towards its author is sharp.
void paintBubble(QPainter& painter, const QRectF& rect, const QColor& color);

} // namespace kvscope::ui
