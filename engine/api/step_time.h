// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/base/clock.h"

namespace kvscope::api {

/// Chooses how many prompt tokens a step may read so that it takes about `target`, where the user gave no budget.
/// Exactness permits any chunk, so this only decides how soon Stop works and how long one chat's paste holds up another
/// chat's answer. Tokens of answers are not limited: each costs little beside reading the weights once.
class StepTimeBudget {
public:
    explicit StepTimeBudget(std::int32_t most, Nanos target = 150'000'000) : m_most(most), m_target(target) {}

    /// Prompt tokens of the next step.
    std::int32_t tokens() const { return m_tokens; }

    /// A step that read `tokens` of prompts took `elapsed`. Only steps that filled a good part of the chunk teach
    /// anything, unless they took too long anyway.
    void stepTook(std::int32_t tokens, Nanos elapsed) {
        if (tokens <= 0 || elapsed <= 0 || (tokens < m_tokens / 2 && elapsed < m_target))
            return;
        const double fits = kMargin * static_cast<double>(m_target) * tokens / static_cast<double>(elapsed);
        // Grow at most twofold a step (a cheap early chunk says little about long context); shrink at once.
        const double next = std::min(fits, 2.0 * m_tokens);
        m_tokens = std::clamp(static_cast<std::int32_t>(next), std::min(kLeast, m_most), m_most);
    }

private:
    static constexpr std::int32_t kLeast = 8;
    static constexpr std::int32_t kFirst = 64;
    static constexpr double kMargin = 0.8; ///< aim below the limit: "at most"

    std::int32_t m_most;
    Nanos m_target;
    std::int32_t m_tokens = std::min(kFirst, m_most);
};

} // namespace kvscope::api
