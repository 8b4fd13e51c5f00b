// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/api/prompt_encoder.h"

#include "engine/base/thinking.h"
#include "engine/model/detokenizer.h"
#include "engine/model/template_json.h"
#include "engine/model/template_library.h"

namespace kvscope::api {

namespace {

DialogAdaptation adaptationOf(model::DialogAdaptation adaptation) {
    switch (adaptation) {
    case model::DialogAdaptation::SystemInFirstMessage:
        return DialogAdaptation::SystemInFirstMessage;
    case model::DialogAdaptation::MessagesJoined:
        return DialogAdaptation::MessagesJoined;
    case model::DialogAdaptation::EmptyMessageAdded:
        break;
    }
    return DialogAdaptation::EmptyMessageAdded;
}

} // namespace

PromptEncoder::PromptEncoder(std::shared_ptr<const model::Tokenizer> tokenizer, std::int32_t vocab,
                             const std::optional<std::string>& wantedTemplate)
    : m_tokenizer(std::move(tokenizer))
    , m_dialogs(wantedTemplate ? std::shared_ptr<const model::DialogEncoder>()
                               : model::DialogEncoder::create(m_tokenizer))
    , m_vocab(vocab) {
    if (!wantedTemplate)
        return;
    const model::Vocabulary& vocabulary = m_tokenizer->vocabulary();
    const model::TemplateChoice choice = model::chooseTemplate(vocabulary, *wantedTemplate);
    m_dialogs = std::make_shared<const model::DialogEncoder>(m_tokenizer, choice.chatTemplate);
    m_templateInfo = {choice.name, choice.problem, choice.guessed, {}, {}};
    if (auto preview = model::templatePreview(*choice.chatTemplate, vocabulary, "Hello"))
        m_templateInfo.preview = *preview;
    for (const model::KnownTemplate& known : model::knownTemplates())
        m_templateInfo.choices.emplace_back(known.name);
}

Result<std::vector<TokenId>> PromptEncoder::encodeText(const std::string& text, bool begins) const {
    model::EncodeOptions options;
    options.addBos = begins;
    options.atTextStart = begins; // otherwise it goes on behind other tokens
    auto encoding = m_tokenizer->encode(text, options);
    if (!encoding)
        return tl::unexpected(encoding.error());
    return std::move(encoding->ids);
}

Result<std::vector<TokenId>> PromptEncoder::checkIds(const std::vector<TokenId>& ids) const {
    for (const TokenId id : ids)
        if (id < 0 || id >= m_vocab)
            return fail(ErrorCode::InvalidArgument, "There is no token " + std::to_string(id) +
                                                        "; this model's ids go from 0 to " +
                                                        std::to_string(m_vocab - 1) + ".");
    return ids;
}

Result<std::vector<TokenId>> PromptEncoder::encodeFork(const ForkPrompt& fork, const FindTokens& findTokens) const {
    const std::vector<TokenId>* source = findTokens(fork.of);
    if (!source)
        return fail(ErrorCode::NotFound, "The request to fork from is not known, or was not kept for forks.");
    const std::int64_t at = fork.at.value_or(static_cast<std::int64_t>(source->size()));
    if (at < 0 || at > static_cast<std::int64_t>(source->size()))
        return fail(ErrorCode::InvalidArgument, "A fork at token " + std::to_string(at) +
                                                    " is not possible; there are " + std::to_string(source->size()) +
                                                    " tokens.");
    std::vector<TokenId> ids(source->begin(), source->begin() + at);
    auto rest = std::holds_alternative<TokenPrompt>(fork.then)
                    ? checkIds(std::get<TokenPrompt>(fork.then).ids)
                    : encodeText(std::get<TextPrompt>(fork.then).text, false);
    if (!rest)
        return tl::unexpected(rest.error());
    ids.insert(ids.end(), rest->begin(), rest->end());
    return ids;
}

const model::TurnEnd& PromptEncoder::turnEnd() const {
    static const model::TurnEnd kNone;
    return m_dialogs ? (*m_dialogs)->turnEnd() : kNone;
}

std::string PromptEncoder::wholeText(const std::vector<TokenId>& ids) const {
    model::Detokenizer decoder(m_tokenizer);
    std::string text;
    for (const TokenId id : ids)
        text += decoder.push(id);
    return text;
}

/// A message as the model wrote it: the thought that was taken out of an answer is put back, so that the template can
/// do with it what it does, and so that the ids of the answer fit.
model::ChatMessage PromptEncoder::asWritten(const DialogMessage& message) const {
    model::ChatMessage out{message.role, message.content, message.tokens};
    if (message.role != "assistant" || (message.tokens.empty() && message.thinking.empty()))
        return out;
    const std::string& opener = (*m_dialogs)->thoughtOpener();
    const std::string whole = wholeText(message.tokens);
    // Trailing bytes may be missing in one of the two: a stop string, an unfinished character.
    const auto matches = [&](const std::string& answer) {
        return answer.starts_with(message.content) || (!answer.empty() && message.content.starts_with(answer));
    };
    if (!whole.empty()) {
        const ThinkingSplit split = splitThinking(whole, !opener.empty());
        if (split.answer == whole && !split.open)
            return out; // nothing was thought: the content is what was written
        if (matches(split.answer)) {
            out.content = whole;
            if (!opener.empty())
                out.opener = opener;
            return out;
        }
    }
    if (!message.thinking.empty()) { // of another model, or written down by hand
        out.tokens.clear();
        out.content = "<think>\n" + message.thinking + "\n</think>\n\n" + message.content;
    }
    return out;
}

Result<model::DialogInput> PromptEncoder::dialogInput(const DialogPrompt& dialog, std::size_t count) const {
    model::DialogInput input;
    for (std::size_t i = 0; i < count; ++i) {
        const DialogMessage& message = dialog.messages[i];
        input.messages.push_back(asWritten(message));
        if (message.fields.empty())
            continue;
        if (auto set = model::setMessageFields(message.fields, message.content, static_cast<std::int32_t>(i),
                                               input.messages.back());
            !set)
            return tl::unexpected(set.error());
    }
    auto variables = model::templateVariables(dialog.variables);
    if (!variables)
        return tl::unexpected(variables.error());
    input.variables = std::move(*variables);
    input.addGenerationPrompt = dialog.addGenerationPrompt || dialog.continueLast;
    input.now = model::localTimeNow();
    return input;
}

Result<EncodedPrompt> PromptEncoder::encodeMessages(const DialogPrompt& dialog, std::size_t count) const {
    const auto input = dialogInput(dialog, count);
    if (!input)
        return tl::unexpected(input.error());
    auto encoded = (*m_dialogs)->encode(*input);
    if (!encoded && model::ChatTemplate::refusesChat(encoded.error()))
        return fail(ErrorCode::Template, "This model's chat template does not take this chat: \"" +
                                             encoded.error().message +
                                             "\" Edit or delete a message, or choose another model.");
    if (!encoded && encoded.error().code == ErrorCode::Template)
        return fail(ErrorCode::Template, encoded.error().message + " Choose another template or another model.");
    if (!encoded)
        return tl::unexpected(encoded.error());
    EncodedPrompt out;
    out.ids = std::move(encoded->ids);
    out.messageRanges = std::move(encoded->messageRanges);
    for (const model::DialogAdaptation adaptation : encoded->adaptations)
        out.adaptations.push_back(adaptationOf(adaptation));
    out.opensThought = endsInThought(encoded->text);
    return out;
}

/// Ids of an unfinished answer: its own, else those of its text.
Result<std::vector<TokenId>> PromptEncoder::idsOfUnfinished(const DialogMessage& answer) const {
    if (!answer.tokens.empty())
        return checkIds(answer.tokens);
    std::string text = answer.content;
    if (!answer.thinking.empty()) {
        const std::string& opener = (*m_dialogs)->thoughtOpener();
        const std::string_view end = opener.empty() ? "</think>" : thoughtEnd(opener);
        const std::string begin = opener.empty() ? "<think>\n" : "";
        text = begin + answer.thinking + (text.empty() ? "" : "\n" + std::string(end) + "\n\n" + text);
    }
    return encodeText(text, false);
}

Result<EncodedPrompt> PromptEncoder::encodeDialog(const DialogPrompt& dialog) const {
    if (!m_dialogs)
        return tl::unexpected(m_dialogs.error());
    if (!dialog.continueLast)
        return encodeMessages(dialog, dialog.messages.size());
    if (dialog.messages.empty() || dialog.messages.back().role != "assistant" || dialog.addGenerationPrompt)
        return fail(ErrorCode::InvalidArgument,
                    "Only an answer that is the last message can be continued, without a new generation prompt.");
    // As it was begun: the dialog before it with the generation prompt, then what it has. So prompt and answer are what
    // they were at the moment it was cut off, whatever the template does with finished answers.
    auto prompt = encodeMessages(dialog, dialog.messages.size() - 1);
    if (!prompt)
        return prompt;
    const auto given = idsOfUnfinished(dialog.messages.back());
    if (!given)
        return tl::unexpected(given.error());
    const auto begin = static_cast<std::int64_t>(prompt->ids.size());
    prompt->ids.insert(prompt->ids.end(), given->begin(), given->end());
    prompt->givenTokens = static_cast<std::int64_t>(given->size());
    prompt->messageRanges.emplace_back(begin, begin + prompt->givenTokens);
    return prompt;
}

Result<EncodedPrompt> PromptEncoder::encode(const Prompt& prompt, const FindTokens& findTokens,
                                            const std::optional<WindowRoom>& window) const {
    Result<EncodedPrompt> out;
    const auto take = [&](Result<std::vector<TokenId>> ids) {
        if (ids)
            out->ids = std::move(*ids);
        else
            out = tl::unexpected(ids.error());
    };
    if (const auto* text = std::get_if<TextPrompt>(&prompt))
        take(encodeText(text->text, true));
    else if (const auto* tokens = std::get_if<TokenPrompt>(&prompt))
        take(checkIds(tokens->ids));
    else if (const auto* fork = std::get_if<ForkPrompt>(&prompt))
        take(encodeFork(*fork, findTokens));
    else if (window)
        out = encodeWithin(std::get<DialogPrompt>(prompt), *window);
    else
        out = encodeDialog(std::get<DialogPrompt>(prompt));
    if (out && out->ids.empty())
        return fail(ErrorCode::InvalidArgument, "The prompt is empty; give at least one token.");
    return out;
}

} // namespace kvscope::api
