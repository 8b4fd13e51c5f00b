// SPDX-License-Identifier: GPL-3.0-or-later
//
// Tiles of 64 cached positions as float32 lanes, whatever their code. Included once per instruction set.
//
// A key tile gives 16 positions of one dimension (`keys`) and the factor of their scores (`factor`); a value tile gives
// 16 dimensions of one position and says by what its weights are to be multiplied (`kWeightFactor`). Every code has one
// exact float32 value (codes times halves fit into 24 bits; a minimum is added with one rounding), factors that are no
// power of two are applied to scores in one place: so a tile read where it lies (decode) and a tile that was flattened
// first (prefill) give the same bits.
#pragma once

namespace kvscope::kernels {
namespace {

constexpr int kVectorsPerTile = static_cast<int>(kKeyTile) / 16;

KV_FN bool isQuantizedCode(KvCode code) {
    return code != KvCode::F16 && code != KvCode::BF16;
}

/// Where the 64 positions of a key tile lie: eight runs of eight slots (8 divides every block size).
struct TileAddress {
    const std::byte* heads[8]; ///< the run's block, at this layer and KV head
    std::size_t slots[8];      ///< the run's first slot in it
};

KV_FN void locateTile(const AttentionArgs& args, std::int64_t first, std::int64_t last, TileAddress& at) {
    const auto size = static_cast<std::uint32_t>(args.kv.blockSize);
    for (int run = 0; run < 8; ++run) {
        // Runs behind the end repeat the last block that is there; what is loaded from them is masked.
        auto position = static_cast<std::uint32_t>(first) + static_cast<std::uint32_t>(run) * 8;
        if (position >= static_cast<std::uint32_t>(last))
            position = (static_cast<std::uint32_t>(last) - 1) / 8 * 8;
        at.heads[run] = args.kv.pool + static_cast<std::size_t>(args.table[position / size]) * args.kv.blockBytes +
                        args.kv.headOffset;
        at.slots[run] = position % size;
    }
}

// ---- keys ----

/// Bytes of `width` per key in rows [dimension][slot].
struct KeyRows {
    KV_INLINE KeyRows(const AttentionArgs& args, const TileAddress& address, std::size_t width)
        : step(static_cast<std::size_t>(args.kv.blockSize) * width)
        , pairs(args.kv.blockSize == 8) {
        for (int run = 0; run < 8; ++run)
            at[run] = address.heads[run] + address.slots[run] * width;
    }
    KV_INLINE const std::byte* row(int run, std::int32_t d) const {
        return at[run] + static_cast<std::size_t>(d) * step;
    }

