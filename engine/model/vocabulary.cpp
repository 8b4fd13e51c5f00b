// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/model/vocabulary.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

namespace kvscope::model {

namespace {

constexpr std::array<std::string_view, 18> kEndTexts = {
    "<|eot_id|>",    "<|im_end|>",    "<|end|>",
    "<end_of_turn>", "<|endoftext|>", "</s>",
    "<|eom_id|>",    "<EOT>",         "_<EOT>",
    "[EOT]",         "[EOS]",         "<|end_of_text|>",
    "<|return|>",    "<|call|>",      "<end_of_utterance>",
    "<eos>",         "<turn|>",       "<｜end▁of▁sentence｜>",
};

bool isEndText(const std::string& text) {
    return std::find(kEndTexts.begin(), kEndTexts.end(), text) != kEndTexts.end();
}

} // namespace

std::vector<TokenId> endOfGenerationTokens(const Vocabulary& vocabulary) {
    std::set<TokenId> ends;
    for (const auto& id : {vocabulary.eos, vocabulary.eot, vocabulary.eom})
        if (id)
            ends.insert(*id);
    for (std::size_t id = 0; id < vocabulary.size(); ++id)
        if (isEndText(vocabulary.tokens[id]))
            ends.insert(static_cast<TokenId>(id));
    return {ends.begin(), ends.end()};
}

void markEndTextsAsControl(Vocabulary& vocabulary) {
    for (std::size_t id = 0; id < vocabulary.size(); ++id)
        if (isEndText(vocabulary.tokens[id]))
            vocabulary.types[id] = TokenType::Control;
}

Result<void> validate(const Vocabulary& vocabulary) {
    const std::size_t count = vocabulary.size();
    if (count == 0)
        return fail(ErrorCode::Corrupt, "The file has no tokenizer.ggml.tokens: it cannot turn text into tokens.");
    if (vocabulary.types.size() != count)
        return fail(ErrorCode::Corrupt, "tokenizer.ggml.token_type has " + std::to_string(vocabulary.types.size()) +
                                            " entries for " + std::to_string(count) + " tokens; get the file again.");
    if (!vocabulary.scores.empty() && vocabulary.scores.size() != count)
        return fail(ErrorCode::Corrupt, "tokenizer.ggml.scores has " + std::to_string(vocabulary.scores.size()) +
                                            " entries for " + std::to_string(count) + " tokens; get the file again.");
    const std::pair<const char*, std::optional<TokenId>> named[] = {
        {"bos", vocabulary.bos}, {"eos", vocabulary.eos},         {"eot", vocabulary.eot},
        {"eom", vocabulary.eom}, {"unknown", vocabulary.unknown}, {"padding", vocabulary.padding},
    };
    for (const auto& [name, id] : named)
        if (id && (*id < 0 || static_cast<std::size_t>(*id) >= count))
            return fail(ErrorCode::Corrupt, std::string("tokenizer.ggml.") + name + "_token_id is " +
                                                std::to_string(*id) + ", outside the vocabulary of " +
                                                std::to_string(count) + " tokens; get the file again.");
    return {};
}

} // namespace kvscope::model
