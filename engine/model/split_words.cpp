// SPDX-License-Identifier: GPL-3.0-or-later
//
// The rules that split a whole text into words, numbers, punctuation and whitespace.
#include "engine/model/split_cursor.h"
#include "engine/model/split_rules.h"

namespace kvscope::model::split {

namespace {

/// Length of 's 't 'm 'd 're 've 'll (lower case only), 0 if none starts here.
std::size_t lowerContraction(const Cursor& c) {
    const std::size_t length = contraction(c);
    for (std::size_t i = 1; i < length; ++i)
        if (c.value(i) < U'a')
            return 0;
    return length;
}

std::size_t gpt2Piece(const Cursor& c) {
    if (const std::size_t length = lowerContraction(c))
        return length;
    const std::size_t start = c.value() == U' ' ? 1 : 0; // one space goes with what follows
    if (c.isLetter(start))
        return runEnd(start, [&](std::size_t i) { return c.isLetter(i); });
    if (c.isNumber(start))
        return runEnd(start, [&](std::size_t i) { return c.isNumber(i); });
    if (c.isOther(start))
        return runEnd(start, [&](std::size_t i) { return c.isOther(i); });
    const std::size_t run = runEnd(0, [&](std::size_t i) { return c.isSpace(i); });
    return c.has(run) && run > 1 ? run - 1 : run; // a single space stays a piece of its own (a gap)
}

std::size_t numberPiece(const Cursor& c, std::size_t atMost) {
    std::size_t length = 0;
    while (length < atMost && c.isNumber(length))
        ++length;
    return length;
}

/// What tells the relatives of qwen2 apart.
struct WordRule {
    std::size_t digits = 1;         ///< numbers in one piece
    bool marksInWords = false;      ///< \p{M} counts as a letter
    bool lineEndsTaken = true;      ///< `[\r\n]*` behind punctuation
    bool slashesTaken = false;      ///< `[\r\n/]*` behind punctuation
    bool caseSplits = false;        ///< words end before a capital letter (tekken, gpt-4o)
    bool contractionFirst = true;   ///< a contraction is a piece of its own
    bool contractionInWord = false; ///< or goes with its word
};

/// Letters that a word is made of, from `from`: to where, 0 if none.
std::size_t plainWord(const Cursor& c, const WordRule& rule, std::size_t from) {
    const auto inside = [&](std::size_t i) { return c.isLetter(i) || (rule.marksInWords && c.isMark(i)); };
    return inside(from) ? runEnd(from, inside) : 0;
}

/// `U*W+|U+W*` from `from`, U being letters but a-z, W letters but A-Z: to where, 0 if none.
std::size_t casedWord(const Cursor& c, std::size_t from) {
    const auto upper = [&](std::size_t i) { return c.isLetter(i) && !(c.value(i) >= U'a' && c.value(i) <= U'z'); };
    const auto lower = [&](std::size_t i) { return c.isLetter(i) && !(c.value(i) >= U'A' && c.value(i) <= U'Z'); };
    const std::size_t capitals = runEnd(from, upper);
    if (lower(capitals))
        return runEnd(capitals, lower);
    // `U*` gives back what it took until `W+` fits: up to the last letter that counts as both.
    for (std::size_t i = capitals; i > from; --i)
        if (lower(i - 1))
            return i;
    return capitals > from ? capitals : 0;
}

/// Length of a word with the one character that may stand before it, 0 if none starts here.
std::size_t wordPiece(const Cursor& c, const WordRule& rule) {
    const auto wordFrom = [&](std::size_t from) {
        return rule.caseSplits ? casedWord(c, from) : plainWord(c, rule, from);
    };
    const bool leading = c.has() && !c.isLineEnd() && !c.isLetter() && !c.isNumber();
    std::size_t length = leading ? wordFrom(1) : 0;
    if (length == 0)
        length = wordFrom(0);
    if (length > 0 && rule.contractionInWord)
        length += contraction(c, length);
    return length;
}

/// ` ?[^\s\p{L}\p{N}]+` and what is taken behind it.
std::size_t punctuationPiece(const Cursor& c, const WordRule& rule) {
    const auto inside = [&](std::size_t i) { return c.isOther(i) && !(rule.marksInWords && c.isMark(i)); };
    const std::size_t start = c.value() == U' ' ? 1 : 0;
    if (!inside(start))
        return 0;
    return runEnd(runEnd(start, inside), [&](std::size_t i) {
        return (rule.lineEndsTaken && c.isLineEnd(i)) || (rule.slashesTaken && c.value(i) == U'/');
    });
}

std::size_t anyPiece(const Cursor& c, const WordRule& rule) {
    if (const std::size_t length = rule.contractionFirst ? contraction(c) : 0)
        return length;
    if (const std::size_t length = wordPiece(c, rule))
        return length;
    if (const std::size_t length = numberPiece(c, rule.digits))
        return length;
    if (const std::size_t length = punctuationPiece(c, rule))
        return length;
    return whitespacePiece(c);
}

void splitWords(const CodePoints& text, std::size_t begin, std::size_t end, Ends& ends, const WordRule& rule) {
    splitByMatches(text, begin, end, ends, [&](const Cursor& c) { return anyPiece(c, rule); });
}

bool isAsciiPunctuation(char32_t c) {
    return (c >= 0x21 && c <= 0x2F) || (c >= 0x3A && c <= 0x40) || (c >= 0x5B && c <= 0x60) || (c >= 0x7B && c <= 0x7E);
}

bool isAsciiLetter(char32_t c) {
    return (c >= U'A' && c <= U'Z') || (c >= U'a' && c <= U'z');
}

std::size_t deepseekV3Piece(const Cursor& c) {
    if (isAsciiPunctuation(c.value()) && isAsciiLetter(c.value(1)))
        return runEnd(1, [&](std::size_t i) { return isAsciiLetter(c.value(i)); });
    const auto inWord = [&](std::size_t i) { return c.isLetter(i) || c.isMark(i); };
    const bool leading = !c.isLineEnd() && !c.isLetter() && !c.isPunctuationOrSymbol();
    if (leading && inWord(1))
        return runEnd(1, inWord);
    if (inWord(0))
        return runEnd(0, inWord);
    const std::size_t start = c.value() == U' ' ? 1 : 0;
    if (c.isPunctuationOrSymbol(start)) {
        const std::size_t marks = runEnd(start, [&](std::size_t i) { return c.isPunctuationOrSymbol(i); });
        return runEnd(marks, [&](std::size_t i) { return c.isLineEnd(i); });
    }
    return whitespacePiece(c);
}

} // namespace

void gpt2(const CodePoints& text, std::size_t begin, std::size_t end, Ends& ends) {
    splitByMatches(text, begin, end, ends, gpt2Piece);
}

void qwen2(const CodePoints& text, std::size_t begin, std::size_t end, Ends& ends) {
    splitWords(text, begin, end, ends, {});
}

void llama3(const CodePoints& text, std::size_t begin, std::size_t end, Ends& ends) {
    WordRule rule;
    rule.digits = 3;
    splitWords(text, begin, end, ends, rule);
}

void qwen35(const CodePoints& text, std::size_t begin, std::size_t end, Ends& ends) {
    WordRule rule;
    rule.marksInWords = true;
    splitWords(text, begin, end, ends, rule);
}

void seedCoder(const CodePoints& text, std::size_t begin, std::size_t end, Ends& ends) {
    WordRule rule;
    rule.lineEndsTaken = false;
    splitWords(text, begin, end, ends, rule);
}

void tekken(const CodePoints& text, std::size_t begin, std::size_t end, Ends& ends) {
    WordRule rule;
    rule.slashesTaken = rule.caseSplits = true;
    rule.contractionFirst = false;
    splitWords(text, begin, end, ends, rule);
}

void gpt4o(const CodePoints& text, std::size_t begin, std::size_t end, Ends& ends) {
    WordRule rule;
    rule.digits = 3;
    rule.slashesTaken = rule.caseSplits = rule.contractionInWord = true;
    rule.contractionFirst = false;
    splitWords(text, begin, end, ends, rule);
}

void deepseekV3(const CodePoints& text, std::size_t begin, std::size_t end, Ends& ends) {
    splitByMatches(text, begin, end, ends, deepseekV3Piece);
}

} // namespace kvscope::model::split
