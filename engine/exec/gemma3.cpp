// SPDX-License-Identifier: GPL-3.0-or-later
//
// gemma3:
//   x = embedding[token] · sqrt(hidden)
//   per layer, h = rmsnorm(x):
//     x += rmsnorm(Wo·attention(rope(rmsnorm(Wq·h)), rope(rmsnorm(Wk·h)), Wv·h)), the inner norms over each head
//     x += rmsnorm(Wdown·(gelu(Wgate·h) ⊙ Wup·h))
//   logits = Wout·rmsnorm(x)
// Local layers attend to a window and rotate by a base of their own. (The file's norm weights are 1 + w already.)
#include <cmath>

#include "engine/exec/layer_ops.h"

namespace kvscope::exec {

namespace {

constexpr std::int32_t kGlobalRope = 0;
constexpr std::int32_t kLocalRope = 1;
/// The largest published model, told by its depth, divides scores by the root of hidden / heads, which there is not
/// the head size; the files have no key for it.
constexpr std::int32_t kLayersOfLargest = 62;

float scoreScale(const model::ModelConfig& config, const model::LayerConfig& layer) {
    const std::int32_t dims = config.layerCount() == kLayersOfLargest ? config.hidden / layer.heads : config.headDimK;
    return static_cast<float>(1.0 / std::sqrt(static_cast<double>(dims)));
}

} // namespace

kernels::Program buildGemma3(const model::ModelConfig& config, const WeightTable& weights) {
    kernels::Program program;
    program.hidden = config.hidden;
    program.vocab = config.vocab;
    program.ropes.push_back(ropeSpec(config.rope, kernels::RopeStyle::Halves));
    program.ropes.push_back(ropeSpec(config.localRope, kernels::RopeStyle::Halves));
    program.ops.emplace_back(kernels::EmbedOp{weights.need("token_embd.weight"),
                                              static_cast<float>(std::sqrt(static_cast<double>(config.hidden)))});
    for (std::int32_t layer = 0; layer < config.layerCount(); ++layer) {
        const model::LayerConfig& size = config.layers[static_cast<std::size_t>(layer)];
        const auto weight = [&](const char* part) { return weights.need(model::layerTensorName(layer, part)); };
        kernels::QkvOp qkv = qkvOp(config, weights, layer);
        qkv.rope = size.window > 0 ? kLocalRope : kGlobalRope;
        qkv.qNorm = weight("attn_q_norm.weight");
        qkv.kNorm = weight("attn_k_norm.weight");
        program.ops.emplace_back(qkv);
        kernels::AttentionOp attention = attentionOp(config, weights, layer);
        attention.scale = scoreScale(config, size);
        attention.postNorm = weight("post_attention_norm.weight");
        attention.postEps = config.rmsEpsilon;
        program.ops.emplace_back(attention);
        kernels::MlpOp mlp = mlpOp(config, weights, layer);
        mlp.activation = kernels::Activation::GeluTanh;
        mlp.postNorm = weight("post_ffw_norm.weight");
        program.ops.emplace_back(mlp);
    }
    program.ops.emplace_back(logitsOp(config, weights));
    return program;
}

} // namespace kvscope::exec
