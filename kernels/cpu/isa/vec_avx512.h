// SPDX-License-Identifier: GPL-3.0-or-later
//
// Sixteen lanes in one AVX-512 register. Same interface as vec_portable.h, where it is described; every operation
// rounds as the one in vec_avx2.h does, so both give the same bits. With KVSCOPE_VNNI the byte dot product is one
// instruction.
#pragma once

#include <cstdint>
#include <cstring>

#include <immintrin.h>

#define KV_FN static inline __attribute__((always_inline, unused))
#define KV_INLINE inline __attribute__((always_inline))

namespace kvscope::kernels {
namespace {

typedef __m512 F;
typedef __m512i I;
typedef __m512i Bytes;

constexpr int kMatmulRows = 8;
constexpr int kScoreVectors = 4;
constexpr int kScoreRows = 6;
constexpr int kValueVectors = 4;
constexpr int kPagedScoreVectors = 4;
constexpr int kPagedValueVectors = 4;

KV_FN __mmask16 firstLanes(int n) {
    return static_cast<__mmask16>((1u << n) - 1u);
}

KV_FN F set1(float x) {
    return _mm512_set1_ps(x);
}
KV_FN F zero() {
    return _mm512_setzero_ps();
}
KV_FN F load(const float* p) {
    return _mm512_loadu_ps(p);
}
KV_FN void store(float* p, F a) {
    _mm512_storeu_ps(p, a);
}
KV_FN F loadPart(const float* p, int n) {
    return _mm512_maskz_loadu_ps(firstLanes(n), p);
}
KV_FN void storePart(float* p, F a, int n) {
    _mm512_mask_storeu_ps(p, firstLanes(n), a);
}
KV_FN F add(F a, F b) {
    return _mm512_add_ps(a, b);
}
KV_FN F sub(F a, F b) {
    return _mm512_sub_ps(a, b);
}
KV_FN F mul(F a, F b) {
    return _mm512_mul_ps(a, b);
}
KV_FN F div(F a, F b) {
    return _mm512_div_ps(a, b);
}
KV_FN F fma(F a, F b, F c) {
    return _mm512_fmadd_ps(a, b, c);
}
KV_FN F max(F a, F b) {
    return _mm512_max_ps(a, b);
}
KV_FN F min(F a, F b) {
    return _mm512_min_ps(a, b);
}
KV_FN F abs(F a) {
    return _mm512_abs_ps(a);
}
KV_FN F keepWhereAtLeast(F a, F x, F limit) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, limit, _CMP_GE_OQ), a);
}
KV_FN F keepFirst(F a, int n, float fill) {
    return _mm512_mask_mov_ps(set1(fill), firstLanes(n), a);
}
KV_FN F round(F a) {
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
KV_FN F exp2Integer(F n) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127)), 23));
}
KV_FN float reduceAdd(F a) {
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
KV_FN float reduceMax(F a) {
    const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

KV_FN F loadHalf(const void* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(p)));
}
KV_FN F loadHalfPart(const void* p, int n) {
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(firstLanes(n), p));
}
KV_FN F loadHalfPair(const void* low, const void* high) {
    return _mm512_cvtph_ps(_mm256_set_m128i(_mm_loadu_si128(static_cast<const __m128i*>(high)),
                                            _mm_loadu_si128(static_cast<const __m128i*>(low))));
}
KV_FN void storeHalf(void* p, F a, int n) {
    _mm256_mask_storeu_epi16(p, firstLanes(n), _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
KV_FN F loadBrain(const void* p) {
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(static_cast<const __m256i*>(p))), 16));
}

KV_FN F setPair(float low, float high) {
    return _mm512_mask_mov_ps(set1(high), firstLanes(8), set1(low));
}
KV_FN F brainLanes(__m256i halves) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}
KV_FN F loadBrainPart(const void* p, int n) {
    return brainLanes(_mm256_maskz_loadu_epi16(firstLanes(n), p));
}
KV_FN F loadBrainPair(const void* low, const void* high) {
    return brainLanes(_mm256_set_m128i(_mm_loadu_si128(static_cast<const __m128i*>(high)),
                                       _mm_loadu_si128(static_cast<const __m128i*>(low))));
}
KV_FN void storeBrain(void* p, F a, int n) {
    const __m512i bits = _mm512_castps_si512(a);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
    const __m512i result = _mm512_mask_mov_epi32(rounded, _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q), quiet);
    _mm256_mask_storeu_epi16(p, firstLanes(n), _mm512_cvtepi32_epi16(_mm512_srli_epi32(result, 16)));
}

