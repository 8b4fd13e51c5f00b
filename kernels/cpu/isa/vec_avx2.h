// SPDX-License-Identifier: GPL-3.0-or-later
//
// Sixteen lanes in two AVX registers, with FMA and F16C. Same interface as vec_portable.h, where it is described; every
// operation rounds as the one in vec_avx512.h does, so both give the same bits.
#pragma once

#include <cstdint>
#include <cstring>

#include <immintrin.h>

#define KV_FN static inline __attribute__((always_inline, unused))
#define KV_INLINE inline __attribute__((always_inline))

namespace kvscope::kernels {
namespace {

struct F {
    __m256 a, b;
};
struct I {
    __m256i a, b;
};
struct Bytes {
    __m256i a, b;
};

constexpr int kMatmulRows = 3;
constexpr int kScoreVectors = 2;
constexpr int kScoreRows = 3;
constexpr int kValueVectors = 2;
constexpr int kPagedScoreVectors = 1;
constexpr int kPagedValueVectors = 1;

KV_FN __m256i laneMask(int n) { // the first n of 8
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

KV_FN F set1(float x) {
    return {_mm256_set1_ps(x), _mm256_set1_ps(x)};
}
KV_FN F zero() {
    return {_mm256_setzero_ps(), _mm256_setzero_ps()};
}
KV_FN F load(const float* p) {
    return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
KV_FN void store(float* p, F x) {
    _mm256_storeu_ps(p, x.a);
    _mm256_storeu_ps(p + 8, x.b);
}
KV_FN F loadPart(const float* p, int n) {
    if (n == 16)
        return load(p);
    return {_mm256_maskload_ps(p, laneMask(n)),
            n > 8 ? _mm256_maskload_ps(p + 8, laneMask(n - 8)) : _mm256_setzero_ps()};
}
KV_FN void storePart(float* p, F x, int n) {
    if (n == 16)
        return store(p, x);
    _mm256_maskstore_ps(p, laneMask(n), x.a);
    if (n > 8)
        _mm256_maskstore_ps(p + 8, laneMask(n - 8), x.b);
}
KV_FN F add(F x, F y) {
    return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)};
}
KV_FN F sub(F x, F y) {
    return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)};
}
KV_FN F mul(F x, F y) {
    return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)};
}
KV_FN F div(F x, F y) {
    return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)};
}
KV_FN F fma(F x, F y, F z) {
    return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
}
KV_FN F max(F x, F y) {
    return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)};
}
KV_FN F min(F x, F y) {
    return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)};
}
KV_FN F abs(F x) {
    const __m256 mask = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
    return {_mm256_and_ps(x.a, mask), _mm256_and_ps(x.b, mask)};
}
KV_FN F keepWhereAtLeast(F v, F x, F limit) {
    return {_mm256_and_ps(v.a, _mm256_cmp_ps(x.a, limit.a, _CMP_GE_OQ)),
            _mm256_and_ps(v.b, _mm256_cmp_ps(x.b, limit.b, _CMP_GE_OQ))};
}
KV_FN F keepFirst(F x, int n, float fill) {
    const __m256 other = _mm256_set1_ps(fill);
    return {_mm256_blendv_ps(other, x.a, _mm256_castsi256_ps(laneMask(n))),
            _mm256_blendv_ps(other, x.b, _mm256_castsi256_ps(laneMask(n - 8)))};
}
KV_FN F round(F x) {
    return {_mm256_round_ps(x.a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
            _mm256_round_ps(x.b, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
KV_FN __m256 exp2Integer8(__m256 n) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23));
}
KV_FN F exp2Integer(F n) {
    return {exp2Integer8(n.a), exp2Integer8(n.b)};
}
KV_FN float reduceAdd(F x) {
    const __m256 eight = _mm256_add_ps(x.a, x.b);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
KV_FN float reduceMax(F x) {
    const __m256 eight = _mm256_max_ps(x.a, x.b);
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

KV_FN F loadHalfPair(const void* low, const void* high) {
    return {_mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(low))),
            _mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(high)))};
}
KV_FN F loadHalf(const void* p) {
    return loadHalfPair(p, static_cast<const char*>(p) + 16);
}
KV_FN F loadHalfPart(const void* p, int n) {
    std::uint16_t h[16] = {};
    std::memcpy(h, p, static_cast<std::size_t>(n) * 2);
    return loadHalf(h);
}
KV_FN void storeHalf(void* p, F x, int n) {
    alignas(32) std::uint16_t h[16];
    _mm_store_si128(reinterpret_cast<__m128i*>(h), _mm256_cvtps_ph(x.a, _MM_FROUND_TO_NEAREST_INT));
    _mm_store_si128(reinterpret_cast<__m128i*>(h + 8), _mm256_cvtps_ph(x.b, _MM_FROUND_TO_NEAREST_INT));
    std::memcpy(p, h, static_cast<std::size_t>(n) * 2);
}
KV_FN __m256 brain8(const void* p) {
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p))), 16));
}
KV_FN F loadBrain(const void* p) {
    return {brain8(p), brain8(static_cast<const char*>(p) + 16)};
}

