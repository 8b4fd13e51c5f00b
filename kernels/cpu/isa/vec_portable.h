// SPDX-License-Identifier: GPL-3.0-or-later
//
// Sixteen lanes in plain C++ (compiler vectors of 16 bytes, which every 64-bit processor has). Same interface as
// vec_avx2.h and vec_avx512.h. There is no fused multiply-add in the baseline: `fma` rounds twice here.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define KV_FN static inline __attribute__((always_inline, unused))
#define KV_INLINE inline __attribute__((always_inline))

namespace kvscope::kernels {
namespace {

typedef float F4 __attribute__((vector_size(16)));
typedef std::int32_t I4 __attribute__((vector_size(16)));
typedef std::uint32_t U4 __attribute__((vector_size(16)));

struct F {
    F4 v[4];
};
struct I {
    I4 v[4];
};
struct Bytes { ///< 16 rows x 4 unsigned bytes
    std::uint32_t v[16];
};

constexpr int kMatmulRows = 2;   ///< activation rows of a register tile
constexpr int kScoreVectors = 1; ///< vectors of 16 keys of a register tile
constexpr int kScoreRows = 2;    ///< query rows of a register tile
constexpr int kValueVectors = 1;
constexpr int kPagedScoreVectors =
    1; ///< the same where tiles are converted as they are read: more would not stay in registers
constexpr int kPagedValueVectors = 1;

#define KV_EACH for (int i = 0; i < 4; ++i)
KV_FN F set1(float x) {
    F r;
    KV_EACH r.v[i] = F4{x, x, x, x};
    return r;
}
KV_FN F zero() {
    return set1(0);
}
KV_FN F load(const float* p) {
    F r;
    std::memcpy(&r, p, sizeof r);
    return r;
}
KV_FN void store(float* p, const F& a) {
    std::memcpy(p, &a, sizeof a);
}
KV_FN F loadPart(const float* p, int n) {
    F r = zero();
    std::memcpy(&r, p, static_cast<std::size_t>(n) * 4);
    return r;
}
KV_FN void storePart(float* p, const F& a, int n) {
    std::memcpy(p, &a, static_cast<std::size_t>(n) * 4);
}
KV_FN F add(F a, const F& b) {
    KV_EACH a.v[i] += b.v[i];
    return a;
}
KV_FN F sub(F a, const F& b) {
    KV_EACH a.v[i] -= b.v[i];
    return a;
}
KV_FN F mul(F a, const F& b) {
    KV_EACH a.v[i] *= b.v[i];
    return a;
}
KV_FN F div(F a, const F& b) {
    KV_EACH a.v[i] /= b.v[i];
    return a;
}
KV_FN F fma(const F& a, const F& b, F c) {
    KV_EACH c.v[i] += a.v[i] * b.v[i];
    return c;
}
/// The second operand when either is NaN, like the x86 instruction.
KV_FN F max(F a, const F& b) {
    KV_EACH a.v[i] = a.v[i] > b.v[i] ? a.v[i] : b.v[i];
    return a;
}
KV_FN F min(F a, const F& b) {
    KV_EACH a.v[i] = a.v[i] < b.v[i] ? a.v[i] : b.v[i];
    return a;
}
KV_FN F abs(F a) {
    KV_EACH a.v[i] = (F4)((I4)a.v[i] & 0x7fffffff);
    return a;
}
/// a where x >= limit, else 0 (also where x is NaN)
KV_FN F keepWhereAtLeast(F a, const F& x, const F& limit) {
    KV_EACH a.v[i] = (F4)((I4)a.v[i] & (I4)(x.v[i] >= limit.v[i]));
    return a;
}
/// The first n lanes of a, fill in the others.
KV_FN F keepFirst(F a, int n, float fill) {
    float t[16];
    store(t, a);
    for (int i = n; i < 16; ++i)
        t[i] = fill;
    return load(t);
}
/// To the nearest integer, ties to even; |a| below 2^22.
KV_FN F round(F a) {
    const F4 magic = {12582912.f, 12582912.f, 12582912.f, 12582912.f};
    KV_EACH a.v[i] = (a.v[i] + magic) - magic;
    return a;
}
/// 2^n for integer-valued n in -126..127
KV_FN F exp2Integer(F n) {
    KV_EACH n.v[i] = (F4)((__builtin_convertvector(n.v[i], I4) + 127) << 23);
    return n;
}
KV_FN float reduceAdd(const F& a) {
    const F4 four = (a.v[0] + a.v[2]) + (a.v[1] + a.v[3]);
    return (four[0] + four[2]) + (four[1] + four[3]);
}
KV_FN float reduceMax(const F& a) {
    F4 m = a.v[0];
    for (int i = 1; i < 4; ++i)
        m = m > a.v[i] ? m : a.v[i];
    const float x = m[0] > m[2] ? m[0] : m[2];
    const float y = m[1] > m[3] ? m[1] : m[3];
    return x > y ? x : y;
}

KV_FN float halfToFloat(std::uint16_t h) {
    const std::uint32_t sign = std::uint32_t(h & 0x8000u) << 16;
    const std::uint32_t rest = h & 0x7fffu;
    std::uint32_t bits = rest << 13;
    float value;
    if (rest >= 0x7c00u) { // infinity, NaN
        bits |= 0x7f800000u | sign;
        std::memcpy(&value, &bits, 4);
        return value;
    }
    std::memcpy(&value, &bits, 4);
    value *= 5.192296858534828e33f; // 2^112: the two exponent biases, and it makes subnormals normal
    std::memcpy(&bits, &value, 4);
    bits |= sign;
    std::memcpy(&value, &bits, 4);
    return value;
}
/// Ties to even. For |x| up to 65504 and NaN.
KV_FN std::uint16_t floatToHalf(float x) {
    std::uint32_t bits;
    std::memcpy(&bits, &x, 4);
    const std::uint16_t sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
    bits &= 0x7fffffffu;
    if (bits > 0x7f800000u)
        return static_cast<std::uint16_t>(sign | 0x7e00u);
    if (bits >= 0x477ff000u)
        return static_cast<std::uint16_t>(sign | 0x7c00u);
    if (bits < 0x38800000u) { // subnormal: adding 0.5 puts the result's last bit where float rounds
        float value;
        std::memcpy(&value, &bits, 4);
        value += 0.5f;
        std::memcpy(&bits, &value, 4);
        return static_cast<std::uint16_t>(sign | (bits - 0x3f000000u));
    }
    bits += 0x0fffu + ((bits >> 13) & 1u);
    return static_cast<std::uint16_t>(sign | ((bits - 0x38000000u) >> 13));
}
KV_FN F loadHalf(const void* p) {
    std::uint16_t h[16];
    std::memcpy(h, p, sizeof h);
    F r;
    KV_EACH {
        const U4 raw = {h[4 * i], h[4 * i + 1], h[4 * i + 2], h[4 * i + 3]};
        const U4 rest = raw & 0x7fffu;
        const F4 scale = {5.192296858534828e33f, 5.192296858534828e33f, 5.192296858534828e33f, 5.192296858534828e33f};
        U4 bits = (U4)((F4)(rest << 13) * scale);
        bits |= (U4)(rest >= 0x7c00u) & 0x7f800000u;
        r.v[i] = (F4)(bits | ((raw & 0x8000u) << 16));
    }
    return r;
}
KV_FN F loadHalfPart(const void* p, int n) {
    std::uint16_t h[16] = {};
    std::memcpy(h, p, static_cast<std::size_t>(n) * 2);
    return loadHalf(h);
}
/// Two times eight halves from different places.
KV_FN F loadHalfPair(const void* low, const void* high) {
    std::uint16_t h[16];
    std::memcpy(h, low, 16);
    std::memcpy(h + 8, high, 16);
    return loadHalf(h);
}
KV_FN void storeHalf(void* p, const F& a, int n) {
    float t[16];
    store(t, a);
    auto* out = static_cast<unsigned char*>(p);
    for (int i = 0; i < n; ++i) {
        const std::uint16_t h = floatToHalf(t[i]);
        std::memcpy(out + 2 * i, &h, 2);
    }
}
KV_FN F loadBrain(const void* p) {
    std::uint16_t h[16];
    std::memcpy(h, p, sizeof h);
    F r;
    KV_EACH {
        const U4 raw = {h[4 * i], h[4 * i + 1], h[4 * i + 2], h[4 * i + 3]};
        r.v[i] = (F4)(raw << 16);
    }
    return r;
}

/// The first eight lanes low, the others high.
KV_FN F setPair(float low, float high) {
    F r;
    KV_EACH {
        const float x = i < 2 ? low : high;
        r.v[i] = F4{x, x, x, x};
    }
    return r;
}
KV_FN F loadBrainPart(const void* p, int n) {
    std::uint16_t h[16] = {};
    std::memcpy(h, p, static_cast<std::size_t>(n) * 2);
    return loadBrain(h);
}
KV_FN F loadBrainPair(const void* low, const void* high) {
    std::uint16_t h[16];
    std::memcpy(h, low, 16);
    std::memcpy(h + 8, high, 16);
    return loadBrain(h);
}
/// Ties to even; NaN stays NaN.
KV_FN void storeBrain(void* p, const F& a, int n) {
    float t[16];
    store(t, a);
    auto* out = static_cast<unsigned char*>(p);
    for (int i = 0; i < n; ++i) {
        std::uint32_t bits;
        std::memcpy(&bits, t + i, 4);
        bits = t[i] == t[i] ? bits + 0x7fffu + ((bits >> 16) & 1u) : bits | 0x400000u;
        const auto h = static_cast<std::uint16_t>(bits >> 16);
        std::memcpy(out + 2 * i, &h, 2);
    }
}

/// Sixteen fp8_e4m3 values divided by 256: as halves they are a shift, the exponent biases differ by 8.
KV_FN F loadFp8(const void* p) {
    std::uint8_t b[16];
    std::memcpy(b, p, sizeof b);
    std::uint16_t h[16];
    for (int i = 0; i < 16; ++i)
        h[i] = static_cast<std::uint16_t>((b[i] & 0x80u) << 8 | (b[i] & 0x7fu) << 7);
    return loadHalf(h);
}
KV_FN F loadFp8Part(const void* p, int n) {
    std::uint8_t b[16] = {};
    std::memcpy(b, p, static_cast<std::size_t>(n));
    return loadFp8(b);
}
KV_FN F loadFp8Pair(const void* low, const void* high) {
    std::uint8_t b[16];
    std::memcpy(b, low, 8);
    std::memcpy(b + 8, high, 8);
    return loadFp8(b);
}
KV_FN F loadInt8(const void* p) {
    std::int8_t b[16];
    std::memcpy(b, p, sizeof b);
    F r;
    KV_EACH r.v[i] = __builtin_convertvector((I4{b[4 * i], b[4 * i + 1], b[4 * i + 2], b[4 * i + 3]}), F4);
    return r;
}
KV_FN F loadInt8Part(const void* p, int n) {
    std::int8_t b[16] = {};
    std::memcpy(b, p, static_cast<std::size_t>(n));
    return loadInt8(b);
}
KV_FN F loadInt8Pair(const void* low, const void* high) {
    std::int8_t b[16];
    std::memcpy(b, low, 8);
    std::memcpy(b + 8, high, 8);
    return loadInt8(b);
}
/// Sixteen nibbles in 8 bytes: the low one of byte j to lane j, the high one to lane 8 + j.
KV_FN F loadNibbles(const void* p) {
    std::uint8_t b[8];
    std::memcpy(b, p, sizeof b);
    std::int8_t n[16];
    for (int i = 0; i < 8; ++i) {
        n[i] = static_cast<std::int8_t>(b[i] & 15u);
        n[8 + i] = static_cast<std::int8_t>(b[i] >> 4);
    }
    return loadInt8(n);
}
/// table[nibble] for the same.
KV_FN F lookUpNibbles(const void* p, const std::int8_t* table) {
    std::uint8_t b[8];
    std::memcpy(b, p, sizeof b);
    std::int8_t n[16];
    for (int i = 0; i < 8; ++i) {
        n[i] = table[b[i] & 15u];
        n[8 + i] = table[b[i] >> 4];
    }
    return loadInt8(n);
}

KV_FN I setInt(std::int32_t x) {
    I r;
    KV_EACH r.v[i] = I4{x, x, x, x};
    return r;
}
KV_FN I addInt(I a, const I& b) {
    KV_EACH a.v[i] += b.v[i];
    return a;
}
template <int Bits> KV_FN I shiftLeft(I a) {
    KV_EACH a.v[i] = (I4)((U4)a.v[i] << Bits);
    return a;
}
KV_FN F toFloat(const I& a) {
    F r;
    KV_EACH r.v[i] = __builtin_convertvector(a.v[i], F4);
    return r;
}
/// Sixteen int8 of integer-valued lanes in -127..127.
KV_FN void storeInt8(std::int8_t* p, const F& a) {
    float t[16];
    store(t, a);
    for (int i = 0; i < 16; ++i)
        p[i] = static_cast<std::int8_t>(t[i]);
}

KV_FN Bytes loadBytes(const void* p) {
    Bytes r;
    std::memcpy(&r, p, sizeof r);
    return r;
}
KV_FN Bytes lowNibbles(Bytes a) {
    for (int i = 0; i < 16; ++i)
        a.v[i] &= 0x0f0f0f0fu;
    return a;
}
/// Bits [Shift, Shift + 8) & Mask of each lane: one of the four bytes of a row, or half of one.
template <int Shift, int Mask> KV_FN I bitsOf(const Bytes& a) {
    I r;
    KV_EACH {
        U4 u;
        std::memcpy(&u, a.v + 4 * i, sizeof u);
        r.v[i] = (I4)((u >> Shift) & static_cast<std::uint32_t>(Mask));
    }
    return r;
}
KV_FN Bytes highNibbles(Bytes a) {
    for (int i = 0; i < 16; ++i)
        a.v[i] = (a.v[i] >> 4) & 0x0f0f0f0fu;
    return a;
}
/// Per lane c + sum over its four unsigned bytes times the four signed bytes of b.
KV_FN I dotBytes(I c, const Bytes& a, std::int32_t b) {
    const std::int32_t b0 = static_cast<std::int8_t>(b), b1 = static_cast<std::int8_t>(b >> 8);
    const std::int32_t b2 = static_cast<std::int8_t>(b >> 16), b3 = b >> 24;
    KV_EACH {
        U4 u;
        std::memcpy(&u, a.v + 4 * i, sizeof u);
#if defined(__SSE2__) // part of the x86-64 baseline: multiplies pairs of 16-bit values, which plain C++ cannot say
        const auto even = (__m128i)(u & 0x00ff00ffu), odd = (__m128i)((u >> 8) & 0x00ff00ffu);
        const __m128i evenB = _mm_set1_epi32((b0 & 0xffff) | static_cast<std::int32_t>(std::uint32_t(b2) << 16));
        const __m128i oddB = _mm_set1_epi32((b1 & 0xffff) | static_cast<std::int32_t>(std::uint32_t(b3) << 16));
        c.v[i] += (I4)_mm_madd_epi16(even, evenB) + (I4)_mm_madd_epi16(odd, oddB);
#else
        c.v[i] +=
            (I4)(u & 0xffu) * b0 + (I4)((u >> 8) & 0xffu) * b1 + (I4)((u >> 16) & 0xffu) * b2 + (I4)(u >> 24) * b3;
#endif
    }
    return c;
}
/// The same for bytes up to 15.
KV_FN I dotNibbles(const I& c, const Bytes& a, std::int32_t b) {
    return dotBytes(c, a, b);
}
#undef KV_EACH

} // namespace
} // namespace kvscope::kernels
