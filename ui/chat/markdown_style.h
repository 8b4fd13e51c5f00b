// SPDX-License-Identifier: GPL-3.0-or-later
//
// Fonts, measures and colours of the blocks of a message.
#pragma once

#include <QFont>

#include "ui/chat/text_flow.h"
#include "ui/models/markdown_blocks.h"
#include "ui/theme/theme.h"

namespace kvscope::ui {

/// Fonts and line heights of a chat text at the user's text size.
struct ChatStyle {
    ChatStyle() = default;
    ChatStyle(const ChatStyle&) = default;
    ChatStyle& operator=(const ChatStyle&) = default;
    // QFont shares its data and cannot fail to copy, though it does not say so; a vector of messages must move.
    ChatStyle(ChatStyle&& other) noexcept = default;
    ChatStyle& operator=(ChatStyle&& other) noexcept = default;

    QFont text, code;
    int textLine = 22, codeLine = 20;
    /// `pixels` 14 unless the user chose otherwise; 8 to 32 keep their proportions.
    static ChatStyle at(int pixels);
    /// A thought: a pixel smaller.
    ChatStyle thought() const;
    FlowStyle heading(int level) const;
};

/// The colours of a message's text, all of them out of the theme.
struct TextColors {
    QColor text, thought, code, codeHead, link, quiet;
    QColor card, cardLine, codeSpan, rule, tableHead;
    QColor selection, lit;
    /// `own`: the text stands in the bubble of the user.
    static TextColors of(const Theme& theme, bool own);
};

/// How characters [from, to) of a block look beside its own font.
TextFlow::Formats formatsOf(const md::Block& block, int from, int to, const ChatStyle& style, const QColor& link);

namespace measure {
inline constexpr int kListIndent = 24, kQuoteIndent = 16, kThoughtIndent = 20;
inline constexpr int kCodeHead = 28;
inline constexpr int kCodePadX = 12, kCodePadY = 8;
inline constexpr int kCardRadius = 6;
} // namespace measure

/// Space between two blocks that follow each other.
int gapBetween(const md::Block& above, const md::Block& below);

} // namespace kvscope::ui
