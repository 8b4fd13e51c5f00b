// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope::model {

/// What the splitting rules of pre-tokenizers ask about a code point. The general categories are those of
/// Unicode 15.0 (libutf8proc), as in the reference vocabularies.
enum class CharClass : std::uint8_t {
    Letter,      ///< L*
    Mark,        ///< M*
    Number,      ///< N*
    Punctuation, ///< P*
    Symbol,      ///< S*; a byte that is not UTF-8 counts as U+FFFD, which is one
    Space,       ///< what \s matches: Z* and the controls 09-0D and 85
    Other,       ///< C*: the remaining controls, format, surrogate, private, unassigned
};

CharClass charClass(char32_t codePoint);

/// One step of decoding.
struct DecodedChar {
    char32_t codePoint = 0;  ///< kReplacement where `valid` is false
    std::uint8_t length = 0; ///< bytes consumed, 1..4; an invalid byte is consumed alone
    bool valid = false;
};
inline constexpr char32_t kReplacement = 0xFFFD;

/// Decode the character that starts at `text[at]` (at < text.size()). Overlong forms, surrogates and values above
/// U+10FFFF are invalid, as in the standard.
DecodedChar decodeUtf8(std::string_view text, std::size_t at);

/// Append the UTF-8 form of a code point (<= U+10FFFF, not a surrogate).
void appendUtf8(std::string& out, char32_t codePoint);

bool isValidUtf8(std::string_view text);

/// Every maximal part that is not valid replaced by one U+FFFD, as browsers do: for showing and for JSON.
std::string toValidUtf8(std::string_view text);

/// Length of the longest beginning of `text` that ends with a whole character. What is left out is the start of a
/// character that further bytes may complete (at most 3 bytes); bytes that can never become valid count as whole.
std::size_t wholeCharacters(std::string_view text);

/// Code points of a text with their byte offsets and classes, in parallel arrays. Bytes that are not UTF-8 become one
/// kReplacement each, so offsets stay exact.
struct CodePoints {
    std::vector<char32_t> values;
    std::vector<CharClass> classes;
    std::vector<std::uint32_t> offsets; ///< one more than values: the last is text.size()

    explicit CodePoints(std::string_view text);
    std::size_t size() const { return values.size(); }
};

} // namespace kvscope::model