KV_FN __m128i loadEight(const void* p) {
    return _mm_loadl_epi64(static_cast<const __m128i*>(p));
}
KV_FN F fp8Lanes(__m128i bytes) {
    return _mm512_cvtph_ps(_mm256_and_si256(_mm256_slli_epi16(_mm256_cvtepi8_epi16(bytes), 7),
                                            _mm256_set1_epi16(static_cast<short>(0xbf80))));
}
KV_FN F loadFp8(const void* p) {
    return fp8Lanes(_mm_loadu_si128(static_cast<const __m128i*>(p)));
}
KV_FN F loadFp8Part(const void* p, int n) {
    return fp8Lanes(_mm_maskz_loadu_epi8(firstLanes(n), p));
}
KV_FN F loadFp8Pair(const void* low, const void* high) {
    return fp8Lanes(_mm_unpacklo_epi64(loadEight(low), loadEight(high)));
}
KV_FN F int8Lanes(__m128i bytes) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
}
KV_FN F loadInt8(const void* p) {
    return int8Lanes(_mm_loadu_si128(static_cast<const __m128i*>(p)));
}
KV_FN F loadInt8Part(const void* p, int n) {
    return int8Lanes(_mm_maskz_loadu_epi8(firstLanes(n), p));
}
KV_FN F loadInt8Pair(const void* low, const void* high) {
    return int8Lanes(_mm_unpacklo_epi64(loadEight(low), loadEight(high)));
}
KV_FN __m128i nibbles16(const void* p) {
    const __m128i bytes = loadEight(p), mask = _mm_set1_epi8(15);
    return _mm_unpacklo_epi64(_mm_and_si128(bytes, mask), _mm_and_si128(_mm_srli_epi16(bytes, 4), mask));
}
KV_FN F loadNibbles(const void* p) {
    return int8Lanes(nibbles16(p));
}
KV_FN F lookUpNibbles(const void* p, const std::int8_t* table) {
    return int8Lanes(_mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table)), nibbles16(p)));
}

KV_FN I setInt(std::int32_t x) {
    return _mm512_set1_epi32(x);
}
KV_FN I addInt(I a, I b) {
    return _mm512_add_epi32(a, b);
}
template <int Bits> KV_FN I shiftLeft(I a) {
    return _mm512_slli_epi32(a, Bits);
}
KV_FN F toFloat(I a) {
    return _mm512_cvtepi32_ps(a);
}
KV_FN void storeInt8(std::int8_t* p, F a) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(a)));
}

KV_FN Bytes loadBytes(const void* p) {
    return _mm512_loadu_si512(p);
}
KV_FN Bytes lowNibbles(Bytes a) {
    return _mm512_and_si512(a, _mm512_set1_epi8(15));
}
/// Bits [Shift, Shift + 8) & Mask of each lane: one of the four bytes of a row, or half of one.
template <int Shift, int Mask> KV_FN I bitsOf(Bytes a) {
    return _mm512_and_si512(_mm512_srli_epi32(a, Shift), _mm512_set1_epi32(Mask));
}
KV_FN Bytes highNibbles(Bytes a) {
    return _mm512_and_si512(_mm512_srli_epi16(a, 4), _mm512_set1_epi8(15));
}
#if defined(KVSCOPE_VNNI)
KV_FN I dotBytes(I c, Bytes a, std::int32_t b) {
    return _mm512_dpbusd_epi32(c, a, _mm512_set1_epi32(b));
}
KV_FN I dotNibbles(I c, Bytes a, std::int32_t b) {
    return dotBytes(c, a, b);
}
#else
KV_FN I dotBytes(I c, Bytes a, std::int32_t b) {
    // Pairs of 8-bit products can exceed 16 bits, so even and odd bytes are multiplied as 16-bit values.
    const I four = _mm512_set1_epi32(b);
    const I evenA = _mm512_and_si512(a, _mm512_set1_epi16(255)), oddA = _mm512_srli_epi16(a, 8);
    const I evenB = _mm512_srai_epi16(_mm512_slli_epi16(four, 8), 8), oddB = _mm512_srai_epi16(four, 8);
    return _mm512_add_epi32(c, _mm512_add_epi32(_mm512_madd_epi16(evenA, evenB), _mm512_madd_epi16(oddA, oddB)));
}
KV_FN I dotNibbles(I c, Bytes a, std::int32_t b) {
    const I pairs = _mm512_maddubs_epi16(a, _mm512_set1_epi32(b)); // at most 2 * 15 * 127
    return _mm512_add_epi32(c, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
}
#endif

} // namespace
} // namespace kvscope::kernels