    const std::byte* at[8];
    std::size_t step;
    bool pairs; ///< blocks of 8: a vector's 16 positions lie in two of them
};

template <KvCode Code> struct KeyTile;

template <> struct KeyTile<KvCode::F16> {
    KV_INLINE KeyTile(const AttentionArgs& args, const TileAddress& address)
        : rows(args, address, 2)
        , scale(args.scale) {}
    KV_INLINE F keys(int v, std::int32_t d) const {
        return rows.pairs ? loadHalfPair(rows.row(2 * v, d), rows.row(2 * v + 1, d)) : loadHalf(rows.row(2 * v, d));
    }
    KV_INLINE F factor(int) const { return set1(scale); }
    KeyRows rows;
    float scale;
};

template <> struct KeyTile<KvCode::BF16> {
    KV_INLINE KeyTile(const AttentionArgs& args, const TileAddress& address)
        : rows(args, address, 2)
        , scale(args.scale) {}
    KV_INLINE F keys(int v, std::int32_t d) const {
        return rows.pairs ? loadBrainPair(rows.row(2 * v, d), rows.row(2 * v + 1, d)) : loadBrain(rows.row(2 * v, d));
    }
    KV_INLINE F factor(int) const { return set1(scale); }
    KeyRows rows;
    float scale;
};

template <> struct KeyTile<KvCode::Fp8> {
    KV_INLINE KeyTile(const AttentionArgs& args, const TileAddress& address)
        : rows(args, address, 1)
        , scale(args.scale * 256.0f) {}
    KV_INLINE F keys(int v, std::int32_t d) const {
        return rows.pairs ? loadFp8Pair(rows.row(2 * v, d), rows.row(2 * v + 1, d)) : loadFp8(rows.row(2 * v, d));
    }
    KV_INLINE F factor(int) const { return set1(scale); }
    KeyRows rows;
    float scale;
};

/// The scales of the blocks of a tile as floats, converted once: N halves per dimension, one array per run.
template <int N> struct ChannelScales {
    KV_INLINE ChannelScales(const AttentionArgs& args, const TileAddress& address, std::size_t rowBytes) {
        const std::int32_t count = args.kv.headDimK * N;
        const int runs = args.kv.blockSize / 8; // of a block; blocks do not straddle tiles
        for (int run = 0; run < 8; ++run) {
            if (run % runs != 0) {
                of[run] = of[run - 1];
                continue;
            }
            float* target = floats + run / runs * kMostQuantizedDims * N;
            of[run] = target;
            const std::byte* from = address.heads[run] + static_cast<std::size_t>(args.kv.headDimK) * rowBytes;
            for (std::int32_t i = 0; i < count; i += 16) {
                const int n = count - i < 16 ? count - i : 16;
                storePart(target + i, loadHalfPart(from + i * 2, n), n);
            }
        }
    }
    const float* of[8];
    alignas(64) float floats[8 * kMostQuantizedDims * N];
};

template <> struct KeyTile<KvCode::Int8> {
    KV_INLINE KeyTile(const AttentionArgs& args, const TileAddress& address)
        : rows(args, address, 1)
        , scales(args, address, rows.step)
        , scale(args.scale) {}
    KV_INLINE F keys(int v, std::int32_t d) const {
        const int run = 2 * v;
        if (rows.pairs)
            return mul(loadInt8Pair(rows.row(run, d), rows.row(run + 1, d)),
                       setPair(scales.of[run][d], scales.of[run + 1][d]));
        return mul(loadInt8(rows.row(run, d)), set1(scales.of[run][d]));
    }
    KV_INLINE F factor(int) const { return set1(scale); }
    KeyRows rows;
    ChannelScales<1> scales;
    float scale;
};

/// Nibbles [dimension][slot / 2]; blocks of 16 and more.
struct NibbleRows {
    KV_INLINE NibbleRows(const AttentionArgs& args, const TileAddress& address)
        : step(static_cast<std::size_t>(args.kv.blockSize) / 2) {
        for (int v = 0; v < kVectorsPerTile; ++v)
            at[v] = address.heads[2 * v] + address.slots[2 * v] / 16 * 8;
    }
    KV_INLINE const std::byte* row(int v, std::int32_t d) const { return at[v] + static_cast<std::size_t>(d) * step; }
    const std::byte* at[kVectorsPerTile];
    std::size_t step;
};

template <> struct KeyTile<KvCode::Int4> {
    KV_INLINE KeyTile(const AttentionArgs& args, const TileAddress& address)
        : rows(args, address)
        , scales(args, address, rows.step)
        , scale(args.scale) {}
    KV_INLINE F keys(int v, std::int32_t d) const {
        const float* affine = scales.of[2 * v] + 2 * d;
        return fma(loadNibbles(rows.row(v, d)), set1(affine[0]), set1(affine[1]));
    }
    KV_INLINE F factor(int) const { return set1(scale); }
    NibbleRows rows;
    ChannelScales<2> scales;
    float scale;
};

template <> struct KeyTile<KvCode::Codebook4> {
    KV_INLINE KeyTile(const AttentionArgs& args, const TileAddress& address) : rows(args, address), scale(args.scale) {
        for (int v = 0; v < kVectorsPerTile; ++v)
            factors[v] = address.heads[2 * v] + static_cast<std::size_t>(args.kv.headDimK) * rows.step +
                         address.slots[2 * v] * 2;
    }
    KV_INLINE F keys(int v, std::int32_t d) const { return lookUpNibbles(rows.row(v, d), kLevels); }
    KV_INLINE F factor(int v) const { return mul(loadHalf(factors[v]), set1(scale)); }
    NibbleRows rows;
    const std::byte* factors[kVectorsPerTile];
    float scale;
};

// ---- values ----

template <KvCode Code> struct ValueTile;

/// Rows of 16-bit values.
template <bool Brain> struct HalfValues {
    static constexpr float kWeightFactor = 1;
    KV_INLINE HalfValues(const AttentionArgs& args, const TileAddress& address)
        : step(static_cast<std::size_t>(args.kv.headDimV) * 2) {
        for (int run = 0; run < 8; ++run)
            at[run] = address.heads[run] + args.kv.valueOffset + address.slots[run] * step;
    }
    KV_INLINE F values(int position, std::int32_t d) const {
        return Brain ? loadBrain(row(position, d)) : loadHalf(row(position, d));
    }
    KV_INLINE F valuesPart(int position, std::int32_t d, int n) const {
        return Brain ? loadBrainPart(row(position, d), n) : loadHalfPart(row(position, d), n);
    }
    const std::byte* at[8];
    std::size_t step;

private:
    KV_INLINE const std::byte* row(int position, std::int32_t d) const {
        return at[position / 8] + static_cast<std::size_t>(position % 8) * step + static_cast<std::size_t>(d) * 2;
    }
};
template <> struct ValueTile<KvCode::F16> : HalfValues<false> { using HalfValues<false>::HalfValues; };
template <> struct ValueTile<KvCode::BF16> : HalfValues<true> { using HalfValues<true>::HalfValues; };

template <> struct ValueTile<KvCode::Fp8> {
    static constexpr float kWeightFactor = 256;
    KV_INLINE ValueTile(const AttentionArgs& args, const TileAddress& address)
        : step(static_cast<std::size_t>(args.kv.headDimV)) {
        for (int run = 0; run < 8; ++run)
            at[run] = address.heads[run] + args.kv.valueOffset + address.slots[run] * step;
    }
    KV_INLINE F values(int position, std::int32_t d) const { return loadFp8(row(position, d)); }
    KV_INLINE F valuesPart(int position, std::int32_t d, int n) const { return loadFp8Part(row(position, d), n); }
    const std::byte* at[8];
    std::size_t step;

private:
    KV_INLINE const std::byte* row(int position, std::int32_t d) const {
        return at[position / 8] + static_cast<std::size_t>(position % 8) * step + static_cast<std::size_t>(d);
    }
};

/// Rows of codes with N halves per group of 32, which are converted once: [position][group][N].
template <int N> struct GroupedRows {
    KV_INLINE GroupedRows(const AttentionArgs& args, const TileAddress& address, std::size_t rowBytes)
        : step(rowBytes)
        , groups((args.kv.headDimV + kKvGroup - 1) / kKvGroup) {
        const std::size_t codes = static_cast<std::size_t>(args.kv.blockSize) * rowBytes;
        const int count = 8 * groups * N; // of a run, contiguous
        for (int run = 0; run < 8; ++run) {
            const std::byte* block = address.heads[run] + args.kv.valueOffset;
            at[run] = block + address.slots[run] * step;
            const std::byte* from = block + codes + address.slots[run] * static_cast<std::size_t>(groups * N) * 2;
            for (int i = 0; i < count; i += 8)
                storePart(floats + run * count + i, loadHalfPair(from + i * 2, from + i * 2), 8);
        }
    }
    KV_INLINE const std::byte* row(int position) const {
        return at[position / 8] + static_cast<std::size_t>(position % 8) * step;
    }
    KV_INLINE const float* scale(int position, std::int32_t d) const {
        return floats + (position * groups + d / kKvGroup) * N;
    }
    const std::byte* at[8];
    std::size_t step;
    int groups;
    alignas(64) float floats[kKeyTile * (kMostQuantizedDims / kKvGroup) * N];
};

template <> struct ValueTile<KvCode::Int8> {
    static constexpr float kWeightFactor = 1;
    KV_INLINE ValueTile(const AttentionArgs& args, const TileAddress& address)
        : rows(args, address, static_cast<std::size_t>(args.kv.headDimV)) {}
    KV_INLINE F values(int position, std::int32_t d) const {
        return mul(loadInt8(rows.row(position) + d), set1(*rows.scale(position, d)));
    }
    KV_INLINE F valuesPart(int position, std::int32_t d, int n) const {
        return mul(loadInt8Part(rows.row(position) + d, n), set1(*rows.scale(position, d)));
    }
    GroupedRows<1> rows;
};

template <> struct ValueTile<KvCode::Int4> {
    static constexpr float kWeightFactor = 1;
    KV_INLINE ValueTile(const AttentionArgs& args, const TileAddress& address)
        : rows(args, address, static_cast<std::size_t>((args.kv.headDimV + kKvGroup - 1) / kKvGroup * (kKvGroup / 2))) {
    }
    KV_INLINE F values(int position, std::int32_t d) const {
        const float* affine = rows.scale(position, d);
        return fma(loadNibbles(rows.row(position) + d / 2), set1(affine[0]), set1(affine[1]));
    }
    KV_INLINE F valuesPart(int position, std::int32_t d, int) const { return values(position, d); } // rows are padded
    GroupedRows<2> rows;
};

// ---- flat tiles ----

/// Keys and values converted to float32 once, for the many query rows of prefill and where a tile is part sealed, part
/// open.
struct FlatTile {
    KV_INLINE F keys(int vector, std::int32_t d) const { return load(keyData + d * kKeyTile + vector * 16); }
    KV_INLINE F factor(int vector) const { return load(factors + vector * 16); }
    static constexpr float kWeightFactor = 1;
    KV_INLINE F values(int position, std::int32_t d) const { return load(valueData + position * dims + d); }
    KV_INLINE F valuesPart(int position, std::int32_t d, int n) const {
        return loadPart(valueData + position * dims + d, n);
    }

