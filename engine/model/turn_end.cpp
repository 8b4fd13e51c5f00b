// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/model/turn_end.h"

#include <algorithm>
#include <string_view>

namespace kvscope::model {

namespace {

using jinja::Text;
using jinja::Value;

constexpr std::int32_t kAnswer = 1;
constexpr std::size_t kLongestMarker = 40;
constexpr std::size_t kShortestText = 4; ///< letters and signs; anything shorter occurs in answers

Value message(const char* role, const char* content, std::int32_t source) {
    return Value::dict({{Value::string("role"), Value::string(role)},
                        {Value::string("content"), Value::string(Text::fromOutside(content, source))}});
}

/// What stands between an answer and the user's next message.
std::optional<std::string> textBehindAnswer(const ChatTemplate& chatTemplate, const jinja::Variables& variables) {
    TemplateInput input;
    input.messages = Value::list(
        {message("user", "Question", 0), message("assistant", "Answer", kAnswer), message("user", "Another", 2)});
    input.addGenerationPrompt = false;
    input.variables = variables;
    input.now = localTimeNow();
    const auto rendering = chatTemplate.render(input);
    if (!rendering)
        return std::nullopt;
    const auto& marks = rendering->text.marks();
    const auto answer =
        std::find_if(marks.rbegin(), marks.rend(), [](const jinja::Mark& m) { return m.source == kAnswer; });
    if (answer == marks.rend())
        return std::nullopt;
    const std::size_t end = answer == marks.rbegin() ? rendering->text.size() : std::prev(answer)->begin;
    return rendering->text.bytes().substr(answer->end, end - answer->end);
}

/// "<|im_end|>", "[/ANSWER]" at the beginning of a text; empty = none.
std::string_view markerAt(std::string_view text) {
    const char close = text.starts_with('<') ? '>' : text.starts_with('[') ? ']' : '\0';
    const std::size_t end = close ? text.find(close) : std::string_view::npos;
    return end == std::string_view::npos || end >= kLongestMarker ? std::string_view() : text.substr(0, end + 1);
}

std::optional<TokenId> tokenNamed(const Tokenizer& tokenizer, std::string_view text) {
    for (std::size_t id = 0; id < tokenizer.vocabulary().size(); ++id)
        if (tokenizer.bytes(static_cast<TokenId>(id)) == text)
            return static_cast<TokenId>(id);
    return std::nullopt;
}

} // namespace

TurnEnd turnEndOf(const ChatTemplate& chatTemplate, const Tokenizer& tokenizer, const jinja::Variables& variables) {
    TurnEnd end;
    const auto behind = textBehindAnswer(chatTemplate, variables);
    if (!behind)
        return end;
    constexpr std::string_view kSpace = " \t\r\n";
    const std::string_view all = *behind;
    const std::string_view body = all.substr(std::min(all.find_first_not_of(kSpace), all.size()));
    if (body.empty())
        return end;
    EncodeOptions options;
    options.parseSpecial = true;
    if (const auto encoded = tokenizer.encode(body, options); encoded && !encoded->ids.empty())
        for (const TokenId id : encoded->ids) { // a blank that the vocabulary puts in front gives a token of its own
            if (tokenizer.isSpecial(id))
                end.token = id;
            if (end.token || tokenizer.bytes(id).find_first_not_of(' ') != std::string_view::npos)
                break;
        }
    if (!end.token)
        if (const std::string_view marker = markerAt(body); !marker.empty()) {
            end.token = tokenNamed(tokenizer, marker);
            if (!end.token)
                end.text = marker;
        }
    if (!end.token && end.text.empty()) {
        const std::size_t last = all.find_last_not_of(kSpace);
        const std::string_view text = all.substr(0, last + 1);
        const auto letters =
            std::count_if(text.begin(), text.end(), [&](char c) { return kSpace.find(c) == std::string_view::npos; });
        if (static_cast<std::size_t>(letters) >= kShortestText)
            end.text = text;
    }
    return end;
}

} // namespace kvscope::model
