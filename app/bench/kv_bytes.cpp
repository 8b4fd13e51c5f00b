// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/bench/kv_bytes.h"

#include <array>

namespace kvscope::bench {

namespace {

constexpr std::array<const char*, 5> kNames{"f16", "bf16", "fp8_e4m3", "int8", "int4"};
constexpr std::int64_t kGroup = 32;     ///< values of one token that share a scale
constexpr std::int64_t kScaleBytes = 2; ///< f16

std::int64_t groups(std::int64_t values) {
    return (values + kGroup - 1) / kGroup;
}

/// `slots` rows of one head. Keys carry their scales per channel, values per token.
std::int64_t headBytes(KvDtype dtype, bool key, std::int64_t values, std::int64_t slots) {
    const std::int64_t scales = key ? values : groups(values) * slots;
    switch (dtype) {
    case KvDtype::F16:
    case KvDtype::Bf16:
        break;
    case KvDtype::Fp8:
        return values * slots;
    case KvDtype::Int8:
        return values * slots + kScaleBytes * scales;
    case KvDtype::Int4:
        return (values + 1) / 2 * slots + 2 * kScaleBytes * scales; // scale and minimum
    }
    return 2 * values * slots;
}

} // namespace

const char* kvDtypeName(KvDtype dtype) {
    return kNames[static_cast<std::size_t>(dtype)];
}

std::optional<KvDtype> kvDtypeOf(std::string_view name) {
    for (std::size_t i = 0; i < kNames.size(); ++i)
        if (name == kNames[i])
            return static_cast<KvDtype>(i);
    if (name == "fp8")
        return KvDtype::Fp8;
    return std::nullopt;
}

std::optional<KvDtypes> kvDtypesOf(std::string_view name) {
    if (name == "k8v4")
        return KvDtypes{KvDtype::Fp8, KvDtype::Int4};
    if (name == "auto")
        return KvDtypes{};
    if (const auto both = kvDtypeOf(name))
        return KvDtypes{*both, *both};
    return std::nullopt;
}

std::string KvDtypes::name() const {
    if (k == KvDtype::Fp8 && v == KvDtype::Int4)
        return "k8v4";
    if (k == v)
        return k == KvDtype::Fp8 ? "fp8" : kvDtypeName(k);
    return std::string(kvDtypeName(k)) + "/" + kvDtypeName(v);
}

Result<std::uint64_t> sealedBlockBytes(const KvRows& rows, KvDtypes dtypes, std::int32_t blockSize) {
    std::int64_t total = 0;
    for (const model::KvLayerShape& layer : rows.layers) {
        if (layer.headDimV == 0) {
            if (dtypes.k != dtypes.v)
                return fail(ErrorCode::Unsupported, "This model keeps keys and values in one row, so they have one "
                                                    "dtype; choose the same for both.");
            if (dtypes.k == KvDtype::Int4)
                return fail(ErrorCode::Unsupported, "int4 is too coarse for this model's latent rows; choose fp8 or "
                                                    "int8.");
            const std::int64_t latent = layer.headDimK - rows.rotated;
            total += layer.kvHeads * (headBytes(dtypes.k, false, latent, blockSize) + 2 * rows.rotated * blockSize);
            continue;
        }
        total += layer.kvHeads * (headBytes(dtypes.k, true, layer.headDimK, blockSize) +
                                  headBytes(dtypes.v, false, layer.headDimV, blockSize));
    }
    return static_cast<std::uint64_t>(total);
}

std::uint64_t tailBytes(const KvRows& rows, std::int32_t blockSize) {
    std::int64_t values = 0;
    for (const model::KvLayerShape& layer : rows.layers)
        values += layer.kvHeads * (layer.headDimK + layer.headDimV);
    return static_cast<std::uint64_t>(2 * values * blockSize);
}

} // namespace kvscope::bench
