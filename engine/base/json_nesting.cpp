// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/base/json_nesting.h"

namespace kvscope {

bool jsonNestsTooDeep(std::string_view text, std::size_t levels) {
    std::size_t depth = 0;
    bool inString = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (inString) {
            if (c == '\\')
                ++i; // what is escaped ends nothing
            else if (c == '"')
                inString = false;
        } else if (c == '"') {
            inString = true;
        } else if (c == '[' || c == '{') {
            if (++depth > levels)
                return true;
        } else if ((c == ']' || c == '}') && depth > 0) {
            --depth;
        }
    }
    return false;
}

} // namespace kvscope
