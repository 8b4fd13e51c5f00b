// SPDX-License-Identifier: GPL-3.0-or-later
//
// How many bytes of KV cache a model needs: pure arithmetic, for the model picker, `inspect` and the pool's plan.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/model/gguf_metadata.h"
#include "engine/model/model_config.h"

namespace kvscope::model {

/// What one token leaves in the cache in one layer: kvHeads rows of headDimK values and kvHeads rows of headDimV
/// values.
struct KvLayerShape {
    std::int64_t kvHeads = 0;
    std::int64_t headDimK = 0;
    std::int64_t headDimV = 0; ///< 0 where K and V share one latent row (multi-head latent attention)
    std::int64_t window = 0;   ///< > 0: only the last so many tokens are looked back at
    friend bool operator==(const KvLayerShape&, const KvLayerShape&) = default;
};

/// One entry per layer.
using KvShape = std::vector<KvLayerShape>;

KvShape kvShape(const ModelConfig& config);
/// From metadata alone, also for architectures that are not built. Empty when the keys do not say enough.
KvShape kvShapeFromMetadata(const GgufMetadata& metadata);

/// Some layers keep everything and some a window only: these then say nothing about the bytes of one token more.
bool hasWindowLayers(const KvShape& shape);

/// bytes = sum over layers (of those that keep everything, where there are such) of kvHeads * (rowBytes(headDimK, k) +
/// rowBytes(headDimV, v)). nullopt: the shape is empty, a row is no multiple of the type's block, or the sum overflows.
std::optional<std::uint64_t> kvBytesPerToken(const KvShape& shape, TensorType k, TensorType v);

/// Tokens that a pool of `poolBytes` holds: whole blocks of `blockSize` tokens. 0 when not even one block fits.
std::uint64_t tokensThatFit(std::uint64_t poolBytes, std::uint64_t bytesPerToken, std::uint32_t blockSize);

} // namespace kvscope::model
