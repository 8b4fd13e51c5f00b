// SPDX-License-Identifier: GPL-3.0-or-later
//
// MessageText: from blocks to units with a place. What they look like: message_text_paint.cpp; what answers to mouse
// and keyboard: message_text_hit.cpp.
#include "ui/chat/message_text.h"

#include <QFontMetricsF>
#include <algorithm>
#include <cmath>

namespace kvscope::ui {
namespace {

constexpr int kThoughtLine = 28;
constexpr int kCodeLinesOfPiece = 80;
constexpr int kPieceCharacters = 8000; // where a piece of long text is cut at the latest
constexpr int kMeasuredAtOnce = 6000;  // shorter texts have their real height from the start

/// Where the piece of `text` that begins at `from` ends, and where the next one begins.
std::pair<int, int> pieceEnd(const md::Block& block, int from) {
    const QString& text = block.text;
    const int size = int(text.size());
    int at = from;
    if (block.kind == md::Kind::Code) {
        for (int line = 0; line < kCodeLinesOfPiece; ++line) {
            const auto end = text.indexOf(u'\n', at);
            if (end < 0 || end - from > kPieceCharacters)
                break;
            at = int(end) + 1;
            if (line + 1 == kCodeLinesOfPiece)
                return {at - 1, at};
        }
        if (at > from && size - from > kPieceCharacters)
            return {at - 1, at};
    }
    if (size - from <= kPieceCharacters)
        return {size, size};
    int cut = from + kPieceCharacters;
    const auto space = QStringView(text).mid(from, kPieceCharacters).lastIndexOf(u' ');
    if (block.kind != md::Kind::Code && space > 0)
        cut = from + int(space) + 1;
    else if (text[cut].isLowSurrogate())
        --cut;
    return {cut, cut};
}

} // namespace

void MessageText::setStyle(const ChatStyle& style, int width) {
    m_style = style;
    m_thoughtStyle = style.thought();
    m_width = width;
    m_listIndents.clear();
    noteListIndents(m_thoughtParsed);
    noteListIndents(m_parsed);
    for (Unit& unit : m_units) {
        unit.measured = unit.block < 0;
        unit.stale = false;
        if (unit.block >= 0)
            unit.indent = indentOf(blockOf(unit), unit.thought);
        unit.flow.release();
        guessUnit(unit);
    }
    place();
}

void MessageText::setLinkColor(const QColor& color) {
    if (m_link == color)
        return;
    m_link = color;
    for (Unit& unit : m_units) {
        if (unit.block < 0 || !unit.measured || blockOf(unit).links.empty())
            continue;
        if (unit.table)
            unit.table->recolour(blockOf(unit), styleOf(unit), color);
        else
            unit.flow.recolour(formatsOf(blockOf(unit), unit.from, unit.to, styleOf(unit), color));
    }
}

/// Returns the first block that is not what it was.
int MessageText::parsePart(md::Parsed& part, const QString& text, int offset, Mode mode, bool appendedOnly) const {
    const auto parse = [&](QStringView from, int at) {
        return mode == Mode::Typed ? md::parsePlain(from, at) : md::parseMarkdown(from, at);
    };
    const int keep = appendedOnly ? part.restartBlock : 0;
    const int restart = appendedOnly && keep >= 0 ? std::max(0, part.restart - offset) : 0;
    md::Parsed tail = parse(QStringView(text).mid(restart), offset + restart);
    std::size_t same = 0;
    while (same < tail.blocks.size() && std::size_t(keep) + same < part.blocks.size() &&
           tail.blocks[same] == part.blocks[std::size_t(keep) + same])
        ++same;
    part.blocks.resize(std::size_t(keep));
    part.blocks.insert(part.blocks.end(), std::make_move_iterator(tail.blocks.begin()),
                       std::make_move_iterator(tail.blocks.end()));
    part.restart = tail.restart;
    part.restartBlock = keep + tail.restartBlock;
    return keep + int(same);
}

void MessageText::setContent(const QString& thinking, const QString& text, Mode mode, bool appendedOnly) {
    const int oldAnswerAt = answerAt();
    const bool append = appendedOnly && mode == m_mode;
    // The insertion mark may leave a line that does not change.
    const int mark = append ? int(caretRect(m_text.isEmpty() ? int(m_thinking.size()) : end()).top()) : 0;
    int changedThought = int(m_thoughtParsed.blocks.size()), changedText = int(m_parsed.blocks.size());
    if (thinking != m_thinking) {
        m_thinking = thinking;
        changedThought = parsePart(m_thoughtParsed, thinking, 0, Mode::Markdown, append);
    }
    const bool moved = answerAt() != oldAnswerAt;
    if (text != m_text || moved || mode != m_mode) {
        m_text = text;
        m_mode = mode;
        changedText = parsePart(m_parsed, text, answerAt(), mode, append && !moved);
        if (moved)
            changedText = 0;
    }
    rebuild(changedThought, changedText);
    m_dirtyTop = std::min(m_dirtyTop, mark);
}

void MessageText::setThought(const QString& line, bool open) {
    if (line == m_thoughtLine && open == m_thoughtOpen)
        return;
    const bool fold = open != m_thoughtOpen || line.isEmpty() != m_thoughtLine.isEmpty();
    m_lineChanged = true;
    m_thoughtLine = line;
    m_thoughtOpen = open;
    if (fold)
        rebuild(open ? 0 : int(m_thoughtParsed.blocks.size()), int(m_parsed.blocks.size()));
}

void MessageText::noteListIndents(const md::Parsed& part) {
    const QFontMetricsF metrics(m_style.text);
    for (const md::Block& block : part.blocks) {
        if (block.marker.size() < 2 || block.containers.empty() || block.containers.back().quote)
            continue;
        const int width = int(std::ceil(metrics.horizontalAdvance(block.marker))) + 10;
        int& indent = m_listIndents[block.containers.back().id];
        indent = std::max(indent, width);
    }
}

int MessageText::listIndent(int list) const {
    const auto wide = m_listIndents.find(list);
    const int usual = int(std::lround(measure::kListIndent * m_style.text.pixelSize() / 14.0));
    return std::max(usual, wide == m_listIndents.end() ? 0 : wide->second);
}

int MessageText::indentOf(const md::Block& block, bool thought) const {
    int indent = thought ? measure::kThoughtIndent : 0;
    for (const md::Container& container : block.containers) {
        indent += container.quote ? measure::kQuoteIndent : listIndent(container.id);
    }
    return std::min(indent, m_width / 2); // however deep it is nested, there is room for words
}

/// Units of one part behind `units`. Those of blocks before `changed` are taken over as they are; the others keep their
/// flows, which know how much of their lines still holds.
void MessageText::addUnits(std::vector<Unit>& units, bool thought, int changed, std::vector<Unit>& old,
                           std::size_t& next) const {
    const std::vector<md::Block>& blocks = partOf(thought).blocks;
    for (int index = 0; index < int(blocks.size()); ++index) {
        const md::Block& block = blocks[std::size_t(index)];
        const bool cuts = block.kind != md::Kind::Table && block.kind != md::Kind::Rule;
        int from = 0, piece = 0;
        for (bool more = true; more; ++piece) {
            const auto [to, behind] =
                cuts ? pieceEnd(block, from) : std::pair(int(block.text.size()), int(block.text.size()));
            more = behind < int(block.text.size());
            Unit unit;
            unit.thought = thought;
            unit.block = index;
            unit.piece = piece;
            const auto before = [&](const Unit& other) {
                return std::pair(other.block, other.piece) < std::pair(index, piece);
            };
            while (next < old.size() && old[next].thought == thought && before(old[next]))
                ++next;
            const bool known = next < old.size() && old[next].thought == thought && old[next].block == index &&
                               old[next].piece == piece;
            if (known)
                unit = std::move(old[next++]);
            const bool wasMeasured = known && unit.measured;
            unit.measured = wasMeasured && index < changed;
            if (unit.table && block.kind != md::Kind::Table)
                unit.table.reset();
            unit.from = from;
            unit.to = to;
            unit.lastPiece = !more;
            const int indent = indentOf(block, thought);
            unit.measured = unit.measured && indent == unit.indent;
            unit.stale = wasMeasured && !unit.measured;
            unit.indent = indent;
            unit.gap = piece > 0 ? 0 : index > 0 ? gapBetween(blocks[std::size_t(index) - 1], block) : 0;
            if (index == 0 && !units.empty())
                unit.gap = thought ? 2 : 12;
            units.push_back(std::move(unit));
            from = behind;
        }
    }
    while (next < old.size() && old[next].thought == thought)
        ++next;
}

void MessageText::rebuild(int changedThought, int changedText) {
    std::vector<Unit> old = std::exchange(m_units, {});
    m_listIndents.clear();
    noteListIndents(m_thoughtParsed);
    noteListIndents(m_parsed);
    std::size_t next = 0;
    std::vector<Unit> units;
    units.reserve(old.size() + 4);
    if (!m_thinking.isEmpty() || !m_thoughtLine.isEmpty()) {
        if (next < old.size() && old[next].block < 0)
            units.push_back(std::move(old[next++]));
        else
            units.emplace_back();
        units.back().thought = true;
        units.back().height = kThoughtLine;
        units.back().measured = true;
    }
    if (m_thoughtOpen)
        addUnits(units, true, changedThought, old, next);
    while (next < old.size() && old[next].thought)
        ++next;
    addUnits(units, false, changedText, old, next);
    m_units = std::move(units);
    const bool all = m_text.size() + (m_thoughtOpen ? m_thinking.size() : 0) < kMeasuredAtOnce;
    m_dirtyTop = std::exchange(m_lineChanged, false) ? 0 : INT_MAX;
    int y = 0, fresh = 0;
    bool grown = false; // what comes behind measured units has just been written, and is looked at
    for (Unit& unit : m_units) {
        y += unit.gap;
        if (unit.measured) {
            y += unit.height;
            grown = unit.block >= 0;
            continue;
        }
        int top = -unit.gap;
        if (m_width > 0 && (all || unit.stale || (grown && ++fresh < 8))) {
            const bool stale = std::exchange(unit.stale, false);
            measureUnit(unit);
            if (stale && m_changedLine > 0)
                top = int(flowOrigin(unit).y()) - unit.y + m_changedLine * flowStyleOf(unit).line;
        } else {
            guessUnit(unit);
        }
        m_dirtyTop = std::min(m_dirtyTop, y + top);
        y += unit.height;
    }
    place();
    m_dirtyTop = std::min(m_dirtyTop, m_height);
}

FlowStyle MessageText::flowStyleOf(const Unit& unit) const {
    const ChatStyle& style = styleOf(unit);
    const md::Block& block = blockOf(unit);
    const double width = m_width - unit.indent;
    if (block.kind == md::Kind::Code)
        return {style.code,
                style.codeLine,
                width - 2 * measure::kCodePadX,
                QFontMetricsF(style.code).horizontalAdvance(u' ') * 4,
                {}};
    if (block.kind == md::Kind::Heading) {
        FlowStyle heading = style.heading(block.level);
        heading.width = width;
        return heading;
    }
    return {style.text, style.textLine, width, 0, {}};
}

void MessageText::measureUnit(Unit& unit) {
    unit.measured = true;
    m_changedLine = 0;
    if (unit.block < 0)
        return;
    const md::Block& block = blockOf(unit);
    switch (block.kind) {
    case md::Kind::Rule:
        unit.height = 1;
        return;
    case md::Kind::Table:
        if (!unit.table)
            unit.table = std::make_unique<MarkdownTable>();
        unit.table->set(block, styleOf(unit), m_width - unit.indent, m_link);
        unit.height = unit.table->height();
        return;
    default:
        break;
    }
    const bool whole = unit.from == 0 && unit.to == int(block.text.size());
    m_changedLine = unit.flow.set(whole ? block.text : block.text.mid(unit.from, unit.to - unit.from),
                                  formatsOf(block, unit.from, unit.to, styleOf(unit), m_link), flowStyleOf(unit));
    unit.height = unit.flow.height();
    if (block.kind == md::Kind::Code)
        unit.height +=
            (unit.piece == 0 ? measure::kCodeHead + measure::kCodePadY : 0) + (unit.lastPiece ? measure::kCodePadY : 0);
}

void MessageText::guessUnit(Unit& unit) const {
    if (unit.block < 0)
        return;
    const md::Block& block = blockOf(unit);
    const QString text = block.text.mid(unit.from, unit.to - unit.from);
    const bool code = block.kind == md::Kind::Code;
    unit.height = block.kind == md::Kind::Rule ? 1 : estimateHeight(text, styleOf(unit), m_width - unit.indent);
    if (code)
        unit.height = int(text.count(u'\n') + 1) * styleOf(unit).codeLine +
                      (unit.piece == 0 ? measure::kCodeHead + measure::kCodePadY : 0) +
                      (unit.lastPiece ? measure::kCodePadY : 0);
}

int MessageText::estimateHeight(const QString& text, const ChatStyle& style, int width) {
    if (text.isEmpty())
        return style.textLine;
    const double perLine = std::max(8.0, width / (style.text.pixelSize() * 0.5));
    const auto lines = text.count(u'\n') + 1;
    return int(std::max(double(lines), std::ceil(double(text.size()) / perLine)) * style.textLine);
}

void MessageText::place() {
    int y = 0;
    for (Unit& unit : m_units) {
        y += unit.gap;
        unit.y = y;
        y += unit.height;
    }
    m_height = y;
}

bool MessageText::measure(int top, int bottom) {
    if (m_width <= 0)
        return false;
    bool any = false;
    for (Unit& unit : m_units) {
        const bool near = unit.y <= bottom && unit.y + unit.height >= top;
        if (!near) {
            unit.flow.release();
            if (unit.table)
                unit.table->release();
        } else if (!unit.measured) {
            measureUnit(unit);
            any = true;
        }
    }
    if (any)
        place();
    return any;
}

void MessageText::release() {
    for (Unit& unit : m_units) {
        unit.flow.release();
        if (unit.table)
            unit.table->release();
    }
}

bool MessageText::hasLayouts() const {
    return std::any_of(m_units.begin(), m_units.end(), [](const Unit& unit) {
        return unit.flow.hasLayouts() || (unit.table && unit.table->hasLayouts());
    });
}

int MessageText::naturalWidth() const {
    double widest = 0;
    for (const Unit& unit : m_units) {
        if (!unit.measured || (unit.block >= 0 && blockOf(unit).kind == md::Kind::Code))
            return m_width;
        widest = std::max(widest, unit.indent + unit.flow.widest());
    }
    return std::min(m_width, int(std::ceil(widest)));
}

} // namespace kvscope::ui
