// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/api/prompt_encoder.h"

#include <algorithm>

namespace kvscope::api {

namespace {

Result<std::vector<TokenId>> encodeText(const std::string& text, bool addBos, const model::Tokenizer& tokenizer) {
    model::EncodeOptions options;
    options.addBos = addBos;
    auto encoding = tokenizer.encode(text, options);
    if (!encoding)
        return tl::unexpected(encoding.error());
    return std::move(encoding->ids);
}

Result<std::vector<TokenId>> checkIds(const std::vector<TokenId>& ids, std::int32_t vocab) {
    for (const TokenId id : ids)
        if (id < 0 || id >= vocab)
            return fail(ErrorCode::InvalidArgument, "There is no token " + std::to_string(id) +
                                                        "; this model's ids go from 0 to " + std::to_string(vocab - 1) +
                                                        ".");
    return ids;
}

Result<std::vector<TokenId>> encodeFork(const ForkPrompt& fork, const model::Tokenizer& tokenizer, std::int32_t vocab,
                                        const FindTokens& findTokens) {
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
                    ? checkIds(std::get<TokenPrompt>(fork.then).ids, vocab)
                    : encodeText(std::get<TextPrompt>(fork.then).text, false, tokenizer);
    if (!rest)
        return tl::unexpected(rest.error());
    ids.insert(ids.end(), rest->begin(), rest->end());
    return ids;
}

} // namespace

Result<EncodedPrompt> encodePrompt(const Prompt& prompt, const model::Tokenizer& tokenizer, std::int32_t vocab,
                                   const FindTokens& findTokens) {
    EncodedPrompt out;
    Result<std::vector<TokenId>> ids;
    if (const auto* text = std::get_if<TextPrompt>(&prompt))
        ids = encodeText(text->text, true, tokenizer);
    else if (const auto* tokens = std::get_if<TokenPrompt>(&prompt))
        ids = checkIds(tokens->ids, vocab);
    else if (const auto* fork = std::get_if<ForkPrompt>(&prompt))
        ids = encodeFork(*fork, tokenizer, vocab, findTokens);
    else
        return fail(ErrorCode::Unsupported, "Dialogs need a chat template.");
    if (!ids)
        return tl::unexpected(ids.error());
    if (ids->empty())
        return fail(ErrorCode::InvalidArgument, "The prompt is empty; give at least one token.");
    out.ids = std::move(*ids);
    return out;
}

} // namespace kvscope::api
