// SPDX-License-Identifier: GPL-3.0-or-later
//
// llama 1 to 3, SmolLM2, TinyLlama, R1-Distill-Llama:
//   x = embedding[token]
//   per layer: x += Wo·attention(rope(Wq·h), rope(Wk·h), Wv·h), h = rmsnorm(x); x += Wdown·(silu(Wgate·h) ⊙ Wup·h)
//   logits = Wout·rmsnorm(x)
#include "engine/exec/layer_ops.h"

namespace kvscope::exec {

kernels::Program buildLlama(const model::ModelConfig& config, const WeightTable& weights) {
    kernels::Program program;
    program.hidden = config.hidden;
    program.vocab = config.vocab;
    // The converter permutes the rows of Q and K so that the pairs are neighbours.
    program.ropes.push_back(ropeSpec(config.rope, kernels::RopeStyle::Interleaved));
    program.ops.emplace_back(kernels::EmbedOp{weights.need("token_embd.weight"), 1.0f});
    for (std::int32_t layer = 0; layer < config.layerCount(); ++layer) {
        program.ops.emplace_back(qkvOp(config, weights, layer));
        program.ops.emplace_back(attentionOp(config, weights, layer));
        program.ops.emplace_back(mlpOp(config, weights, layer));
    }
    program.ops.emplace_back(logitsOp(config, weights));
    return program;
}

} // namespace kvscope::exec
