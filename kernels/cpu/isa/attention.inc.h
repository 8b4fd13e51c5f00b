// SPDX-License-Identifier: GPL-3.0-or-later
//
// Paged attention. Included once per instruction set.
//
// Exactness: positions are always taken in partitions of 256 counted from position 0, and inside a partition in tiles
// of 64 with an online softmax. A score is one lane (products in ascending order of the head dimension), a tile's sum
// of weights is one fixed tree, a value lane sees its positions in ascending order. Partials are combined in ascending
// order. So who computes a partition, how long the chunk is and how large the blocks are changes nothing.
// Positions at or after `last` never enter an operation whose result is kept: their slots may hold anything.
// With quantized parts a token sees the blocks before its own in sealed form and its own as f16, whether that block
// became full in this step or not: so neither chunk nor company decides what it sees.
#pragma once

namespace kvscope::kernels {
namespace {

/// scores[r][64] = factor * q[r]·k for R query rows, in register tiles of R x V vectors of 16 keys.
template <int R, int V, class Tile>
KV_FN void scoreRows(const AttentionArgs& args, const Tile& tile, const float* q, float* scores) {
    const std::int64_t stride = args.kv.headDimK;
    for (int v0 = 0; v0 < kVectorsPerTile; v0 += V) {
        F acc[R][V];
        for (int r = 0; r < R; ++r)
            for (int v = 0; v < V; ++v)
                acc[r][v] = zero();
        for (std::int32_t d = 0; d < args.kv.headDimK; ++d) {
            F k[V];
            for (int v = 0; v < V; ++v)
                k[v] = tile.keys(v0 + v, d);
            for (int r = 0; r < R; ++r) {
                const F x = set1(q[r * stride + d]);
                for (int v = 0; v < V; ++v)
                    acc[r][v] = fma(x, k[v], acc[r][v]);
            }
        }
        for (int v = 0; v < V; ++v) {
            const F factor = tile.factor(v0 + v);
            for (int r = 0; r < R; ++r)
                store(scores + r * kKeyTile + (v0 + v) * 16, mul(acc[r][v], factor));
        }
    }
}

/// acc[r][dim] += sum over the first `count` positions of the tile of weights[r][position] * value.
template <int R, int V, class Tile>
KV_FN void addValues(const AttentionArgs& args, const Tile& tile, const float* weights, int count, float* acc) {
    const std::int32_t dims = args.kv.headDimV;
    const std::int64_t stride = dims;
    std::int32_t d = 0;
    for (; d + V * 16 <= dims; d += V * 16) {
        F sum[R][V];
        for (int r = 0; r < R; ++r)
            for (int v = 0; v < V; ++v)
                sum[r][v] = load(acc + r * stride + d + v * 16);
        for (int i = 0; i < count; ++i) {
            F value[V];
            for (int v = 0; v < V; ++v)
                value[v] = tile.values(i, d + v * 16);
            for (int r = 0; r < R; ++r) {
                const F w = set1(weights[r * kKeyTile + i]);
                for (int v = 0; v < V; ++v)
                    sum[r][v] = fma(w, value[v], sum[r][v]);
            }
        }
        for (int r = 0; r < R; ++r)
            for (int v = 0; v < V; ++v)
                store(acc + r * stride + d + v * 16, sum[r][v]);
    }
    for (; d < dims; d += 16) {
        const int n = dims - d < 16 ? dims - d : 16;
        for (int r = 0; r < R; ++r) {
            F sum = loadPart(acc + r * stride + d, n);
            for (int i = 0; i < count; ++i)
                sum = fma(set1(weights[r * kKeyTile + i]), tile.valuesPart(i, d, n), sum);
            storePart(acc + r * stride + d, sum, n);
        }
    }
}

/// One tile of the online softmax of one query head: scores become weights, maximum and sum are carried on, and the
/// values so far are scaled to the new maximum.
KV_FN void softmaxTile(float* scores, int count, float* maximum, float* sum, float* acc, std::int32_t dims) {
    const float lowest = -__builtin_inff();
    F s[kVectorsPerTile];
    F largest = set1(*maximum);
    for (int v = 0; v < kVectorsPerTile; ++v) {
        const int n = count - v * 16;
        s[v] = load(scores + v * 16);
        if (n < 16)
            s[v] = keepFirst(s[v], n < 0 ? 0 : n, lowest);
        largest = max(largest, s[v]);
    }
    const float newMaximum = reduceMax(largest);
    F total[kVectorsPerTile];
    for (int v = 0; v < kVectorsPerTile; ++v) {
        total[v] = expLanes(sub(s[v], set1(newMaximum)));
        store(scores + v * 16, total[v]);
    }
    const float added = reduceAdd(add(add(total[0], total[1]), add(total[2], total[3])));
    const float keep = expOne(*maximum - newMaximum);
    *maximum = newMaximum;
    *sum = *sum * keep + added;
    if (keep != 1.0f)
        for (std::int32_t d = 0; d < dims; d += 16) {
            const int n = dims - d < 16 ? dims - d : 16;
            if (n == 16)
                store(acc + d, mul(load(acc + d), set1(keep)));
            else
                storePart(acc + d, mul(loadPart(acc + d, n), set1(keep)), n);
        }
}

template <int R, int V, class Tile>
void scoreGroup(const AttentionArgs& args, const Tile& tile, const float* q, int rows, float* scores) {
    for (; rows >= R; rows -= R) {
        scoreRows<R, V>(args, tile, q, scores);
        q += R * args.kv.headDimK;
        scores += R * kKeyTile;
    }
    if constexpr (R > 1)
        if (rows > 0)
            scoreGroup<R - 1, V>(args, tile, q, rows, scores);
}

template <int R, int V, class Tile>
void valueGroup(const AttentionArgs& args, const Tile& tile, const float* weights, int rows, int count, float* acc) {
    for (; rows >= R; rows -= R) {
        addValues<R, V>(args, tile, weights, count, acc);
        weights += R * kKeyTile;
        acc += R * args.kv.headDimV;
    }
    if constexpr (R > 1)
        if (rows > 0)
            valueGroup<R - 1, V>(args, tile, weights, rows, count, acc);
}

KV_FN void softmaxRows(float* scores, int rows, int count, float* maximum, float* sum, float* acc, std::int32_t dims) {
    for (int r = 0; r < rows; ++r)
        softmaxTile(scores + r * kKeyTile, count, maximum + r, sum + r, acc + static_cast<std::int64_t>(r) * dims,
                    dims);
}

/// One flat key tile for some query rows that all see its first `count` positions: [rows] maximum, sum and values go
/// on.
KV_FN void attendTile(const AttentionArgs& args, const FlatTile& tile, const float* q, int rows, int count,
                      float* maximum, float* sum, float* acc, float* scores) {
    scoreGroup<kScoreRows, kScoreVectors>(args, tile, q, rows, scores);
    softmaxRows(scores, rows, count, maximum, sum, acc, args.kv.headDimV);
    valueGroup<kScoreRows, kValueVectors>(args, tile, scores, rows, count, acc);
}

template <KvCode Code>
void scorePaged(const AttentionArgs& args, const TileAddress& at, const float* q, int rows, float* scores) {
    const KeyTile<Code> tile(args, at);
    scoreGroup<kScoreRows, kPagedScoreVectors>(args, tile, q, rows, scores);
}

template <KvCode Code>
void valuePaged(const AttentionArgs& args, const TileAddress& at, float* weights, int rows, int count, float* acc) {
    const ValueTile<Code> tile(args, at);
    if constexpr (ValueTile<Code>::kWeightFactor != 1)
        for (std::int64_t i = 0; i < rows * kKeyTile; i += 16)
            store(weights + i, mul(load(weights + i), set1(tile.kWeightFactor)));
    valueGroup<kScoreRows, kPagedValueVectors>(args, tile, weights, rows, count, acc);
}

/// The same as attendTile for a tile where it lies in the cache, all of it sealed or of 16 bits: what decode reads once
/// per group of heads.
KV_FN void attendPaged(const AttentionArgs& args, const TileAddress& at, const float* q, int rows, int count,
                       float* maximum, float* sum, float* acc, float* scores) {
    switch (args.kv.keyCode) {
    case KvCode::F16:
        scorePaged<KvCode::F16>(args, at, q, rows, scores);
        break;
    case KvCode::BF16:
        scorePaged<KvCode::BF16>(args, at, q, rows, scores);
        break;
    case KvCode::Fp8:
        scorePaged<KvCode::Fp8>(args, at, q, rows, scores);
        break;
    case KvCode::Int8:
        scorePaged<KvCode::Int8>(args, at, q, rows, scores);
        break;
    case KvCode::Int4:
        scorePaged<KvCode::Int4>(args, at, q, rows, scores);
        break;
    case KvCode::Codebook4:
        scorePaged<KvCode::Codebook4>(args, at, q, rows, scores);
        break;
    }
    softmaxRows(scores, rows, count, maximum, sum, acc, args.kv.headDimV);
    switch (args.kv.valueCode) {
    case KvCode::F16:
        valuePaged<KvCode::F16>(args, at, scores, rows, count, acc);
        break;
    case KvCode::BF16:
        valuePaged<KvCode::BF16>(args, at, scores, rows, count, acc);
        break;
    case KvCode::Fp8:
        valuePaged<KvCode::Fp8>(args, at, scores, rows, count, acc);
        break;
    case KvCode::Int8:
        valuePaged<KvCode::Int8>(args, at, scores, rows, count, acc);
        break;
    case KvCode::Int4:
    case KvCode::Codebook4: // keys only
        valuePaged<KvCode::Int4>(args, at, scores, rows, count, acc);
        break;
    }
}

/// Fresh online softmax state of `rows` query rows.
KV_FN void resetRows(float* maximum, float* sum, float* acc, std::int64_t rows, std::int32_t dims) {
    for (std::int64_t r = 0; r < rows; ++r) {
        maximum[r] = -__builtin_inff();
        sum[r] = 0;
    }
    std::memset(acc, 0, static_cast<std::size_t>(rows * dims) * sizeof(float));
}

/// Query heads that go through a tile together; a larger group is taken in pieces.
constexpr int kHeadPiece = 16;

KV_FN bool hasOpenBlocks(const AttentionArgs& args) {
    return isQuantizedCode(args.kv.keyCode) || isQuantizedCode(args.kv.valueCode);
}

/// Positions [first, last) of one partition for one query token; see KernelTable::attendPartition.
void attendPartition(const AttentionArgs& args, std::int64_t first, std::int64_t last, float* partial, float* scratch) {
    alignas(64) float scores[kHeadPiece * kKeyTile];
    const std::int32_t dims = args.kv.headDimV;
    float* maximum = partial;
    float* sum = partial + args.group;
    float* acc = partial + 2 * args.group;
    resetRows(maximum, sum, acc, args.group, dims);
    // From here on the token's own block is read as f16.
    const std::int64_t own = args.firstPosition / args.kv.blockSize;
    const std::int64_t open = hasOpenBlocks(args) ? own * args.kv.blockSize : last;
    const bool bothQuantized = isQuantizedCode(args.kv.keyCode) && isQuantizedCode(args.kv.valueCode);
    FlatTile flat;
    flat.keyData = scratch;
    flat.valueData = scratch + args.kv.headDimK * kKeyTile;
    flat.dims = dims;
    for (std::int64_t start = first; start < last; start += kKeyTile) {
        TileAddress at;
        const bool sealed = last <= open || start + kKeyTile <= open;
        if (sealed) {
            locateTile(args, start, last, at);
        } else {
            if (const std::int64_t end = bothQuantized ? open : last; end > start) // what else is there is put over it
                flattenTile(args, start, end, flat);
            overlayOpenBlock(args, own, start, flat);
        }
        const int count = last - start < kKeyTile ? static_cast<int>(last - start) : static_cast<int>(kKeyTile);
        for (std::int32_t h = 0; h < args.group; h += kHeadPiece) {
            const int heads = args.group - h < kHeadPiece ? args.group - h : kHeadPiece;
            const float* q = args.q + static_cast<std::int64_t>(h) * args.kv.headDimK;
            float* values = acc + static_cast<std::int64_t>(h) * dims;
            if (sealed)
                attendPaged(args, at, q, heads, count, maximum + h, sum + h, values, scores);
            else
                attendTile(args, flat, q, heads, count, maximum + h, sum + h, values, scores);
        }
    }
}

/// Folds the next partition of one query head (maximum, sum, values) into the total so far.
KV_FN void foldHead(float* maximum, float* sum, float* acc, float nextMaximum, float nextSum, const float* next,
                    std::int32_t dims) {
    const float newMaximum = *maximum > nextMaximum ? *maximum : nextMaximum;
    const float keep = expOne(*maximum - newMaximum), take = expOne(nextMaximum - newMaximum);
    *maximum = newMaximum;
    *sum = *sum * keep + nextSum * take;
    for (std::int32_t d = 0; d < dims; d += 16) {
        const int n = dims - d < 16 ? dims - d : 16;
        const F scaled = mul(loadPart(acc + d, n), set1(keep));
        storePart(acc + d, fma(loadPart(next + d, n), set1(take), scaled), n);
    }
}

KV_FN void scaleHead(float* acc, float factor, std::int32_t dims) {
    for (std::int32_t d = 0; d < dims; d += 16) {
        const int n = dims - d < 16 ? dims - d : 16;
        storePart(acc + d, mul(loadPart(acc + d, n), set1(factor)), n);
    }
}

void combinePartials(const float* partials, std::int64_t count, std::int32_t group, std::int32_t dims, float* out) {
    const std::int64_t record = static_cast<std::int64_t>(group) * (2 + dims);
    for (std::int32_t h = 0; h < group; ++h) {
        const float* values = partials + 2 * group + static_cast<std::int64_t>(h) * dims;
        float* acc = out + static_cast<std::int64_t>(h) * dims;
        std::memcpy(acc, values, static_cast<std::size_t>(dims) * sizeof(float));
        float maximum = partials[h], sum = partials[group + h];
        for (std::int64_t p = 1; p < count; ++p) {
            const float* next = partials + p * record;
            foldHead(&maximum, &sum, acc, next[h], next[group + h], values + p * record, dims);
        }
        scaleHead(acc, 1.0f / sum, dims);
    }
}

/// Query rows of a chunk of tokens, token by token; their softmax state goes from tile to tile.
struct ChunkRows {
    const float* q; ///< [rows][headDimK]
    float* scores;  ///< [rows][64]
    float *maximum, *sum, *acc;
};

/// Tokens [t, end) of a chunk against a tile, each seeing another number of its positions. With quantized parts their
/// own blocks lie in the tile, one after another, and are put over it while their tokens pass.
void attendDiagonal(const AttentionArgs& args, FlatTile& tile, std::int64_t start, std::int64_t t, std::int64_t end,
                    const ChunkRows& rows) {
    const std::int64_t group = args.group, last = args.firstPosition + args.tokens;
    std::int64_t open = -1;
    for (; t < end; ++t) {
        const std::int64_t position = args.firstPosition + t, own = position / args.kv.blockSize, r = t * group;
        if (hasOpenBlocks(args) && own != open) {
            if (open >= 0) // the block before it is seen sealed from here on
                flattenTile(args, start, last, tile);
            overlayOpenBlock(args, own, start, tile);
            open = own;
        }
        attendTile(args, tile, rows.q + r * args.kv.headDimK, args.group, static_cast<int>(position + 1 - start),
                   rows.maximum + r, rows.sum + r, rows.acc + r * args.kv.headDimV, rows.scores);
    }
}

void attendTokens(const AttentionArgs& args, float* out, std::int64_t outStride, float* scratch) {
    const std::int32_t group = args.group, dims = args.kv.headDimV, dimK = args.kv.headDimK;
    const std::int64_t rows = args.tokens * group, state = rows * (2 + dims);
    const std::int64_t end = args.firstPosition + args.tokens; // what the last token sees
    const bool quantized = hasOpenBlocks(args);
    float* total = scratch;          // [rows] maximum, [rows] sum, [rows][dims] values
    float* part = total + state;     // the same for the partition at hand
    float* q = part + state;         // [rows][dimK]
    float* scores = q + rows * dimK; // [rows][64]
    float* keys = scores + rows * kKeyTile;
    float* values = keys + dimK * kKeyTile;
    for (std::int64_t t = 0; t < args.tokens; ++t)
        std::memcpy(q + t * group * dimK, args.q + t * args.qStride,
                    static_cast<std::size_t>(group) * static_cast<std::size_t>(dimK) * sizeof(float));
    FlatTile tile;
    tile.keyData = keys;
    tile.valueData = values;
    tile.dims = dims;

    for (std::int64_t partition = 0; partition < end; partition += kPartition) {
        float* now = partition == 0 ? total : part;
        float *maximum = now, *sum = now + rows, *acc = now + 2 * rows;
        resetRows(maximum, sum, acc, rows, dims);
        const std::int64_t partitionEnd = partition + kPartition < end ? partition + kPartition : end;
        for (std::int64_t start = partition; start < partitionEnd; start += kKeyTile) {
            flattenTile(args, start, end, tile);
            // Token t sees positions 0..firstPosition + t. From `whole` on, tokens see all of this tile (sealed, where
            // parts are quantized) and go through it together; those before are on its diagonal, or see nothing of it.
            const auto clamp = [&](std::int64_t t) { return t < 0 ? 0 : t < args.tokens ? t : args.tokens; };
            const std::int64_t whole = clamp(start + kKeyTile - (quantized ? 0 : 1) - args.firstPosition);
            attendDiagonal(args, tile, start, clamp(start - args.firstPosition), whole, {q, scores, maximum, sum, acc});
            if (whole < args.tokens && quantized && whole > clamp(start - args.firstPosition))
                flattenTile(args, start, end, tile);
            if (whole < args.tokens) {
                const std::int64_t r = whole * group;
                attendTile(args, tile, q + r * dimK, static_cast<int>(rows - r), static_cast<int>(kKeyTile),
                           maximum + r, sum + r, acc + r * dims, scores);
            }
        }
        if (partition == 0)
            continue;
        const std::int64_t seen = partition - args.firstPosition; // tokens before it do not reach this partition
        for (std::int64_t r = (seen < 0 ? 0 : seen) * group; r < rows; ++r)
            foldHead(total + r, total + rows + r, total + 2 * rows + r * dims, maximum[r], sum[r], acc + r * dims,
                     dims);
    }
    for (std::int64_t t = 0; t < args.tokens; ++t)
        for (std::int32_t h = 0; h < group; ++h) {
            const std::int64_t r = t * group + h;
            float* row = out + t * outStride + static_cast<std::int64_t>(h) * dims;
            std::memcpy(row, total + 2 * rows + r * dims, static_cast<std::size_t>(dims) * sizeof(float));
            scaleHead(row, 1.0f / total[rows + r], dims);
        }
}

} // namespace
} // namespace kvscope::kernels
