// SPDX-License-Identifier: GPL-3.0-or-later
//
// Row-wise kernels over the sixteen lanes of vec_*.h. Included once per instruction set.
// Every reduction runs over lanes (element i goes to lane i mod 16) and ends in one fixed tree: its order depends on
// the row's length only.
#pragma once

namespace kvscope::kernels {
namespace {

/// e^x, relative error below 2e-7 up to x = 88 (beyond: e^88); 0 below -87.3 and for NaN.
KV_FN F expLanes(const F& x) {
    const F limit = set1(-87.33654f);
    const F clamped = max(limit, min(set1(88.0f), x));
    const F n = round(mul(clamped, set1(1.44269504f)));
    // ln 2 in two parts, so that the remainder is exact enough.
    F r = fma(n, set1(-0.693359375f), clamped);
    r = fma(n, set1(2.12194440e-4f), r);
    // (e^r - 1 - r) / r^2 interpolated at the Chebyshev nodes of |r| <= ln2 / 2.
    F p = set1(1.9891031551803e-4f);
    p = fma(p, r, set1(1.3933686670748e-3f));
    p = fma(p, r, set1(8.3333108887727e-3f));
    p = fma(p, r, set1(4.1666464594739e-2f));
    p = fma(p, r, set1(1.6666666681659e-1f));
    p = fma(p, r, set1(5.0000000134989e-1f));
    const F y = add(fma(mul(r, r), p, r), set1(1.0f));
    return keepWhereAtLeast(mul(y, exp2Integer(n)), x, limit);
}

float expOne(float x) {
    float t[16];
    store(t, expLanes(set1(x)));
    return t[0];
}

/// What a row of `count` values is multiplied with before its weights.
KV_FN F rmsScale(const float* x, float eps, std::int64_t count) {
    F sum = zero();
    std::int64_t i = 0;
    for (; i + 16 <= count; i += 16) {
        const F v = load(x + i);
        sum = fma(v, v, sum);
    }
    const int tail = static_cast<int>(count - i);
    if (tail) {
        const F v = loadPart(x + i, tail);
        sum = fma(v, v, sum);
    }
    const float mean = reduceAdd(sum) / static_cast<float>(count);
    return set1(1.0f / __builtin_sqrtf(mean + eps));
}

void rmsNorm(const float* x, const float* weight, float eps, std::int64_t count, float* out) {
    const F scale = rmsScale(x, eps, count);
    std::int64_t i = 0;
    for (; i + 16 <= count; i += 16)
        store(out + i, mul(mul(load(x + i), scale), load(weight + i)));
    if (const int tail = static_cast<int>(count - i))
        storePart(out + i, mul(mul(loadPart(x + i, tail), scale), loadPart(weight + i, tail)), tail);
}

void addRmsNorm(const float* x, const float* weight, float eps, std::int64_t count, float* out) {
    const F scale = rmsScale(x, eps, count);
    std::int64_t i = 0;
    for (; i + 16 <= count; i += 16)
        store(out + i, add(load(out + i), mul(mul(load(x + i), scale), load(weight + i))));
    if (const int tail = static_cast<int>(count - i))
        storePart(out + i,
                  add(loadPart(out + i, tail), mul(mul(loadPart(x + i, tail), scale), loadPart(weight + i, tail))),
                  tail);
}

/// Blocks of activations that are nowhere above this are zero: the inverse of their scale would be infinite.
constexpr float kTiniest = 1e-36f;

void packQuantized(const float* x, const Panel& panel, std::int64_t tile, std::int64_t lane) {
    const std::int64_t blocks = panel.cols / kQuantBlock;
    std::int8_t* quants = panel.quants + tile * panel.cols * kTileRows + lane * 4;
    const std::int64_t first = tile * blocks * kTileRows + lane;
    for (std::int64_t b = 0; b < blocks; ++b) {
        const F low = load(x + b * kQuantBlock), high = load(x + b * kQuantBlock + 16);
        const float largest = reduceMax(max(abs(low), abs(high)));
        const bool nothing = largest <= kTiniest;
        const float inverse = nothing ? 0.0f : 127.0f / largest;
        const F q0 = round(mul(low, set1(inverse))), q1 = round(mul(high, set1(inverse)));
        float sum = reduceAdd(add(q0, q1)); // small integers: exact in any order; NaN when a value is infinite or NaN
        float scale = nothing ? 0.0f : largest / 127.0f;
        alignas(64) std::int8_t q[kQuantBlock] = {};
        if (sum == sum && largest < __builtin_inff()) {
            storeInt8(q, q0);
            storeInt8(q + 16, q1);
        } else { // damaged weights: has to reach the logits, where it is noticed
            scale = __builtin_nanf("");
            sum = 0;
        }
        const std::int64_t at = first + b * kTileRows;
        panel.scales[at] = scale;
        panel.minusSums[at] = -static_cast<std::int32_t>(sum);
        panel.scaledSums[at] = scale * sum;
        for (int v = 0; v < kQuantBlock / 4; ++v)
            std::memcpy(quants + (b * (kQuantBlock / 4) + v) * kTileRows * 4, q + 4 * v, 4);
    }
}

void packRow(const float* x, const Panel& panel, std::int64_t row) {
    const std::int64_t tile = row / kTileRows, lane = row % kTileRows;
    if (panel.quants)
        packQuantized(x, panel, tile, lane);
    if (panel.floats) {
        float* out = panel.floats + tile * panel.cols * kTileRows + lane;
        for (std::int64_t i = 0; i < panel.cols; ++i)
            out[i * kTileRows] = x[i];
    }
}

void rope(RopeStyle style, float* head, const float* cosine, const float* sine, std::int64_t pairs) {
    const std::int64_t step = style == RopeStyle::Interleaved ? 2 : 1;
    const std::int64_t partner = style == RopeStyle::Interleaved ? 1 : pairs;
    for (std::int64_t i = 0; i < pairs; ++i) {
        float& a = head[i * step];
        float& b = head[i * step + partner];
        const float x = a, y = b;
        a = x * cosine[i] - y * sine[i];
        b = x * sine[i] + y * cosine[i];
    }
}

KV_FN F activateLanes(Activation activation, const F& x) {
    // silu(x) = x / (1 + e^-x); gelu(x) = x / (1 + e^-2u) with u = sqrt(2/pi) (x + 0.044715 x^3), as 1 + tanh u =
    // 2 / (1 + e^-2u).
    F z = x;
    if (activation == Activation::GeluTanh)
        z = mul(mul(set1(1.5957691216f), x), fma(mul(set1(0.044715f), x), x, set1(1.0f)));
    return div(x, add(set1(1.0f), expLanes(sub(zero(), z))));
}

void activate(Activation activation, const float* gate, const float* up, std::int64_t count, float* out) {
    std::int64_t i = 0;
    for (; i + 16 <= count; i += 16)
        store(out + i, mul(activateLanes(activation, load(gate + i)), load(up + i)));
    if (const int tail = static_cast<int>(count - i))
        storePart(out + i, mul(activateLanes(activation, loadPart(gate + i, tail)), loadPart(up + i, tail)), tail);
}

SoftmaxStats softmaxStats(const float* x, std::int64_t count) {
    const float lowest = -__builtin_inff();
    F largest = set1(lowest);
    std::int64_t i = 0;
    for (; i + 16 <= count; i += 16)
        largest = max(load(x + i), largest); // NaN: max returns its second operand
    for (; i < count; ++i)
        largest = max(keepFirst(loadPart(x + i, 1), 1, lowest), largest);
    SoftmaxStats stats;
    stats.maximum = reduceMax(largest);
    if (!(stats.maximum > lowest))
        return stats;
    // The sum in double: 16 lanes of float would lose digits over a vocabulary of 150,000.
    double lanes[16] = {};
    float e[16];
    for (i = 0; i < count; i += 16) {
        const int n = count - i < 16 ? static_cast<int>(count - i) : 16;
        const F v = n == 16 ? load(x + i) : keepFirst(loadPart(x + i, n), n, lowest);
        store(e, expLanes(sub(v, set1(stats.maximum))));
        for (int k = 0; k < 16; ++k)
            lanes[k] += static_cast<double>(e[k]);
        if (stats.index < 0)
            for (int k = 0; k < n; ++k)
                if (x[i + k] == stats.maximum) {
                    stats.index = static_cast<std::int32_t>(i + k);
                    break;
                }
    }
    for (int width = 8; width > 0; width /= 2)
        for (int k = 0; k < width; ++k)
            lanes[k] += lanes[k + width];
    stats.sum = lanes[0];
    return stats;
}

void expScaled(const float* x, float shift, float factor, std::int64_t count, float* out) {
    for (std::int64_t i = 0; i < count; i += 16) {
        const int n = count - i < 16 ? static_cast<int>(count - i) : 16;
        storePart(out + i, expLanes(mul(sub(loadPart(x + i, n), set1(shift)), set1(factor))), n);
    }
}

} // namespace
} // namespace kvscope::kernels
