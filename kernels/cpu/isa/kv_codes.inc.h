// SPDX-License-Identifier: GPL-3.0-or-later
//
// Writing keys and values: tokens as halves, full blocks as codes (KvCode says how), and the rotation before it.
// Included once per instruction set. A code depends on the halves of its block alone, so it does not matter in which
// step, chunk or company a block became full.
#pragma once

namespace kvscope::kernels {
namespace {

KV_FN F clampToHalf(const F& x) {
    return max(set1(-65504.0f), min(set1(65504.0f), x));
}

KV_FN std::byte* slotBlock(const KvAccess& kv, std::int32_t slot) {
    return kv.pool + static_cast<std::size_t>(slot / kv.blockSize) * kv.blockBytes + kv.headOffset;
}

KV_FN void store16Bit(KvCode code, void* p, const F& x, int n) {
    if (code == KvCode::BF16)
        storeBrain(p, x, n);
    else
        storeHalf(p, clampToHalf(x), n);
}

void storeKey(const KvAccess& kv, std::int32_t slot, const float* key) {
    std::byte* out = slotBlock(kv, slot) + static_cast<std::size_t>(slot % kv.blockSize) * 2;
    std::uint16_t half[16];
    for (std::int32_t d = 0; d < kv.headDimK; d += 16) {
        const int n = kv.headDimK - d < 16 ? kv.headDimK - d : 16;
        store16Bit(kv.keyCode, half, loadPart(key + d, n), 16);
        for (int i = 0; i < n; ++i)
            std::memcpy(out + static_cast<std::size_t>(d + i) * static_cast<std::size_t>(kv.blockSize) * 2, half + i,
                        2);
    }
}

void storeValue(const KvAccess& kv, std::int32_t slot, const float* value) {
    std::byte* out = slotBlock(kv, slot) + kv.valueOffset +
                     static_cast<std::size_t>(slot % kv.blockSize) * static_cast<std::size_t>(kv.headDimV) * 2;
    for (std::int32_t d = 0; d < kv.headDimV; d += 16) {
        const int n = kv.headDimV - d < 16 ? kv.headDimV - d : 16;
        store16Bit(kv.valueCode, out + d * 2, loadPart(value + d, n), n);
    }
}

/// Butterflies of growing width: the order of additions is the same for every row.
void hadamard(float* x, std::int64_t span, std::int64_t count) {
    const float norm = 1.0f / __builtin_sqrtf(static_cast<float>(span));
    for (float* end = x + count; x < end; x += span) {
        for (std::int64_t width = 1; width < span; width *= 2)
            for (std::int64_t i = 0; i < span; i += 2 * width)
                for (std::int64_t k = i; k < i + width; ++k) {
                    const float a = x[k], b = x[k + width];
                    x[k] = a + b;
                    x[k + width] = a - b;
                }
        for (std::int64_t i = 0; i < span; ++i)
            x[i] *= norm;
    }
}

// ---- codes of full blocks: `x` holds finite halves, or NaN of damaged weights, which becomes any code (the token that
// has it has met its own NaN already, in its own block) ----

KV_FN void loadHalves(const std::byte* from, int count, float* x) {
    for (int i = 0; i < count; i += 16) {
        const int n = count - i < 16 ? count - i : 16;
        storePart(x + i, loadHalfPart(from + i * 2, n), n);
    }
}

KV_FN void putHalf(std::byte* to, float x) {
    std::uint16_t half[16];
    storeHalf(half, set1(x), 16);
    std::memcpy(to, half, 2);
}

/// The next half that is not smaller, so that a scale of it covers what it was made for. For x >= 0.
KV_FN float halfAbove(float x) {
    std::uint16_t half[16];
    storeHalf(half, set1(x), 16);
    float out[16];
    store(out, loadHalf(half));
    if (out[0] >= x)
        return out[0];
    ++half[0];
    store(out, loadHalf(half));
    return out[0];
}

/// Nearest integer in [low, high], ties to even.
KV_FN int toInteger(float x, float low, float high) {
    x = x < high ? (x > low ? x : low) : high; // NaN: low or high
    return static_cast<int>((x + 12582912.0f) - 12582912.0f);
}

/// fp8_e4m3, ties to even, saturating at 448.
KV_FN void fp8Codes(const float* x, int count, std::byte* out) {
    for (int i = 0; i < count; ++i) {
        std::uint32_t bits;
        std::memcpy(&bits, x + i, 4);
        const std::uint32_t sign = bits >> 24 & 0x80u, size = bits & 0x7fffffffu;
        // Below 2^-6 steps are 2^-9; 8 of them are the code of 2^-6. Above, the float's own bits are rounded off.
        std::uint32_t steps;
        const float shifted = (x[i] < 0 ? -x[i] : x[i]) * 512.0f + 12582912.0f;
        std::memcpy(&steps, &shifted, 4);
        std::uint32_t code = ((size + 0x7ffffu + (size >> 20 & 1u)) >> 20) - 960u;
        code = code < 126u ? code : 126u;
        code = size < 0x3c800000u ? steps & 15u : code;
        out[i] = static_cast<std::byte>(sign | code);
    }
}

/// Signed bytes by one scale, which is returned as the half it is stored as.
KV_FN float int8Codes(const float* x, int count, std::byte* out) {
    float largest = 0;
    for (int i = 0; i < count; ++i) {
        const float size = x[i] < 0 ? -x[i] : x[i];
        largest = size > largest ? size : largest;
    }
    const float scale = halfAbove(largest / 127.0f), inverse = scale > 0 ? 1.0f / scale : 0.0f;
    for (int i = 0; i < count; ++i)
        out[i] = static_cast<std::byte>(static_cast<std::int8_t>(toInteger(x[i] * inverse, -127, 127)));
    return scale;
}

struct Affine {
    float scale, minimum;
};
/// Numbers 0..15 by scale and minimum (as the halves they are stored as).
KV_FN Affine int4Codes(const float* x, int count, std::uint8_t* codes) {
    float low = x[0], high = x[0];
    for (int i = 1; i < count; ++i) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    const Affine affine{halfAbove((high - low) / 15.0f), low};
    const float inverse = affine.scale > 0 ? 1.0f / affine.scale : 0.0f;
    for (int i = 0; i < count; ++i)
        codes[i] = static_cast<std::uint8_t>(toInteger((x[i] - low) * inverse, 0, 15));
    return affine;
}

/// Sixteen codes a time into 8 bytes; `count` is a multiple of 16.
KV_FN void packNibbles(const std::uint8_t* codes, int count, std::byte* out) {
    for (int i = 0; i < count; i += 16)
        for (int j = 0; j < 8; ++j)
            out[i / 2 + j] = static_cast<std::byte>(codes[i + j] | codes[i + 8 + j] << 4);
}

/// The Lloyd-Max levels of a normal variable for 4 bits (0.1284, 0.3881, 0.6568, 0.9424, 1.2562, 1.6181, 2.0690, 2.7326
/// standard deviations), in steps of 2.7326 / 127.
constexpr std::int8_t kLevels[16] = {-127, -96, -75, -58, -44, -31, -18, -6, 6, 18, 31, 44, 58, 75, 96, 127};
constexpr float kLevelsPerDeviation = 127.0f / 2.7326f;

/// Codes of one key against the levels, scaled to its own deviation, and the factor that gives the levels its norm.
KV_FN float levelCodes(const float* x, std::int32_t count, std::uint8_t* codes) {
    float squares = 0;
    for (std::int32_t d = 0; d < count; ++d)
        squares += x[d] * x[d];
    const float inverse =
        squares > 0 ? kLevelsPerDeviation * __builtin_sqrtf(static_cast<float>(count) / squares) : 0.0f;
    float levels = 0;
    for (std::int32_t d = 0; d < count; ++d) {
        const float scaled = x[d] * inverse;
        int code = 0;
        for (int i = 0; i < 15; ++i)
            code += scaled > static_cast<float>(kLevels[i] + kLevels[i + 1]) * 0.5f ? 1 : 0;
        codes[d] = static_cast<std::uint8_t>(code);
        levels += static_cast<float>(kLevels[code] * kLevels[code]);
    }
    return __builtin_sqrtf(squares / levels);
}

void sealKeysByLevels(const std::byte* open, const KvAccess& kv, std::byte* out) {
    const int size = kv.blockSize;
    std::byte* factors = out + static_cast<std::size_t>(kv.headDimK) * static_cast<std::size_t>(size) / 2;
    float row[64], keys[64][kMostQuantizedDims];
    std::uint8_t key[kMostQuantizedDims], byDimension[kMostQuantizedDims][64];
    for (std::int32_t d = 0; d < kv.headDimK; ++d) {
        loadHalves(open + static_cast<std::ptrdiff_t>(d) * size * 2, size, row);
        for (int i = 0; i < size; ++i)
            keys[i][d] = row[i];
    }
    for (int i = 0; i < size; ++i) {
        putHalf(factors + i * 2, levelCodes(keys[i], kv.headDimK, key));
        for (std::int32_t d = 0; d < kv.headDimK; ++d)
            byDimension[d][i] = key[d];
    }
    for (std::int32_t d = 0; d < kv.headDimK; ++d)
        packNibbles(byDimension[d], size, out + d * (size / 2));
}

void sealKeys(const std::byte* open, const KvAccess& kv, std::int32_t block) {
    std::byte* out = kv.pool + static_cast<std::size_t>(block) * kv.blockBytes + kv.headOffset;
    if (kv.keyCode == KvCode::Codebook4) {
        sealKeysByLevels(open, kv, out);
        return;
    }
    const int size = kv.blockSize;
    const bool nibbles = kv.keyCode == KvCode::Int4;
    const int rowBytes = nibbles ? size / 2 : size;
    std::byte* scales = out + static_cast<std::size_t>(kv.headDimK) * static_cast<std::size_t>(rowBytes);
    float x[64];
    std::uint8_t codes[64];
    for (std::int32_t d = 0; d < kv.headDimK; ++d, open += size * 2, out += rowBytes) {
        loadHalves(open, size, x);
        if (kv.keyCode == KvCode::Fp8) {
            fp8Codes(x, size, out);
        } else if (nibbles) {
            const Affine affine = int4Codes(x, size, codes);
            packNibbles(codes, size, out);
            putHalf(scales + d * 4, affine.scale);
            putHalf(scales + d * 4 + 2, affine.minimum);
        } else {
            putHalf(scales + d * 2, int8Codes(x, size, out));
        }
    }
}

void sealValues(const std::byte* open, const KvAccess& kv, std::int32_t block) {
    std::byte* out = kv.pool + static_cast<std::size_t>(block) * kv.blockBytes + kv.headOffset + kv.valueOffset;
    const int groups = (kv.headDimV + kKvGroup - 1) / kKvGroup;
    const bool nibbles = kv.valueCode == KvCode::Int4;
    const int rowBytes = nibbles ? groups * kKvGroup / 2 : kv.headDimV;
    std::byte* scales = out + static_cast<std::size_t>(kv.blockSize) * static_cast<std::size_t>(rowBytes);
    float x[kKvGroup];
    for (std::int32_t i = 0; i < kv.blockSize; ++i, out += rowBytes)
        for (int g = 0; g < groups; ++g) {
            const int first = g * kKvGroup, left = kv.headDimV - first, n = left < kKvGroup ? left : kKvGroup;
            loadHalves(open + (i * kv.headDimV + first) * 2, n, x);
            if (kv.valueCode == KvCode::Fp8) {
                fp8Codes(x, n, out + first);
            } else if (nibbles) {
                std::uint8_t codes[kKvGroup] = {};
                const Affine affine = int4Codes(x, n, codes);
                packNibbles(codes, kKvGroup, out + first / 2);
                putHalf(scales + (i * groups + g) * 4, affine.scale);
                putHalf(scales + (i * groups + g) * 4 + 2, affine.minimum);
            } else {
                putHalf(scales + (i * groups + g) * 2, int8Codes(x, n, out + first));
            }
        }
}

} // namespace
} // namespace kvscope::kernels
