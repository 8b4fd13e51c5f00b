// SPDX-License-Identifier: GPL-3.0-or-later
//
// Private to engine/model: what all splitting rules read with.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/model/unicode.h"

namespace kvscope::model::split {

/// Reading position over a range that pretends the text ends at `end`. Every question is about the character `ahead`
/// places further on and is answered with no behind the end.
struct Cursor {
    const CodePoints& text;
    std::size_t at;
    std::size_t end;

    bool has(std::size_t ahead = 0) const { return at + ahead < end; }
    char32_t value(std::size_t ahead = 0) const { return has(ahead) ? text.values[at + ahead] : 0; }
    bool is(CharClass wanted, std::size_t ahead = 0) const { return has(ahead) && text.classes[at + ahead] == wanted; }
    bool isSpace(std::size_t ahead = 0) const { return is(CharClass::Space, ahead); }
    bool isLetter(std::size_t ahead = 0) const { return is(CharClass::Letter, ahead); }
    bool isNumber(std::size_t ahead = 0) const { return is(CharClass::Number, ahead); }
    bool isMark(std::size_t ahead = 0) const { return is(CharClass::Mark, ahead); }
    /// `[\p{P}\p{S}]`
    bool isPunctuationOrSymbol(std::size_t ahead = 0) const {
        return is(CharClass::Punctuation, ahead) || is(CharClass::Symbol, ahead);
    }
    /// `[\r\n]`
    bool isLineEnd(std::size_t ahead = 0) const {
        return has(ahead) && (text.values[at + ahead] == U'\r' || text.values[at + ahead] == U'\n');
    }
    /// `[^\s\p{L}\p{N}]`
    bool isOther(std::size_t ahead = 0) const {
        return has(ahead) && !isSpace(ahead) && !isLetter(ahead) && !isNumber(ahead);
    }
};

/// First place from `from` on whose character does not fulfil `inside`.
template <class Inside> std::size_t runEnd(std::size_t from, const Inside& inside) {
    while (inside(from))
        ++from;
    return from;
}

/// All matches of `match` (length of the match at a cursor, 0 = none) and the gaps between them.
template <class Match>
void splitByMatches(const CodePoints& text, std::size_t begin, std::size_t end, std::vector<std::size_t>& ends,
                    const Match& match) {
    std::size_t gapBegin = begin;
    for (Cursor c{text, begin, end}; c.has();) {
        const std::size_t length = match(c);
        if (length == 0) {
            ++c.at;
            continue;
        }
        if (c.at > gapBegin)
            ends.push_back(c.at);
        c.at += length;
        ends.push_back(c.at);
        gapBegin = c.at;
    }
    if (end > gapBegin)
        ends.push_back(end);
}

/// The last three alternatives of most rules, `\s*[\r\n]+|\s+(?!\S)|\s+`: length of the piece of whitespace at the
/// cursor, 0 if there is none.
inline std::size_t whitespacePiece(const Cursor& c) {
    std::size_t run = 0;
    std::size_t behindLineEnd = 0; // of the last line end in the run
    for (; c.isSpace(run); ++run)
        if (c.isLineEnd(run))
            behindLineEnd = run + 1;
    if (behindLineEnd > 0)
        return behindLineEnd;
    // The last space before a word belongs to the word, unless it is alone.
    return c.has(run) && run > 1 ? run - 1 : run;
}

/// Length of a contraction in either case ('s 't 'm 'd 're 've 'll), 0 if none starts `ahead` of the cursor.
inline std::size_t contraction(const Cursor& c, std::size_t ahead = 0) {
    if (c.value(ahead) != U'\'')
        return 0;
    const auto small = [&](std::size_t place) {
        const char32_t value = c.value(place);
        return value >= U'A' && value <= U'Z' ? value + (U'a' - U'A') : value;
    };
    const char32_t a = small(ahead + 1);
    const char32_t b = small(ahead + 2);
    if (a == U's' || a == U't' || a == U'm' || a == U'd')
        return 2;
    return (a == U'r' && b == U'e') || (a == U'v' && b == U'e') || (a == U'l' && b == U'l') ? 3 : 0;
}

} // namespace kvscope::model::split