KV_FN F setPair(float low, float high) {
    return {_mm256_set1_ps(low), _mm256_set1_ps(high)};
}
KV_FN F loadBrainPair(const void* low, const void* high) {
    return {brain8(low), brain8(high)};
}
KV_FN F loadBrainPart(const void* p, int n) {
    std::uint16_t h[16] = {};
    std::memcpy(h, p, static_cast<std::size_t>(n) * 2);
    return loadBrain(h);
}
KV_FN __m256i brainOf8(__m256 x) { // in the low half of each lane
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    return _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
}
KV_FN void storeBrain(void* p, F x, int n) {
    alignas(32) std::uint16_t h[16];
    const __m256i words = _mm256_packus_epi32(brainOf8(x.a), brainOf8(x.b)); // by 128-bit halves
    _mm256_store_si256(reinterpret_cast<__m256i*>(h), _mm256_permute4x64_epi64(words, 0xd8));
    std::memcpy(p, h, static_cast<std::size_t>(n) * 2);
}

KV_FN __m128i loadEight(const void* p) {
    return _mm_loadl_epi64(static_cast<const __m128i*>(p));
}
KV_FN F fp8Lanes(__m128i bytes) {
    const __m256i halves = _mm256_and_si256(_mm256_slli_epi16(_mm256_cvtepi8_epi16(bytes), 7),
                                            _mm256_set1_epi16(static_cast<short>(0xbf80)));
    return {_mm256_cvtph_ps(_mm256_castsi256_si128(halves)), _mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1))};
}
KV_FN F loadFp8(const void* p) {
    return fp8Lanes(_mm_loadu_si128(static_cast<const __m128i*>(p)));
}
KV_FN F loadFp8Part(const void* p, int n) {
    std::uint8_t b[16] = {};
    std::memcpy(b, p, static_cast<std::size_t>(n));
    return loadFp8(b);
}
KV_FN F loadFp8Pair(const void* low, const void* high) {
    return fp8Lanes(_mm_unpacklo_epi64(loadEight(low), loadEight(high)));
}
KV_FN F loadInt8Pair(const void* low, const void* high) {
    return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(loadEight(low))),
            _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(loadEight(high)))};
}
KV_FN F loadInt8(const void* p) {
    return loadInt8Pair(p, static_cast<const char*>(p) + 8);
}
KV_FN F loadInt8Part(const void* p, int n) {
    std::int8_t b[16] = {};
    std::memcpy(b, p, static_cast<std::size_t>(n));
    return loadInt8(b);
}
KV_FN F loadNibbles(const void* p) {
    const __m256i bytes = _mm256_cvtepu8_epi32(loadEight(p));
    return {_mm256_cvtepi32_ps(_mm256_and_si256(bytes, _mm256_set1_epi32(15))),
            _mm256_cvtepi32_ps(_mm256_srli_epi32(bytes, 4))};
}
KV_FN F lookUpNibbles(const void* p, const std::int8_t* table) {
    const __m128i bytes = loadEight(p), mask = _mm_set1_epi8(15);
    const __m128i nibbles =
        _mm_unpacklo_epi64(_mm_and_si128(bytes, mask), _mm_and_si128(_mm_srli_epi16(bytes, 4), mask));
    const __m128i levels = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table)), nibbles);
    return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(levels)),
            _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(levels, 8)))};
}

