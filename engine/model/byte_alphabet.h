// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kvscope::model {

/// Byte-level vocabularies write every byte as one printable character: bytes 21-7E, A1-AC and AE-FF as the code point
/// of the same number, the other 68 in increasing order as U+0100, U+0101, ... (space = U+0120, line feed = U+010A).

/// The character (UTF-8) that stands for `byte`.
const std::string& byteSymbol(unsigned char byte);

/// The bytes that a token's text stands for; nothing if it holds a character outside the alphabet.
std::optional<std::string> bytesOfSymbols(std::string_view text);

} // namespace kvscope::model
