// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace kvscope::exec {

/// Angle per position of each rotated pair: base^(-2i/dims) / (factors[i] * linearScale), i = 0..dims/2-1.
///
/// `factors` are the tensor `rope_freqs` (empty = all 1), `linearScale` is `rope.scaling.factor` of type "linear".
/// Computed in double and rounded once: multiplying iteratively in float, as some readers do, drifts at long context.
std::vector<float> ropeInverseFrequencies(std::int32_t dims, double base, double linearScale,
                                          std::span<const float> factors);

} // namespace kvscope::exec
