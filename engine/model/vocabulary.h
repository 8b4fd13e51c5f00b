// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/ids.h"
#include "engine/base/result.h"

namespace kvscope::model {

/// `tokenizer.ggml.token_type`.
enum class TokenType : std::int8_t {
    Normal = 1,
    Unknown = 2,
    Control = 3,     ///< written by templates, never by users: `<|im_end|>`
    UserDefined = 4, ///< literal text that always becomes this token
    Unused = 5,
    Byte = 6, ///< `<0x0A>` of SentencePiece vocabularies
};

/// The tokenizer part of a model file as it stands there, defaults filled in. A plain value: tests fill it by hand.
struct Vocabulary {
    std::string model;        ///< `gpt2` = byte-level BPE, `llama` = SentencePiece; others are not built
    std::string preTokenizer; ///< gpt2 only: name of the splitting rule, "default" where the file names none
    std::vector<std::string> tokens;
    std::vector<TokenType> types;                            ///< as many as tokens
    std::vector<float> scores;                               ///< llama: as many as tokens, else may be empty
    std::vector<std::pair<std::string, std::string>> merges; ///< gpt2: rank = index
    std::optional<TokenId> bos, eos, eot, eom, unknown, padding;
    bool addBos = false;
    bool addEos = false;
    bool addSpacePrefix = false; ///< llama only: a blank before the first word and behind special tokens
    std::vector<TokenId> stripBefore, stripAfter; ///< special tokens that swallow the whitespace beside them
    std::string chatTemplate;                     ///< empty = the file has none

    std::size_t size() const { return tokens.size(); }
};

/// Tokens that end an answer: eos, eot and eom of the file, and the tokens whose text is one of the well-known end
/// marks. Sorted.
std::vector<TokenId> endOfGenerationTokens(const Vocabulary& vocabulary);

/// Tokens whose text is one of the well-known end marks become control tokens, whatever type the file gives them: they
/// end answers, so users must not be able to write one, nor answers to show it.
void markEndTextsAsControl(Vocabulary& vocabulary);

/// What makes the arrays unusable as a sentence that names the fault: counts that differ, an id outside the
/// vocabulary, no tokens.
Result<void> validate(const Vocabulary& vocabulary);

} // namespace kvscope::model
