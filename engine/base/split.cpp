// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/base/split.h"

#include <algorithm>

namespace kvscope {

std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> parts;
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t end = std::min(text.find(separator, at), text.size());
        parts.emplace_back(text.substr(at, end - at));
        at = end + 1;
    }
    return parts;
}

} // namespace kvscope