KV_FN I setInt(std::int32_t x) {
    return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)};
}
KV_FN I addInt(I x, I y) {
    return {_mm256_add_epi32(x.a, y.a), _mm256_add_epi32(x.b, y.b)};
}
template <int Bits> KV_FN I shiftLeft(I x) {
    return {_mm256_slli_epi32(x.a, Bits), _mm256_slli_epi32(x.b, Bits)};
}
KV_FN F toFloat(I x) {
    return {_mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b)};
}
KV_FN void storeInt8(std::int8_t* p, F x) {
    const __m256i words = _mm256_packs_epi32(_mm256_cvtps_epi32(x.a), _mm256_cvtps_epi32(x.b)); // by 128-bit halves
    const __m256i ordered = _mm256_permute4x64_epi64(words, 0xd8);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                     _mm_packs_epi16(_mm256_castsi256_si128(ordered), _mm256_extracti128_si256(ordered, 1)));
}

KV_FN Bytes loadBytes(const void* p) {
    const auto* q = static_cast<const __m256i*>(p);
    return {_mm256_loadu_si256(q), _mm256_loadu_si256(q + 1)};
}
KV_FN Bytes lowNibbles(Bytes x) {
    const __m256i mask = _mm256_set1_epi8(15);
    return {_mm256_and_si256(x.a, mask), _mm256_and_si256(x.b, mask)};
}
/// Bits [Shift, Shift + 8) & Mask of each lane: one of the four bytes of a row, or half of one.
template <int Shift, int Mask> KV_FN I bitsOf(Bytes x) {
    const __m256i mask = _mm256_set1_epi32(Mask);
    return {_mm256_and_si256(_mm256_srli_epi32(x.a, Shift), mask),
            _mm256_and_si256(_mm256_srli_epi32(x.b, Shift), mask)};
}
KV_FN Bytes highNibbles(Bytes x) {
    const __m256i mask = _mm256_set1_epi8(15);
    return {_mm256_and_si256(_mm256_srli_epi16(x.a, 4), mask), _mm256_and_si256(_mm256_srli_epi16(x.b, 4), mask)};
}
KV_FN __m256i dotBytes8(__m256i c, __m256i a, __m256i evenB, __m256i oddB) {
    const __m256i even = _mm256_and_si256(a, _mm256_set1_epi16(255)), odd = _mm256_srli_epi16(a, 8);
    return _mm256_add_epi32(c, _mm256_add_epi32(_mm256_madd_epi16(even, evenB), _mm256_madd_epi16(odd, oddB)));
}
KV_FN I dotBytes(I c, Bytes x, std::int32_t b) {
    // Pairs of 8-bit products can exceed 16 bits, so even and odd bytes are multiplied as 16-bit values.
    const __m256i four = _mm256_set1_epi32(b);
    const __m256i even = _mm256_srai_epi16(_mm256_slli_epi16(four, 8), 8), odd = _mm256_srai_epi16(four, 8);
    return {dotBytes8(c.a, x.a, even, odd), dotBytes8(c.b, x.b, even, odd)};
}
KV_FN I dotNibbles(I c, Bytes x, std::int32_t b) {
    const __m256i four = _mm256_set1_epi32(b), ones = _mm256_set1_epi16(1);
    // At most 2 * 15 * 127 a pair.
    return {_mm256_add_epi32(c.a, _mm256_madd_epi16(_mm256_maddubs_epi16(x.a, four), ones)),
            _mm256_add_epi32(c.b, _mm256_madd_epi16(_mm256_maddubs_epi16(x.b, four), ones))};
}

} // namespace
} // namespace kvscope::kernels
