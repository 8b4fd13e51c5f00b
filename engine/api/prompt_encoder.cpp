// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/api/prompt_encoder.h"

#include "engine/model/template_library.h"

namespace kvscope::api {

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

Result<std::vector<TokenId>> PromptEncoder::encodeText(const std::string& text, bool addBos) const {
    model::EncodeOptions options;
    options.addBos = addBos;
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

Result<EncodedPrompt> PromptEncoder::encodeDialog(const DialogPrompt& dialog) const {
    if (!m_dialogs)
        return tl::unexpected(m_dialogs.error());
    model::DialogInput input;
    for (const DialogMessage& message : dialog.messages)
        input.messages.push_back({message.role, message.content, message.tokens});
    input.addGenerationPrompt = dialog.addGenerationPrompt;
    input.continueLast = dialog.continueLast;
    input.now = model::localTimeNow();
    auto encoded = (*m_dialogs)->encode(input);
    if (!encoded)
        return tl::unexpected(encoded.error());
    return EncodedPrompt{std::move(encoded->ids), std::move(encoded->messageRanges)};
}

Result<EncodedPrompt> PromptEncoder::encode(const Prompt& prompt, const FindTokens& findTokens) const {
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
    else
        out = encodeDialog(std::get<DialogPrompt>(prompt));
    if (out && out->ids.empty())
        return fail(ErrorCode::InvalidArgument, "The prompt is empty; give at least one token.");
    return out;
}

} // namespace kvscope::api
