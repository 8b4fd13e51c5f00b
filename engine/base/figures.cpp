// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/base/figures.h"

#include <array>
#include <cstdio>

namespace kvscope {

std::string countText(std::int64_t value) {
    std::string digits = std::to_string(value);
    const std::size_t first = value < 0 ? 1 : 0;
    for (std::size_t at = digits.size(); at > first + 3;) {
        at -= 3;
        digits.insert(at, 1, ',');
    }
    return digits;
}

std::string sizeText(std::uint64_t bytes) {
    if (bytes < 1000)
        return std::to_string(bytes) + " B";
    constexpr std::array<const char*, 4> kUnits = {"KiB", "MiB", "GiB", "TiB"};
    double value = static_cast<double>(bytes) / 1024;
    std::size_t unit = 0;
    while (value >= 999.5 && unit + 1 < kUnits.size()) { // four digits are harder to compare than the next unit
        value /= 1024;
        ++unit;
    }
    const int decimals = unit >= 2 ? (value < 9.995 ? 2 : value < 99.95 ? 1 : 0) : value < 9.95 ? 1 : 0;
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.*f ", decimals, value);
    return std::string(text.data()) + kUnits[unit];
}

std::string formatted(const char* format, double value) {
    std::array<char, 96> text{};
    std::snprintf(text.data(), text.size(), format, value);
    return text.data();
}

} // namespace kvscope
