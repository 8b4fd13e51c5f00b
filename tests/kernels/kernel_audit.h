// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the numerical audit measures with: units of error, random shapes and values, panels and caches with NaN in
// everything that must not be read.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/cpu/step_buffers.h"
#include "kernels/cpu/weight_packing.h"
#include "tests/kernels/kernel_tables.h"
#include "tests/kernels/kv_formats.h"
#include "tests/kernels/tiny_model.h"

namespace kvscope::tests::audit {

using namespace kernels;

inline constexpr double kUnit = 0x1p-24;
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr DType kTypes[] = {DType::F32, DType::F16, DType::BF16, DType::Q8_0, DType::Q4_0, DType::Q4_1};

inline double ulpOf(double exact) {
    const auto rounded = static_cast<float>(std::fabs(exact));
    const double smallest = std::numeric_limits<float>::denorm_min();
    return std::max(smallest, static_cast<double>(std::nextafter(rounded, std::numeric_limits<float>::infinity())) -
                                  static_cast<double>(rounded));
}

/// The largest error of one kernel on one instruction set.
class Errors {
public:
    /// `unit`: what one unit of error is here, absolute.
    void add(double got, double exact, double unit) {
        ++m_values;
        const double error = got == exact ? 0 : std::fabs(got - exact) / unit;
        m_largest = std::isnan(error) ? std::numeric_limits<double>::infinity() : std::max(m_largest, error);
    }
    double largest() const { return m_largest; }
    std::size_t values() const { return m_values; }

private:
    double m_largest = 0;
    std::size_t m_values = 0;
};

class Shapes {
public:
    explicit Shapes(unsigned seed) : m_random(seed) {}
    std::int64_t between(std::int64_t low, std::int64_t high) {
        return std::uniform_int_distribution<std::int64_t>(low, high)(m_random);
    }
    /// Normal values times a random power of two, now and then a zero, a huge or a tiny one.
    std::vector<float> values(std::int64_t count, int exponents = 6) {
        const float scale = std::ldexp(1.0f, static_cast<int>(between(-exponents, exponents)));
        std::vector<float> out = normals(m_random, static_cast<std::size_t>(count), scale);
        for (float& v : out)
            if (between(0, 40) == 0)
                v = between(0, 1) == 0 ? 0.0f : v * std::ldexp(1.0f, static_cast<int>(between(-40, 4)));
        return out;
    }
    std::mt19937& random() { return m_random; }

private:
    std::mt19937 m_random;
};

/// Rows of activations as panels want them. Rows behind the last are NaN: a tile's padding must not matter.
struct AuditPanel {
    AuditPanel(const KernelTable& k, const std::vector<float>& x, std::int64_t rows, std::int64_t cols, bool quants) {
        const std::int64_t padded = (rows + kTileRows - 1) / kTileRows * kTileRows;
        const auto values = static_cast<std::size_t>(padded * cols), blocks = values / 32;
        panel.cols = cols;
        if (quants) {
            quantized.assign(values, std::int8_t(-128));
            scales.assign(blocks, kNan);
            scaledSums.assign(blocks, kNan);
            minusSums.assign(blocks, 77);
            panel.quants = quantized.data();
            panel.scales = scales.data();
            panel.scaledSums = scaledSums.data();
            panel.minusSums = minusSums.data();
        } else {
            floats.assign(values, kNan);
            panel.floats = floats.data();
        }
        for (std::int64_t row = 0; row < rows; ++row)
            k.packRow(x.data() + row * cols, panel, row);
    }
    /// The value that the kernels see at a place.
    double at(std::int64_t row, std::int64_t col) const {
        const std::int64_t tile = row / kTileRows, lane = row % kTileRows;
        if (panel.floats)
            return panel.floats[(tile * panel.cols + col) * kTileRows + lane];
        const std::int64_t four = tile * panel.cols / 4 + col / 4;
        const std::int64_t block = tile * panel.cols / kQuantBlock + col / kQuantBlock;
        return static_cast<double>(panel.quants[(four * kTileRows + lane) * 4 + col % 4]) *
               static_cast<double>(panel.scales[block * kTileRows + lane]);
    }

