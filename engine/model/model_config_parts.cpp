// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/model/model_config_parts.h"

namespace kvscope::model {
namespace {

void readHeads(ConfigReader& reader, ModelConfig& config, std::int64_t layers) {
    const auto heads = reader.perLayer("attention.head_count", layers, kHeads);
    const auto kvHeads = reader.perLayer("attention.head_count_kv", layers, kHeads, heads);
    const auto feedForward = reader.perLayer("feed_forward_length", layers, kWidth);
    if (reader.failed())
        return;
    for (std::size_t i = 0; i < heads.size(); ++i) {
        if (heads[i] % kvHeads[i] != 0)
            reader.failCorrupt("layer " + std::to_string(i) + " has " + std::to_string(heads[i]) +
                               " attention heads, which " + std::to_string(kvHeads[i]) +
                               " key/value heads do not divide");
        config.layers.push_back({static_cast<std::int32_t>(heads[i]), static_cast<std::int32_t>(kvHeads[i]),
                                 static_cast<std::int32_t>(feedForward[i])});
    }
    const bool explicitSizes = reader.has("attention.key_length") && reader.has("attention.value_length");
    if (!explicitSizes && config.hidden % heads.front() != 0)
        reader.failCorrupt("the embedding length " + std::to_string(config.hidden) + " is no multiple of the " +
                           std::to_string(heads.front()) + " attention heads, and no head size is given");
    const std::int64_t headDim = config.hidden / heads.front();
    config.headDimK = static_cast<std::int32_t>(reader.optional("attention.key_length", kHeadDim, headDim));
    config.headDimV = static_cast<std::int32_t>(reader.optional("attention.value_length", kHeadDim, headDim));
}

} // namespace

void refuseExperts(ConfigReader& reader) {
    if (reader.optional("expert_count", {0, kWidth.most}, 0) > 0)
        reader.failUnsupported("it is a mixture of experts ('" + reader.architecture() +
                               ".expert_count'), which this version does not build for '" + reader.architecture() +
                               "' models. Choose another model.");
}

void readSizes(ConfigReader& reader, ModelConfig& config) {
    config.contextLength = reader.required("context_length", kContext);
    config.hidden = static_cast<std::int32_t>(reader.required("embedding_length", kWidth));
    const std::int64_t layers = reader.required("block_count", kLayers);
    config.rmsEpsilon = static_cast<float>(reader.requiredPositive("attention.layer_norm_rms_epsilon"));
    if (!reader.failed())
        readHeads(reader, config, layers);
}

void readRope(ConfigReader& reader, ModelConfig& config) {
    RopeConfig& rope = config.rope;
    rope.dims = static_cast<std::int32_t>(reader.optional("rope.dimension_count", {1, kHeadDim.most}, config.headDimK));
    if (rope.dims % 2 != 0 || rope.dims > config.headDimK)
        reader.failCorrupt("'" + reader.architecture() + ".rope.dimension_count' is " + std::to_string(rope.dims) +
                           "; it must be even and at most the head size " + std::to_string(config.headDimK));
    rope.base = reader.optionalPositive("rope.freq_base", rope.base);
    const std::string scaling = reader.optionalText("rope.scaling.type", "linear");
    if (scaling == "linear") {
        // A factor of 0 is how older converters wrote "none".
        const auto factor = [&](std::string_view key) {
            return reader.has(key) &&
                   reader.file().metadata().real(reader.architecture() + "." + std::string(key)) != 0.0;
        };
        if (factor("rope.scaling.factor"))
            rope.linearFactor = reader.requiredPositive("rope.scaling.factor");
        else if (factor("rope.scale_linear"))
            rope.linearFactor = reader.requiredPositive("rope.scale_linear");
    } else if (scaling != "none") {
        reader.failUnsupported("it scales positions by '" + forSentence(scaling) +
                               "', which this version does not build for '" + reader.architecture() +
                               "' models. Choose another model.");
    }
}

void readVocab(ConfigReader& reader, ModelConfig& config) {
    const GgufValue* tokens = reader.file().metadata().find("tokenizer.ggml.tokens");
    const TensorInfo* embedding = reader.file().findTensor("token_embd.weight");
    const std::int64_t listed = tokens && tokens->isArray() ? static_cast<std::int64_t>(tokens->count) : 0;
    const std::int64_t vocab = listed > 0 ? listed : reader.required("vocab_size", kVocab);
    if (vocab > kVocab.most)
        return reader.failCorrupt("it lists " + std::to_string(vocab) + " tokens");
    if (embedding && embedding->rows() != vocab)
        return reader.failCorrupt("its vocabulary has " + std::to_string(vocab) +
                                  " tokens, but 'token_embd.weight' has " + std::to_string(embedding->rows()) +
                                  " rows");
    config.vocab = static_cast<std::int32_t>(vocab);
    reader.needTensor("token_embd.weight", {config.hidden, config.vocab});
    reader.needFloats("output_norm.weight", {config.hidden});
    config.tiedOutput = !reader.hasTensor("output.weight");
    if (!config.tiedOutput)
        reader.needTensor("output.weight", {config.hidden, config.vocab});
}

void checkLayerTensors(ConfigReader& reader, const ModelConfig& config, std::int32_t layer) {
    const LayerConfig& size = config.layers[static_cast<std::size_t>(layer)];
    const std::int64_t hidden = config.hidden;
    const std::int64_t q = std::int64_t(size.heads) * config.headDimK;
    const std::int64_t k = std::int64_t(size.kvHeads) * config.headDimK;
    const std::int64_t v = std::int64_t(size.kvHeads) * config.headDimV;
    const std::int64_t o = std::int64_t(size.heads) * config.headDimV;
    const auto name = [&](std::string_view part) { return layerTensorName(layer, part); };
    reader.needFloats(name("attn_norm.weight"), {hidden});
    reader.needTensor(name("attn_q.weight"), {hidden, q});
    reader.needTensor(name("attn_k.weight"), {hidden, k});
    reader.needTensor(name("attn_v.weight"), {hidden, v});
    if (config.qkvBias) {
        reader.needFloats(name("attn_q.bias"), {q});
        reader.needFloats(name("attn_k.bias"), {k});
        reader.needFloats(name("attn_v.bias"), {v});
    }
    reader.needTensor(name("attn_output.weight"), {o, hidden});
    reader.needFloats(name("ffn_norm.weight"), {hidden});
    reader.needTensor(name("ffn_gate.weight"), {hidden, size.feedForward});
    reader.needTensor(name("ffn_up.weight"), {hidden, size.feedForward});
    reader.needTensor(name("ffn_down.weight"), {size.feedForward, hidden});
}

} // namespace kvscope::model
