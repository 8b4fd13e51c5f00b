// SPDX-License-Identifier: GPL-3.0-or-later
//
// "llama": Llama 1 to 3, SmolLM2, TinyLlama, R1-Distill-Llama. Pre-norm, grouped-query attention with interleaved
// rotary positions, SwiGLU.
#include <limits>

#include "engine/model/model_config_parts.h"

namespace kvscope::model {
namespace {

/// Factors of the frequencies, as Llama 3.1 has them.
void readFreqFactors(ConfigReader& reader, ModelConfig& config) {
    RopeConfig& rope = config.rope;
    if (!reader.hasTensor("rope_freqs.weight"))
        return;
    reader.needFloats("rope_freqs.weight", {rope.dims / 2});
    if (reader.failed())
        return;
    auto factors = reader.file().readFloats(*reader.file().findTensor("rope_freqs.weight"));
    if (!factors)
        return reader.failUnsupported(factors.error().message);
    for (float factor : *factors)
        if (!(factor > 0 && factor <= std::numeric_limits<float>::max()))
            return reader.failCorrupt("'rope_freqs.weight' holds a factor that is not a finite number above 0");
    rope.freqFactors = std::move(*factors);
}

} // namespace

void readLlamaConfig(ConfigReader& reader, ModelConfig& config) {
    refuseExperts(reader);
    if (reader.failed())
        return;
    readSizes(reader, config);
    if (reader.failed())
        return;
    readRope(reader, config);
    readFreqFactors(reader, config);
    readVocab(reader, config);
    config.qkvBias = reader.hasTensor("blk.0.attn_q.bias");
    for (std::int32_t layer = 0; layer < config.layerCount() && !reader.failed(); ++layer) {
        checkLayerTensors(reader, config, layer);
        reader.ignoreTensor(layerTensorName(layer, "attn_rot_embd.weight")); // written by the first converters
    }
    reader.refuseUnusedTensors();
}

} // namespace kvscope::model
