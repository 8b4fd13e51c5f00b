// SPDX-License-Identifier: GPL-3.0-or-later
// Filters that lay text out or escape it, and `attr`, `from_json`.
#include <algorithm>
#include <array>

#include "engine/base/json_nesting.h"
#include "engine/model/jinja/characters.h"
#include "engine/model/jinja/filters.h"
#include "engine/model/jinja/json_value.h"
#include "engine/model/jinja/runtime.h"
#include "engine/model/jinja/string_methods.h"
#include "engine/model/unicode.h"

namespace kvscope::model::jinja {

namespace {

using Bound = std::vector<std::optional<Value>>;

std::size_t sizeArgument(const Bound& bound, std::size_t i, std::size_t otherwise, std::string_view who) {
    if (!bound[i] || bound[i]->isNone())
        return otherwise;
    const std::int64_t number = needInteger(*bound[i], who);
    if (number < 0 || number > static_cast<std::int64_t>(kMaxTextBytes))
        throw Failure(std::string(who) + " takes a number of characters from 0 to " + std::to_string(kMaxTextBytes));
    return static_cast<std::size_t>(number);
}

/// Looks only for what belongs to the value itself: items of dicts are none of it.
Value attribute(Runtime& runtime, const Value& value, Arguments& arguments) {
    const auto bound = bind("attr", arguments, {"name"});
    if (!bound[0])
        throw Failure("attr lacks a name");
    const std::string name = toText(*bound[0]).bytes();
    if (value.asDict() == nullptr)
        return attributeOf(runtime, value, name);
    const Value method = findMethod(value, name);
    return method.isUndefined() ? Value::undefined("'dict object' has no attribute '" + name + "'") : method;
}

Value center(Runtime& runtime, const Value& value, Arguments& arguments) {
    auto bound = bind("center", arguments, {"width"});
    Arguments width;
    width.positional.push_back(bound[0].value_or(Value::integer(80)));
    return callStringMethod(runtime, "center", toText(value), width);
}

Value truncate(Runtime& runtime, const Value& value, Arguments& arguments) {
    const auto bound = bind("truncate", arguments, {"length", "killwords", "end", "leeway"});
    const std::size_t length = sizeArgument(bound, 0, 255, "truncate");
    const std::size_t leeway = sizeArgument(bound, 3, 5, "truncate");
    const Text end = bound[2] ? toText(*bound[2]) : Text("...");
    const std::size_t endLength = characterCount(end.bytes());
    if (length < endLength)
        throw Failure("truncate: the length is less than that of the end");
    const Text text = toText(value);
    runtime.read(text.size());
    const std::vector<std::size_t> offsets = characterOffsets(text.bytes());
    if (offsets.size() - 1 <= length + leeway)
        return runtime.text(text);
    Text out = text.substr(0, offsets[length - endLength]);
    const bool cutsWords = bound[1] && bound[1]->truthy();
    if (const std::size_t blank = out.bytes().rfind(' '); !cutsWords && blank != std::string::npos)
        out = out.substr(0, blank);
    out.append(end);
    return runtime.text(std::move(out));
}

bool isWordCharacter(char32_t c) {
    const CharClass kind = charClass(c);
    return c == U'_' || kind == CharClass::Letter || kind == CharClass::Number;
}

Value wordCount(Runtime& runtime, const Value& value, Arguments&) {
    const std::string text = toText(value).bytes();
    runtime.read(text.size());
    std::int64_t words = 0;
    bool inside = false;
    for (std::size_t at = 0; at < text.size();) {
        const DecodedChar c = decodeUtf8(text, at);
        words += isWordCharacter(c.codePoint) && !inside ? 1 : 0;
        inside = isWordCharacter(c.codePoint);
        at += c.length;
    }
    return Value::integer(words);
}

/// The lines of one line, cut at blanks as Python's textwrap cuts it. Works on characters.
class Wrapper {
public:
    Wrapper(const Text& text, std::size_t width, bool breaksWords, bool breaksHyphens)
        : m_text(text)
        , m_offsets(characterOffsets(text.bytes()))
        , m_width(width)
        , m_breaksWords(breaksWords) {
        for (std::size_t i = 0; i + 1 < m_offsets.size(); ++i)
            m_characters.push_back(decodeUtf8(text.bytes(), m_offsets[i]).codePoint);
        cut(breaksHyphens);
    }

    std::vector<Text> lines() {
        std::vector<Text> out;
        std::size_t begin = 0, end = 0;
        const auto finish = [&] {
            std::size_t last = end; // blanks at a line's end go
            while (last > begin && isBlank(last - 1))
                --last;
            if (last > begin)
                out.push_back(m_text.substr(m_offsets[begin], m_offsets[last] - m_offsets[begin]));
            begin = end;
        };
        for (std::size_t i = 0; i < m_chunks.size(); ++i) {
            const auto [from, to] = m_chunks[i];
            if (begin == end && isBlank(from) && !out.empty()) { // and at the next one's begin
                begin = end = to;
                continue;
            }
            if (to - begin <= m_width) {
                end = to;
                continue;
            }
            if (to - from > m_width) {
                if (m_breaksWords) {
                    end = std::max(begin + m_width, from + (begin == from ? 1 : 0));
                    m_chunks[i].first = end;
                    finish();
                    --i;
                    continue;
                }
                if (begin == end)
                    end = to;
                else
                    --i;
                finish();
                continue;
            }
            finish();
            --i;
        }
        finish();
        return out;
    }

private:
    bool isBlank(std::size_t i) const {
        const char32_t c = m_characters[i];
        return c == U' ' || (c >= U'\t' && c <= U'\r');
    }
    bool isLetter(std::size_t i) const {
        return i < m_characters.size() && (charClass(m_characters[i]) == CharClass::Letter || m_characters[i] == U'_');
    }
    bool isWord(std::size_t i) const { return i < m_characters.size() && isWordCharacter(m_characters[i]); }

