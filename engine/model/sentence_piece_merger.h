// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/base/ids.h"
#include "engine/model/text_hash.h"
#include "engine/model/vocabulary.h"

namespace kvscope::model {

/// SentencePiece-like merging of a text: starts with one symbol per character, blanks written as U+2581, and merges the
/// adjacent pair whose text is the token of highest score (the leftmost on ties) until no pair is a token. A character
/// without a token becomes the tokens of its bytes, or the unknown token where the vocabulary lacks one of those.
/// O(n log n) by a priority queue; immutable, so any thread may call it.
class SentencePieceMerger {
public:
    /// Merging never gives a control, unknown or byte token: that would let users write one.
    explicit SentencePieceMerger(const Vocabulary& vocabulary);

    /// Append the tokens of `text` to `ids` and, in parallel, the byte offset behind each (+ `base`) to `ends`. With
    /// `spacePrefix` a blank is put in front; it stands for no byte of the text.
    void encode(std::string_view text, bool spacePrefix, std::uint32_t base, std::vector<TokenId>& ids,
                std::vector<std::uint32_t>& ends) const;

private:
    struct Token {
        TokenId id = -1;
        float score = 0;
    };
    struct Node {
        std::uint32_t begin = 0;   ///< bytes of the text with its blanks written as U+2581
        std::uint32_t length = 0;  ///< the same; 0 = merged into its left neighbour
        std::uint32_t textEnd = 0; ///< byte behind it in the text as given
        std::int32_t previous = -1;
        std::int32_t next = -1;
        TokenId token = -1;
    };
    struct Candidate {
        float score = 0;
        std::int32_t left = -1, right = -1; ///< nodes
        std::uint32_t length = 0;           ///< of both together
        TokenId token = -1;
    };
    struct Work; ///< of one call

    const Token* tokenOf(std::string_view text) const;
    void addNode(Work& work, std::string_view character, std::uint32_t textEnd) const;
    void consider(Work& work, std::int32_t left, std::int32_t right) const;
    void mergeAll(Work& work) const;
    void appendTokens(const Work& work, const Node& node, std::uint32_t base, std::vector<TokenId>& ids,
                      std::vector<std::uint32_t>& ends) const;

    std::unordered_map<std::string, Token, TextHash, std::equal_to<>> m_tokens;
    std::array<TokenId, 256> m_byteTokens{}; ///< -1 = the vocabulary has none
    TokenId m_unknown = -1;
    std::size_t m_longest = 0; ///< bytes of the longest token
};

/// The bytes of a token's text: U+2581 stands for a blank.
std::string blanksUnmarked(std::string_view text);
/// `<0x0A>` -> 10; -1 if the text has another form.
int byteOfName(std::string_view text);

} // namespace kvscope::model