    std::vector<std::int8_t> quantized;
    std::vector<float> scales, scaledSums, floats;
    std::vector<std::int32_t> minusSums;
    Panel panel;
};

/// How keys and values lie in a cache under audit.
struct AuditForm {
    KvDType keys = KvDType::F16, values = KvDType::F16;
    bool rotated = false; ///< int4 keys by the codebook
};

/// A block table over a pool whose unwritten bytes are all NaN. Full blocks are sealed; the f16 of every block is kept
/// apart, where the tokens of a step find their own block.
struct AuditCache {
    AuditCache(Shapes& shapes, int length, const AuditForm& form = {}) {
        const int sizes[] = {16, 32, 64, 8};
        KvLayout layout;
        layout.layers = 1;
        layout.kvHeads = 2;
        layout.blockSize = sizes[shapes.between(0, form.keys == KvDType::Int4 ? 2 : 3)];
        layout.headDimK = static_cast<std::int32_t>(shapes.between(1, 80));
        layout.headDimV = static_cast<std::int32_t>(shapes.between(1, 80));
        layout.format = {form.keys, form.values, form.rotated, 0};
        kv.blockSize = layout.blockSize;
        kv.headDimK = layout.headDimK;
        kv.headDimV = layout.headDimV;
        kv.valueOffset = layout.keyBytes(0);
        kv.headOffset = layout.headOffset(0, 1); // the second of two heads: a stride between blocks that is not theirs
        kv.blockBytes = layout.bytesPerBlock();
        kv.keyCode = layout.keyCode(0);
        kv.valueCode = layout.valueCode(0);
        const int blocks = (length + kv.blockSize - 1) / kv.blockSize;
        table.resize(static_cast<std::size_t>(blocks));
        std::iota(table.begin(), table.end(), 1);
        std::shuffle(table.begin(), table.end(), shapes.random());
        pool.assign(kv.blockBytes * static_cast<std::size_t>(blocks + 2), std::byte(0xff));
        kv.pool = pool.data();
        open = kv;
        open.headOffset = 0;
        open.valueOffset = layout.openKeyBytes(0);
        open.blockBytes = layout.openHeadBytes(0);
        open.keyCode = open.valueCode = KvCode::F16;
        openPool.assign(open.blockBytes * static_cast<std::size_t>(blocks), std::byte(0xff));
        open.pool = openPool.data();
        places.resize(static_cast<std::size_t>(blocks));
        std::iota(places.begin(), places.end(), 0);
        keys = shapes.values(std::int64_t(length) * kv.headDimK, 1);
        values = shapes.values(std::int64_t(length) * kv.headDimV, 3);
    }
    bool keysSealed() const { return kv.keyCode != KvCode::F16 && kv.keyCode != KvCode::BF16; }
    bool valuesSealed() const { return kv.valueCode != KvCode::F16 && kv.valueCode != KvCode::BF16; }
    void fill(const KernelTable& k, int length) {
        for (int i = 0; i < length; ++i) {
            const int slot = table[static_cast<std::size_t>(i / kv.blockSize)] * kv.blockSize + i % kv.blockSize;
            k.storeKey(keysSealed() ? open : kv, keysSealed() ? i : slot,
                       keys.data() + std::ptrdiff_t(i) * kv.headDimK);
            k.storeValue(valuesSealed() ? open : kv, valuesSealed() ? i : slot,
                         values.data() + std::ptrdiff_t(i) * kv.headDimV);
        }
        for (int block = 0; block < length / kv.blockSize; ++block) {
            const std::byte* from = open.pool + static_cast<std::size_t>(block) * open.blockBytes;
            if (keysSealed())
                k.sealKeys(from, kv, table[static_cast<std::size_t>(block)]);
            if (valuesSealed())
                k.sealValues(from + open.valueOffset, kv, table[static_cast<std::size_t>(block)]);
        }
    }
    /// What a step needs to know of the blocks that its tokens stand in.
    OpenBlocks openBlocks() const {
        OpenBlocks out;
        out.fresh = open.pool;
        out.freshBytes = open.blockBytes;
        out.valueOffset = open.valueOffset;
        out.places = places.data();
        return out;
    }
    /// The numbers that attention of the token at `reader` is to see at position `i`.
    double keyAt(int i, int d, int reader) const {
        const double own = halfToFloat(floatToHalf(keys[static_cast<std::size_t>(i * kv.headDimK + d)]));
        return keysSealed() && i / kv.blockSize == reader / kv.blockSize
                   ? own
                   : SealedReader(kv).key(table[static_cast<std::size_t>(i / kv.blockSize)], i % kv.blockSize, d);
    }
    double valueAt(int i, int d, int reader) const {
        const double own = halfToFloat(floatToHalf(values[static_cast<std::size_t>(i * kv.headDimV + d)]));
        return valuesSealed() && i / kv.blockSize == reader / kv.blockSize
                   ? own
                   : SealedReader(kv).value(table[static_cast<std::size_t>(i / kv.blockSize)], i % kv.blockSize, d);
    }
    /// Exact attention of one query head over the first `length` positions, and the largest value it could take.
    std::vector<double> exact(const float* q, float scale, int length, double& size) const {
        std::vector<double> score(static_cast<std::size_t>(length)), out(static_cast<std::size_t>(kv.headDimV));
        double largest = -1e300, sum = 0;
        for (int i = 0; i < length; ++i) {
            double dot = 0;
            for (int d = 0; d < kv.headDimK; ++d)
                dot += static_cast<double>(q[d]) * keyAt(i, d, length - 1);
            score[static_cast<std::size_t>(i)] = dot * static_cast<double>(scale);
            largest = std::max(largest, score[static_cast<std::size_t>(i)]);
        }
        for (double& s : score)
            sum += s = std::exp(s - largest);
        size = 0;
        for (int i = 0; i < length; ++i)
            for (int d = 0; d < kv.headDimV; ++d) {
                const double value = valueAt(i, d, length - 1);
                out[static_cast<std::size_t>(d)] += score[static_cast<std::size_t>(i)] / sum * value;
                size = std::max(size, std::fabs(value));
            }
        return out;
    }

    KvAccess kv, open;
    std::vector<std::int32_t> table, places;
    std::vector<std::byte> pool, openPool;
    std::vector<float> keys, values;
};

inline double act(Activation activation, double x) {
    const double z = activation == Activation::Silu ? x : 1.5957691216057308 * x * (1 + 0.044715 * x * x);
    return x / (1 + std::exp(-z));
}

} // namespace kvscope::tests::audit
