// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/chat/markdown_style.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace kvscope::ui {

ChatStyle ChatStyle::at(int pixels) {
    ChatStyle style;
    style.text = textFont(TextRole::Chat);
    style.text.setPixelSize(pixels);
    style.code = monoFont(TextRole::Chat);
    style.code.setPixelSize(std::max(8, int(std::lround(pixels * 12.5 / 14))));
    style.textLine = int(std::lround(pixels * 22.0 / 14));
    style.codeLine = int(std::lround(pixels * 20.0 / 14));
    return style;
}

ChatStyle ChatStyle::thought() const {
    ChatStyle style = at(std::max(8, text.pixelSize() - 1));
    style.textLine = int(std::lround(style.text.pixelSize() * 20.0 / 13));
    return style;
}

FlowStyle ChatStyle::heading(int level) const {
    constexpr std::array kScale = {20.0 / 14, 17.0 / 14, 15.0 / 14, 1.0, 1.0, 1.0};
    FlowStyle style;
    style.font = text;
    style.font.setWeight(QFont::DemiBold);
    const int pixels = int(std::lround(text.pixelSize() * kScale[std::size_t(std::clamp(level, 1, 6) - 1)]));
    style.font.setPixelSize(pixels);
    style.line = int(std::lround(pixels * (level <= 2 ? 1.4 : 22.0 / 14)));
    return style;
}

TextColors TextColors::of(const Theme& t, bool own) {
    const bool light = t.kind == ThemeKind::Light;
    TextColors c;
    c.text = c.code = t.text1;
    c.thought = t.text2;
    c.codeHead = c.quiet = t.text3;
    c.link = t.accent;
    c.card = light ? t.bg2 : t.bg0;
    c.cardLine = t.line1;
    c.codeSpan = light ? t.bg3 : t.bg3;
    c.rule = t.line2;
    c.tableHead = light ? t.bg2 : t.bg2;
    // The bubble is nearly the colour of a selection.
    c.selection = !own ? t.sel : light ? t.sel.darker(112) : t.sel.lighter(150);
    c.lit = t.accentSoft;
    return c;
}

TextFlow::Formats formatsOf(const md::Block& block, int from, int to, const ChatStyle& style, const QColor& link) {
    TextFlow::Formats formats;
    for (const md::Span& span : block.spans) {
        const int begin = std::max(from, span.from), end = std::min(to, span.to);
        if (begin >= end)
            continue;
        QTextCharFormat format;
        if (span.flags & md::CodeSpan) {
            format.setFontFamilies(style.code.families());
            format.setProperty(QTextFormat::FontPixelSize,
                               block.kind == md::Kind::Heading ? style.text.pixelSize() : style.code.pixelSize());
        }
        if (span.flags & md::Strong)
            format.setFontWeight(block.kind == md::Kind::Heading ? QFont::Bold : QFont::DemiBold);
        if (span.flags & md::Emphasis)
            format.setFontItalic(true);
        if (span.flags & md::Strike)
            format.setFontStrikeOut(true);
        if (span.flags & md::Link) {
            format.setForeground(link);
            format.setFontUnderline(true);
        }
        formats.push_back({begin - from, end - begin, format});
    }
    return formats;
}

int gapBetween(const md::Block& above, const md::Block& below) {
    using md::Kind;
    if (above.kind == Kind::Plain && below.kind == Kind::Plain)
        return 0;
    if (below.kind == Kind::Heading)
        return below.level <= 2 ? 18 : 14;
    if (above.kind == Kind::Heading)
        return 6;
    if (above.kind == Kind::Rule || below.kind == Kind::Rule)
        return 12;
    const bool sameList = !above.containers.empty() && !below.containers.empty() &&
                          above.containers.front() == below.containers.front() && !above.containers.front().quote;
    if (sameList && above.kind == Kind::Paragraph && below.kind == Kind::Paragraph)
        return below.marker.isEmpty() ? 6 : 4;
    return sameList ? 8 : 10;
}

} // namespace kvscope::ui
