// SPDX-License-Identifier: GPL-3.0-or-later
//
// Paged attention. Included once per instruction set.
//
// Exactness: positions are always taken in partitions of 256 counted from position 0, and inside a partition in tiles
// of 64 with an online softmax. A score is one lane (products in ascending order of the head dimension), a tile's sum
// of weights is one fixed tree, a value lane sees its positions in ascending order. Partials are combined in ascending
// order. So who computes a partition, how long the chunk is and how large the blocks are changes nothing.
// Positions at or after `last` never enter an operation whose result is kept: their slots may hold anything. With a
// window nor do those before it, except the sinks, the first positions of all: partitions and tiles that lie outside
// are left out, a tile that is cut is masked, so what a token sees is a function of its position only.
// With quantized parts a token sees the blocks before its own in sealed form and its own as f16, whether that block
// became full in this step or not: so neither chunk nor company decides what it sees.
#pragma once

namespace kvscope::kernels {
namespace {

/// What query rows see of a tile: its positions [first, end) without [gap, gapEnd), at least one.
struct Seen {
    int first = 0, end = 0;
    int gap = 0, gapEnd = 0;
};

/// The positions on both sides of the gap, one run after the other.
struct SeenRun {
    KV_INLINE explicit SeenRun(Seen seen) : first(seen.first), end(seen.gapEnd > 0 ? seen.gap : seen.end) {}
    KV_INLINE bool any() const { return first < end; }
    KV_INLINE void next(Seen seen) {
        first = seen.gapEnd > end ? seen.gapEnd : seen.end;
        end = seen.end;
    }
    int first, end;
};

/// Where the window of the token at `position` begins; 0 = it reaches the sinks, or the beginning.
KV_FN std::int64_t windowStart(const AttentionArgs& args, std::int64_t position) {
    const std::int64_t start = position - args.window + 1;
    return args.window > 0 && start > args.sinks ? start : 0;
}

/// Nothing of the `count` positions from `start` on is seen by a token whose window begins at `from`.
KV_FN bool hiddenBefore(const AttentionArgs& args, std::int64_t from, std::int64_t start, std::int64_t count) {
    return start >= args.sinks && start + count <= from;
}

/// What a token whose window begins at `from` sees of the tile at `start`, of positions before `last`.
KV_FN Seen seenOf(const AttentionArgs& args, std::int64_t from, std::int64_t start, std::int64_t last) {
    const auto inTile = [start](std::int64_t position) {
        return position <= start ? 0 : position - start < kKeyTile ? static_cast<int>(position - start) : 64;
    };
    Seen seen;
    seen.end = inTile(last);
    const int window = inTile(from), sinks = inTile(args.sinks);
    if (sinks == 0) {
        seen.first = window;
    } else if (window >= seen.end) { // of the sinks only
        seen.end = sinks < seen.end ? sinks : seen.end;
    } else if (sinks < window) {
        seen.gap = sinks;
        seen.gapEnd = window;
    }
    return seen;
}

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

/// acc[r][dim] += sum over the positions seen of the tile of weights[r][position] * value.
template <int R, int V, class Tile>
KV_FN void addValues(const AttentionArgs& args, const Tile& tile, const float* weights, Seen seen, float* acc) {
    const std::int32_t dims = args.kv.headDimV;
    const std::int64_t stride = dims;
    std::int32_t d = 0;
    for (; d + V * 16 <= dims; d += V * 16) {
        F sum[R][V];
        for (int r = 0; r < R; ++r)
            for (int v = 0; v < V; ++v)
                sum[r][v] = load(acc + r * stride + d + v * 16);
        for (SeenRun run(seen); run.any(); run.next(seen))
            for (int i = run.first; i < run.end; ++i) {
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
            for (SeenRun run(seen); run.any(); run.next(seen))
                for (int i = run.first; i < run.end; ++i)
                    sum = fma(set1(weights[r * kKeyTile + i]), tile.valuesPart(i, d, n), sum);
            storePart(acc + r * stride + d, sum, n);
        }
    }
}

/// One tile of the online softmax of one query head: scores become weights, maximum and sum are carried on, and the
/// values so far are scaled to the new maximum.
KV_FN void softmaxTile(float* scores, Seen seen, float* maximum, float* sum, float* acc, std::int32_t dims) {
    const float lowest = -__builtin_inff();
    for (int i = 0; i < seen.first; ++i)
        scores[i] = lowest;
    for (int i = seen.gap; i < seen.gapEnd; ++i)
        scores[i] = lowest;
    F s[kVectorsPerTile];
    F largest = set1(*maximum);
    for (int v = 0; v < kVectorsPerTile; ++v) {
        const int n = seen.end - v * 16;
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
void valueGroup(const AttentionArgs& args, const Tile& tile, const float* weights, int rows, Seen seen, float* acc) {
    for (; rows >= R; rows -= R) {
        addValues<R, V>(args, tile, weights, seen, acc);
        weights += R * kKeyTile;
        acc += R * args.kv.headDimV;
    }
    if constexpr (R > 1)
        if (rows > 0)
            valueGroup<R - 1, V>(args, tile, weights, rows, seen, acc);
}

KV_FN void softmaxRows(float* scores, int rows, Seen seen, float* maximum, float* sum, float* acc, std::int32_t dims) {
    for (int r = 0; r < rows; ++r)
        softmaxTile(scores + r * kKeyTile, seen, maximum + r, sum + r, acc + static_cast<std::int64_t>(r) * dims, dims);
}

/// One flat key tile for some query rows that all see the same of it: [rows] maximum, sum and values go on.
KV_FN void attendTile(const AttentionArgs& args, const FlatTile& tile, const float* q, int rows, Seen seen,
                      float* maximum, float* sum, float* acc, float* scores) {
    scoreGroup<kScoreRows, kScoreVectors>(args, tile, q, rows, scores);
    softmaxRows(scores, rows, seen, maximum, sum, acc, args.kv.headDimV);
    valueGroup<kScoreRows, kValueVectors>(args, tile, scores, rows, seen, acc);
}

template <KvCode Code>
void scorePaged(const AttentionArgs& args, const TileAddress& at, const float* q, int rows, float* scores) {
    const KeyTile<Code> tile(args, at);
    scoreGroup<kScoreRows, kPagedScoreVectors>(args, tile, q, rows, scores);
}

template <KvCode Code>
void valuePaged(const AttentionArgs& args, const TileAddress& at, float* weights, int rows, Seen seen, float* acc) {
    const ValueTile<Code> tile(args, at);
    if constexpr (ValueTile<Code>::kWeightFactor != 1)
        for (std::int64_t i = 0; i < rows * kKeyTile; i += 16)
            store(weights + i, mul(load(weights + i), set1(tile.kWeightFactor)));
    valueGroup<kScoreRows, kPagedValueVectors>(args, tile, weights, rows, seen, acc);
}

/// The same as attendTile for a tile where it lies in the cache, all of it sealed or of 16 bits: what decode reads once
/// per group of heads.
KV_FN void attendPaged(const AttentionArgs& args, const TileAddress& at, const float* q, int rows, Seen seen,
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
    softmaxRows(scores, rows, seen, maximum, sum, acc, args.kv.headDimV);
    switch (args.kv.valueCode) {
    case KvCode::F16:
        valuePaged<KvCode::F16>(args, at, scores, rows, seen, acc);
        break;
    case KvCode::BF16:
        valuePaged<KvCode::BF16>(args, at, scores, rows, seen, acc);
        break;
    case KvCode::Fp8:
        valuePaged<KvCode::Fp8>(args, at, scores, rows, seen, acc);
        break;
    case KvCode::Int8:
        valuePaged<KvCode::Int8>(args, at, scores, rows, seen, acc);
        break;
    case KvCode::Int4:
    case KvCode::Codebook4: // keys only
        valuePaged<KvCode::Int4>(args, at, scores, rows, seen, acc);
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
    const std::int64_t from = windowStart(args, args.firstPosition);
    for (std::int64_t start = first; start < last; start += kKeyTile) {
        if (hiddenBefore(args, from, start, kKeyTile))
            continue;
        TileAddress at;
        const bool sealed = last <= open || start + kKeyTile <= open;
        if (sealed) {
            locateTile(args, start, last, at);
        } else {
            if (const std::int64_t end = bothQuantized ? open : last; end > start) // what else is there is put over it
                flattenTile(args, start, end, flat);
            overlayOpenBlock(args, own, start, flat);
        }
        const Seen seen = seenOf(args, from, start, last);
        for (std::int32_t h = 0; h < args.group; h += kHeadPiece) {
            const int heads = args.group - h < kHeadPiece ? args.group - h : kHeadPiece;
            const float* q = args.q + static_cast<std::int64_t>(h) * args.kv.headDimK;
            float* values = acc + static_cast<std::int64_t>(h) * dims;
            if (sealed)
                attendPaged(args, at, q, heads, seen, maximum + h, sum + h, values, scores);
            else
                attendTile(args, flat, q, heads, seen, maximum + h, sum + h, values, scores);
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

void combinePartials(const float* partials, std::int64_t leading, std::int64_t from, std::int64_t count,
                     std::int32_t group, std::int32_t dims, float* out) {
    const std::int64_t record = static_cast<std::int64_t>(group) * (2 + dims);
    const std::int64_t first = leading > 0 ? 0 : from;
    for (std::int32_t h = 0; h < group; ++h) {
        const float* values = partials + 2 * group + static_cast<std::int64_t>(h) * dims;
        float* acc = out + static_cast<std::int64_t>(h) * dims;
        std::memcpy(acc, values + first * record, static_cast<std::size_t>(dims) * sizeof(float));
        float maximum = partials[first * record + h], sum = partials[first * record + group + h];
        for (std::int64_t p = first + 1; p < count; ++p) {
            if (p >= leading && p < from)
                continue;
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

/// Tokens [t, end) of a chunk against a tile, each for itself because each sees another number of its positions. With
/// quantized parts their own blocks lie in the tile, one after another, and are put over it while their tokens pass.
void attendDiagonal(const AttentionArgs& args, FlatTile& tile, std::int64_t start, std::int64_t t, std::int64_t end,
                    const ChunkRows& rows) {
    const std::int64_t group = args.group, last = args.firstPosition + args.tokens;
    std::int64_t open = -1;
    for (; t < end; ++t) {
        const std::int64_t position = args.firstPosition + t, own = position / args.kv.blockSize, r = t * group;
        if (hasOpenBlocks(args) && own != open && own * args.kv.blockSize < start + kKeyTile) {
            if (open >= 0) // the block before it is seen sealed from here on
                flattenTile(args, start, last, tile);
            overlayOpenBlock(args, own, start, tile);
            open = own;
        }
        const Seen seen = seenOf(args, windowStart(args, position), start, position + 1);
        attendTile(args, tile, rows.q + r * args.kv.headDimK, args.group, seen, rows.maximum + r, rows.sum + r,
                   rows.acc + r * args.kv.headDimV, rows.scores);
    }
}

/// All tokens of a chunk against the tile that begins at `start`.
void attendChunkTile(const AttentionArgs& args, FlatTile& tile, std::int64_t start, const ChunkRows& rows) {
    const std::int64_t first = args.firstPosition, end = first + args.tokens, group = args.group;
    const bool quantized = hasOpenBlocks(args);
    const auto clamp = [&](std::int64_t t) { return t < 0 ? 0 : t < args.tokens ? t : args.tokens; };
    // Token t sees positions first + t - window + 1..first + t. Those before `begun` see nothing of the tile, those
    // before `whole` a part that ends with themselves. Then come those that see all of it (sealed, where parts are
    // quantized), which go through it together; from `cut` on its beginning, from `gone` on all of it is behind them.
    // Of a tile with sinks these stay, so it never is.
    const std::int64_t begun = clamp(start - first);
    const std::int64_t whole = clamp(start + kKeyTile - (quantized ? 0 : 1) - first);
    const bool windowed = args.window > 0 && args.sinks<start + kKeyTile, sinks = args.sinks> start;
    const std::int64_t cut = windowed ? clamp((sinks ? args.sinks : start) + args.window - first) : args.tokens;
    const std::int64_t gone = windowed && !sinks ? clamp(start + kKeyTile + args.window - 1 - first) : args.tokens;
    if (begun >= gone)
        return;
    flattenTile(args, start, end, tile);
    attendDiagonal(args, tile, start, begun, whole, rows);
    if (whole >= gone)
        return;
    if (quantized && whole > begun)
        flattenTile(args, start, end, tile);
    if (const std::int64_t r = whole * group; whole < cut) {
        Seen seen;
        seen.end = static_cast<int>(kKeyTile);
        attendTile(args, tile, rows.q + r * args.kv.headDimK, static_cast<int>((cut - whole) * group), seen,
                   rows.maximum + r, rows.sum + r, rows.acc + r * args.kv.headDimV, rows.scores);
    }
    attendDiagonal(args, tile, start, whole < cut ? cut : whole, gone, rows);
}

/// Adds the partition that begins at `partition` to the totals of the tokens that reach it, with (2 + headDimV) floats
/// of state a row. Tokens whose window begins in it have no total yet unless there are sinks; with sinks those that see
/// nothing of it are left as they are.
void foldChunk(const AttentionArgs& args, std::int64_t partition, float* total, const float* part) {
    const std::int64_t group = args.group, rows = args.tokens * group, dims = args.kv.headDimV;
    const std::int64_t seen = partition - args.firstPosition; // tokens before it do not reach this partition
    for (std::int64_t r = (seen < 0 ? 0 : seen) * group; r < rows; ++r) {
        float* acc = total + 2 * rows + r * dims;
        const float* next = part + 2 * rows + r * dims;
        const std::int64_t from = windowStart(args, args.firstPosition + r / group);
        if (args.sinks > 0 && hiddenBefore(args, from, partition, kPartition))
            continue;
        if (from < partition || args.sinks > 0) {
            foldHead(total + r, total + rows + r, acc, part[r], part[rows + r], next, args.kv.headDimV);
            continue;
        }
        total[r] = part[r];
        total[rows + r] = part[rows + r];
        std::memcpy(acc, next, static_cast<std::size_t>(dims) * sizeof(float));
    }
}

void attendTokens(const AttentionArgs& args, float* out, std::int64_t outStride, float* scratch) {
    const std::int32_t group = args.group, dims = args.kv.headDimV, dimK = args.kv.headDimK;
    const std::int64_t rows = args.tokens * group, state = rows * (2 + dims);
    const std::int64_t end = args.firstPosition + args.tokens; // what the last token sees
    float* total = scratch;                                    // [rows] maximum, [rows] sum, [rows][dims] values
    float* part = total + state;                               // the same for the partition at hand
    float* q = part + state;                                   // [rows][dimK]
    float* scores = q + rows * dimK;                           // [rows][64]
    float* keys = scores + rows * kKeyTile;
    float* values = keys + dimK * kKeyTile;
    for (std::int64_t t = 0; t < args.tokens; ++t)
        std::memcpy(q + t * group * dimK, args.q + t * args.qStride,
                    static_cast<std::size_t>(group) * static_cast<std::size_t>(dimK) * sizeof(float));
    FlatTile tile;
    tile.keyData = keys;
    tile.valueData = values;
    tile.dims = dims;

    const std::int64_t from = windowStart(args, args.firstPosition);
    const std::int64_t first = args.sinks > 0 ? 0 : from / kPartition * kPartition;
    for (std::int64_t partition = first; partition < end; partition += kPartition) {
        if (hiddenBefore(args, from, partition, kPartition))
            continue;
        float* now = partition == first ? total : part;
        float *maximum = now, *sum = now + rows, *acc = now + 2 * rows;
        resetRows(maximum, sum, acc, rows, dims);
        const std::int64_t partitionEnd = partition + kPartition < end ? partition + kPartition : end;
        for (std::int64_t start = partition; start < partitionEnd; start += kKeyTile)
            attendChunkTile(args, tile, start, {q, scores, maximum, sum, acc});
        if (partition != first)
            foldChunk(args, partition, total, part);
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
