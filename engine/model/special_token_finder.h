// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/ids.h"

namespace kvscope::model {

/// Half-open range of bytes of a text.
struct TextRange {
    std::size_t begin = 0;
    std::size_t end = 0;
    bool operator==(const TextRange&) const = default;
};

/// A place where a token's literal text stands.
struct SpecialMatch {
    TextRange range;
    TokenId token = -1;
};

/// Whitespace beside a token that counts as part of it.
struct StripsSpace {
    bool before = false;
    bool after = false;
};

/// Finds the literal texts of special and user-defined tokens, all tokens in one pass over the text (a trie), so that
/// the thousands of such tokens of some vocabularies cost no more than a few.
class SpecialTokenFinder {
public:
    /// `restricted` tokens (control, unknown) count only when asked for; others always. An empty text is ignored, of
    /// two tokens with the same text the first one counts.
    void add(std::string_view text, TokenId token, bool restricted, StripsSpace strips = {});

    /// Matches in order of the text, none overlapping another. Where candidates overlap, the longest token text wins
    /// over the whole text, then the leftmost. Restricted tokens are found only with `withRestricted`, and there only
    /// where no byte lies in `protectedRanges` (ordered, disjoint). The range of a token that strips whitespace
    /// reaches over the ASCII whitespace beside it, up to the next match.
    std::vector<SpecialMatch> find(std::string_view text, bool withRestricted,
                                   std::span<const TextRange> protectedRanges) const;

private:
    struct Node {
        std::vector<std::pair<unsigned char, std::int32_t>> next;
        TokenId token = -1;
        bool restricted = false;
        StripsSpace strips;
    };
    struct Candidate {
        SpecialMatch match;
        StripsSpace strips;
    };
    std::int32_t child(std::int32_t node, unsigned char byte) const;
    std::vector<Candidate> candidates(std::string_view text, bool withRestricted,
                                      std::span<const TextRange> protectedRanges) const;
    static std::vector<SpecialMatch> withStrippedSpace(std::string_view text, const std::vector<Candidate>& kept);

    std::vector<Node> m_nodes{1};
};

} // namespace kvscope::model
