// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/model/dialog.h"

#include <algorithm>

#include "engine/base/thinking.h"
#include "engine/model/gguf_types.h"
#include "engine/model/template_library.h"

namespace kvscope::model {

namespace {

using jinja::Text;
using jinja::Value;

/// Templates write roles between their marks ("<|" ~ role ~ "|>" may have to become a control token), so roles cannot
/// be kept from it by marks; they must not be able to hold one themselves.
bool isRole(const std::string& role) {
    constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    return !role.empty() && role.find_first_not_of(kAllowed) == std::string::npos;
}

Result<void> checkInput(const DialogInput& input, const Tokenizer& tokenizer) {
    for (const ChatMessage& message : input.messages) {
        if (!isRole(message.role))
            return fail(ErrorCode::InvalidArgument,
                        "A message has the role \"" + forSentence(message.role) +
                            "\"; use one of letters, digits, '_' and '-', such as \"user\" or \"assistant\".");
        for (const TokenId id : message.tokens)
            if (id < 0 || static_cast<std::size_t>(id) >= tokenizer.vocabulary().size())
                return fail(ErrorCode::InvalidArgument, "An answer has the token id " + std::to_string(id) +
                                                            ", which is not in this model's vocabulary.");
    }
    if (!input.continueLast)
        return {};
    if (input.messages.empty() || input.messages.back().role != "assistant" || input.addGenerationPrompt)
        return fail(ErrorCode::InvalidArgument,
                    "Only an answer that is the last message can be continued, without a new generation prompt.");
    return {};
}

/// Is something missing that the model should read? Templates that know no system role often leave it out silently.
bool leftOut(const Rendering& rendering, const std::vector<ChatMessage>& messages, std::size_t count) {
    std::vector<bool> there(count, false);
    for (const jinja::Mark& mark : rendering.text.marks())
        if (mark.source >= 0 && static_cast<std::size_t>(mark.source) < count)
            there[static_cast<std::size_t>(mark.source)] = true;
    for (std::size_t i = 0; i < count; ++i) {
        const bool matters =
            messages[i].role != "assistant" && messages[i].content.find_first_not_of(" \t\r\n") != std::string::npos;
        if (matters && !there[i])
            return true;
    }
    return false;
}

/// Bytes of each message: what its rounds of the loop printed and where its content stands. Of a turn that was made of
/// several, the first message has what stands before them, and the last one what stands behind.
std::vector<TextRange> messageBytes(const Rendering& rendering, const DialogTurns& turns, std::size_t messages) {
    constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);
    std::vector<TextRange> ranges(messages, TextRange{kNowhere, 0});
    const auto extend = [&](std::int32_t message, std::size_t begin, std::size_t end) {
        if (message < 0 || static_cast<std::size_t>(message) >= messages)
            return;
        TextRange& range = ranges[static_cast<std::size_t>(message)];
        range.begin = std::min(range.begin, begin);
        range.end = std::max(range.end, end);
    };
    for (const MessageSpan& span : rendering.messages) {
        if (span.message < 0 || static_cast<std::size_t>(span.message) >= turns.turns.size())
            continue;
        const DialogTurn& turn = turns.turns[static_cast<std::size_t>(span.message)];
        if (turn.messages.size() == 1)
            extend(turn.messages.front(), span.begin, span.end);
        if (turn.messages.size() < 2)
            continue;
        extend(turn.messages.front(), span.begin, span.begin);
        extend(turn.messages.back(), span.end, span.end);
    }
    for (const jinja::Mark& mark : rendering.text.marks())
        extend(mark.source, mark.begin, mark.end);
    std::size_t previous = 0;
    for (TextRange& range : ranges) {
        if (range.begin == kNowhere)
            range = {previous, previous};
        previous = range.end;
    }
    return ranges;
}

/// A token on the border of two messages counts for the earlier one.
std::vector<TokenRange> tokenRanges(const std::vector<TextRange>& bytes, const Encoding& encoding) {
    std::vector<TokenRange> ranges;
    const auto tokensUpTo = [&](std::size_t offset) { // tokens that end at or before the offset
        return std::upper_bound(encoding.ends.begin(), encoding.ends.end(), offset) - encoding.ends.begin();
    };
    const auto count = static_cast<std::int64_t>(encoding.ids.size());
    for (const TextRange& range : bytes) {
        std::int64_t begin = tokensUpTo(range.begin);
        std::int64_t end = tokensUpTo(range.end);
        const std::size_t covered = end > 0 ? encoding.ends[static_cast<std::size_t>(end) - 1] : 0;
        if (range.begin == range.end)
            end = begin;
        else if (covered < range.end && end < count)
            ++end; // the one that reaches beyond
        if (!ranges.empty() && begin + 1 == ranges.back().second)
            begin = ranges.back().second;
        ranges.emplace_back(begin, std::max(begin, end));
    }
    return ranges;
}

} // namespace

