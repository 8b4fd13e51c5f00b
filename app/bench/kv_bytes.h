// SPDX-License-Identifier: GPL-3.0-or-later
//
// Bytes of the cache by form: the layout's arithmetic (kernels::KvLayout), for models that are not loaded and cards
// that are not here.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/result.h"
#include "engine/model/kv_size.h"
#include "kernels/kv_layout.h"

namespace kvscope::bench {

/// "f16", "fp8", "int8", "k8v4", "int4", or "fp8_e4m3/int8" where no name of --kv-cache-dtype says both.
std::string kvFormatName(const kernels::KvFormat& format);

/// What a model leaves in the cache, by layer. Where keys and values share one latent row (headDimV = 0), `rotated` of
/// its values stay 16-bit whatever the dtype is.
struct KvRows {
    model::KvShape layers;
    std::int64_t rotated = 0;
};

/// Over all layers.
struct KvBlockBytes {
    std::uint64_t sealed = 0; ///< a block, scales included
    std::uint64_t tail = 0;   ///< a tail slot, which each sequence has where the form is quantized; else 0
};
/// Errors: those of the layout; Unsupported (a differing V dtype or int4 where K and V share a row).
Result<KvBlockBytes> kvBlockBytes(const KvRows& rows, const kernels::KvFormat& format, std::int32_t blockSize);
/// A block at 16 bits a value.
std::uint64_t plainBlockBytes(const KvRows& rows, std::int32_t blockSize);

} // namespace kvscope::bench
