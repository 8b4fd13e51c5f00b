// SPDX-License-Identifier: GPL-3.0-or-later
//
// Bytes of the cache by dtype: the arithmetic of the layout, for models that are not loaded and cards that are not
// here. A block is sealed when it is full and lies in its dtype from then on; the block that a sequence is filling is
// 16-bit and lies in a tail (kv-cache contract, section 5).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/result.h"
#include "engine/model/kv_size.h"

namespace kvscope::bench {

enum class KvDtype : std::uint8_t { F16, Bf16, Fp8, Int8, Int4 };
const char* kvDtypeName(KvDtype dtype); ///< "f16", "bf16", "fp8_e4m3", "int8", "int4"

/// Keys and values.
struct KvDtypes {
    KvDtype k = KvDtype::F16;
    KvDtype v = KvDtype::F16;
    friend bool operator==(const KvDtypes&, const KvDtypes&) = default;
    bool quantized() const { return k > KvDtype::Bf16 || v > KvDtype::Bf16; }
    std::string name() const; ///< "f16", "fp8", "int8", "k8v4", "int4", or "fp8_e4m3/int8"
};
/// A preset ("fp8", "int8", "k8v4", "int4") or one dtype for both; none = there is no such name.
std::optional<KvDtypes> kvDtypesOf(std::string_view name);
std::optional<KvDtype> kvDtypeOf(std::string_view name);

/// What a model leaves in the cache, by layer. Where keys and values share one latent row (headDimV = 0), `rotated` of
/// its values stay 16-bit whatever the dtype is.
struct KvRows {
    model::KvShape layers;
    std::int64_t rotated = 0;
};

/// One block of `blockSize` slots over all layers, sealed. Scales: int8 keys one f16 per channel and block, int8 values
/// one f16 per 32 values of a token; int4 the same with a minimum beside the scale; fp8 none (one per layer and head).
/// Errors: Unsupported (a differing V dtype or int4 where K and V share a row).
Result<std::uint64_t> sealedBlockBytes(const KvRows& rows, KvDtypes dtypes, std::int32_t blockSize);
/// The same while it is being filled: 16 bits a value.
std::uint64_t tailBytes(const KvRows& rows, std::int32_t blockSize);

} // namespace kvscope::bench