    float* keyData;    ///< [headDimK][64]
    float* valueData;  ///< [64][headDimV]
    std::int64_t dims; ///< headDimV
    float factors[kKeyTile];
};

template <KvCode Code> void flattenKeys(const AttentionArgs& args, const TileAddress& at, int count, FlatTile& flat) {
    const KeyTile<Code> tile(args, at);
    const int vectors = (count + 15) / 16;
    for (int v = 0; v < vectors; ++v)
        store(flat.factors + v * 16, tile.factor(v));
    for (std::int32_t d = 0; d < args.kv.headDimK; ++d)
        for (int v = 0; v < vectors; ++v)
            store(flat.keyData + d * kKeyTile + v * 16, tile.keys(v, d));
}

template <KvCode Code> void flattenValues(const AttentionArgs& args, const TileAddress& at, int count, FlatTile& flat) {
    const ValueTile<Code> tile(args, at);
    const std::int32_t dims = args.kv.headDimV;
    const F factor = set1(tile.kWeightFactor); // a power of two: exact
    for (int i = 0; i < count; ++i)
        for (std::int32_t d = 0; d < dims; d += 16) {
            const int n = dims - d < 16 ? dims - d : 16;
            if (n == 16)
                store(flat.valueData + i * dims + d, mul(tile.values(i, d), factor));
            else
                storePart(flat.valueData + i * dims + d, mul(tile.valuesPart(i, d, n), factor), n);
        }
}

/// Converts the tile from its sealed form; what stands for positions at and behind `last` is garbage that is masked
/// later.
void flattenTile(const AttentionArgs& args, std::int64_t start, std::int64_t last, FlatTile& flat) {
    TileAddress at;
    locateTile(args, start, last, at);
    const int count = last - start < kKeyTile ? static_cast<int>(last - start) : static_cast<int>(kKeyTile);
    switch (args.kv.keyCode) {
    case KvCode::F16:
        flattenKeys<KvCode::F16>(args, at, count, flat);
        break;
    case KvCode::BF16:
        flattenKeys<KvCode::BF16>(args, at, count, flat);
        break;
    case KvCode::Fp8:
        flattenKeys<KvCode::Fp8>(args, at, count, flat);
        break;
    case KvCode::Int8:
        flattenKeys<KvCode::Int8>(args, at, count, flat);
        break;
    case KvCode::Int4:
        flattenKeys<KvCode::Int4>(args, at, count, flat);
        break;
    case KvCode::Codebook4:
        flattenKeys<KvCode::Codebook4>(args, at, count, flat);
        break;
    }
    switch (args.kv.valueCode) {
    case KvCode::F16:
        flattenValues<KvCode::F16>(args, at, count, flat);
        break;
    case KvCode::BF16:
        flattenValues<KvCode::BF16>(args, at, count, flat);
        break;
    case KvCode::Fp8:
        flattenValues<KvCode::Fp8>(args, at, count, flat);
        break;
    case KvCode::Int8:
        flattenValues<KvCode::Int8>(args, at, count, flat);
        break;
    case KvCode::Int4:
    case KvCode::Codebook4: // keys only
        flattenValues<KvCode::Int4>(args, at, count, flat);
        break;
    }
}

/// Puts the f16 form of the block `block` of the sequence, which a token of this step stands in, over its sealed form.
void overlayOpenBlock(const AttentionArgs& args, std::int64_t block, std::int64_t start, FlatTile& flat) {
    const std::int32_t place = args.open.places[block - args.open.firstBlock];
    const std::byte* head = place >= 0 ? args.open.fresh + static_cast<std::size_t>(place) * args.open.freshBytes
                                       : args.open.tails + static_cast<std::size_t>(-1 - place) * args.open.tailBytes;
    const std::int64_t size = args.kv.blockSize, first = block * size - start, dims = args.kv.headDimV;
    if (isQuantizedCode(args.kv.keyCode)) {
        for (std::int64_t i = first; i < first + size; ++i)
            flat.factors[i] = args.scale;
        for (std::int64_t d = 0; d < args.kv.headDimK; ++d)
            for (std::int64_t i = 0; i < size; i += 8) {
                const std::byte* run = head + (d * size + i) * 2;
                storePart(flat.keyData + d * kKeyTile + first + i, loadHalfPair(run, run), 8);
            }
    }
    if (!isQuantizedCode(args.kv.valueCode))
        return;
    const std::byte* values = head + args.open.valueOffset;
    for (std::int64_t i = 0; i < size * dims; i += 16) {
        const int n = size * dims - i < 16 ? static_cast<int>(size * dims - i) : 16;
        storePart(flat.valueData + first * dims + i, loadHalfPart(values + i * 2, n), n);
    }
}

} // namespace
} // namespace kvscope::kernels
