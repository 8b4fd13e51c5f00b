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

/// The line that stands for a thought: "Thought for 1.3 s · 64 tokens"; empty = there is none.
QString thoughtLine(const ChatMessage& message);
/// An answer that ended before it was complete can be written on.
bool canContinue(const ChatMessage& message);
/// "2/3"
QString versionWords(const ChatMessage& message);
QString cutSentence();
QString continueWord();
QString discardWord();

int textButtonWidth(const QString& text);
/// A button of 24 px within a message; `plain` = false: without a ground of its own.
void paintTextButton(QPainter& painter, const QRect& rect, const QString& text, bool plain, const MessageLook& look,
                     MessagePart part);
void paintRing(QPainter& painter, const QRect& around, double radius, const Theme& theme);
int stopButtonWidth();
void paintStopButton(QPainter& painter, const QRect& rect, const MessageLook& look);
void paintActionIcon(QPainter& painter, const QRect& rect, Icon icon, const MessageLook& look, MessagePart part,
                     bool on);
/// Own message: round corners, but the one towards its author is sharp.
void paintBubble(QPainter& painter, const QRectF& rect, const QColor& color);

} // namespace kvscope::ui
