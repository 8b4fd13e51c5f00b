// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

#include "engine/base/clock.h"

namespace kvscope::api {

/// What reading a token costs here, learned from steps that read: time per token = a + b x its position, by least
/// squares over the steps, of which older ones fade. Attention is the part that grows. While all steps stood at about
/// the same positions they say nothing of b; the operation counts of the model then do.
class ReadCost {
public:
    /// What the tokens at positions [from, to) see before them, together; each at most `sight` (sinks and window).
    static double positionsSeen(std::int64_t from, std::int64_t to, std::int64_t sight);

    /// `attentionPerToken`: expected b / a (exec::attentionPerToken).
    explicit ReadCost(double attentionPerToken = 0) : m_growth(attentionPerToken) {}

    /// A step computed `tokens` tokens that saw so many positions.
    void step(std::int64_t tokens, double positions, Nanos took);
    /// So many tokens that see so many positions; 0 = nothing is known yet.
    double toRead(std::int64_t tokens, double positions) const {
        return m_a * static_cast<double>(tokens) + m_b * positions;
    }
    double nanosPerToken() const { return m_a; } ///< at position 0; 0 = nothing is known yet
    double nanosPerTokenAndPosition() const { return m_b; }

private:
    double m_growth;
    double m_weight = 0, m_x = 0, m_xx = 0, m_y = 0, m_xy = 0; ///< faded sums; x = mean position, y = time per token
    double m_a = 0, m_b = 0;
};

} // namespace kvscope::api
