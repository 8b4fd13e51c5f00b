// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/store/fold.h"

#include <cstdlib>
#include <memory>

#include <utf8proc.h>

namespace kvscope::store {

namespace {

constexpr const char* kReplacement = "\xEF\xBF\xBD";

} // namespace

/// utf8proc refuses a whole string for one bad byte, and FTS5 ends a token at NUL: make both harmless first.
std::string validUtf8(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    const auto* data = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
    auto left = static_cast<utf8proc_ssize_t>(text.size());
    while (left > 0) {
        utf8proc_int32_t codepoint = -1;
        const utf8proc_ssize_t used = utf8proc_iterate(data, left, &codepoint);
        if (used <= 0 || codepoint <= 0) {
            out += kReplacement;
            ++data;
            --left;
            continue;
        }
        out.append(reinterpret_cast<const char*>(data), static_cast<std::size_t>(used));
        data += used;
        left -= used;
    }
    return out;
}

std::string searchedText(std::string_view name, std::string_view content) {
    return foldCase(std::string(name) + "\n" + std::string(content));
}

std::string foldCase(std::string_view text) {
    const std::string valid = validUtf8(text);
    utf8proc_uint8_t* folded = nullptr;
    const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_CASEFOLD);
    const utf8proc_ssize_t size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(valid.data()),
                                               static_cast<utf8proc_ssize_t>(valid.size()), &folded, options);
    if (size < 0)
        return valid;
    const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(folded, &std::free);
    return std::string(reinterpret_cast<const char*>(folded), static_cast<std::size_t>(size));
}

} // namespace kvscope::store
