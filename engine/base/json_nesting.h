// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <string_view>

namespace kvscope {

/// Copying and printing parsed JSON recurses, so that text from outside that nests without limit would end the program.
inline constexpr std::size_t kMostJsonNesting = 256;

/// Whether lists and objects in this JSON text nest deeper than `levels`. Any bytes; says nothing of their validity.
bool jsonNestsTooDeep(std::string_view text, std::size_t levels = kMostJsonNesting);

} // namespace kvscope
