// SPDX-License-Identifier: GPL-3.0-or-later
//
// The operations that the programs of several architectures have in common, with the weights and sizes that the
// configuration promised. What is particular to an architecture is set by its builder.
#pragma once

#include "engine/exec/program_builder.h"

namespace kvscope::exec {

kernels::QkvOp qkvOp(const model::ModelConfig& config, const WeightTable& weights, std::int32_t layer);
/// Scores are divided by the square root of the head size.
kernels::AttentionOp attentionOp(const model::ModelConfig& config, const WeightTable& weights, std::int32_t layer);
kernels::MlpOp mlpOp(const model::ModelConfig& config, const WeightTable& weights, std::int32_t layer);
kernels::LogitsOp logitsOp(const model::ModelConfig& config, const WeightTable& weights);
/// Angles of `rope`; `style` says which values of a head are a pair.
kernels::RopeSpec ropeSpec(const model::RopeConfig& rope, kernels::RopeStyle style);

} // namespace kvscope::exec
