// SPDX-License-Identifier: GPL-3.0-or-later
//
// Part of parseMarkdown: code blocks byte for byte.
#pragma once

#include <QByteArray>
#include <vector>

#include "ui/models/markdown_blocks.h"

namespace kvscope::ui::md {

/// Byte positions of a UTF-8 text as UTF-16 positions; cheap when asked near where it was asked last.
class Positions {
public:
    explicit Positions(const QByteArray& text) : m_text(text) {}
    int at(qsizetype byte);

private:
    int units(qsizetype at) const;
    const QByteArray& m_text;
    qsizetype m_byte = 0, m_units = 0;
};

/// Takes the text of a code block from the lines of the source, since md4c turns the tabs before them into spaces. What
/// md4c tells is which lines they are and how many columns before them belong to lists, quotes and the fence.
class CodeReader {
public:
    CodeReader(const QByteArray& source, Positions& positions) : m_source(source), m_positions(positions) {}
    /// `fence` 0 = code by indentation; `behind`: a byte before the block and behind the text of those before it.
    void begin(char fence, qsizetype behind);
    /// A piece of text that md4c gave; `byte` where it stands, -1 = made up.
    void add(QByteArrayView text, qsizetype byte);
    /// Sets text, code, runs, closed and source of the block.
    void finish(Block& block, int offset);

private:
    struct Line {
        qsizetype text = -1; ///< byte where its text begins; -1 = blank
        int indent = 0;      ///< columns that md4c puts before it
    };
    qsizetype lineStart(qsizetype byte) const;
    qsizetype lineEnd(qsizetype byte) const;
    int columnsBetween(qsizetype from, qsizetype to) const;
    bool isFence(qsizetype from, qsizetype to) const;
    qsizetype codeStart() const;
    int columnsToStrip() const;
    void addLine(Block& block, int offset, qsizetype from, qsizetype to, const Line& told);
    void addRun(Block& block, int offset, int shown, int length, qsizetype byte);

    const QByteArray& m_source;
    Positions& m_positions;
    char m_fence = 0;
    std::vector<Line> m_lines;
    int m_strip = 0;
    qsizetype m_behind = 0; ///< the block begins at or behind this byte
};

} // namespace kvscope::ui::md
