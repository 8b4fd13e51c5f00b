// SPDX-License-Identifier: GPL-3.0-or-later
//
// "gemma3": norms before and behind attention and feed-forward, a norm on every head of q and k, GELU-gated
// feed-forward, and layers of two kinds: local ones look back over a window and rotate by a base of their own, global
// ones see everything. Keys: gemma3.attention.sliding_window, .sliding_window_pattern, .rope.freq_base_swa.
#include "engine/model/model_config_parts.h"

namespace kvscope::model {
namespace {

constexpr double kLocalBase = 10000.0;

void readWindows(ConfigReader& reader, ModelConfig& config) {
    const std::int64_t window = reader.required("attention.sliding_window", kContext);
    const auto local = reader.layerPattern("attention.sliding_window_pattern", config.layerCount(), kGemma3Period);
    if (reader.failed())
        return;
    for (std::size_t i = 0; i < config.layers.size(); ++i)
        config.layers[i].window = local[i] ? static_cast<std::int32_t>(window) : 0;
    config.localRope.dims = config.rope.dims; // its positions are never scaled
    config.localRope.base = reader.optionalPositive("rope.freq_base_swa", kLocalBase);
}

/// Soft caps belong to the generation before; a file that asks for one would give other answers without it.
void refuseSoftCaps(ConfigReader& reader) {
    for (const char* key : {"attn_logit_softcapping", "final_logit_softcapping"})
        if (const auto cap = reader.file().metadata().real("gemma3." + std::string(key)); cap && *cap != 0)
            reader.failUnsupported("it limits its logits ('gemma3." + std::string(key) +
                                   "'), which this version does not build. Choose another model.");
}

void checkNorms(ConfigReader& reader, const ModelConfig& config, std::int32_t layer) {
    reader.needFloats(layerTensorName(layer, "attn_q_norm.weight"), {config.headDimK});
    reader.needFloats(layerTensorName(layer, "attn_k_norm.weight"), {config.headDimK});
    reader.needFloats(layerTensorName(layer, "post_attention_norm.weight"), {config.hidden});
    reader.needFloats(layerTensorName(layer, "post_ffw_norm.weight"), {config.hidden});
}

} // namespace

void readGemma3Config(ConfigReader& reader, ModelConfig& config) {
    refuseExperts(reader);
    refuseSoftCaps(reader);
    if (reader.failed())
        return;
    readSizes(reader, config);
    if (reader.failed())
        return;
    for (const LayerConfig& layer : config.layers)
        if (config.hidden < layer.heads) // scores of the largest model are divided by the root of their ratio
            return reader.failCorrupt("a layer has " + std::to_string(layer.heads) +
                                      " attention heads, more than the " + std::to_string(config.hidden) +
                                      " values of 'gemma3.embedding_length'");
    readRope(reader, config);
    readWindows(reader, config);
    readVocab(reader, config);
    for (std::int32_t layer = 0; layer < config.layerCount() && !reader.failed(); ++layer) {
        checkLayerTensors(reader, config, layer);
        checkNorms(reader, config, layer);
    }
    reader.refuseUnusedTensors();
}

} // namespace kvscope::model
