// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/base/ids.h"
#include "engine/model/text_hash.h"

namespace kvscope::model {

/// Byte-pair merging of one piece: starts with one symbol per byte and merges the adjacent pair of lowest rank (the
/// leftmost on ties) until no pair is left. O(n log n) by a priority queue; immutable, so any thread may call it.
///
/// A symbol is a number: the token of these bytes, or one above the vocabulary for bytes that are no token (some
/// vocabularies lack single bytes or results of merges), so that merging never compares texts.
class BytePairMerger {
public:
    /// `tokenBytes[id]` = bytes of an ordinary token; empty for tokens that merging must never give (control,
    /// user-defined, unused). `merges` in order of rank, as bytes; of two equal pairs the first counts, of two equal
    /// token texts the last.
    BytePairMerger(const std::vector<std::string>& tokenBytes,
                   const std::vector<std::pair<std::string, std::string>>& merges);

    /// Reused between pieces to save allocations; belongs to one caller.
    struct Workspace;

    /// Append the tokens of `piece` to `ids` and, in parallel, the byte offset behind each (+ `base`) to `ends`. A byte
    /// without a token gives none.
    void encode(std::string_view piece, std::uint32_t base, Workspace& workspace, std::vector<TokenId>& ids,
                std::vector<std::uint32_t>& ends) const;

    /// Token whose bytes are exactly these, -1 if none.
    TokenId tokenOf(std::string_view bytes) const;

    /// Does every single byte have a token, so that no text loses bytes?
    bool coversAllBytes() const;

private:
    using Symbol = std::int32_t;
    struct Merge {
        Symbol right = -1;
        std::uint32_t rank = 0;
        Symbol result = -1;
    };
    struct Node {
        Symbol symbol = -1; ///< -1 = merged into its left neighbour
        std::int32_t previous = -1;
        std::int32_t next = -1;
        std::uint32_t begin = 0; ///< bytes of the piece
        std::uint32_t length = 0;
    };
    struct Candidate {
        std::uint32_t rank = 0;
        std::int32_t left = -1; ///< node
        Symbol leftSymbol = -1;
        Symbol rightSymbol = -1;
        Symbol result = -1;
    };

    Symbol intern(const std::string& bytes);
    void sortMerges(std::vector<std::pair<Symbol, Merge>> merges);
    const Merge* mergeOf(Symbol left, Symbol right) const;
    void consider(std::int32_t left, Workspace& workspace) const;
    void mergeAll(Workspace& workspace) const;
    void appendTokens(std::string_view piece, const Node& node, std::uint32_t base, std::vector<TokenId>& ids,
                      std::vector<std::uint32_t>& ends) const;

    std::unordered_map<std::string, Symbol, TextHash, std::equal_to<>> m_symbols;
    /// Ordered by their left symbol, then by the right one: found by bisection, since a file chooses these numbers and
    /// could make any hash of them collide.
    std::vector<Merge> m_merges;
    std::vector<std::uint32_t> m_firstMerge; ///< of each left symbol, and one more for the end of the last
    std::array<Symbol, 256> m_byteSymbols{};
    Symbol m_tokens = 0; ///< symbols below are tokens
    Symbol m_nextSymbol = 0;

public:
    struct Workspace {
        std::vector<Node> nodes;
        std::vector<Candidate> heap;
    };
};

} // namespace kvscope::model
