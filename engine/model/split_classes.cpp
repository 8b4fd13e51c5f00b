// SPDX-License-Identifier: GPL-3.0-or-later
//
// The rules that cut out runs of one class of characters and leave the rest for other rules.
#include <algorithm>
#include <span>

#include "engine/model/split_cursor.h"
#include "engine/model/split_rules.h"

namespace kvscope::model::split {

namespace {

struct CodePointRange {
    char32_t first, last;
};

/// The letter class of the first DeepSeek tokenizer, in order.
constexpr CodePointRange kCasedLetters[] = {
    {0x41, 0x5A},       {0x61, 0x7A},       {0xB5, 0xB5},       {0xC0, 0xD6},       {0xD8, 0xF6},
    {0xF8, 0x1BA},      {0x1BC, 0x1BF},     {0x1C4, 0x293},     {0x295, 0x2AF},     {0x370, 0x373},
    {0x376, 0x377},     {0x37B, 0x37D},     {0x37F, 0x37F},     {0x386, 0x386},     {0x388, 0x38A},
    {0x38C, 0x38C},     {0x38E, 0x3A1},     {0x3A3, 0x3F5},     {0x3F7, 0x481},     {0x48A, 0x52F},
    {0x531, 0x556},     {0x10A0, 0x10C5},   {0x13A0, 0x13F5},   {0x13F8, 0x13FD},   {0x1C90, 0x1CBA},
    {0x1CBD, 0x1CBF},   {0x1D00, 0x1D2B},   {0x1D6B, 0x1D77},   {0x1D79, 0x1D9A},   {0x1E00, 0x1F15},
    {0x1F18, 0x1F1D},   {0x1F20, 0x1F45},   {0x1F48, 0x1F4D},   {0x1F50, 0x1F57},   {0x1F59, 0x1F59},
    {0x1F5B, 0x1F5B},   {0x1F5D, 0x1F5D},   {0x1F5F, 0x1F7D},   {0x1F80, 0x1FB4},   {0x1FB6, 0x1FBC},
    {0x1FBE, 0x1FBE},   {0x1FC2, 0x1FC4},   {0x1FC6, 0x1FCC},   {0x1FD0, 0x1FD3},   {0x1FD6, 0x1FDB},
    {0x1FE0, 0x1FEC},   {0x1FF2, 0x1FF4},   {0x1FF6, 0x1FFC},   {0x2102, 0x2102},   {0x2107, 0x2107},
    {0x210A, 0x2113},   {0x2115, 0x2115},   {0x2119, 0x211D},   {0x2124, 0x2124},   {0x2126, 0x2126},
    {0x2128, 0x2128},   {0x212A, 0x212D},   {0x212F, 0x2134},   {0x2139, 0x2139},   {0x213C, 0x213F},
    {0x2145, 0x2149},   {0x214E, 0x214E},   {0x2183, 0x2184},   {0x2C00, 0x2C7B},   {0x2C7E, 0x2CE4},
    {0x2CEB, 0x2CEE},   {0x2CF2, 0x2CF3},   {0xA640, 0xA66D},   {0xA680, 0xA69B},   {0xA722, 0xA76F},
    {0xA771, 0xA787},   {0xA78B, 0xA78E},   {0xAB70, 0xABBF},   {0xFB00, 0xFB06},   {0xFB13, 0xFB17},
    {0xFF21, 0xFF3A},   {0xFF41, 0xFF5A},   {0x10400, 0x1044F}, {0x104B0, 0x104D3}, {0x104D8, 0x104FB},
    {0x10C80, 0x10CB2}, {0x10CC0, 0x10CF2}, {0x118A0, 0x118DF}, {0x1E900, 0x1E943},
};

/// The reference cannot match U+3000 in this class, as it takes all whitespace for one character; nor does this.
constexpr CodePointRange kListedPunctuation[] = {
    {0x21, 0x2F}, {0x3A, 0x7E}, {0x2018, 0x201F}, {0x3001, 0x3002}, {0xFF01, 0xFF0F}, {0xFF1A, 0xFF5E},
};

bool contains(std::span<const CodePointRange> ranges, char32_t value) {
    const auto range =
        std::partition_point(ranges.begin(), ranges.end(), [&](const CodePointRange& r) { return r.last < value; });
    return range != ranges.end() && range->first <= value;
}

bool inRange(char32_t value, char32_t first, char32_t last) {
    return value >= first && value <= last;
}

/// `[inside]+`
template <class Inside>
void splitRuns(const CodePoints& text, std::size_t begin, std::size_t end, Ends& ends, const Inside& inside) {
    splitByMatches(text, begin, end, ends,
                   [&](const Cursor& c) { return runEnd(0, [&](std::size_t i) { return c.has(i) && inside(c, i); }); });
}

/// `\s?[inside]+`, where no whitespace is inside.
template <class Inside>
void splitSpacedRuns(const CodePoints& text, std::size_t begin, std::size_t end, Ends& ends, const Inside& inside) {
    splitByMatches(text, begin, end, ends, [&](const Cursor& c) -> std::size_t {
        const std::size_t start = c.isSpace() ? 1 : 0;
        const std::size_t behind = runEnd(start, [&](std::size_t i) { return c.has(i) && inside(c, i); });
        return behind > start ? behind : 0;
    });
}

void splitNumbers(const CodePoints& text, std::size_t begin, std::size_t end, Ends& ends, std::size_t atMost) {
    splitByMatches(text, begin, end, ends, [&](const Cursor& c) {
        return runEnd(0, [&](std::size_t i) { return i < atMost && c.isNumber(i); });
    });
}

} // namespace

void singleNumbers(const CodePoints& text, std::size_t begin, std::size_t end, Ends& ends) {
    splitNumbers(text, begin, end, ends, 1);
}

void numbersUpToThree(const CodePoints& text, std::size_t begin, std::size_t end, Ends& ends) {
    splitNumbers(text, begin, end, ends, 3);
}

void numberRuns(const CodePoints& text, std::size_t begin, std::size_t end, Ends& ends) {
    splitNumbers(text, begin, end, ends, end - begin);
}

void lineEnds(const CodePoints& text, std::size_t begin, std::size_t end, Ends& ends) {
    splitByMatches(text, begin, end, ends, [](const Cursor& c) -> std::size_t { return c.isLineEnd() ? 1 : 0; });
}

void casedWords(const CodePoints& text, std::size_t begin, std::size_t end, Ends& ends) {
    splitSpacedRuns(text, begin, end, ends,
                    [](const Cursor& c, std::size_t i) { return contains(kCasedLetters, c.value(i)); });
}

void words(const CodePoints& text, std::size_t begin, std::size_t end, Ends& ends) {
    splitSpacedRuns(text, begin, end, ends, [](const Cursor& c, std::size_t i) { return c.isLetter(i); });
}

void listedPunctuation(const CodePoints& text, std::size_t begin, std::size_t end, Ends& ends) {
    splitSpacedRuns(text, begin, end, ends,
                    [](const Cursor& c, std::size_t i) { return contains(kListedPunctuation, c.value(i)); });
}

void punctuation(const CodePoints& text, std::size_t begin, std::size_t end, Ends& ends) {
    splitSpacedRuns(text, begin, end, ends,
                    [](const Cursor& c, std::size_t i) { return c.is(CharClass::Punctuation, i); });
}

void trailingSpace(const CodePoints& text, std::size_t begin, std::size_t end, Ends& ends) {
    std::size_t start = end; // of the run of whitespace that reaches the end
    while (start > begin && text.classes[start - 1] == CharClass::Space)
        --start;
    if (start > begin)
        ends.push_back(start);
    if (end > start)
        ends.push_back(end);
}

void eastAsianRuns(const CodePoints& text, std::size_t begin, std::size_t end, Ends& ends) {
    splitRuns(text, begin, end, ends, [](const Cursor& c, std::size_t i) {
        const char32_t value = c.value(i);
        return (inRange(value, 0x0800, 0x9FA5) || inRange(value, 0xAC00, 0xD7FF)) && !c.isSpace(i);
    });
}

void hanAndKanaRuns(const CodePoints& text, std::size_t begin, std::size_t end, Ends& ends) {
    splitRuns(text, begin, end, ends, [](const Cursor& c, std::size_t i) {
        const char32_t value = c.value(i);
        return inRange(value, 0x4E00, 0x9FA5) || inRange(value, 0x3040, 0x30FF);
    });
}

} // namespace kvscope::model::split
