// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/model/jinja/characters.h"

#include <algorithm>
#include <array>
#include <utility>

#include <utf8proc.h>

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

} // namespace

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
    const std::vector<std::size_t> offsets = characterOffsets(bytes);
    std::size_t first = 0;
    std::size_t last = offsets.size() - 1;
    const auto strippable = [&](std::size_t i) {
        const std::string_view character = bytes.substr(offsets[i], offsets[i + 1] - offsets[i]);
        return isIn(characters, character, decodeUtf8(bytes, offsets[i]).codePoint);
    };
    if (side != Side::Right)
        while (first < last && strippable(first))
            ++first;
    if (side != Side::Left)
        while (last > first && strippable(last - 1))
            --last;
    return text.substr(offsets[first], offsets[last] - offsets[first]);
}

Text replaced(const Text& text, const Text& from, const Text& to, std::int64_t most) {
    const std::string& bytes = text.bytes();
    Text out;
    std::size_t done = 0;
    std::int64_t count = 0;
    const auto wanted = [&] { return most < 0 || count < most; };
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
        for (std::size_t at = 0; wanted() && (at = bytes.find(from.bytes(), at)) != std::string::npos; ++count) {
            out.append(text.substr(done, at - done));
            out.append(to);
            at += from.size();
            done = at;
            if (out.size() > std::size_t{64} << 20)
                break; // the caller refuses the result for its size
        }
    }
    out.append(text.substr(done));
    return out;
}

} // namespace kvscope::model::jinja
