// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/model/kv_size.h"

#include <algorithm>
#include <limits>
#include <string>

namespace kvscope::model {
namespace {

// The metadata of a file that no reader has validated: sizes beyond these say nothing.
constexpr std::int64_t kMostLayers = 4096;
constexpr std::int64_t kMostSize = 1 << 20;

std::optional<std::uint64_t> rowBytes(std::int64_t values, TensorType type) {
    const TensorTypeTraits& traits = tensorTypeTraits(type);
    if (values < 0 || values % traits.blockValues != 0)
        return std::nullopt;
    return static_cast<std::uint64_t>(values) / traits.blockValues * traits.blockBytes;
}

std::optional<std::int64_t> sizeAt(const GgufMetadata& metadata, const std::string& key) {
    const auto value = metadata.integer(key);
    return value && *value > 0 && *value <= kMostSize ? value : std::nullopt;
}

/// A scalar for all layers, or one number per layer; empty when absent or nonsensical.
std::vector<std::int64_t> perLayer(const GgufMetadata& metadata, const std::string& key, std::int64_t layers) {
    if (const auto one = metadata.integer(key))
        return *one >= 0 && *one <= kMostSize ? std::vector<std::int64_t>(static_cast<std::size_t>(layers), *one)
                                              : std::vector<std::int64_t>();
    const auto all = metadata.integers(key);
    if (!all || all->size() != static_cast<std::size_t>(layers))
        return {};
    const bool sane = std::all_of(all->begin(), all->end(), [](std::int64_t n) { return n >= 0 && n <= kMostSize; });
    return sane ? *all : std::vector<std::int64_t>();
}

/// Of gemma3; what other architectures mean by these keys is not known here.
void addWindows(const GgufMetadata& metadata, const std::string& prefix, KvShape& shape) {
    const auto window = sizeAt(metadata, prefix + "attention.sliding_window");
    if (prefix != "gemma3." || !window)
        return;
    const GgufValue* pattern = metadata.find(prefix + "attention.sliding_window_pattern");
    const auto flags = pattern ? pattern->asBools() : std::nullopt;
    const std::int64_t period = pattern ? pattern->asInteger().value_or(0) : kGemma3Period;
    for (std::size_t i = 0; i < shape.size(); ++i) {
        const bool local =
            flags ? i < flags->size() && (*flags)[i] : period > 0 && (static_cast<std::int64_t>(i) + 1) % period != 0;
        shape[i].window = local ? *window : 0;
    }
}

} // namespace

bool hasWindowLayers(const KvShape& shape) {
    const auto local = [](const KvLayerShape& layer) { return layer.window > 0; };
    return std::any_of(shape.begin(), shape.end(), local) && !std::all_of(shape.begin(), shape.end(), local);
}

KvShape kvShape(const ModelConfig& config) {
    KvShape shape;
    for (const LayerConfig& layer : config.layers)
        shape.push_back({layer.kvHeads, config.headDimK, config.headDimV, layer.window});
    return shape;
}

KvShape kvShapeFromMetadata(const GgufMetadata& metadata) {
    const std::string prefix = std::string(metadata.string("general.architecture").value_or("")) + ".";
    const auto layers = sizeAt(metadata, prefix + "block_count");
    if (!layers || *layers > kMostLayers)
        return {};
    // Latent attention caches the compressed row and the rotated key of all heads together, whatever head_count_kv
    // says.
    const auto latent = sizeAt(metadata, prefix + "attention.kv_lora_rank");
    const auto rotated = sizeAt(metadata, prefix + "rope.dimension_count");
    if (latent && rotated)
        return KvShape(static_cast<std::size_t>(*layers), {1, *latent + *rotated, 0, 0});

    const auto heads = perLayer(metadata, prefix + "attention.head_count", *layers);
    auto kvHeads = perLayer(metadata, prefix + "attention.head_count_kv", *layers);
    if (kvHeads.empty() && !metadata.contains(prefix + "attention.head_count_kv"))
        kvHeads = heads;
    const auto hidden = sizeAt(metadata, prefix + "embedding_length");
    const std::int64_t mostHeads = heads.empty() ? 0 : *std::max_element(heads.begin(), heads.end());
    const std::int64_t headDim = hidden && mostHeads > 0 ? *hidden / mostHeads : 0;
    const std::int64_t headDimK = sizeAt(metadata, prefix + "attention.key_length").value_or(headDim);
    const std::int64_t headDimV = sizeAt(metadata, prefix + "attention.value_length").value_or(headDim);
    if (kvHeads.empty() || headDimK == 0 || headDimV == 0)
        return {};
    KvShape shape;
    for (std::int64_t count : kvHeads)
        shape.push_back({count, headDimK, headDimV, 0});
    addWindows(metadata, prefix, shape);
    return shape;
}

std::optional<std::uint64_t> kvBytesPerToken(const KvShape& shape, TensorType k, TensorType v) {
    if (shape.empty())
        return std::nullopt;
    std::uint64_t total = 0;
    const bool skipsWindows = hasWindowLayers(shape);
    for (const KvLayerShape& layer : shape) {
        if (skipsWindows && layer.window > 0)
            continue;
        const auto keyBytes = rowBytes(layer.headDimK, k);
        const auto valueBytes = rowBytes(layer.headDimV, v);
        if (!keyBytes || !valueBytes || layer.kvHeads < 0)
            return std::nullopt;
        const std::uint64_t row = *keyBytes + *valueBytes;
        const auto heads = static_cast<std::uint64_t>(layer.kvHeads);
        constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max() / 2;
        if (row != 0 && heads > (kMost - std::min(total, kMost)) / row)
            return std::nullopt;
        total += heads * row;
    }
    return total;
}

std::uint64_t tokensThatFit(std::uint64_t poolBytes, std::uint64_t bytesPerToken, std::uint32_t blockSize) {
    if (bytesPerToken == 0 || blockSize == 0 || bytesPerToken > std::numeric_limits<std::uint64_t>::max() / blockSize)
        return 0;
    return poolBytes / (bytesPerToken * blockSize) * blockSize;
}

} // namespace kvscope::model
