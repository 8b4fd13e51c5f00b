// SPDX-License-Identifier: GPL-3.0-or-later
//
// Matrix kernels: 16 output rows times 1..8 activation rows. Included once per instruction set.
//
// Exactness: an output is one lane. It sees its blocks of 32 in ascending order: an exact integer dot product, then
// one multiply-add into the lane (Q4_1: two). Float weights have two lanes per output, for even and odd columns, added
// at the end. How many activation rows share the register tile changes nothing, so one row alone (decode) and many
// rows (prefill, batches) give the same bits.
#pragma once

namespace kvscope::kernels {
namespace {

/// Accumulates the quantized group into acc[R]. `rows` is the first of the R activation rows inside its tile.
template <DType Type, int R>
KV_FN void quantTile(const PackedWeight& weight, const std::byte* group, const Panel& panel, std::int64_t tile,
                     std::int64_t rows, F* acc) {
    const std::int64_t blocks = weight.cols / kQuantBlock;
    const std::byte* scales = group;
    const std::byte* values = group + weight.quantOffset;
    const std::int8_t* quants = panel.quants + tile * panel.cols * kTileRows + rows * 4;
    const std::int64_t first = tile * blocks * kTileRows + rows;
    const float* activationScales = panel.scales + first;
    const std::int32_t* minusSums = panel.minusSums + first;
    const float* scaledSums = panel.scaledSums + first;
    for (int r = 0; r < R; ++r)
        acc[r] = zero();
    for (std::int64_t b = 0; b < blocks; ++b) {
        I dot[R];
        for (int r = 0; r < R; ++r) {
            // Weights are stored unsigned; what was added is taken away again as a multiple of the activations' sum.
            if constexpr (Type == DType::Q8_0)
                dot[r] = shiftLeft<7>(setInt(minusSums[r]));
            else if constexpr (Type == DType::Q4_0)
                dot[r] = shiftLeft<3>(setInt(minusSums[r]));
            else
                dot[r] = setInt(0);
        }
        const auto activation = [&](int v, int r) {
            std::int32_t four;
            std::memcpy(&four, quants + (v * kTileRows + r) * 4, 4);
            return four;
        };
        if constexpr (Type == DType::Q8_0) {
            for (int v = 0; v < 8; ++v) {
                const Bytes w = loadBytes(values + v * 64);
                for (int r = 0; r < R; ++r)
                    dot[r] = dotBytes(dot[r], w, activation(v, r));
            }
            values += 512;
        } else {
            for (int v = 0; v < 4; ++v) {
                const Bytes w = loadBytes(values + v * 64);
                const Bytes low = lowNibbles(w), high = highNibbles(w);
                for (int r = 0; r < R; ++r)
                    dot[r] = dotNibbles(dot[r], low, activation(v, r));
                for (int r = 0; r < R; ++r)
                    dot[r] = dotNibbles(dot[r], high, activation(v + 4, r));
            }
            values += 256;
        }
        const F scale = loadHalf(scales);
        for (int r = 0; r < R; ++r)
            acc[r] = fma(toFloat(dot[r]), mul(scale, set1(activationScales[r])), acc[r]);
        scales += 32;
        if constexpr (Type == DType::Q4_1) {
            const F minimum = loadHalf(scales);
            for (int r = 0; r < R; ++r)
                acc[r] = fma(minimum, set1(scaledSums[r]), acc[r]);
            scales += 32;
        }
        quants += kQuantBlock * kTileRows;
        activationScales += kTileRows;
        minusSums += kTileRows;
        scaledSums += kTileRows;
    }
}

template <DType Type> KV_FN F loadColumn(const std::byte* column) {
    if constexpr (Type == DType::F32)
        return load(reinterpret_cast<const float*>(column));
    else if constexpr (Type == DType::F16)
        return loadHalf(column);
    else
        return loadBrain(column);
}

template <DType Type, int R>
KV_FN void floatTile(const PackedWeight& weight, const std::byte* group, const Panel& panel, std::int64_t tile,
                     std::int64_t rows, F* acc) {
    constexpr std::int64_t kColumnBytes = Type == DType::F32 ? 64 : 32;
    const float* x = panel.floats + tile * panel.cols * kTileRows + rows;
    F odd[R];
    for (int r = 0; r < R; ++r)
        acc[r] = odd[r] = zero();
    std::int64_t c = 0;
    for (; c + 2 <= weight.cols; c += 2) {
        const F w0 = loadColumn<Type>(group), w1 = loadColumn<Type>(group + kColumnBytes);
        for (int r = 0; r < R; ++r) {
            acc[r] = fma(w0, set1(x[r]), acc[r]);
            odd[r] = fma(w1, set1(x[kTileRows + r]), odd[r]);
        }
        group += 2 * kColumnBytes;
        x += 2 * kTileRows;
    }
    if (c < weight.cols)
        for (int r = 0; r < R; ++r)
            acc[r] = fma(loadColumn<Type>(group), set1(x[r]), acc[r]);
    for (int r = 0; r < R; ++r)
        acc[r] = add(acc[r], odd[r]);
}

/// One column of a quantized block, dequantized as in float32 (one rounding at most), times R activations.
template <DType Type, int Shift, int R>
KV_FN void addColumn(const Bytes& bytes, const F& scale, const F& minimum, const float* x, F* acc) {
    F value;
    if constexpr (Type == DType::Q8_0)
        value = mul(scale, toFloat(addInt(bitsOf<Shift, 255>(bytes), setInt(-128))));
    else if constexpr (Type == DType::Q4_0)
        value = mul(scale, toFloat(addInt(bitsOf<Shift, 15>(bytes), setInt(-8))));
    else
        value = fma(scale, toFloat(bitsOf<Shift, 15>(bytes)), minimum);
    for (int r = 0; r < R; ++r)
        acc[r] = fma(value, set1(x[r]), acc[r]);
}

/// A quantized group with float activations, in the order of floatTile: the same bits as of a float32 weight that holds
/// the dequantized values.
template <DType Type, int R>
KV_FN void dequantizedTile(const PackedWeight& weight, const std::byte* group, const Panel& panel, std::int64_t tile,
                           std::int64_t rows, F* acc) {
    constexpr int kFours = Type == DType::Q8_0 ? 8 : 4, kHalves = Type == DType::Q8_0 ? 1 : 2;
    const std::byte* scales = group;
    const std::byte* values = group + weight.quantOffset;
    const float* x = panel.floats + tile * panel.cols * kTileRows + rows;
    F odd[R];
    for (int r = 0; r < R; ++r)
        acc[r] = odd[r] = zero();
    for (std::int64_t b = 0; b < weight.cols / kQuantBlock; ++b) {
        const F scale = loadHalf(scales);
        const F minimum = Type == DType::Q4_1 ? loadHalf(scales + 32) : zero();
        scales += Type == DType::Q4_1 ? 64 : 32;
        for (int half = 0; half < kHalves; ++half)
            for (int v = 0; v < kFours; ++v, x += 4 * kTileRows) {
                const Bytes raw = loadBytes(values + v * 64);
                const Bytes four = half == 0 ? raw : highNibbles(raw);
                addColumn<Type, 0, R>(four, scale, minimum, x, acc);
                addColumn<Type, 8, R>(four, scale, minimum, x + kTileRows, odd);
                addColumn<Type, 16, R>(four, scale, minimum, x + 2 * kTileRows, acc);
                addColumn<Type, 24, R>(four, scale, minimum, x + 3 * kTileRows, odd);
            }
        values += kFours * 64;
    }
    for (int r = 0; r < R; ++r)
        acc[r] = add(acc[r], odd[r]);
}

/// `Floats`: with float activations, whatever the type.
template <DType Type, bool Floats, int R> void tileRows(const MatmulArgs& args, std::int64_t group, std::int64_t row) {
    const PackedWeight& weight = *args.weight;
    const std::byte* data = weight.data + static_cast<std::size_t>(group) * weight.groupBytes;
    const std::int64_t tile = row / kTileRows, inTile = row % kTileRows;
    F acc[R];
    if constexpr (Type == DType::F32 || Type == DType::F16 || Type == DType::BF16)
        floatTile<Type, R>(weight, data, *args.panel, tile, inTile, acc);
    else if constexpr (Floats)
        dequantizedTile<Type, R>(weight, data, *args.panel, tile, inTile, acc);
    else
        quantTile<Type, R>(weight, data, *args.panel, tile, inTile, acc);
    const std::int64_t column = (group - args.firstGroup) * kGroupRows;
    const std::int64_t left = weight.rows - group * kGroupRows;
    float* out = args.out + (row - args.firstRow) * args.stride + column;
    const int n = left < kGroupRows ? static_cast<int>(left) : static_cast<int>(kGroupRows);
    for (int r = 0; r < R; ++r, out += args.stride) {
        F y = acc[r];
        if (n == kGroupRows) {
            if (args.bias)
                y = add(y, load(args.bias + column));
            store(out, args.add ? add(load(out), y) : y);
        } else {
            if (args.bias)
                y = add(y, loadPart(args.bias + column, n));
            storePart(out, args.add ? add(loadPart(out, n), y) : y, n);
        }
    }
}

/// The rows of one tile in pieces that fit the registers.
template <DType Type, bool Floats, int R>
void tilePieces(const MatmulArgs& args, std::int64_t group, std::int64_t row, std::int64_t end) {
    for (; row + R <= end; row += R)
        tileRows<Type, Floats, R>(args, group, row);
    if constexpr (R > 1)
        if (row < end)
            tilePieces<Type, Floats, R - 1>(args, group, row, end);
}

template <DType Type, bool Floats> void matmulOf(const MatmulArgs& args) {
    for (std::int64_t group = args.firstGroup; group < args.lastGroup; ++group)
        for (std::int64_t row = args.firstRow; row < args.lastRow; row += kTileRows) {
            const std::int64_t end = row + kTileRows < args.lastRow ? row + kTileRows : args.lastRow;
            tilePieces<Type, Floats, kMatmulRows>(args, group, row, end);
        }
}

template <DType Type> void matmulQuantized(const MatmulArgs& args) {
    if (args.weight->floatActivations)
        matmulOf<Type, true>(args);
    else
        matmulOf<Type, false>(args);
}

void matmul(const MatmulArgs& args) {
    switch (args.weight->type) {
    case DType::F32:
        return matmulOf<DType::F32, true>(args);
    case DType::F16:
        return matmulOf<DType::F16, true>(args);
    case DType::BF16:
        return matmulOf<DType::BF16, true>(args);
    case DType::Q8_0:
        return matmulQuantized<DType::Q8_0>(args);
    case DType::Q4_0:
        return matmulQuantized<DType::Q4_0>(args);
    case DType::Q4_1:
        return matmulQuantized<DType::Q4_1>(args);
    }
}

KV_FN float halfAt(const std::byte* p) {
    std::uint16_t h[16] = {};
    std::memcpy(h, p, 2);
    float t[16];
    store(t, loadHalf(h));
    return t[0];
}

void unpackQuantized(const PackedWeight& weight, const std::byte* group, std::int64_t lane, float scale, float* out) {
    const bool minimum = weight.type == DType::Q4_1;
    const auto* values = reinterpret_cast<const std::uint8_t*>(group + weight.quantOffset);
    for (std::int64_t b = 0; b < weight.cols / kQuantBlock; ++b, out += kQuantBlock) {
        const std::byte* scales = group + b * (minimum ? 64 : 32) + lane * 2;
        const float d = halfAt(scales), m = minimum ? halfAt(scales + 32) : 0.0f;
        if (weight.type == DType::Q8_0) {
            for (int i = 0; i < kQuantBlock; ++i)
                out[i] = d * static_cast<float>(values[(i / 4) * 64 + lane * 4 + i % 4] - 128) * scale;
            values += 512;
            continue;
        }
        const int offset = minimum ? 0 : 8;
        for (int i = 0; i < 16; ++i) {
            const int byte = values[(i / 4) * 64 + lane * 4 + i % 4];
            out[i] = (d * static_cast<float>((byte & 15) - offset) + m) * scale;
            out[i + 16] = (d * static_cast<float>((byte >> 4) - offset) + m) * scale;
        }
        values += 256;
    }
}

void unpackRow(const PackedWeight& weight, std::int64_t row, float scale, float* out) {
    const std::byte* group = weight.data + static_cast<std::size_t>(row / kGroupRows) * weight.groupBytes;
    const std::int64_t lane = row % kGroupRows;
    if (weight.type == DType::Q8_0 || weight.type == DType::Q4_0 || weight.type == DType::Q4_1)
        return unpackQuantized(weight, group, lane, scale, out);
    const std::int64_t bytes = weight.type == DType::F32 ? 4 : 2;
    for (std::int64_t c = 0; c < weight.cols; ++c) {
        const std::byte* element = group + (c * kGroupRows + lane) * bytes;
        float value;
        if (weight.type == DType::F32) {
            std::memcpy(&value, element, 4);
        } else if (weight.type == DType::F16) {
            value = halfAt(element);
        } else {
            std::uint16_t high;
            std::memcpy(&high, element, 2);
            const std::uint32_t bits = std::uint32_t(high) << 16;
            std::memcpy(&value, &bits, 4);
        }
        out[c] = value * scale;
    }
}

} // namespace
} // namespace kvscope::kernels
