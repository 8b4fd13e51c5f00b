// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/exec/layer_ops.h"

#include <cmath>

#include "engine/exec/rope.h"

namespace kvscope::exec {

kernels::QkvOp qkvOp(const model::ModelConfig& config, const WeightTable& weights, std::int32_t layer) {
    const auto name = [&](const char* part) { return model::layerTensorName(layer, part); };
    const model::LayerConfig& size = config.layers[static_cast<std::size_t>(layer)];
    kernels::QkvOp op;
    op.layer = layer;
    op.norm = weights.need(name("attn_norm.weight"));
    op.eps = config.rmsEpsilon;
    op.q = weights.need(name("attn_q.weight"));
    op.k = weights.need(name("attn_k.weight"));
    op.v = weights.need(name("attn_v.weight"));
    if (config.qkvBias) {
        op.qBias = weights.need(name("attn_q.bias"));
        op.kBias = weights.need(name("attn_k.bias"));
        op.vBias = weights.need(name("attn_v.bias"));
    }
    op.heads = size.heads;
    op.kvHeads = size.kvHeads;
    op.headDimK = config.headDimK;
    op.headDimV = config.headDimV;
    return op;
}

kernels::AttentionOp attentionOp(const model::ModelConfig& config, const WeightTable& weights, std::int32_t layer) {
    const model::LayerConfig& size = config.layers[static_cast<std::size_t>(layer)];
    kernels::AttentionOp op;
    op.layer = layer;
    op.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(config.headDimK)));
    op.output = weights.need(model::layerTensorName(layer, "attn_output.weight"));
    op.heads = size.heads;
    op.kvHeads = size.kvHeads;
    op.headDimK = config.headDimK;
    op.headDimV = config.headDimV;
    op.window = size.window;
    return op;
}

kernels::MlpOp mlpOp(const model::ModelConfig& config, const WeightTable& weights, std::int32_t layer) {
    const auto name = [&](const char* part) { return model::layerTensorName(layer, part); };
    kernels::MlpOp op;
    op.norm = weights.need(name("ffn_norm.weight"));
    op.eps = config.rmsEpsilon;
    op.gate = weights.need(name("ffn_gate.weight"));
    op.up = weights.need(name("ffn_up.weight"));
    op.down = weights.need(name("ffn_down.weight"));
    return op;
}

kernels::LogitsOp logitsOp(const model::ModelConfig& config, const WeightTable& weights) {
    kernels::LogitsOp op;
    op.norm = weights.need("output_norm.weight");
    op.eps = config.rmsEpsilon;
    op.output = weights.need(config.outputTensor());
    return op;
}

kernels::RopeSpec ropeSpec(const model::RopeConfig& rope, kernels::RopeStyle style) {
    kernels::RopeSpec spec;
    spec.style = style;
    spec.dims = rope.dims;
    spec.inverseFreq = ropeInverseFrequencies(rope.dims, rope.base, rope.linearFactor, rope.freqFactors);
    return spec;
}

} // namespace kvscope::exec
