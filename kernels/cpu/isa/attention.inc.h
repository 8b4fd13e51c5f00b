// SPDX-License-Identifier: GPL-3.0-or-later
//
// Paged attention. Included once per instruction set.
//
// Exactness: positions are always taken in partitions of 256 counted from position 0, and inside a partition in tiles
// of 64 with an online softmax. A score is one lane (products in ascending order of the head dimension), a tile's sum
// of weights is one fixed tree, a value lane sees its positions in ascending order. Partials are combined in ascending
// order. So who computes a partition, how long the chunk is and how large the blocks are changes nothing.
// Positions at or after `last` never enter an operation whose result is kept: their slots may hold anything.
#pragma once

namespace kvscope::kernels {
namespace {

constexpr int kVectorsPerTile = static_cast<int>(kKeyTile) / 16;

/// Where the 64 positions of a key tile lie: eight runs of eight slots (8 divides every block size).
struct TileAddress {
    const std::byte* keys[8];   ///< first dimension of the run's first slot
    const std::byte* values[8]; ///< value row of the run's first slot
};

KV_FN void locateTile(const AttentionArgs& args, std::int64_t first, std::int64_t last, TileAddress& at) {
    const std::int64_t size = args.kv.blockSize;
    for (int run = 0; run < 8; ++run) {
        // Runs behind the end repeat the last block that is there; what is loaded from them is masked.
        std::int64_t position = first + run * 8;
        if (position >= last)
            position = (last - 1) / 8 * 8;
        const std::byte* block = args.kv.pool +
                                 static_cast<std::size_t>(args.table[position / size]) * args.kv.blockBytes +
                                 args.kv.headOffset;
        const std::size_t slot = static_cast<std::size_t>(position % size);
        at.keys[run] = block + slot * 2;
        at.values[run] = block + args.kv.valueOffset + slot * static_cast<std::size_t>(args.kv.headDimV) * 2;
    }
}

/// scores[r][64] = scale * q[r]·k for R query heads, in register tiles of R x V vectors of 16 keys.
template <int R, int V>
KV_FN void scoreRows(const AttentionArgs& args, const TileAddress& at, const float* q, std::int64_t headStride,
                     float* scores) {
    const std::size_t step = static_cast<std::size_t>(args.kv.blockSize) * 2;
    for (int v0 = 0; v0 < kVectorsPerTile; v0 += V) {
        F acc[R][V];
        for (int r = 0; r < R; ++r)
            for (int v = 0; v < V; ++v)
                acc[r][v] = zero();
        for (std::int32_t d = 0; d < args.kv.headDimK; ++d) {
            const std::size_t offset = static_cast<std::size_t>(d) * step;
            F k[V];
            for (int v = 0; v < V; ++v) {
                const int run = 2 * (v0 + v);
                k[v] = args.kv.blockSize == 8 ? loadHalfPair(at.keys[run] + offset, at.keys[run + 1] + offset)
                                              : loadHalf(at.keys[run] + offset);
            }
            for (int r = 0; r < R; ++r) {
                const F x = set1(q[r * headStride + d]);
                for (int v = 0; v < V; ++v)
                    acc[r][v] = fma(x, k[v], acc[r][v]);
            }
        }
        for (int r = 0; r < R; ++r)
            for (int v = 0; v < V; ++v)
                store(scores + r * kKeyTile + (v0 + v) * 16, mul(acc[r][v], set1(args.scale)));
    }
}

/// acc[r][dim] += sum over the first `count` positions of the tile of weights[r][position] * value.
template <int R, int V>
KV_FN void addValues(const AttentionArgs& args, const TileAddress& at, const float* weights, int count, float* acc,
                     std::int64_t accStride) {
    const std::int32_t dims = args.kv.headDimV;
    std::int32_t d = 0;
    for (; d + V * 16 <= dims; d += V * 16) {
        F sum[R][V];
        for (int r = 0; r < R; ++r)
            for (int v = 0; v < V; ++v)
                sum[r][v] = load(acc + r * accStride + d + v * 16);
        for (int i = 0; i < count; ++i) {
            const std::byte* row =
                at.values[i / 8] +
                (static_cast<std::size_t>(i % 8) * static_cast<std::size_t>(dims) + static_cast<std::size_t>(d)) * 2;
            F value[V];
            for (int v = 0; v < V; ++v)
                value[v] = loadHalf(row + v * 32);
            for (int r = 0; r < R; ++r) {
                const F w = set1(weights[r * kKeyTile + i]);
                for (int v = 0; v < V; ++v)
                    sum[r][v] = fma(w, value[v], sum[r][v]);
            }
        }
        for (int r = 0; r < R; ++r)
            for (int v = 0; v < V; ++v)
                store(acc + r * accStride + d + v * 16, sum[r][v]);
    }
    for (; d < dims; d += 16) {
        const int n = dims - d < 16 ? dims - d : 16;
        for (int r = 0; r < R; ++r) {
            F sum = loadPart(acc + r * accStride + d, n);
            for (int i = 0; i < count; ++i) {
                const std::byte* row =
                    at.values[i / 8] +
                    (static_cast<std::size_t>(i % 8) * static_cast<std::size_t>(dims) + static_cast<std::size_t>(d)) *
                        2;
                sum = fma(set1(weights[r * kKeyTile + i]), loadHalfPart(row, n), sum);
            }
            storePart(acc + r * accStride + d, sum, n);
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

template <int R>
void scoreGroup(const AttentionArgs& args, const TileAddress& at, const float* q, int heads, float* scores) {
    for (; heads >= R; heads -= R) {
        scoreRows<R, kScoreVectors>(args, at, q, args.kv.headDimK, scores);
        q += R * args.kv.headDimK;
        scores += R * kKeyTile;
    }
    if constexpr (R > 1)
        if (heads > 0)
            scoreGroup<R - 1>(args, at, q, heads, scores);
}

template <int R>
void valueGroup(const AttentionArgs& args, const TileAddress& at, const float* weights, int heads, int count,
                float* acc) {
    const std::int64_t stride = args.kv.headDimV;
    for (; heads >= R; heads -= R) {
        addValues<R, kValueVectors>(args, at, weights, count, acc, stride);
        weights += R * kKeyTile;
        acc += R * stride;
    }
    if constexpr (R > 1)
        if (heads > 0)
            valueGroup<R - 1>(args, at, weights, heads, count, acc);
}

/// Query heads that go through a tile together; a larger group is taken in pieces.
constexpr int kHeadPiece = 16;

/// Positions [first, last) of one partition for one query token; see KernelTable::attendPartition.
void attendPartition(const AttentionArgs& args, std::int64_t first, std::int64_t last, float* partial) {
    alignas(64) float scores[kHeadPiece * kKeyTile];
    float* maximum = partial;
    float* sum = partial + args.group;
    float* acc = partial + 2 * args.group;
    const std::int32_t dims = args.kv.headDimV;
    for (std::int32_t h = 0; h < args.group; ++h) {
        maximum[h] = -__builtin_inff();
        sum[h] = 0;
    }
    std::memset(acc, 0, static_cast<std::size_t>(args.group) * static_cast<std::size_t>(dims) * sizeof(float));
    for (std::int64_t tile = first; tile < last; tile += kKeyTile) {
        TileAddress at;
        locateTile(args, tile, last, at);
        const int count = last - tile < kKeyTile ? static_cast<int>(last - tile) : static_cast<int>(kKeyTile);
        for (std::int32_t h = 0; h < args.group; h += kHeadPiece) {
            const int heads = args.group - h < kHeadPiece ? args.group - h : kHeadPiece;
            scoreGroup<kScoreRows>(args, at, args.q + static_cast<std::int64_t>(h) * args.kv.headDimK, heads, scores);
            for (int i = 0; i < heads; ++i)
                softmaxTile(scores + i * kKeyTile, count, maximum + h + i, sum + h + i,
                            acc + static_cast<std::int64_t>(h + i) * dims, dims);
            valueGroup<kScoreRows>(args, at, scores, heads, count, acc + static_cast<std::int64_t>(h) * dims);
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

void attendTokens(const AttentionArgs& args, float* out, std::int64_t outStride, float* scratch) {
    const std::int32_t group = args.group, dims = args.kv.headDimV;
    const std::int64_t record = static_cast<std::int64_t>(group) * (2 + dims);
    float* next = scratch + record;
    AttentionArgs one = args;
    for (std::int64_t t = 0; t < args.tokens; ++t) {
        one.q = args.q + t * args.qStride;
        const std::int64_t length = args.firstPosition + t + 1;
        for (std::int64_t first = 0; first < length; first += kPartition) {
            const std::int64_t last = first + kPartition < length ? first + kPartition : length;
            attendPartition(one, first, last, first == 0 ? scratch : next);
            if (first > 0)
                for (std::int32_t h = 0; h < group; ++h)
                    foldHead(scratch + h, scratch + group + h, scratch + 2 * group + h * dims, next[h], next[group + h],
                             next + 2 * group + h * dims, dims);
        }
        float* row = out + t * outStride;
        std::memcpy(row, scratch + 2 * group, static_cast<std::size_t>(group) * static_cast<std::size_t>(dims) * 4);
        for (std::int32_t h = 0; h < group; ++h)
            scaleHead(row + h * dims, 1.0f / scratch[group + h], dims);
    }
}

} // namespace
} // namespace kvscope::kernels
