// SPDX-License-Identifier: GPL-3.0-or-later
//
// What a form of the KV cache costs in quality: the same text scored twice, once over f16 keys and values.
#pragma once

#include <cstdint>
#include <span>

namespace kvscope::cli {

/// What one position says. Natural logarithms.
struct PositionScore {
    double surprise = 0; ///< -log p(the token that came)
    double kl = 0;       ///< KL(reference || this) over the whole vocabulary
    bool sameTop = true; ///< the most likely token (the lowest id on ties) is the reference's
};

/// `logits` against `reference`, both (vocab) and finite; `next` is the token that came.
PositionScore scorePosition(std::span<const float> reference, std::span<const float> logits, std::int32_t next);

/// Sums over positions, in the order in which they are added.
class TextScore {
public:
    /// `reference`: surprise of the same token over f16 keys and values.
    void add(const PositionScore& score, double reference);

    std::int64_t positions() const { return m_count; }
    double perplexity() const;      ///< exp(mean surprise)
    double perplexityRatio() const; ///< perplexity over that of the reference
    /// Of the ratio, from the spread of the differences position by position (delta method): much smaller than that of
    /// either perplexity, because both see the same text.
    double ratioStandardError() const;
    double klMean() const;
    double topAgreement() const; ///< share of positions with the same most likely token

private:
    std::int64_t m_count = 0;
    std::int64_t m_sameTop = 0;
    double m_surprise = 0;
    double m_kl = 0;
    double m_difference = 0;
    double m_differenceSquares = 0;
};

} // namespace kvscope::cli
