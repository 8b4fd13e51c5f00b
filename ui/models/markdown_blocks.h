// SPDX-License-Identifier: GPL-3.0-or-later
//
// A message's text as blocks of shown text: plain values, nothing of how they look. Every shown character knows where
// it stands in the source, so that what is copied, lit or kept selected is a matter of source positions.
#pragma once

#include <QString>
#include <QStringView>
#include <cstdint>
#include <vector>

namespace kvscope::ui {

/// A range of characters (UTF-16), [from, to).
struct TextRange {
    int from = 0, to = 0;
    bool empty() const { return from >= to; }
    bool operator==(const TextRange&) const = default;
};

namespace md {

enum class Kind : std::uint8_t {
    Plain, ///< text as it was typed, line ends included
    Paragraph,
    Heading, ///< `level` 1..6
    Code,
    Table,
    Rule,
};

enum Flag : std::uint8_t { Strong = 1, Emphasis = 2, Strike = 4, CodeSpan = 8, Link = 16 };

/// Shown characters [from, to) that look alike. Characters without a span are plain.
struct Span {
    int from = 0, to = 0;
    std::uint8_t flags = 0;
    int link = -1; ///< index into Block::links
    bool operator==(const Span&) const = default;
};

/// `length` shown characters from `shown` stand for `sourceLength` source characters from `source`: one to one where
/// the lengths agree, else (an entity) as a whole. Ascending in both; between runs lie marks that are not shown.
struct Run {
    int shown = 0, length = 0, source = 0, sourceLength = 0;
    bool operator==(const Run&) const = default;
};

enum class Align : std::uint8_t { Left, Center, Right };
/// A cell's part of the shown text of a table.
struct Cell {
    int row = 0, column = 0, from = 0, to = 0;
    Align align = Align::Left;
    bool operator==(const Cell&) const = default;
};

/// What a block stands in, outermost first. Blocks with the same id stand in the same quote or list.
struct Container {
    bool quote = false; ///< else a list
    int id = 0;
    bool operator==(const Container&) const = default;
};

enum class Task : std::uint8_t { None, Open, Done };

struct Block {
    Kind kind = Kind::Paragraph;
    int level = 0;
    std::vector<Container> containers; ///< at most kDeepest; what is nested deeper stands as deep as that
    QString marker;                    ///< "•" or "12." on the first block of a list item
    Task task = Task::None;
    QString text; ///< as shown; lines end with '\n'. Of a table: cells end with '\t', rows with '\n'
    std::vector<Run> runs;
    std::vector<Span> spans;
    std::vector<QString> links;
    std::vector<Cell> cells;
    int columns = 0;
    QString language;   ///< of fenced code; empty = none named
    QString code;       ///< the source between the fences, or of indented code without its indentation
    bool closed = true; ///< false: a fence that nothing closes (yet)
    TextRange source;   ///< whole lines, marks included
    bool operator==(const Block&) const = default;

    static constexpr int kDeepest = 8;
    /// Source position of a place in the shown text, and back. A place in a mark is the nearest one behind it.
    int sourceAt(int shown) const;
    int shownAt(int source) const;
    /// Puts a run behind the others; joins it with the last where both go on without a gap.
    void addRun(const Run& run);
};

/// Blocks of `text`; all positions count from `offset`.
struct Parsed {
    std::vector<Block> blocks;
    /// Parsing again from `restart` (a position) replaces the blocks from `restartBlock` on, whatever is appended.
    int restart = 0, restartBlock = 0;
};
/// CommonMark with tables, task lists, strikethrough and bare addresses, HTML off. Raw HTML, images and links that
/// `mayOpen` refuses are shown as the text they are.
Parsed parseMarkdown(QStringView text, int offset = 0);
/// Text as it was typed, of which only fenced code stands out. Long text comes in several Plain blocks.
Parsed parsePlain(QStringView text, int offset = 0);

/// http, https (with a host) and mailto, complete and without control characters.
bool mayOpen(const QString& address);

/// What is seen of the source range: shown text, list marks, tables with tabs; no fences, no line numbers.
QString shownText(const std::vector<Block>& blocks, TextRange source);

} // namespace md
} // namespace kvscope::ui
