// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/exec/rope.h"

#include <cmath>

namespace kvscope::exec {

std::vector<float> ropeInverseFrequencies(std::int32_t dims, double base, double linearScale,
                                          std::span<const float> factors) {
    std::vector<float> out(static_cast<std::size_t>(dims / 2));
    for (std::size_t i = 0; i < out.size(); ++i) {
        const double factor = i < factors.size() ? factors[i] : 1.0;
        out[i] = static_cast<float>(std::pow(base, -2.0 * static_cast<double>(i) / dims) / (factor * linearScale));
    }
    return out;
}

} // namespace kvscope::exec
