// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/model/unicode.h"

#include <array>

#include <utf8proc.h>

namespace kvscope::model {

namespace {

CharClass classify(char32_t codePoint) {
    if ((codePoint >= 0x09 && codePoint <= 0x0D) || codePoint == 0x85)
        return CharClass::Space;
    switch (utf8proc_category(static_cast<utf8proc_int32_t>(codePoint))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
        return CharClass::Letter;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
        return CharClass::Mark;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
        return CharClass::Number;
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
        return CharClass::Punctuation;
    case UTF8PROC_CATEGORY_SM:
    case UTF8PROC_CATEGORY_SC:
    case UTF8PROC_CATEGORY_SK:
    case UTF8PROC_CATEGORY_SO:
        return CharClass::Symbol;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
        return CharClass::Space;
    default:
        return CharClass::Other;
    }
}

std::array<CharClass, 128> asciiClasses() {
    std::array<CharClass, 128> classes{};
    for (char32_t c = 0; c < classes.size(); ++c)
        classes[c] = classify(c);
    return classes;
}

/// Bytes that the lead byte asks for, and the range that the second byte must lie in (it rules out overlong forms,
/// surrogates and values above U+10FFFF).
struct LeadByte {
    int length = 0; ///< 0 = cannot start a character
    unsigned char low = 0x80;
    unsigned char high = 0xBF;
};

LeadByte leadByte(unsigned char byte) {
    if (byte < 0x80)
        return {1};
    if (byte < 0xC2)
        return {0};
    if (byte < 0xE0)
        return {2};
    if (byte < 0xF0)
        return {3, byte == 0xE0 ? std::uint8_t{0xA0} : std::uint8_t{0x80},
                byte == 0xED ? std::uint8_t{0x9F} : std::uint8_t{0xBF}};
    if (byte < 0xF5)
        return {4, byte == 0xF0 ? std::uint8_t{0x90} : std::uint8_t{0x80},
                byte == 0xF4 ? std::uint8_t{0x8F} : std::uint8_t{0xBF}};
    return {0};
}

/// How many of the bytes from `at` fit the character that `lead` opens (>= 1).
int fittingBytes(std::string_view text, std::size_t at, const LeadByte& lead) {
    int fitting = 1;
    while (fitting < lead.length && at + fitting < text.size()) {
        const auto byte = static_cast<unsigned char>(text[at + fitting]);
        const unsigned char low = fitting == 1 ? lead.low : 0x80;
        const unsigned char high = fitting == 1 ? lead.high : 0xBF;
        if (byte < low || byte > high)
            break;
        ++fitting;
    }
    return fitting;
}

} // namespace

CharClass charClass(char32_t codePoint) {
    static const std::array<CharClass, 128> kAscii = asciiClasses();
    return codePoint < kAscii.size() ? kAscii[codePoint] : classify(codePoint);
}

DecodedChar decodeUtf8(std::string_view text, std::size_t at) {
    const auto first = static_cast<unsigned char>(text[at]);
    if (first < 0x80)
        return {first, 1, true};
    const LeadByte lead = leadByte(first);
    if (lead.length == 0 || fittingBytes(text, at, lead) < lead.length)
        return {kReplacement, 1, false};
    char32_t value = first & (0x7Fu >> lead.length);
    for (int i = 1; i < lead.length; ++i)
        value = (value << 6) | (static_cast<unsigned char>(text[at + i]) & 0x3F);
    return {value, static_cast<std::uint8_t>(lead.length), true};
}

void appendUtf8(std::string& out, char32_t codePoint) {
    if (codePoint < 0x80) {
        out.push_back(static_cast<char>(codePoint));
        return;
    }
    if (codePoint < 0x800) {
        out.push_back(static_cast<char>(0xC0 | (codePoint >> 6)));
    } else {
        if (codePoint < 0x10000) {
            out.push_back(static_cast<char>(0xE0 | (codePoint >> 12)));
        } else {
            out.push_back(static_cast<char>(0xF0 | (codePoint >> 18)));
            out.push_back(static_cast<char>(0x80 | ((codePoint >> 12) & 0x3F)));
        }
        out.push_back(static_cast<char>(0x80 | ((codePoint >> 6) & 0x3F)));
    }
    out.push_back(static_cast<char>(0x80 | (codePoint & 0x3F)));
}

bool isValidUtf8(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
        const DecodedChar c = decodeUtf8(text, at);
        if (!c.valid)
            return false;
        at += c.length;
    }
    return true;
}

std::string toValidUtf8(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
        const DecodedChar c = decodeUtf8(text, at);
        if (c.valid) {
            out.append(text.substr(at, c.length));
            at += c.length;
        } else { // the beginning of a character counts as one
            appendUtf8(out, kReplacement);
            at += static_cast<std::size_t>(fittingBytes(text, at, leadByte(static_cast<unsigned char>(text[at]))));
        }
    }
    return out;
}

std::size_t wholeCharacters(std::string_view text) {
    const std::size_t from = text.size() < 3 ? 0 : text.size() - 3;
    for (std::size_t at = text.size(); at-- > from;) {
        const LeadByte lead = leadByte(static_cast<unsigned char>(text[at]));
        if (lead.length == 0)
            continue; // a continuation byte, or one that never starts a character
        const auto present = static_cast<int>(text.size() - at);
        const bool unfinished = lead.length > present && fittingBytes(text, at, lead) == present;
        return unfinished ? at : text.size();
    }
    return text.size();
}

CodePoints::CodePoints(std::string_view text) {
    values.reserve(text.size());
    classes.reserve(text.size());
    offsets.reserve(text.size() + 1);
    for (std::size_t at = 0; at < text.size();) {
        const DecodedChar c = decodeUtf8(text, at);
        values.push_back(c.codePoint);
        classes.push_back(charClass(c.codePoint));
        offsets.push_back(static_cast<std::uint32_t>(at));
        at += c.length;
    }
    offsets.push_back(static_cast<std::uint32_t>(text.size()));
}

} // namespace kvscope::model
