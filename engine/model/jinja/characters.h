// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/jinja/text.h"

namespace kvscope::model::jinja {

// Strings as Python sees them: sequences of characters, not of bytes.

/// Byte offsets of the characters of a string, and its size as the last one.
std::vector<std::size_t> characterOffsets(std::string_view text);
std::size_t characterCount(std::string_view text);
/// White space of str.strip() and str.split().
bool isWhitespace(char32_t c);

std::string upperCase(std::string_view text);
std::string lowerCase(std::string_view text);
bool isCased(char32_t c);

/// Where `wanted` stands first at or behind `from`, or last; npos = nowhere. In linear time, unlike those of
/// std::string: both texts are the template's.
std::size_t findBytes(std::string_view text, std::string_view wanted, std::size_t from = 0);
std::size_t findLastBytes(std::string_view text, std::string_view wanted);

/// str.strip(): `characters` empty = white space.
enum class Side { Left, Right, Both };
Text stripped(const Text& text, Side side, std::string_view characters);
/// str.replace(): `most` < 0 = all; an empty `from` stands between all characters. Ends early where the text becomes
/// longer than kMaxTextBytes.
Text replaced(const Text& text, const Text& from, const Text& to, std::int64_t most);

} // namespace kvscope::model::jinja
