// SPDX-License-Identifier: GPL-3.0-or-later
//
// Private to engine/model: the splitting rules that the pre-tokenizer kinds are made of.
//
// Every rule stands for one regular expression and gives what a search with it gives: at each place the first
// alternative that fits wins, matches and the gaps between them become pieces. They are left-to-right scanners written
// out by hand, linear in the text; a regular-expression engine is slower here and recurses over long inputs.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/model/unicode.h"

namespace kvscope::model::split {

/// Cuts the code points [begin, end) into pieces and appends the end of each piece (the last one is `end`). Sees
/// nothing outside the range: what lies there may already be another piece.
using Rule = void (*)(const CodePoints& text, std::size_t begin, std::size_t end, std::vector<std::size_t>& pieceEnds);

using Ends = std::vector<std::size_t>;

// Numbers: `\p{N}`, `\p{N}{1,3}`, `\p{N}+`.
void singleNumbers(const CodePoints& text, std::size_t begin, std::size_t end, Ends& ends);
void numbersUpToThree(const CodePoints& text, std::size_t begin, std::size_t end, Ends& ends);
void numberRuns(const CodePoints& text, std::size_t begin, std::size_t end, Ends& ends);

// Words, numbers, punctuation and whitespace in one go.
/// `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)`
void gpt2(const CodePoints& text, std::size_t begin, std::size_t end, Ends& ends);
/// Contractions in either case, `[^\r\n\p{L}\p{N}]?\p{L}+`, `\p{N}`, ` ?[^\s\p{L}\p{N}]+[\r\n]*`, `\s*[\r\n]+`,
/// `\s+(?!\S)`, `\s+`.
void qwen2(const CodePoints& text, std::size_t begin, std::size_t end, Ends& ends);
/// The same with numbers of up to three.
void llama3(const CodePoints& text, std::size_t begin, std::size_t end, Ends& ends);
/// As qwen2, marks (\p{M}) being parts of words.
void qwen35(const CodePoints& text, std::size_t begin, std::size_t end, Ends& ends);
/// As qwen2, line ends not taken with the punctuation before them.
void seedCoder(const CodePoints& text, std::size_t begin, std::size_t end, Ends& ends);
/// Words end where their case changes from small to capital; slashes go with the punctuation before them. Only a-z and
/// A-Z have a case here, every other letter counts as both: that is how the reference splits.
void tekken(const CodePoints& text, std::size_t begin, std::size_t end, Ends& ends);
/// The same with contractions at the end of their word and numbers of up to three.
void gpt4o(const CodePoints& text, std::size_t begin, std::size_t end, Ends& ends);
/// ASCII punctuation before ASCII letters, `[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+`, ` ?[\p{P}\p{S}]+[\r\n]*`,
/// whitespace.
void deepseekV3(const CodePoints& text, std::size_t begin, std::size_t end, Ends& ends);

// Parts of the older DeepSeek sequences.
/// `[\r\n]`
void lineEnds(const CodePoints& text, std::size_t begin, std::size_t end, Ends& ends);
/// `\s?[cased letters]+`, the letters of Latin, Greek, Cyrillic and some other scripts.
void casedWords(const CodePoints& text, std::size_t begin, std::size_t end, Ends& ends);
/// `\s?\p{L}+`
void words(const CodePoints& text, std::size_t begin, std::size_t end, Ends& ends);
/// `\s?[!-/:-~！-／：-～‘-‟、。]+`
void listedPunctuation(const CodePoints& text, std::size_t begin, std::size_t end, Ends& ends);
/// `\s?\p{P}+`
void punctuation(const CodePoints& text, std::size_t begin, std::size_t end, Ends& ends);
/// `\s+$`
void trailingSpace(const CodePoints& text, std::size_t begin, std::size_t end, Ends& ends);
/// Runs of U+0800-9FA5 and U+AC00-D7FF, whitespace excepted.
void eastAsianRuns(const CodePoints& text, std::size_t begin, std::size_t end, Ends& ends);
/// `[一-龥぀-ゟ゠-ヿ]+`: Han and kana.
void hanAndKanaRuns(const CodePoints& text, std::size_t begin, std::size_t end, Ends& ends);

} // namespace kvscope::model::split
