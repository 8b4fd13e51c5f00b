// SPDX-License-Identifier: GPL-3.0-or-later
//
// llama 1 to 3, SmolLM2, TinyLlama, R1-Distill-Llama:
//   x = embedding[token]
//   per layer: x += Wo·attention(rope(Wq·h), rope(Wk·h), Wv·h), h = rmsnorm(x); x += Wdown·(silu(Wgate·h) ⊙ Wup·h)
//   logits = Wout·rmsnorm(x)
#include <cmath>

#include "engine/exec/program_builder.h"
#include "engine/exec/rope.h"

namespace kvscope::exec {

namespace {

kernels::QkvOp qkv(const model::ModelConfig& config, const WeightTable& weights, std::int32_t layer) {
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

kernels::AttentionOp attention(const model::ModelConfig& config, const WeightTable& weights, std::int32_t layer) {
    const model::LayerConfig& size = config.layers[static_cast<std::size_t>(layer)];
    kernels::AttentionOp op;
    op.layer = layer;
    op.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(config.headDimK)));
    op.output = weights.need(model::layerTensorName(layer, "attn_output.weight"));
    op.heads = size.heads;
    op.kvHeads = size.kvHeads;
    op.headDimK = config.headDimK;
    op.headDimV = config.headDimV;
    return op;
}

kernels::MlpOp mlp(const model::ModelConfig& config, const WeightTable& weights, std::int32_t layer) {
    const auto name = [&](const char* part) { return model::layerTensorName(layer, part); };
    kernels::MlpOp op;
    op.norm = weights.need(name("ffn_norm.weight"));
    op.eps = config.rmsEpsilon;
    op.gate = weights.need(name("ffn_gate.weight"));
    op.up = weights.need(name("ffn_up.weight"));
    op.down = weights.need(name("ffn_down.weight"));
    op.activation = kernels::Activation::Silu;
    return op;
}

} // namespace

kernels::Program buildLlama(const model::ModelConfig& config, const WeightTable& weights) {
    kernels::Program program;
    program.hidden = config.hidden;
    program.vocab = config.vocab;

    kernels::RopeSpec rope;
    // The converter permutes the rows of Q and K so that the pairs are neighbours.
    rope.style = kernels::RopeStyle::Interleaved;
    rope.dims = config.rope.dims;
    rope.inverseFreq =
        ropeInverseFrequencies(config.rope.dims, config.rope.base, config.rope.linearFactor, config.rope.freqFactors);
    program.ropes.push_back(std::move(rope));

    program.ops.emplace_back(kernels::EmbedOp{weights.need("token_embd.weight"), 1.0f});
    for (std::int32_t layer = 0; layer < config.layerCount(); ++layer) {
        program.ops.emplace_back(qkv(config, weights, layer));
        program.ops.emplace_back(attention(config, weights, layer));
        program.ops.emplace_back(mlp(config, weights, layer));
    }
    kernels::LogitsOp logits;
    logits.norm = weights.need("output_norm.weight");
    logits.eps = config.rmsEpsilon;
    logits.output = weights.need(config.outputTensor());
    program.ops.emplace_back(logits);
    return program;
}

} // namespace kvscope::exec
