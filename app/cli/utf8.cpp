// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/utf8.h"

#include <cstdint>

namespace kvscope::cli {

namespace {

struct Lead {
    int length;              ///< 0 = cannot begin a character
    unsigned char low, high; ///< range of the second byte (rules out overlong forms, surrogates and > U+10FFFF)
};

Lead lead(unsigned char c) {
    if (c < 0x80)
        return {1, 0, 0};
    if (c >= 0xC2 && c <= 0xDF)
        return {2, 0x80, 0xBF};
    if (c >= 0xE0 && c <= 0xEF)
        return {3, static_cast<unsigned char>(c == 0xE0 ? 0xA0 : 0x80),
                static_cast<unsigned char>(c == 0xED ? 0x9F : 0xBF)};
    if (c >= 0xF0 && c <= 0xF4)
        return {4, static_cast<unsigned char>(c == 0xF0 ? 0x90 : 0x80),
                static_cast<unsigned char>(c == 0xF4 ? 0x8F : 0xBF)};
    return {0, 0, 0};
}

} // namespace

std::string replaceInvalidUtf8(std::string_view bytes) {
    std::string out;
    out.reserve(bytes.size());
    for (std::size_t at = 0; at < bytes.size();) {
        const Lead l = lead(static_cast<unsigned char>(bytes[at]));
        std::size_t good = 1;
        while (static_cast<int>(good) < l.length && at + good < bytes.size()) {
            const auto c = static_cast<unsigned char>(bytes[at + good]);
            if (c < (good == 1 ? l.low : 0x80) || c > (good == 1 ? l.high : 0xBF))
                break;
            ++good;
        }
        if (static_cast<int>(good) == l.length)
            out.append(bytes.substr(at, good));
        else
            out += "\xEF\xBF\xBD";
        at += good;
    }
    return out;
}

std::string hex(std::string_view bytes) {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string out;
    out.reserve(bytes.size() * 2);
    for (const char c : bytes) {
        out += kDigits[static_cast<unsigned char>(c) >> 4];
        out += kDigits[static_cast<unsigned char>(c) & 15];
    }
    return out;
}

} // namespace kvscope::cli
