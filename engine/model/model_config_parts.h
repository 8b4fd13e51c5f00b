// SPDX-License-Identifier: GPL-3.0-or-later
//
// Private to engine/model: what several architectures read in the same way. Each function leaves the first failure in
// the reader.
#pragma once

#include <limits>

#include "engine/model/config_reader.h"

namespace kvscope::model {

// Above every published model; they keep products of two sizes far inside int64 and one size inside int32.
inline constexpr IntRange kHeads{1, 4096};
inline constexpr IntRange kHeadDim{1, 4096};
inline constexpr IntRange kWidth{1, 1 << 20};
inline constexpr IntRange kVocab{1, 1 << 24};
inline constexpr IntRange kLayers{1, 1024};
inline constexpr IntRange kContext{1, std::numeric_limits<std::int32_t>::max()};

/// A mixture of experts where the architecture has no such form that is built.
void refuseExperts(ConfigReader& reader);
/// Context length, width, epsilon, heads and feed-forward width of every layer.
void readSizes(ConfigReader& reader, ModelConfig& config);
/// Rotated dimensions, base, and scaling of type "linear"; another type is refused.
void readRope(ConfigReader& reader, ModelConfig& config);
/// The vocabulary, its embedding and the output matrix with its norm. The rows of token_embd are the vocabulary; the
/// list of tokens, where there is one, must name them all.
void readVocab(ConfigReader& reader, ModelConfig& config);
/// Attention (with biases where the model has them) and the gated feed-forward of one layer, with the norms before
/// them.
void checkLayerTensors(ConfigReader& reader, const ModelConfig& config, std::int32_t layer);

} // namespace kvscope::model
