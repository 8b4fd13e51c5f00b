// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/cpu/weight_packing.h"

#include <cstring>

namespace kvscope::kernels {

namespace {

std::size_t blockBytes(DType type) {
    switch (type) {
    case DType::F32:
        return 4;
    case DType::F16:
    case DType::BF16:
        return 2;
    case DType::Q4_0:
        return 18;
    case DType::Q4_1:
        return 20;
    case DType::Q8_0:
        return 34;
    }
    return 0;
}

BackendResult<PackedWeight> failure(const WeightDesc& weight, const std::string& what, bool outOfMemory = false) {
    return {std::nullopt, {"Weight \"" + weight.name + "\": " + what, outOfMemory}};
}

float elementToFloat(DType type, const std::byte* p) {
    float value = 0;
    if (type == DType::F32) {
        std::memcpy(&value, p, 4);
        return value;
    }
    std::uint16_t half;
    std::memcpy(&half, p, 2);
    if (type == DType::BF16) {
        const std::uint32_t bits = std::uint32_t(half) << 16;
        std::memcpy(&value, &bits, 4);
        return value;
    }
    const std::uint32_t sign = std::uint32_t(half & 0x8000u) << 16;
    const std::uint32_t rest = half & 0x7fffu;
    std::uint32_t bits = rest << 13;
    std::memcpy(&value, &bits, 4);
    value *= 5.192296858534828e33f; // 2^112, the difference of the exponent biases
    std::memcpy(&bits, &value, 4);
    if (rest >= 0x7c00u)
        bits = (rest << 13) | 0x7f800000u;
    bits |= sign;
    std::memcpy(&value, &bits, 4);
    return value;
}

BackendResult<PackedWeight> packVector(const WeightDesc& weight, Arena& arena) {
    if (isQuantized(weight.type))
        return failure(weight, "a vector must be F32, F16 or BF16, not " + std::string(typeName(weight.type)) + ".");
    const std::int64_t padded = (weight.cols + kGroupRows - 1) / kGroupRows * kGroupRows;
    float* data = arena.allocateArray<float>(static_cast<std::size_t>(padded));
    if (!data)
        return failure(weight, "the system refused memory for it. Close other programs or take a smaller model.", true);
    const std::size_t step = blockBytes(weight.type);
    for (std::int64_t i = 0; i < weight.cols; ++i)
        data[i] = elementToFloat(weight.type, weight.data + static_cast<std::size_t>(i) * step);
    PackedWeight out;
    out.rows = 1;
    out.cols = weight.cols;
    out.data = reinterpret_cast<const std::byte*>(data);
    return {out, {}};
}

/// One row into its lane of a group: scales to the front, values interleaved in fours.
void packQuantizedRow(const PackedWeight& packed, const std::byte* row, std::byte* group, std::int64_t lane) {
    const bool minimum = packed.type == DType::Q4_1;
    const bool bytes = packed.type == DType::Q8_0;
    const std::size_t scaleBytes = minimum ? 4 : 2;
    const std::size_t step = blockBytes(packed.type);
    const int fours = bytes ? 8 : 4;
    std::byte* values = group + packed.quantOffset + lane * 4;
    std::byte* scales = group + lane * 2;
    for (std::int64_t b = 0; b < packed.cols / kQuantBlock; ++b, row += step) {
        std::memcpy(scales, row, 2);
        if (minimum)
            std::memcpy(scales + 32, row + 2, 2);
        scales += minimum ? 64 : 32;
        for (int v = 0; v < fours; ++v, values += kGroupRows * 4) {
            std::uint32_t four;
            std::memcpy(&four, row + scaleBytes + 4 * v, 4);
            if (bytes)
                four ^= 0x80808080u; // two's complement to offset 128
            std::memcpy(values, &four, 4);
        }
    }
}

} // namespace

bool isQuantized(DType type) {
    return type == DType::Q4_0 || type == DType::Q4_1 || type == DType::Q8_0;
}

const char* typeName(DType type) {
    switch (type) {
    case DType::F32:
        return "F32";
    case DType::F16:
        return "F16";
    case DType::BF16:
        return "BF16";
    case DType::Q4_0:
        return "Q4_0";
    case DType::Q4_1:
        return "Q4_1";
    case DType::Q8_0:
        return "Q8_0";
    }
    return "unknown";
}

std::size_t fileRowBytes(DType type, std::int64_t cols) {
    return static_cast<std::size_t>(isQuantized(type) ? cols / kQuantBlock : cols) * blockBytes(type);
}

BackendResult<PackedWeight> packWeight(const WeightDesc& weight, Arena& arena, bool floatActivations) {
    if (blockBytes(weight.type) == 0)
        return failure(weight, "tensor type " + std::to_string(static_cast<std::uint32_t>(weight.type)) +
                                   " is not supported by the CPU kernels.");
    if (weight.rows < 1 || weight.cols < 1)
        return failure(weight, "it has no elements.");
    if (isQuantized(weight.type) && weight.cols % kQuantBlock != 0)
        return failure(weight, "rows of " + std::to_string(weight.cols) + " values cannot be " + typeName(weight.type) +
                                   ", which needs a multiple of 32.");
    const std::size_t rowBytes = fileRowBytes(weight.type, weight.cols);
    if (weight.bytes != rowBytes * static_cast<std::size_t>(weight.rows) || !weight.data)
        return failure(weight, std::to_string(weight.bytes) + " bytes do not fit its shape.");
    if (weight.rows == 1)
        return packVector(weight, arena);

    PackedWeight out;
    out.type = weight.type;
    out.rows = weight.rows;
    out.cols = weight.cols;
    out.groups = (weight.rows + kGroupRows - 1) / kGroupRows;
    out.floatActivations = floatActivations && isQuantized(weight.type);
    if (isQuantized(weight.type)) {
        const auto blocks = static_cast<std::size_t>(weight.cols / kQuantBlock);
        const std::size_t scales = blocks * kGroupRows * (weight.type == DType::Q4_1 ? 4 : 2);
        out.quantOffset = (scales + 63) / 64 * 64;
        out.groupBytes = out.quantOffset + blocks * (weight.type == DType::Q8_0 ? 512 : 256);
    } else {
        out.groupBytes = static_cast<std::size_t>(weight.cols) * kGroupRows * blockBytes(weight.type);
    }
    std::byte* data = arena.allocate(out.groupBytes * static_cast<std::size_t>(out.groups));
    if (!data)
        return failure(weight, "the system refused memory for it. Close other programs or take a smaller model.", true);
    out.data = data;
    const std::size_t step = blockBytes(weight.type);
    for (std::int64_t r = 0; r < weight.rows; ++r) {
        std::byte* group = data + static_cast<std::size_t>(r / kGroupRows) * out.groupBytes;
        const std::byte* row = weight.data + static_cast<std::size_t>(r) * rowBytes;
        const std::int64_t lane = r % kGroupRows;
        if (isQuantized(weight.type))
            packQuantizedRow(out, row, group, lane);
        else
            for (std::int64_t c = 0; c < weight.cols; ++c)
                std::memcpy(group + static_cast<std::size_t>(c * kGroupRows + lane) * step,
                            row + static_cast<std::size_t>(c) * step, step);
    }
    return {out, {}};
}

} // namespace kvscope::kernels
