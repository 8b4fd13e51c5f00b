// SPDX-License-Identifier: GPL-3.0-or-later
//
// MessageText: positions, words, and what answers to mouse and keyboard.
#include <QTextBoundaryFinder>
#include <algorithm>
#include <cmath>

#include "ui/chat/message_text.h"

namespace kvscope::ui {
namespace {

constexpr int kLinkBits = 12;
constexpr int kLinks = 1 << kLinkBits;
constexpr int kThoughtBit = 1 << 30;
constexpr int kCopyWidth = 78;

bool isText(const md::Block& block) {
    return block.kind != md::Kind::Rule && block.kind != md::Kind::Table;
}

} // namespace

int MessageText::indexOf(const Unit& unit, int link) {
    return (unit.thought ? kThoughtBit : 0) | (std::max(0, unit.block) << kLinkBits) | std::min(link, kLinks - 1);
}

bool MessageText::isMirrored(const Unit& unit) const {
    return unit.block >= 0 && !unit.thought && blockOf(unit).kind != md::Kind::Code && unit.flow.rightToLeft() &&
           std::none_of(blockOf(unit).containers.begin(), blockOf(unit).containers.end(),
                        [](const md::Container& container) { return container.quote; });
}

QPointF MessageText::flowOrigin(const Unit& unit) const {
    QPointF at(unit.indent, unit.y);
    if (unit.block < 0)
        return at;
    if (isMirrored(unit)) // the marks of its list stand at the other side
        at.setX(0);
    if (blockOf(unit).kind == md::Kind::Code)
        at += QPointF(measure::kCodePadX, unit.piece == 0 ? measure::kCodeHead + measure::kCodePadY : 0);
    return at;
}

QRectF MessageText::copyRect(const Unit& unit) const {
    return {double(m_width - kCopyWidth - 4), double(unit.y + 2), double(kCopyWidth), double(measure::kCodeHead - 4)};
}

const MessageText::Unit* MessageText::unitAtHeight(double y) const {
    if (m_units.empty())
        return nullptr;
    const auto it = std::lower_bound(m_units.begin(), m_units.end(), y,
                                     [](const Unit& unit, double value) { return unit.y + unit.height <= value; });
    return it == m_units.end() ? &m_units.back() : &*it;
}

const MessageText::Unit* MessageText::unitAtPosition(int position) const {
    const Unit* best = nullptr;
    const bool thought = position < answerAt() && !m_thinking.isEmpty();
    for (const Unit& unit : m_units) {
        if (unit.block < 0 || unit.thought != thought)
            continue;
        const md::Block& block = blockOf(unit);
        if (best && block.source.from > position)
            break;
        if (unit.piece > 0 && block.shownAt(position) < unit.from)
            break;
        best = &unit;
    }
    if (!best && !m_units.empty()) // folded, or nothing there yet
        return thought ? &m_units.front() : nullptr;
    return best;
}

int MessageText::positionAt(QPointF point) const {
    const Unit* unit = unitAtHeight(point.y());
    if (!unit)
        return answerAt();
    if (point.y() >= m_height)
        return end();
    if (unit->block < 0)
        return m_thoughtOpen ? 0 : answerAt();
    const md::Block& block = blockOf(*unit);
    const QPointF inside = point - flowOrigin(*unit);
    if (unit->table)
        return block.sourceAt(unit->table->positionAt(inside));
    if (!isText(block))
        return block.source.from;
    if (inside.y() >= unit->flow.height()) // the padding below code
        return block.sourceAt(unit->to);
    return block.sourceAt(unit->from + unit->flow.positionAt(inside));
}

QRectF MessageText::caretRect(int position) const {
    const Unit* unit = unitAtPosition(position);
    if (!unit)
        return {0, double(m_height), 0, double(m_style.textLine)};
    const md::Block* block = unit->block >= 0 ? &blockOf(*unit) : nullptr;
    if (!block || !isText(*block)) {
        if (block && unit->table)
            return unit->table->caret(block->shownAt(position)).translated(flowOrigin(*unit));
        return {double(unit->indent), double(unit->y), 0, double(std::max(unit->height, 1))};
    }
    const int inside = std::clamp(block->shownAt(position), unit->from, unit->to) - unit->from;
    return unit->flow.caret(inside).translated(flowOrigin(*unit));
}

TextRange MessageText::wordAt(int position) const {
    const Unit* unit = unitAtPosition(position);
    if (!unit || unit->block < 0)
        return {position, position};
    const md::Block& block = blockOf(*unit);
    QTextBoundaryFinder finder(QTextBoundaryFinder::Word, block.text);
    finder.setPosition(std::clamp(block.shownAt(position), 0, int(block.text.size())));
    const int from =
        finder.isAtBoundary() ? int(finder.position()) : int(std::max<qsizetype>(0, finder.toPreviousBoundary()));
    finder.setPosition(from);
    const auto to = finder.toNextBoundary();
    const int last = to < 0 ? int(block.text.size()) : int(to);
    // To the end of the last character, not to the start of what follows: marks in between are not part of the word.
    return {block.sourceAt(from), last > from ? block.sourceAt(last - 1) + 1 : block.sourceAt(last)};
}

QString MessageText::copied(TextRange range) const {
    if (range.from <= answerAt() && range.to >= end() && (!m_thoughtOpen || range.from >= answerAt()))
        return m_text;
    QString thought;
    if (m_thoughtOpen && range.from < int(m_thinking.size()))
        thought = md::shownText(m_thoughtParsed.blocks, {range.from, std::min(range.to, int(m_thinking.size()))});
    const QString answer =
        range.from <= answerAt() && range.to >= end() ? m_text : md::shownText(m_parsed.blocks, range);
    return thought.isEmpty() ? answer : answer.isEmpty() ? thought : thought + QStringLiteral("\n\n") + answer;
}

TextHit MessageText::hitAt(QPointF point) const {
    const Unit* unit = unitAtHeight(point.y());
    if (!unit || point.y() < -4 || point.y() > m_height + 4 || point.x() < -4 || point.x() > m_width + 4)
        return {};
    if (unit->block < 0)
        return point.y() >= unit->y ? TextHit{TextPart::Thought, 0} : TextHit{TextPart::Words, 0};
    const md::Block& block = blockOf(*unit);
    if (block.kind == md::Kind::Code && unit->piece == 0 && copyRect(*unit).contains(point))
        return {TextPart::CopyCode, indexOf(*unit)};
    const QPointF inside = point - flowOrigin(*unit);
    for (const md::Span& span : block.spans) {
        if (span.link < 0 || span.to <= unit->from || span.from >= unit->to)
            continue;
        const auto rects = unit->table ? unit->table->rects(span.from, span.to)
                                       : unit->flow.rects(std::max(0, span.from - unit->from),
                                                          std::min(span.to, unit->to) - unit->from);
        if (std::any_of(rects.begin(), rects.end(), [&](const QRectF& rect) { return rect.contains(inside); }))
            return {TextPart::Link, indexOf(*unit, span.link)};
    }
    return {TextPart::Words, 0};
}

std::vector<TextHit> MessageText::targets() const {
    std::vector<TextHit> out;
    for (const Unit& unit : m_units) {
        if (unit.block < 0) {
            out.push_back({TextPart::Thought, 0});
            continue;
        }
        const md::Block& block = blockOf(unit);
        if (block.kind == md::Kind::Code && unit.piece == 0)
            out.push_back({TextPart::CopyCode, indexOf(unit)});
        if (unit.piece == 0)
            for (int link = 0; link < int(block.links.size()); ++link)
                out.push_back({TextPart::Link, indexOf(unit, link)});
    }
    return out;
}

const MessageText::Unit* MessageText::unitOf(TextHit hit) const {
    for (const Unit& unit : m_units) {
        const bool head = unit.block < 0;
        if (hit.part == TextPart::Thought ? head : !head && (indexOf(unit) >> kLinkBits) == (hit.index >> kLinkBits))
            return &unit;
    }
    return nullptr;
}

QRectF MessageText::rectOf(TextHit hit) const {
    const Unit* unit = unitOf(hit);
    if (!unit)
        return {};
    if (hit.part == TextPart::Thought)
        return {0, double(unit->y), double(m_width), double(unit->height)};
    if (hit.part == TextPart::CopyCode)
        return copyRect(*unit);
    const md::Block& block = blockOf(*unit);
    QRectF around;
    for (const md::Span& span : block.spans)
        if (span.link == (hit.index & (kLinks - 1)) && span.from < unit->to)
            for (const QRectF& rect : unit->table ? unit->table->rects(span.from, span.to)
                                                  : unit->flow.rects(span.from, std::min(span.to, unit->to)))
                around = around.united(rect);
    return around.translated(flowOrigin(*unit));
}

QString MessageText::codeOf(int index) const {
    const Unit* unit = unitOf({TextPart::CopyCode, index});
    return unit ? blockOf(*unit).code : QString();
}

QString MessageText::linkOf(int index) const {
    const Unit* unit = unitOf({TextPart::Link, index});
    const auto link = std::size_t(index & (kLinks - 1));
    return unit && link < blockOf(*unit).links.size() ? blockOf(*unit).links[link] : QString();
}

} // namespace kvscope::ui
