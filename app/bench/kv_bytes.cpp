// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/bench/kv_bytes.h"

#include "engine/exec/program_builder.h"

namespace kvscope::bench {

namespace {

bool isLatent(const KvRows& rows) {
    return !rows.layers.empty() && rows.layers.front().headDimV == 0;
}

/// Latent rows lie as values do: their scales are per token.
kernels::KvLayout latentLayout(const KvRows& rows, std::int64_t dims, kernels::KvDType dtype, std::int32_t blockSize) {
    kernels::KvLayout layout;
    layout.layers = static_cast<std::int32_t>(rows.layers.size());
    layout.kvHeads = static_cast<std::int32_t>(rows.layers.front().kvHeads);
    layout.headDimV = static_cast<std::int32_t>(dims);
    layout.blockSize = blockSize;
    layout.format.values = dtype;
    return layout;
}

Result<KvBlockBytes> latentBytes(const KvRows& rows, const kernels::KvFormat& format, std::int32_t blockSize) {
    if (format.keys != format.values)
        return fail(ErrorCode::Unsupported, "This model keeps keys and values in one row, so they have one dtype; "
                                            "choose the same for both.");
    if (format.keys == kernels::KvDType::Int4)
        return fail(ErrorCode::Unsupported, "int4 is too coarse for this model's latent rows; choose fp8 or int8.");
    const std::int64_t latent = rows.layers.front().headDimK - rows.rotated;
    const kernels::KvLayout parts[] = {latentLayout(rows, latent, format.values, blockSize),
                                       latentLayout(rows, rows.rotated, kernels::KvDType::F16, blockSize)};
    return KvBlockBytes{parts[0].bytesPerBlock() + parts[1].bytesPerBlock(), parts[0].bytesPerTail()};
}

} // namespace

std::string kvFormatName(const kernels::KvFormat& format) {
    for (const char* name : {"f16", "bf16", "fp8", "int8", "k8v4", "int4"})
        if (const auto known = kernels::kvFormatByName(name);
            known && known->keys == format.keys && known->values == format.values)
            return name;
    return std::string(kernels::kvDTypeName(format.keys)) + "/" + kernels::kvDTypeName(format.values);
}

Result<KvBlockBytes> kvBlockBytes(const KvRows& rows, const kernels::KvFormat& format, std::int32_t blockSize) {
    if (isLatent(rows))
        return latentBytes(rows, format, blockSize);
    const auto layout = exec::kvLayout(rows.layers, {format, blockSize, 1, 1});
    if (!layout)
        return tl::unexpected(layout.error());
    return KvBlockBytes{layout->bytesPerBlock(), layout->bytesPerTail()};
}

std::uint64_t plainBlockBytes(const KvRows& rows, std::int32_t blockSize) {
    std::int64_t values = 0;
    for (const model::KvLayerShape& layer : rows.layers)
        values += layer.kvHeads * (layer.headDimK + layer.headDimV);
    return static_cast<std::uint64_t>(2 * values * blockSize);
}

} // namespace kvscope::bench
