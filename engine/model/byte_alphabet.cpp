// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/model/byte_alphabet.h"

#include <array>

#include "engine/model/unicode.h"

namespace kvscope::model {

namespace {

constexpr int kBytes = 256;
constexpr int kShifted = 68; ///< bytes without a printable character of the same number

struct Alphabet {
    std::array<std::string, kBytes> symbols;
    std::array<int, kBytes + kShifted> byteOf; ///< by code point, -1 = none

    Alphabet() {
        byteOf.fill(-1);
        char32_t next = kBytes;
        for (int byte = 0; byte < kBytes; ++byte) {
            const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
            const char32_t codePoint = printable ? static_cast<char32_t>(byte) : next++;
            appendUtf8(symbols[byte], codePoint);
            byteOf[codePoint] = byte;
        }
    }
};

const Alphabet& alphabet() {
    static const Alphabet kAlphabet;
    return kAlphabet;
}

} // namespace

const std::string& byteSymbol(unsigned char byte) {
    return alphabet().symbols[byte];
}

std::optional<std::string> bytesOfSymbols(std::string_view text) {
    const auto& byteOf = alphabet().byteOf;
    std::string bytes;
    bytes.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
        const DecodedChar c = decodeUtf8(text, at);
        if (!c.valid || c.codePoint >= byteOf.size() || byteOf[c.codePoint] < 0)
            return std::nullopt;
        bytes.push_back(static_cast<char>(byteOf[c.codePoint]));
        at += c.length;
    }
    return bytes;
}

} // namespace kvscope::model
