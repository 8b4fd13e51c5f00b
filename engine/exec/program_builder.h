// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "engine/base/result.h"
#include "engine/model/kv_size.h"
#include "engine/model/model_config.h"
#include "kernels/backend.h"

namespace kvscope::exec {

/// Tensor name -> handle of the weight in the backend.
class WeightTable {
public:
    void add(const std::string& name, kernels::WeightId id) { m_ids.emplace(name, id); }
    /// An invalid id when there is no such tensor (for what may be absent, such as biases).
    kernels::WeightId find(const std::string& name) const;
    /// A tensor that the validated configuration promised; its absence is a broken invariant.
    kernels::WeightId need(const std::string& name) const;

private:
    std::unordered_map<std::string, kernels::WeightId> m_ids;
};

/// Capacities of one step, see kernels::Program.
struct StepCapacity {
    std::int32_t maxTokens = 0;
    std::int32_t maxSequences = 0;
    std::int32_t maxLogitRows = 0;
    std::int32_t maxTableEntries = 0;
};

/// The model as a list of fused operations. Dispatches to the builder of its architecture (one file each).
Result<kernels::Program> buildProgram(const model::ModelConfig& config, const WeightTable& weights,
                                      const StepCapacity& capacity);

/// All layers see the first `sinks` and the last `window` tokens only, the token itself included.
void limitSight(kernels::Program& program, std::int32_t sinks, std::int32_t window);

/// How a model's KV cache is to be laid out.
struct KvChoice {
    kernels::KvFormat format;
    std::int32_t blockSize = 16;
    std::int32_t numBlocks = 1;
    std::int32_t maxSequences = 1; ///< with a quantized format each needs a tail slot
    std::int32_t stepTokens = 1;   ///< most of a step
    bool windowGroup = true;       ///< layers with a window keep that only; false: all layers keep everything
};

/// Layout of the KV cache of a model. Its window group has as many blocks as it may ever need; more than `numBlocks`
/// are never used. Fails where its layers differ in a way that one KV group cannot hold, and where the model cannot
/// have this format.
Result<kernels::KvLayout> kvLayout(const model::KvShape& shape, const KvChoice& choice);

/// What attending to one earlier token costs, relative to everything else that is computed for a token: multiplications
/// of attention over those of the matrices of all layers (the output matrix left out, as prompts hardly need it).
/// Layers with a window count for nothing: beyond it one token more costs them nothing.
double attentionPerToken(const model::ModelConfig& config);

// engine/exec/llama.cpp: llama 1 to 3 and its kin
kernels::Program buildLlama(const model::ModelConfig& config, const WeightTable& weights);
// engine/exec/gemma3.cpp
kernels::Program buildGemma3(const model::ModelConfig& config, const WeightTable& weights);

} // namespace kvscope::exec
