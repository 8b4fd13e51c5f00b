// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/model/model_file.h"

namespace kvscope::model {

/// What may differ from layer to layer.
struct LayerConfig {
    std::int32_t heads = 0;
    std::int32_t kvHeads = 0; ///< divides `heads`
    std::int32_t feedForward = 0;
    /// > 0: a local layer, whose token at position p sees positions p - window + 1..p only.
    std::int32_t window = 0;
};

/// theta_i = position * base^(-2i/dims) / (factor * rope_freqs[i]), for pair i < dims/2.
struct RopeConfig {
    std::int32_t dims = 0; ///< rotated dimensions of each head: even, <= headDimK
    double base = 10000.0;
    double linearFactor = 1.0;      ///< "linear" scaling: positions are divided by it
    std::vector<float> freqFactors; ///< (dims/2), tensor rope_freqs.weight (Llama 3.1); empty = all 1
};

/// Every so many layers of gemma3 one is global, where the file does not say it.
inline constexpr std::int64_t kGemma3Period = 6;

/// A model that this program can run, fully validated: every size is positive and consistent with every tensor, and
/// every tensor the architecture needs is present in a type that is built.
struct ModelConfig {
    std::string architecture; ///< "llama", "gemma3"
    std::string name;         ///< general.name, may be empty
    std::int64_t contextLength = 0;
    std::int32_t hidden = 0;
    std::int32_t vocab = 0;
    std::vector<LayerConfig> layers;
    std::int32_t headDimK = 0;
    std::int32_t headDimV = 0;
    float rmsEpsilon = 0;
    RopeConfig rope;
    RopeConfig localRope;    ///< of layers with a window
    bool tiedOutput = false; ///< no output.weight: logits use token_embd.weight
    bool qkvBias = false;    ///< blk.N.attn_{q,k,v}.bias exist, in every layer

    std::int32_t layerCount() const { return static_cast<std::int32_t>(layers.size()); }
    /// Tensor holding the output matrix.
    const char* outputTensor() const { return tiedOutput ? "token_embd.weight" : "output.weight"; }
};

/// Reads and validates. Errors: Unsupported (another kind of file, an architecture, tensor type or feature that is not
/// built, each by name), Corrupt (a value or tensor that contradicts another). The sentence names key or tensor.
/// Reads one small tensor (rope_freqs) at most.
Result<ModelConfig> readModelConfig(const ModelFile& file);

/// "blk.3.attn_q.weight"
std::string layerTensorName(std::int32_t layer, std::string_view part);

/// Architectures that `readModelConfig` accepts, by their GGUF names.
std::vector<std::string> builtArchitectures();

} // namespace kvscope::model