    /// Behind a hyphen between two words of letters: "long-term", not "-x" or "1-2".
    bool breaksBehind(std::size_t i) const {
        return m_characters[i] == U'-' && i >= 2 && isLetter(i - 1) && isWord(i - 2) && isWord(i + 1) &&
               isLetter(i + 2);
    }

    /// Into runs of blanks and words.
    void cut(bool breaksHyphens) {
        for (std::size_t i = 0; i < m_characters.size();) {
            std::size_t end = i + 1;
            while (end < m_characters.size() && isBlank(end) == isBlank(i) && !(breaksHyphens && breaksBehind(end - 1)))
                ++end;
            m_chunks.emplace_back(i, end);
            i = end;
        }
    }

    const Text& m_text;
    std::vector<std::size_t> m_offsets;
    std::size_t m_width;
    bool m_breaksWords;
    std::vector<char32_t> m_characters;
    std::vector<std::pair<std::size_t, std::size_t>> m_chunks;
};

Value wordWrap(Runtime& runtime, const Value& value, Arguments& arguments) {
    const auto bound = bind("wordwrap", arguments, {"width", "break_long_words", "wrapstring", "break_on_hyphens"});
    const std::size_t width = sizeArgument(bound, 0, 79, "wordwrap");
    if (width == 0)
        throw Failure("wordwrap needs a width above 0");
    const bool breaksWords = !bound[1] || bound[1]->truthy();
    const Text lineEnd = bound[2] && !bound[2]->isNone() ? toText(*bound[2]) : Text("\n");
    const bool breaksHyphens = !bound[3] || bound[3]->truthy();
    const Text text = toText(value);
    runtime.step(static_cast<std::int64_t>(text.size() / 8));
    Arguments none;
    const Value lines = callStringMethod(runtime, "splitlines", text, none);
    Text out;
    for (std::size_t i = 0; i < lines.asList()->items.size(); ++i) {
        if (i > 0)
            out.append(lineEnd);
        const std::vector<Text> parts =
            Wrapper(*lines.asList()->items[i].asString(), width, breaksWords, breaksHyphens).lines();
        for (std::size_t part = 0; part < parts.size(); ++part) {
            if (part > 0)
                out.append(lineEnd);
            out.append(parts[part]);
            runtime.charge(lineEnd.size() + parts[part].size());
        }
    }
    return runtime.text(std::move(out));
}

Value escaped(Runtime& runtime, const Value& value, Arguments&) {
    const Text text = toText(value);
    runtime.read(text.size());
    runtime.charge(text.size() * 5);
    return runtime.text(text.mapPieces([](std::string_view piece) {
        std::string out;
        for (const char c : piece) {
            constexpr std::string_view kSigns = "&<>'\"";
            constexpr std::array<std::string_view, 5> kNames = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
            const std::size_t sign = kSigns.find(c);
            out += sign == std::string_view::npos ? std::string_view(&c, 1) : kNames[sign];
        }
        return out;
    }));
}

std::string percentEncoded(std::string_view text) {
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    std::string out;
    for (const char c : text) {
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                           std::string_view("_.-~/").find(c) != std::string_view::npos;
        if (plain) {
            out += c;
            continue;
        }
        out += '%';
        out += kDigits[static_cast<unsigned char>(c) >> 4];
        out += kDigits[static_cast<unsigned char>(c) & 15];
    }
    return out;
}

Value urlEncoded(Runtime& runtime, const Value& value, Arguments&) {
    if (value.asDict() != nullptr || value.asList() != nullptr)
        throw Failure("urlencode takes a text");
    const Text text = toText(value);
    runtime.read(text.size());
    runtime.charge(text.size() * 3);
    return runtime.text(text.mapPieces(percentEncoded));
}

/// The value of a JSON text. What is in it came from outside where any of the text did.
Value fromJson(Runtime& runtime, const Value& value, Arguments&) {
    const Text& text = needString(value, "from_json");
    runtime.step(static_cast<std::int64_t>(text.size()));
    runtime.charge(text.size() * sizeof(Value));
    const auto json = jsonNestsTooDeep(text.bytes())
                          ? nlohmann::ordered_json(nlohmann::ordered_json::value_t::discarded)
                          : nlohmann::ordered_json::parse(text.bytes(), nullptr, false);
    if (json.is_discarded())
        throw Failure("from_json: the text is not valid JSON, or nested too deep");
    return text.marks().empty() ? valueFromJson(json, false) : markedFromJson(json, text.marks().front().source);
}

constexpr std::array kFilters = {
    FilterEntry{"attr", attribute},    FilterEntry{"center", center},        FilterEntry{"e", escaped},
    FilterEntry{"escape", escaped},    FilterEntry{"forceescape", escaped},  FilterEntry{"from_json", fromJson},
    FilterEntry{"truncate", truncate}, FilterEntry{"urlencode", urlEncoded}, FilterEntry{"wordcount", wordCount},
    FilterEntry{"wordwrap", wordWrap},
};

} // namespace

std::span<const FilterEntry> textFilters() {
    return kFilters;
}

} // namespace kvscope::model::jinja
