// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/api/read_cost.h"

#include <algorithm>

namespace kvscope::api {

namespace {

constexpr double kFading = 0.95;
constexpr double kWholeStep = 64; ///< tokens from which a step counts fully
constexpr double kSpread = 100.0; ///< positions that the steps must differ by to say more than the expected growth
constexpr double kOutlier = 4;    ///< a step that took so many times what was expected was interrupted

} // namespace

double ReadCost::positionsSeen(std::int64_t from, std::int64_t to, std::int64_t sight) {
    const auto below = [sight](std::int64_t end) { // of [0, end)
        const auto whole = static_cast<double>(std::min(end, sight)), rest = static_cast<double>(end) - whole;
        return whole * (whole - 1) / 2 + rest * static_cast<double>(sight);
    };
    return below(to) - below(from);
}

void ReadCost::step(std::int64_t tokens, double positions, Nanos took) {
    if (tokens <= 0 || took <= 0)
        return;
    const double x = positions / static_cast<double>(tokens);
    const double most = m_a > 0 ? kOutlier * (m_a + m_b * x) : static_cast<double>(took);
    const double y = std::min(static_cast<double>(took) / static_cast<double>(tokens), most);
    const double weight = std::min(1.0, static_cast<double>(tokens) / kWholeStep);
    for (double* sum : {&m_weight, &m_x, &m_xx, &m_y, &m_xy})
        *sum *= kFading;
    m_weight += weight;
    m_x += weight * x;
    m_xx += weight * x * x;
    m_y += weight * y;
    m_xy += weight * x * y;
    // Least squares with one more term, l (b - growth a)^2, which holds b where the steps do not.
    const double l = kSpread * kSpread;
    const double aa = m_weight + l * m_growth * m_growth, ab = m_x - l * m_growth, bb = m_xx + l;
    const double determinant = aa * bb - ab * ab;
    m_a = (m_y * bb - m_xy * ab) / determinant;
    m_b = (aa * m_xy - ab * m_y) / determinant;
    if (m_a > 0 && m_b >= 0)
        return;
    m_a = (m_y + m_growth * m_xy) / (m_weight + 2 * m_growth * m_x + m_growth * m_growth * m_xx);
    m_b = m_growth * m_a;
}

} // namespace kvscope::api
