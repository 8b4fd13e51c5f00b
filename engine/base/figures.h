// SPDX-License-Identifier: GPL-3.0-or-later
//
// Figures as the engine's sentences write them. (The window has its own, with signs that terminals may lack.)
#pragma once

#include <cstdint>
#include <string>

namespace kvscope {

/// "23,040", "-3"
std::string countText(std::int64_t value);
/// "512 B", "4.2 KiB", "92 MiB", "1.41 GiB", "62.8 GiB"; rounded to the nearest.
std::string sizeText(std::uint64_t bytes);
/// By a printf format for one double: "%.2f s", "%g". At most 95 characters.
std::string formatted(const char* format, double value);

} // namespace kvscope