/// How the template took a dialog, and what it made of it.
struct DialogEncoder::Given {
    DialogTurns turns;
    Rendering rendering;
};

/// Ids of an answer that are taken over, and the bytes of the rendering that they stand for.
struct DialogEncoder::Reuse {
    TextRange range;
    std::span<const TokenId> ids;
};

DialogEncoder::DialogEncoder(std::shared_ptr<const Tokenizer> tokenizer,
                             std::shared_ptr<const ChatTemplate> chatTemplate)
    : m_tokenizer(std::move(tokenizer))
    , m_template(std::move(chatTemplate))
    , m_turnEnd(turnEndOf(*m_template, *m_tokenizer, withSpecialTexts({}))) {
    DialogInput question;
    question.messages = {{"user", "Question", {}}};
    question.now = localTimeNow();
    if (const auto given = give(question))
        m_thoughtOpener = kvscope::thoughtOpener(given->rendering.text.bytes());
}

Result<std::shared_ptr<const DialogEncoder>> DialogEncoder::create(std::shared_ptr<const Tokenizer> tokenizer) {
    const std::string& source = tokenizer->vocabulary().chatTemplate;
    if (source.empty())
        return fail(ErrorCode::Template,
                    "This model has no chat template (tokenizer.chat_template), so it cannot chat; "
                    "use a chat model, or give it a plain text to continue.");
    auto compiled = ChatTemplate::compile(source);
    if (!compiled)
        return tl::unexpected(compiled.error());
    return std::make_shared<const DialogEncoder>(std::move(tokenizer), std::move(*compiled));
}

jinja::Variables DialogEncoder::withSpecialTexts(jinja::Variables variables) const {
    addSpecialTexts(m_tokenizer->vocabulary(), variables);
    return variables;
}

Result<Rendering> DialogEncoder::render(const DialogInput& input, const DialogTurns& turns, std::size_t count) const {
    TemplateInput forTemplate;
    forTemplate.messages = turnsValue(turns, input.messages);
    forTemplate.addGenerationPrompt = input.addGenerationPrompt || input.continueLast;
    forTemplate.variables = withSpecialTexts(input.variables);
    forTemplate.now = input.now;
    auto rendering = m_template->render(forTemplate);
    if (rendering && input.continueLast)
        rendering->text.appendMarked(input.messages.back().content, static_cast<std::int32_t>(count));
    return rendering;
}

/// A content in parts, or none at all, is more than some templates know: they get its text. Nothing else changes, so
/// messages with tool calls keep them.
Result<DialogEncoder::Given> DialogEncoder::give(const DialogInput& input) const {
    auto given = giveAsItIs(input);
    if (given)
        return given;
    DialogInput plain = input;
    bool changed = false;
    for (ChatMessage& message : plain.messages) {
        for (auto& [key, value] : message.fields)
            if (key.asString()->bytes() == "content" && (value.asList() != nullptr || message.onlyText)) {
                changed = changed || !value.isUndefined();
                value = Value();
            }
    }
    if (!changed)
        return given;
    auto again = giveAsItIs(plain);
    return again ? std::move(again) : std::move(given);
}

/// The first way in which the template takes the dialog and leaves nothing out; else the first way that it takes.
Result<DialogEncoder::Given> DialogEncoder::giveAsItIs(const DialogInput& input) const {
    const std::size_t count = input.messages.size() - (input.continueLast ? 1 : 0);
    std::optional<Given> incomplete;
    std::optional<Error> refused;
    for (DialogTurns& turns : waysToGive(input.messages, count)) {
        auto rendering = render(input, turns, count);
        if (!rendering) {
            if (!refused)
                refused = rendering.error();
            continue;
        }
        Given given{std::move(turns), std::move(*rendering)};
        if (!leftOut(given.rendering, input.messages, count))
            return given;
        if (!incomplete)
            incomplete = std::move(given);
    }
    if (incomplete)
        return std::move(*incomplete);
    return tl::unexpected(*refused);
}

