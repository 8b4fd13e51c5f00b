// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/chat/message_text.h"

#include <QFontMetrics>
#include <QPainter>
#include <QTextBoundaryFinder>
#include <algorithm>
#include <cmath>

namespace kvscope::ui {
namespace {

constexpr int kBlankHeight = 8; // between paragraphs
constexpr int kCodeMargin = 4;  // above and below a code card
constexpr int kCodeHead = 28;   // line with the language
constexpr QPoint kCodePadding(12, 8);
constexpr int kCardRadius = 6;

/// "```lang" with up to three spaces before it; what follows the marks, or null when the line is no fence.
QString fenceOf(QStringView line) {
    qsizetype indent = 0;
    while (indent < line.size() && line[indent] == QLatin1Char(' '))
        ++indent;
    if (indent > 3 || !line.mid(indent).startsWith(QLatin1StringView("```")))
        return {};
    const QStringView language = line.mid(indent + 3).trimmed();
    return language.isEmpty() ? QStringLiteral("") : language.toString();
}

int endOfLine(const QString& text, int from) {
    const auto at = text.indexOf(QLatin1Char('\n'), from);
    return at < 0 ? int(text.size()) : int(at);
}

} // namespace

ChatStyle ChatStyle::at(int pixels) {
    ChatStyle style;
    style.text = textFont(TextRole::Chat);
    style.text.setPixelSize(pixels);
    style.code = monoFont(TextRole::Chat);
    style.code.setPixelSize(std::max(10, int(std::lround(pixels * 12.5 / 14))));
    style.textLine = int(std::lround(pixels * 22.0 / 14));
    style.codeLine = int(std::lround(pixels * 20.0 / 14));
    return style;
}

void MessageText::setStyle(const ChatStyle& style, int width) {
    m_style = style;
    m_width = width;
    release();
    measureFrom(0);
}

void MessageText::setText(const QString& text, bool appendedOnly) {
    m_text = text;
    // The last block may grow, and a blank one before it may turn out to be the inside of something: never, since
    // code is one block. So everything before the last block stays.
    const std::size_t keep = appendedOnly && !m_blocks.empty() ? m_blocks.size() - 1 : 0;
    parseFrom(keep);
    measureFrom(keep);
}

void MessageText::release() {
    for (Block& block : m_blocks)
        block.layout.reset();
}

int MessageText::estimateHeight(const QString& text, const ChatStyle& style, int width) {
    const double perLine = std::max(8.0, width / (style.text.pixelSize() * 0.5));
    const auto lines = text.count(QLatin1Char('\n')) + 1;
    return int(std::max(double(lines), double(text.size()) / perLine) * style.textLine);
}

bool MessageText::hasLayouts() const {
    return std::any_of(m_blocks.begin(), m_blocks.end(), [](const Block& block) { return block.layout != nullptr; });
}

/// Parses again from the start of block `first`. Whether that line is code is known from the block before it.
void MessageText::parseFrom(std::size_t first) {
    int at = first < m_blocks.size() ? m_blocks[first].start : 0;
    m_blocks.resize(std::min(first, m_blocks.size()));
    bool inCode = !m_blocks.empty() && (m_blocks.back().kind == Kind::CodeHead || m_blocks.back().kind == Kind::Code);
    const int size = int(m_text.size());
    while (at < size) {
        Block block;
        block.start = at;
        block.end = endOfLine(m_text, at);
        const QStringView line = QStringView(m_text).mid(at, block.end - at);
        const QString fence = fenceOf(line);
        if (inCode) {
            // Only a bare fence closes: "```lang" inside code is code.
            block.kind = !fence.isNull() && fence.isEmpty() ? Kind::CodeFoot : Kind::Code;
            inCode = block.kind == Kind::Code;
        } else if (!fence.isNull()) {
            block.kind = Kind::CodeHead;
            block.language = fence;
            inCode = true;
        } else {
            block.kind = line.trimmed().isEmpty() ? Kind::Blank : Kind::Paragraph;
        }
        at = block.end + 1;
        m_blocks.push_back(std::move(block));
    }
}

int MessageText::lineHeightOf(const Block& block) const {
    return block.kind == Kind::Code ? m_style.codeLine : m_style.textLine;
}

double MessageText::indentOf(const Block& block) const {
    return block.kind == Kind::Code ? kCodePadding.x() : 0;
}

const QTextLayout& MessageText::layoutOf(const Block& block) const {
    if (block.layout)
        return *block.layout;
    const bool code = block.kind == Kind::Code;
    block.layout = std::make_unique<QTextLayout>(m_text.mid(block.start, block.end - block.start),
                                                 code ? m_style.code : m_style.text);
    QTextOption option;
    option.setWrapMode(QTextOption::WrapAtWordBoundaryOrAnywhere);
    if (code)
        option.setTabStopDistance(QFontMetricsF(m_style.code).horizontalAdvance(QLatin1Char(' ')) * 4);
    block.layout->setTextOption(option);
    block.layout->setCacheEnabled(true); // shaped once, painted often; what is out of sight is released as a whole
    const int lineHeight = lineHeightOf(block);
    const double width = std::max(20.0, m_width - 2 * indentOf(block));
    block.layout->beginLayout();
    double y = 0;
    for (QTextLine line = block.layout->createLine(); line.isValid(); line = block.layout->createLine()) {
        line.setLineWidth(width);
        line.setPosition({0, y + (lineHeight - line.height()) / 2});
        y += lineHeight;
    }
    block.layout->endLayout();
    return *block.layout;
}

void MessageText::measureFrom(std::size_t first) {
    if (m_width <= 0)
        return;
    int y = first == 0 ? 0 : m_blocks[first - 1].y + m_blocks[first - 1].height;
    for (std::size_t i = first; i < m_blocks.size(); ++i) {
        Block& block = m_blocks[i];
        block.y = y;
        switch (block.kind) {
        case Kind::Blank:
            block.height = kBlankHeight;
            break;
        case Kind::CodeHead:
            block.height = kCodeMargin + (block.language.isEmpty() ? 0 : kCodeHead) + kCodePadding.y();
            block.width = m_width;
            break;
        case Kind::CodeFoot:
            block.height = kCodePadding.y() + kCodeMargin;
            break;
        case Kind::Paragraph:
        case Kind::Code: {
            const QTextLayout& layout = layoutOf(block);
            block.height = std::max(1, layout.lineCount()) * lineHeightOf(block);
            double widest = 0;
            for (int line = 0; line < layout.lineCount(); ++line)
                widest = std::max(widest, layout.lineAt(line).naturalTextWidth());
            block.width = block.kind == Kind::Code ? m_width : int(std::ceil(widest));
            break;
        }
        }
        y += block.height;
    }
    // Code that is still being written has no foot yet, and the same room below it.
    if (!m_blocks.empty() && (m_blocks.back().kind == Kind::Code || m_blocks.back().kind == Kind::CodeHead))
        y += kCodePadding.y() + kCodeMargin;
    m_height = y;
    m_naturalWidth = 0;
    for (const Block& block : m_blocks)
        m_naturalWidth = std::max(m_naturalWidth, block.width);
}

void MessageText::paint(QPainter& painter, QPointF origin, const QRectF& clip, const Colors& colors,
                        TextRange selection, TextRange lit) const {
    const auto first = std::lower_bound(m_blocks.begin(), m_blocks.end(), clip.top() - origin.y(),
                                        [](const Block& b, double y) { return b.y + b.height < y; });
    bool onCard = false;
    for (auto block = first; block != m_blocks.end() && origin.y() + block->y <= clip.bottom(); ++block) {
        const bool code = block->kind != Kind::Paragraph && block->kind != Kind::Blank;
        if (code && (!onCard || block->kind == Kind::CodeHead))
            paintCard(painter, origin, std::size_t(block - m_blocks.begin()), colors);
        onCard = code;
        if (isText(*block))
            paintBlock(painter, origin + QPointF(indentOf(*block), block->y), clip, *block, colors, selection, lit);
    }
}

/// The card that the code line `inside` stands on, as a whole: a clip keeps what is out of sight from costing.
void MessageText::paintCard(QPainter& painter, QPointF origin, std::size_t inside, const Colors& colors) const {
    std::size_t head = inside;
    while (m_blocks[head].kind != Kind::CodeHead)
        --head;
    std::size_t last = head;
    while (last + 1 < m_blocks.size() &&
           (m_blocks[last + 1].kind == Kind::Code || m_blocks[last + 1].kind == Kind::CodeFoot)) {
        ++last;
        if (m_blocks[last].kind == Kind::CodeFoot)
            break;
    }
    const bool open = m_blocks[last].kind != Kind::CodeFoot;
    const double top = m_blocks[head].y + kCodeMargin;
    const double bottom = m_blocks[last].y + m_blocks[last].height + (open ? kCodePadding.y() : -kCodeMargin);
    QRectF card(origin.x(), origin.y() + top, m_width, bottom - top);
    card.adjust(0.5, 0.5, -0.5, -0.5);
    painter.setPen(colors.cardLine);
    painter.setBrush(colors.card);
    painter.drawRoundedRect(card, kCardRadius, kCardRadius);
    const QString& language = m_blocks[head].language;
    if (language.isEmpty())
        return;
    const double line = std::floor(card.top()) + kCodeHead + 0.5;
    painter.drawLine(QPointF(card.left(), line), QPointF(card.right(), line));
    painter.setPen(colors.quiet);
    painter.setFont(textFont(TextRole::Axis));
    painter.drawText(QRectF(card.left() + kCodePadding.x(), card.top(), card.width() - 24, kCodeHead), Qt::AlignVCenter,
                     language);
}

void MessageText::paintBlock(QPainter& painter, QPointF origin, const QRectF& clip, const Block& block,
                             const Colors& colors, TextRange selection, TextRange lit) const {
    paintRange(painter, origin, block, lit, colors.lit);
    paintRange(painter, origin, block, selection, colors.selection);
    painter.setPen(block.kind == Kind::Code ? colors.code : colors.text);
    layoutOf(block).draw(&painter, origin, {}, clip);
}

void MessageText::paintRange(QPainter& painter, QPointF body, const Block& block, TextRange range,
                             const QColor& color) const {
    const int from = std::max(range.from, block.start) - block.start;
    const int to = std::min(range.to, block.end) - block.start;
    if (range.empty() || from > to || (from == to && block.end != block.start))
        return;
    const QTextLayout& layout = layoutOf(block);
    const int lineHeight = lineHeightOf(block);
    for (int i = 0; i < layout.lineCount(); ++i) {
        const QTextLine line = layout.lineAt(i);
        const int lineEnd = line.textStart() + line.textLength();
        if (to < line.textStart() || from > lineEnd || (from == lineEnd && lineEnd != line.textStart()))
            continue;
        const double x0 = line.cursorToX(std::max(from, line.textStart()));
        // A range that goes on behind the line end shows the line end as a small step.
        double x1 = to >= lineEnd ? line.naturalTextWidth() : line.cursorToX(to);
        if (range.to > block.start + lineEnd)
            x1 += 4;
        painter.fillRect(QRectF(body.x() + std::min(x0, x1), body.y() + i * lineHeight, std::abs(x1 - x0), lineHeight),
                         color);
    }
}

int MessageText::positionAt(QPointF point) const {
    if (m_blocks.empty())
        return 0;
    const auto it = std::lower_bound(m_blocks.begin(), m_blocks.end(), point.y(),
                                     [](const Block& b, double y) { return b.y + b.height <= y; });
    if (it == m_blocks.end())
        return int(m_text.size());
    const Block& block = *it;
    if (!isText(block))
        return block.kind == Kind::CodeFoot ? block.end : block.start;
    const QTextLayout& layout = layoutOf(block);
    if (layout.lineCount() == 0)
        return block.start;
    const QPointF inside = point - QPointF(indentOf(block), block.y);
    const int line = std::clamp(int(std::floor(inside.y() / lineHeightOf(block))), 0, layout.lineCount() - 1);
    return std::min(block.end, block.start + layout.lineAt(line).xToCursor(inside.x()));
}

const MessageText::Block* MessageText::blockAt(int position) const {
    const auto it =
        std::lower_bound(m_blocks.begin(), m_blocks.end(), position, [](const Block& b, int p) { return b.end < p; });
    return it == m_blocks.end() ? (m_blocks.empty() ? nullptr : &m_blocks.back()) : &*it;
}

QRectF MessageText::caretRect(int position) const {
    const Block* block = blockAt(position);
    if (!block)
        return {0, 0, 0, double(m_style.textLine)};
    const double lineHeight = lineHeightOf(*block);
    if (!isText(*block))
        return {0, double(block->y), 0, lineHeight};
    const int inside = std::clamp(position, block->start, block->end) - block->start;
    const QTextLine line = layoutOf(*block).lineForTextPosition(inside);
    if (!line.isValid())
        return {indentOf(*block), double(block->y), 0, lineHeight};
    return {indentOf(*block) + line.cursorToX(inside), block->y + line.lineNumber() * lineHeight, 0, lineHeight};
}

TextRange MessageText::wordAt(int position) const {
    QTextBoundaryFinder finder(QTextBoundaryFinder::Word, m_text);
    finder.setPosition(std::clamp(position, 0, int(m_text.size())));
    const int from =
        finder.isAtBoundary() ? int(finder.position()) : int(std::max<qsizetype>(0, finder.toPreviousBoundary()));
    finder.setPosition(from);
    const auto to = finder.toNextBoundary();
    return {from, to < 0 ? int(m_text.size()) : int(to)};
}

} // namespace kvscope::ui
