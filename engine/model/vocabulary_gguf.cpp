// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/model/vocabulary_gguf.h"

#include <string>
#include <string_view>
#include <unordered_set>

#include "engine/model/pretokenizer.h"
#include "engine/model/text_hash.h"

namespace kvscope::model {

namespace {

constexpr std::string_view kPrefix = "tokenizer.ggml.";

std::string key(std::string_view name) {
    return std::string(kPrefix) + std::string(name);
}

tl::unexpected<Error> wrongKey(std::string_view name, std::string_view expected) {
    return fail(ErrorCode::Corrupt, key(name) + " is missing or is not " + std::string(expected) +
                                        ", so text cannot become tokens; get the file again.");
}

std::optional<TokenId> idOf(const GgufMetadata& metadata, std::string_view name) {
    const auto value = metadata.integer(key(name));
    // Some writers say "none" as -1 or as the largest unsigned number.
    if (!value || *value < 0 || *value >= 0xFFFFFFFF)
        return std::nullopt;
    return *value > INT32_MAX ? INT32_MAX : static_cast<TokenId>(*value); // validate() names what is out of range
}

Result<void> readTokens(const GgufMetadata& metadata, Vocabulary& v) {
    const auto tokens = metadata.strings(key("tokens"));
    if (!tokens)
        return wrongKey("tokens", "an array of strings");
    v.tokens.assign(tokens->begin(), tokens->end());
    v.types.assign(v.tokens.size(), TokenType::Normal);
    if (!metadata.contains(key("token_type")))
        return {};
    const auto types = metadata.integers(key("token_type"));
    if (!types)
        return wrongKey("token_type", "an array of integers");
    v.types.clear();
    for (const std::int64_t type : *types)
        v.types.push_back(type >= 1 && type <= 6 ? static_cast<TokenType>(type) : TokenType::Normal);
    return {};
}

Result<void> readMerges(const GgufMetadata& metadata, Vocabulary& v) {
    const auto merges = metadata.strings(key("merges"));
    if (!merges)
        return wrongKey("merges", "an array of strings");
    v.merges.reserve(merges->size());
    for (const std::string_view merge : *merges) {
        // The left part may itself begin with a space.
        const std::size_t space = merge.find(' ', 1);
        if (space == std::string_view::npos || space + 1 >= merge.size())
            return fail(ErrorCode::Corrupt, "The merge \"" + forSentence(merge) +
                                                "\" in tokenizer.ggml.merges is not a pair; get the file again.");
        v.merges.emplace_back(merge.substr(0, space), merge.substr(space + 1));
    }
    return {};
}

void readIds(const GgufMetadata& metadata, Vocabulary& v) {
    v.bos = idOf(metadata, "bos_token_id");
    v.eos = idOf(metadata, "eos_token_id");
    v.eot = idOf(metadata, "eot_token_id");
    v.eom = idOf(metadata, "eom_token_id");
    v.unknown = idOf(metadata, "unknown_token_id");
    v.padding = idOf(metadata, "padding_token_id");
    v.addEos = metadata.boolean(key("add_eos_token")).value_or(false);
}

void sentencePieceDefaults(const GgufMetadata& metadata, Vocabulary& v) {
    const auto orDefault = [&](std::optional<TokenId>& id, std::string_view name, TokenId value) {
        if (!metadata.contains(key(name)) && static_cast<std::size_t>(value) < v.size())
            id = value;
    };
    orDefault(v.unknown, "unknown_token_id", 0);
    orDefault(v.bos, "bos_token_id", 1);
    orDefault(v.eos, "eos_token_id", 2);
    v.addBos = metadata.boolean(key("add_bos_token")).value_or(true);
    v.addSpacePrefix = metadata.boolean(key("add_space_prefix")).value_or(true);
}

Result<void> readScores(const GgufMetadata& metadata, Vocabulary& v) {
    const auto scores = metadata.reals(key("scores"));
    if (!scores)
        return wrongKey("scores", "an array of numbers");
    v.scores.assign(scores->begin(), scores->end());
    return {};
}

/// Which special tokens swallow whitespace is not written in files: it goes by the name of the model, as in the
/// reference.
void findStripping(const GgufMetadata& metadata, Vocabulary& v) {
    std::string name(metadata.string("general.name").value_or(""));
    for (char& c : name)
        c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    const auto named = [&](std::string_view part) { return name.find(part) != std::string::npos; };
    const bool phi3 = named("phi-3") || named("phi3");
    const bool modernBert = named("modern-bert");
    if (!phi3 && !modernBert)
        return;
    for (std::size_t id = 0; id < v.size(); ++id) {
        const std::string& text = v.tokens[id];
        const bool special = v.types[id] == TokenType::Control || v.types[id] == TokenType::Unknown ||
                             v.types[id] == TokenType::UserDefined;
        if (phi3 && special && text != "<unk>" && text != "<s>" && text != "<|endoftext|>")
            v.stripAfter.push_back(static_cast<TokenId>(id));
        if (modernBert && text == "[MASK]")
            v.stripBefore.push_back(static_cast<TokenId>(id));
    }
}

/// A merge of parts that are no tokens can never apply: the list belongs to another vocabulary or is damaged.
Result<void> checkMerges(const Vocabulary& v) {
    const std::unordered_set<std::string_view, TextHash> tokens(v.tokens.begin(), v.tokens.end());
    for (const auto& [left, right] : v.merges)
        for (const std::string* part : {&left, &right})
            if (!tokens.contains(*part))
                return fail(ErrorCode::Corrupt, "The merge \"" + forSentence(left + " " + right) +
                                                    "\" in tokenizer.ggml.merges names \"" + forSentence(*part) +
                                                    "\", which is no token; get the file again.");
    return {};
}

} // namespace

Result<Vocabulary> vocabularyFromGguf(const GgufMetadata& metadata) {
    Vocabulary v;
    const auto model = metadata.string(key("model"));
    if (!model)
        return wrongKey("model", "a string");
    v.model = *model;
    if (auto read = readTokens(metadata, v); !read)
        return tl::unexpected(read.error());
    markEndTextsAsControl(v);
    readIds(metadata, v);
    if (v.model == "gpt2") {
        v.preTokenizer = metadata.string(key("pre")).value_or("default");
        if (auto read = readMerges(metadata, v); !read)
            return tl::unexpected(read.error());
        if (auto checked = checkMerges(v); !checked)
            return tl::unexpected(checked.error());
        const auto kind = findPreTokenizer(v.preTokenizer);
        v.addBos = metadata.boolean(key("add_bos_token")).value_or(kind && (*kind)->addBosByDefault);
    } else if (v.model == "llama") {
        sentencePieceDefaults(metadata, v);
        if (auto read = readScores(metadata, v); !read)
            return tl::unexpected(read.error());
    }
    findStripping(metadata, v);
    v.chatTemplate = metadata.string("tokenizer.chat_template").value_or("");
    if (auto valid = validate(v); !valid)
        return tl::unexpected(valid.error());
    return v;
}

} // namespace kvscope::model
