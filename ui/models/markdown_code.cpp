// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/markdown_code.h"

#include <algorithm>

namespace kvscope::ui::md {
namespace {

int tabbed(int column) {
    return column / 4 * 4 + 4;
}

} // namespace

int Positions::units(qsizetype at) const {
    const auto c = std::uint8_t(m_text[at]);
    return (c & 0xc0) == 0x80 ? 0 : c >= 0xf0 ? 2 : 1;
}

int Positions::at(qsizetype byte) {
    for (; m_byte < byte; ++m_byte)
        m_units += units(m_byte);
    while (m_byte > byte)
        m_units -= units(--m_byte);
    return int(m_units);
}

void CodeReader::begin(char fence, qsizetype behind) {
    m_behind = std::max(m_behind, behind);
    m_fence = fence;
    m_lines.assign(1, {});
}

void CodeReader::add(QByteArrayView text, qsizetype byte) {
    Line& line = m_lines.back();
    if (byte >= 0) {
        if (line.text < 0)
            line.text = byte;
    } else if (text == "\n") {
        m_lines.emplace_back();
    } else if (line.text < 0) {
        line.indent += int(text.size());
    }
}

qsizetype CodeReader::lineStart(qsizetype byte) const {
    return byte == 0 ? 0 : m_source.lastIndexOf('\n', byte - 1) + 1;
}

qsizetype CodeReader::lineEnd(qsizetype byte) const {
    const qsizetype end = m_source.indexOf('\n', byte);
    return end < 0 ? m_source.size() : end;
}

int CodeReader::columnsBetween(qsizetype from, qsizetype to) const {
    int column = 0;
    for (qsizetype i = from; i < to; ++i)
        column = m_source[i] == '\t' ? tabbed(column) : column + 1;
    return column;
}

bool CodeReader::isFence(qsizetype from, qsizetype to) const {
    qsizetype at = from;
    while (at < to && QByteArrayView(" \t>-+*.)0123456789").contains(m_source[at])) // quotes and marks of list items
        ++at;
    return m_fence != 0 && at + 3 <= to && m_source[at] == m_fence && m_source[at + 1] == m_fence &&
           m_source[at + 2] == m_fence;
}

/// Byte where the first line of the code begins.
qsizetype CodeReader::codeStart() const {
    for (std::size_t i = 0; i < m_lines.size(); ++i) {
        if (m_lines[i].text < 0)
            continue;
        qsizetype start = lineStart(m_lines[i].text);
        for (std::size_t back = i; back > 0 && start > 0; --back)
            start = lineStart(start - 1);
        return start;
    }
    // Nothing but blank lines: the fence is the next one there is.
    for (qsizetype line = m_behind; line < m_source.size(); line = lineEnd(line) + 1)
        if (isFence(line, lineEnd(line)))
            return std::min(lineEnd(line) + 1, m_source.size());
    return m_source.size();
}

/// Columns of quote marks and indentation that are not code.
int CodeReader::columnsToStrip() const {
    for (const Line& line : m_lines)
        if (line.text >= 0)
            return columnsBetween(lineStart(line.text), line.text) - line.indent;
    return 0;
}

void CodeReader::finish(Block& block, int offset) {
    m_lines.pop_back(); // each line end opened another one
    m_strip = columnsToStrip();
    const qsizetype begin = codeStart();
    qsizetype at = begin, end = begin;
    for (std::size_t i = 0; i < m_lines.size(); ++i) {
        if (i > 0) {
            block.code += u'\n';
            block.text += u'\n';
            addRun(block, offset, int(block.text.size()) - 1, 1, end);
        }
        end = lineEnd(at);
        addLine(block, offset, at, end, m_lines[i]);
        at = std::min(end + 1, m_source.size());
    }
    if (block.code.endsWith(u'\r'))
        block.code.chop(1);
    const bool fenced = m_fence != 0;
    block.closed = !fenced || (at < m_source.size() && isFence(at, lineEnd(at)));
    m_behind = fenced && block.closed ? lineEnd(at) : end;
    block.source.from = offset + m_positions.at(fenced && begin > 0 ? lineStart(begin - 1) : begin);
    block.source.to = offset + m_positions.at(m_behind);
}

void CodeReader::addLine(Block& block, int offset, qsizetype from, qsizetype to, const Line& told) {
    int column = 0, spaces = -1;
    while (from < to && column < m_strip) {
        const char c = m_source[from];
        if (c != ' ' && c != '\t' && c != '>') { // the mark of a list item stands before it
            from = told.text >= 0 ? told.text : from;
            spaces = told.indent;
            break;
        }
        column = c == '\t' ? tabbed(column) : column + 1;
        ++from;
    }
    const QString rest(spaces >= 0 ? spaces : std::max(0, column - m_strip), u' '); // else of a tab cut in two
    const QString line = QString::fromUtf8(m_source.constData() + from, to - from);
    block.code += rest + line;
    block.text += rest;
    const bool carriage = line.endsWith(u'\r');
    addRun(block, offset, int(block.text.size()), int(line.size()) - carriage, from);
    block.text += carriage ? line.chopped(1) : line;
}

/// `length` characters that stand in the source as they are shown.
void CodeReader::addRun(Block& block, int offset, int shown, int length, qsizetype byte) {
    block.addRun({shown, length, offset + m_positions.at(byte), length});
}

} // namespace kvscope::ui::md
