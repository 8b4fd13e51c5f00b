// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/store/json_split.h"

#include <nlohmann/json.hpp>

namespace kvscope::store {

namespace {

constexpr std::size_t kNone = std::string_view::npos;

/// One past the closing quote of the string that begins at `at`.
std::size_t endOfString(std::string_view text, std::size_t at) {
    for (++at; at < text.size(); ++at) {
        if (text[at] == '\\')
            ++at;
        else if (text[at] == '"')
            return at + 1;
    }
    return kNone;
}

} // namespace

std::size_t skipBlanks(std::string_view text, std::size_t at) {
    const std::size_t found = text.find_first_not_of(" \t\r\n", at);
    return found == kNone ? text.size() : found;
}

std::size_t endOfValue(std::string_view text, std::size_t at) {
    if (at >= text.size())
        return kNone;
    if (text[at] == '"')
        return endOfString(text, at);
    if (text[at] != '{' && text[at] != '[') { // a number or a word: up to what may stand behind a value
        const std::size_t end = text.find_first_of(",]} \t\r\n", at);
        return end == at ? at + 1 : std::min(end, text.size());
    }
    std::size_t depth = 0;
    while (at < text.size()) {
        const char c = text[at];
        if (c == '"') {
            at = endOfString(text, at);
            if (at == kNone)
                return kNone;
            continue;
        }
        depth += c == '{' || c == '[' ? 1 : 0;
        ++at;
        if ((c == '}' || c == ']') && --depth == 0)
            return at;
    }
    return kNone;
}

JsonEnd splitJson(std::string_view text, std::size_t at,
                  const std::function<bool(const std::string& name, std::string_view value)>& visit) {
    JsonEnd all;
    const bool object = text[at] == '{';
    const char close = object ? '}' : ']';
    for (at = skipBlanks(text, at + 1);; at = skipBlanks(text, at)) {
        if (at < text.size() && text[at] == ',') {
            ++at;
            continue;
        }
        if (at >= text.size() || text[at] == close) {
            all.cut = at >= text.size();
            all.end = std::min(at + 1, text.size());
            return all;
        }
        std::string name;
        if (object) {
            const std::size_t end = text[at] == '"' ? endOfString(text, at) : kNone;
            const std::size_t colon = end == kNone ? text.size() : skipBlanks(text, end);
            if (colon >= text.size() || text[colon] != ':') {
                all.cut = true;
                all.end = at;
                return all;
            }
            const auto parsed = nlohmann::json::parse(text.substr(at, end - at), nullptr, false);
            name = parsed.is_string() ? parsed.get<std::string>() : std::string();
            at = skipBlanks(text, colon + 1);
        }
        const std::size_t end = endOfValue(text, at);
        if (end == kNone) {
            all.cut = true;
            all.end = at;
            return all;
        }
        if (!visit(name, text.substr(at, end - at))) {
            all.end = end;
            return all;
        }
        at = end;
    }
}

} // namespace kvscope::store
