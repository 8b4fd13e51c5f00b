// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/model/jinja/characters.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <utf8proc.h>

#include "engine/model/jinja/value.h"
#include "engine/model/unicode.h"

namespace kvscope::model::jinja {

namespace {

/// Characters whose capital is more than one character (the unconditional ones outside Greek of SpecialCasing.txt).
constexpr std::array<std::pair<char32_t, std::string_view>, 16> kLongCapitals = {{
    {U'\u00DF', "SS"},
    {U'\u0149', "\u02BCN"},
    {U'\u01F0', "J\u030C"},
    {U'\u0587', "\u0535\u0552"},
    {U'\u1E96', "H\u0331"},
    {U'\u1E97', "T\u0308"},
    {U'\u1E98', "W\u030A"},
    {U'\u1E99', "Y\u030A"},
    {U'\u1E9A', "A\u02BE"},
    {U'\uFB00', "FF"},
    {U'\uFB01', "FI"},
    {U'\uFB02', "FL"},
    {U'\uFB03', "FFI"},
    {U'\uFB04', "FFL"},
    {U'\uFB05', "ST"},
    {U'\uFB06', "ST"},
}};

template <class Change> std::string mapCharacters(std::string_view text, Change change) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
        const DecodedChar c = decodeUtf8(text, at);
        if (c.valid)
            change(out, c.codePoint);
        else
            out.append(text.substr(at, c.length));
        at += c.length;
    }
    return out;
}

bool isIn(std::string_view characters, std::string_view character, char32_t codePoint) {
    if (characters.empty())
        return isWhitespace(codePoint);
    for (std::size_t at = 0; at < characters.size();) {
        const DecodedChar c = decodeUtf8(characters, at);
        if (characters.substr(at, c.length) == character)
            return true;
        at += c.length;
    }
    return false;
}

/// Bytes of the last character of a text that is not empty.
std::size_t lastCharacter(std::string_view text) {
    for (std::size_t length = 1; length <= std::min<std::size_t>(text.size(), 4); ++length) {
        const DecodedChar c = decodeUtf8(text, text.size() - length);
        if (c.valid && c.length == length)
            return length;
    }
    return 1; // not UTF-8
}

} // namespace

std::size_t findBytes(std::string_view text, std::string_view wanted, std::size_t from) {
    if (from > text.size())
        return std::string_view::npos;
    if (wanted.empty())
        return from;
    const void* found = ::memmem(text.data() + from, text.size() - from, wanted.data(), wanted.size());
    return found == nullptr ? std::string_view::npos
                            : static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

std::size_t findLastBytes(std::string_view text, std::string_view wanted) {
    const std::string mirrored(text.rbegin(), text.rend());
    const std::size_t at = findBytes(mirrored, std::string(wanted.rbegin(), wanted.rend()));
    return at == std::string_view::npos ? at : text.size() - at - wanted.size();
}

std::vector<std::size_t> characterOffsets(std::string_view text) {
    std::vector<std::size_t> offsets;
    offsets.reserve(text.size() + 1);
    for (std::size_t at = 0; at < text.size(); at += decodeUtf8(text, at).length)
        offsets.push_back(at);
    offsets.push_back(text.size());
    return offsets;
}

std::size_t characterCount(std::string_view text) {
    std::size_t count = 0;
    for (std::size_t at = 0; at < text.size(); at += decodeUtf8(text, at).length)
        ++count;
    return count;
}

bool isWhitespace(char32_t c) {
    return charClass(c) == CharClass::Space || (c >= 0x1C && c <= 0x1F);
}

bool isCased(char32_t c) {
    const auto point = static_cast<utf8proc_int32_t>(c);
    return utf8proc_toupper(point) != point || utf8proc_tolower(point) != point || c == U'\u00DF';
}

std::string upperCase(std::string_view text) {
    return mapCharacters(text, [](std::string& out, char32_t c) {
        const auto special = std::find_if(kLongCapitals.begin(), kLongCapitals.end(),
                                          [&](const auto& entry) { return entry.first == c; });
        if (special != kLongCapitals.end())
            out.append(special->second);
        else
            appendUtf8(out, static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))));
    });
}

std::string lowerCase(std::string_view text) {
    return mapCharacters(text, [](std::string& out, char32_t c) {
        if (c == U'\u0130') // the one capital whose small form is two characters
            out.append("i\u0307");
        else
            appendUtf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
    });
}

Text stripped(const Text& text, Side side, std::string_view characters) {
    const std::string_view bytes = text.bytes();
    std::size_t begin = 0;
    std::size_t end = bytes.size();
    const auto strippable = [&](std::size_t at, std::size_t length) {
        return isIn(characters, bytes.substr(at, length), decodeUtf8(bytes, at).codePoint);
    };
    while (side != Side::Right && begin < end) {
        const std::size_t length = decodeUtf8(bytes, begin).length;
        if (!strippable(begin, length))
            break;
        begin += length;
    }
    while (side != Side::Left && begin < end) {
        const std::size_t length = lastCharacter(bytes.substr(begin, end - begin));
        if (!strippable(end - length, length))
            break;
        end -= length;
    }
    return text.substr(begin, end - begin);
}

Text replaced(const Text& text, const Text& from, const Text& to, std::int64_t most) {
    const std::string& bytes = text.bytes();
    Text out;
    std::size_t done = 0;
    std::int64_t count = 0;
    // What is too long is refused for its size.
    const auto wanted = [&] { return (most < 0 || count < most) && out.size() <= kMaxTextBytes; };
    if (from.empty()) { // between all characters, as Python does
        for (const std::size_t offset : characterOffsets(bytes)) {
            if (!wanted())
                break;
            out.append(text.substr(done, offset - done));
            out.append(to);
            done = offset;
            ++count;
        }
    } else {
        for (std::size_t at = 0; wanted() && (at = findBytes(bytes, from.bytes(), at)) != std::string::npos; ++count) {
            out.append(text.substr(done, at - done));
            out.append(to);
            at += from.size();
            done = at;
        }
    }
    out.append(text.substr(done));
    return out;
}

} // namespace kvscope::model::jinja
