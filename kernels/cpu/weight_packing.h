// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "kernels/backend.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/memory_region.h"

namespace kvscope::kernels {

bool isQuantized(DType type);
const char* typeName(DType type);
/// Bytes of one row of `cols` values as it stands in a file.
std::size_t fileRowBytes(DType type, std::int64_t cols);

/// Copies a weight out of its file bytes into the layout of PackedWeight. One layout serves every instruction set.
/// Fails with a sentence for shapes and types that cannot be, and when memory is refused.
BackendResult<PackedWeight> packWeight(const WeightDesc& weight, Arena& arena);

} // namespace kvscope::kernels
