// SPDX-License-Identifier: GPL-3.0-or-later
//
// The attachments of a sent message, drawn below its text: name, size and tokens. A click opens one.
#pragma once

#include <QRect>
#include <QString>
#include <vector>

#include "ui/models/chat_types.h"

class QPainter;

namespace kvscope::ui {

struct MessageLook;

struct MessageChip {
    QRect rect; ///< relative to the upper left corner of the chips
    QString name, note;
};

/// "12 KiB · 4,610 tokens"; the tokens only where they were counted.
QString attachmentNote(const Attachment& attachment);

/// In rows of at most `width`.
std::vector<MessageChip> layOutChips(const std::vector<Attachment>& attachments, int width);
/// Of what `layOutChips` gave; {0, 0} without chips.
QSize sizeOf(const std::vector<MessageChip>& chips);
/// Rough height before anybody looked, without reading the texts.
int guessChipsHeight(std::size_t chips);

/// `over`: the mouse is on it or presses it.
void paintChip(QPainter& painter, const QRect& rect, const MessageChip& chip, const MessageLook& look, bool over);

} // namespace kvscope::ui
