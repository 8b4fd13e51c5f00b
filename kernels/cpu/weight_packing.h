// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "kernels/backend.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/memory_region.h"

namespace kvscope::kernels {

bool isQuantized(DType type);
/// Whether its products are made of 8-bit activations; otherwise of float ones.
inline bool takesQuants(const PackedWeight& weight) {
    return isQuantized(weight.type) && !weight.floatActivations;
}
const char* typeName(DType type);
/// Bytes of one row of `cols` values as it stands in a file.
std::size_t fileRowBytes(DType type, std::int64_t cols);

/// Copies a weight out of its file bytes into the layout of PackedWeight. One layout serves every instruction set.
/// Fails with a sentence for shapes and types that cannot be, and when memory is refused.
/// `floatActivations`: the matrix will be multiplied with float activations even where it is quantized.
BackendResult<PackedWeight> packWeight(const WeightDesc& weight, Arena& arena, bool floatActivations = false);

} // namespace kvscope::kernels