std::optional<DialogEncoder::Reuse> DialogEncoder::longestMatch(const std::vector<TokenId>& tokens,
                                                                std::string_view place) const {
    const auto bytesOf = [&](TokenId id) {
        return m_tokenizer->isSpecial(id) ? std::string_view() : m_tokenizer->bytes(id);
    };
    std::size_t bytes = 0;
    std::size_t count = 0;
    std::size_t ofText = 0; // ids up to the last one that gave bytes
    for (; count < tokens.size(); ++count) {
        const std::string_view piece = bytesOf(tokens[count]);
        if (place.substr(bytes, piece.size()) != piece)
            break;
        bytes += piece.size();
        if (!piece.empty())
            ofText = count + 1;
    }
    // Control tokens behind the last common byte belong to the answer only if it is there as a whole.
    if (count < tokens.size())
        count = ofText;
    if (bytes == 0)
        return std::nullopt;
    return Reuse{{0, bytes}, std::span(tokens).first(count)};
}

std::vector<DialogEncoder::Reuse> DialogEncoder::findReuse(const DialogInput& input, const Text& text) const {
    std::vector<std::optional<Reuse>> best(input.messages.size());
    for (const jinja::Mark& mark : text.marks()) {
        if (mark.source < 0 || input.messages[static_cast<std::size_t>(mark.source)].tokens.empty())
            continue;
        const std::string_view place = std::string_view(text.bytes()).substr(mark.begin, mark.end - mark.begin);
        auto match = longestMatch(input.messages[static_cast<std::size_t>(mark.source)].tokens, place);
        auto& known = best[static_cast<std::size_t>(mark.source)];
        if (!match || (known && known->ids.size() >= match->ids.size()))
            continue;
        match->range = {mark.begin, mark.begin + match->range.end};
        known = match;
    }
    std::vector<Reuse> reuses;
    for (const auto& reuse : best)
        if (reuse)
            reuses.push_back(*reuse);
    std::sort(reuses.begin(), reuses.end(),
              [](const Reuse& a, const Reuse& b) { return a.range.begin < b.range.begin; });
    return reuses;
}

Result<void> DialogEncoder::appendText(const Text& text, TextRange range, Encoding& out) const {
    const bool first = range.begin == 0;
    if (range.begin == range.end && !first)
        return {};
    const Text piece = text.substr(range.begin, range.end - range.begin);
    std::vector<TextRange> userText;
    for (const jinja::Mark& mark : piece.marks())
        userText.push_back({mark.begin, mark.end});
    auto encoding = m_tokenizer->encode(piece.bytes(), {true, first, userText, first, true});
    if (!encoding)
        return tl::unexpected(encoding.error());
    out.ids.insert(out.ids.end(), encoding->ids.begin(), encoding->ids.end());
    for (const std::uint32_t end : encoding->ends)
        out.ends.push_back(static_cast<std::uint32_t>(range.begin) + end);
    return {};
}

Result<Encoding> DialogEncoder::encodeAround(const Text& text, const std::vector<Reuse>& reuses) const {
    Encoding out;
    std::size_t done = 0;
    for (const Reuse& reuse : reuses) {
        if (auto appended = appendText(text, {done, reuse.range.begin}, out); !appended)
            return tl::unexpected(appended.error());
        std::size_t at = reuse.range.begin;
        for (const TokenId id : reuse.ids) {
            at += m_tokenizer->isSpecial(id) ? 0 : m_tokenizer->bytes(id).size();
            out.ids.push_back(id);
            out.ends.push_back(static_cast<std::uint32_t>(at));
        }
        done = reuse.range.end;
    }
    if (auto appended = appendText(text, {done, text.size()}, out); !appended)
        return tl::unexpected(appended.error());
    return out;
}

Result<EncodedDialog> DialogEncoder::encode(const DialogInput& input) const {
    if (auto checked = checkInput(input, *m_tokenizer); !checked)
        return tl::unexpected(checked.error());
    auto given = give(input);
    if (!given)
        return tl::unexpected(given.error());
    const Rendering& rendering = given->rendering;
    const std::vector<Reuse> reuses = findReuse(input, rendering.text);
    auto encoding = encodeAround(rendering.text, reuses);
    if (!encoding)
        return tl::unexpected(encoding.error());
    EncodedDialog dialog;
    dialog.messageRanges = tokenRanges(messageBytes(rendering, given->turns, input.messages.size()), *encoding);
    for (const Reuse& reuse : reuses)
        dialog.reusedAnswerTokens += static_cast<std::int64_t>(reuse.ids.size());
    dialog.ids = std::move(encoding->ids);
    dialog.text = rendering.text.bytes();
    dialog.adaptations = std::move(given->turns.adaptations);
    return dialog;
}

std::int32_t messageAt(std::span<const TokenRange> messageRanges, std::int64_t token) {
    for (std::size_t i = 0; i < messageRanges.size(); ++i)
        if (messageRanges[i].second > token)
            return static_cast<std::int32_t>(i);
    return -1;
}

} // namespace kvscope::model
