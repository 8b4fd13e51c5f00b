// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
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

/// A token that is found by its literal text.
struct SpecialToken {
    std::string_view text; ///< must live while the finder is built, not longer
    TokenId token = -1;
    bool restricted = false; ///< control, unknown: counts only where it is asked for
    StripsSpace strips{};
};

/// Finds the literal texts of special and user-defined tokens, all tokens in one pass over the text, in time
/// proportional to it (times the logarithm of its length), whatever the vocabulary holds: a hostile one may make every
/// token a special one, each a part of the next.
///
/// How: an automaton of Aho and Corasick knows, behind each byte, the longest token that ends there, and leads from one
/// such token to the next shorter one. A queue holds the best token that is still possible at each end, longest and
/// leftmost on top. One that meets a place that was taken before is replaced by the longest at its end that still fits;
/// the room there at least halves each time, so an end comes back no more often than the logarithm of the longest
/// token.
class SpecialTokenFinder {
public:
    /// An empty text is ignored, of two tokens with the same text the first one counts.
    explicit SpecialTokenFinder(std::span<const SpecialToken> tokens = {});

    /// Matches in order of the text, none overlapping another. Where candidates overlap, the longest token text wins
    /// over the whole text, then the leftmost. Restricted tokens are found only with `withRestricted`, and there only
    /// where no byte lies in `protectedRanges` (ordered, disjoint). The range of a token that strips whitespace
    /// reaches over the ASCII whitespace beside it, up to the next match. The text is below 4 GiB.
    std::vector<SpecialMatch> find(std::string_view text, bool withRestricted,
                                   std::span<const TextRange> protectedRanges) const;

private:
    /// Where the search goes from a token to shorter ones that end at the same byte: to the next one, or far at once.
    struct Chain {
        std::int32_t next = -1; ///< token entry; -1 = none
        std::int32_t jump = -1; ///< one further on; -1 = none
        std::int32_t depth = 0; ///< entries in the chain behind this one
    };
    struct Entry {
        TokenId token = -1;
        std::uint32_t length = 0;
        bool restricted = false;
        StripsSpace strips;
        Chain any, free; ///< over all tokens, and over those that are not restricted
    };
    /// A node of the trie. Nodes are numbered level by level, so that the children of one are neighbours, in order of
    /// their bytes, and end where those of the next node begin.
    struct Node {
        std::int32_t firstChild = 0;
        std::int32_t fallback = 0; ///< node of the longest proper suffix that is in the trie
        std::int32_t any = -1;     ///< entry of the longest token that ends here
        std::int32_t free = -1;    ///< the same, of those that are not restricted
        unsigned char byte = 0;    ///< on the edge to it
    };
    struct Candidate {
        std::uint32_t length = 0;
        std::uint32_t end = 0;
        std::int32_t entry = -1;
    };
    class Search;

    void build(std::vector<SpecialToken> tokens);
    void link();
    void chain(Entry& entry, const Node& suffix);
    std::int32_t child(std::int32_t node, unsigned char byte) const;
    std::int32_t step(std::int32_t node, unsigned char byte) const;
    static std::vector<SpecialMatch> withStrippedSpace(std::string_view text, const std::vector<SpecialMatch>& kept,
                                                       const std::vector<StripsSpace>& strips);

    std::vector<Node> m_nodes; ///< one more than there are, for the end of the last one's children; empty = no tokens
    std::vector<Entry> m_entries;
};

} // namespace kvscope::model
