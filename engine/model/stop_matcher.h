// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope::model {

/// Watches streamed text for stop strings: gives out what can no longer be part of one, holds back the rest, and cuts
/// at the earliest match. Works on bytes, so a stop string may begin and end anywhere: across tokens, after an invalid
/// byte, inside what a token wrote. One per answer, one thread.
///
/// Earliest = the match that is complete first; of two that complete with the same byte, the one that begins first. So
/// the cut does not depend on how the text was divided into tokens.
/// O(1) amortised per byte and stop string (the prefix automaton of Knuth, Morris and Pratt).
class StopMatcher {
public:
    /// Empty stop strings are ignored.
    explicit StopMatcher(std::vector<std::string> stops);

    /// Text that may be shown now. After a match nothing comes any more.
    std::string push(std::string_view text);
    /// The end without a match: what was held back.
    std::string finish();

    /// The stop string that was found.
    const std::optional<std::string>& matched() const { return m_matched; }
    /// Bytes held back at the moment: the longest suffix that may still become a stop string.
    std::size_t heldBack() const { return m_held.size(); }

private:
    struct Pattern {
        std::string text;
        std::vector<std::size_t> fallback; ///< length of the longest proper border of each beginning
        std::size_t matched = 0;           ///< bytes of `text` that end the text so far
    };
    static void advance(Pattern& pattern, char byte);

    std::vector<Pattern> m_patterns;
    std::string m_held;
    std::optional<std::string> m_matched;
};

} // namespace kvscope::model
