// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the instruction sets have in common: plain data and one table of functions per instruction set.
//
// This header is compiled with different instruction set flags in different files. So it holds no function: an inline
// function of one file may be merged by the linker with that of another, and the portable path would then run AVX-512.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/backend.h"

namespace kvscope::kernels {

inline constexpr std::int64_t kGroupRows = 16; ///< output rows of a weight that are interleaved
inline constexpr std::int64_t kTileRows = 8;   ///< activation rows that are interleaved in a panel
inline constexpr std::int64_t kQuantBlock = 32;
inline constexpr std::int64_t kPartition = 256; ///< positions whose attention is one online softmax
inline constexpr std::int64_t kKeyTile = 64;    ///< positions per step of that softmax

/// A weight in backend memory.
///
/// Matrix, quantized: groups of 16 rows, the last one padded with zero rows. Per group first the scales of all blocks,
/// [block][16] f16 (Q4_1: [block]{d[16], m[16]}), padded to 64 bytes, then at `quantOffset` the values as unsigned
/// bytes or nibbles: Q8_0 [block][8][16][4] of q + 128; Q4_x [block][4][16][4] bytes as they stand in the file, so the
/// low nibble of byte (v, row, i) is value 4v + i of the block and the high nibble value 16 + 4v + i.
/// Matrix, float: per group [column][16] elements.
/// Vector (rows == 1): plain float32, padded with zeros to a multiple of 16.
struct PackedWeight {
    DType type = DType::F32;
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    std::int64_t groups = 0; ///< 0 for a vector
    std::size_t groupBytes = 0;
    std::size_t quantOffset = 0;
    const std::byte* data = nullptr;
    /// A quantized matrix that is multiplied with float activations: each value is dequantized exactly as in float32.
    bool floatActivations = false;
};

/// Activation rows prepared for matrix kernels: tiles of 8 rows, interleaved so that a tile is one sequential stream.
/// Quantized: per 32 values q = rint(x * 127 / max|x|), float32 scale max|x| / 127.
struct Panel {
    std::int8_t* quants = nullptr;     ///< [tile][cols/4][8 rows][4]
    float* scales = nullptr;           ///< [tile][cols/32][8 rows]
    std::int32_t* minusSums = nullptr; ///< [tile][cols/32][8 rows] -sum of q
    float* scaledSums = nullptr;       ///< [tile][cols/32][8 rows] scale * sum of q
    float* floats = nullptr;           ///< [tile][cols][8 rows]
    std::int64_t cols = 0;
};

struct MatmulArgs {
    const PackedWeight* weight = nullptr;
    const Panel* panel = nullptr;
    std::int64_t firstGroup = 0, lastGroup = 0; ///< of 16 output rows, half-open
    std::int64_t firstRow = 0, lastRow = 0;     ///< activation rows, half-open; firstRow is a multiple of 8
    float* out = nullptr;                       ///< out[(row - firstRow) * stride + output - 16 * firstGroup]
    std::int64_t stride = 0;
    const float* bias = nullptr; ///< of output 16 * firstGroup onwards, or null
    bool add = false;            ///< out += instead of out =
};

/// Where K and V of one layer and KV head lie: block `i` of an arena at pool + i * blockBytes + headOffset, its keys
/// first, its values `valueOffset` behind. The codes say how (KvCode). The same struct describes the arena of sealed
/// blocks, that of the tails, and the blocks that one step both begins and fills ("fresh"); the latter two are F16.
struct KvAccess {
    std::byte* pool = nullptr;
    std::size_t blockBytes = 0;
    std::size_t headOffset = 0;  ///< of this layer and KV head inside a block
    std::size_t valueOffset = 0; ///< of V behind K
    std::int32_t blockSize = 0;
    std::int32_t headDimK = 0;
    std::int32_t headDimV = 0;
    KvCode keyCode = KvCode::F16;
    KvCode valueCode = KvCode::F16;
};

/// Where the f16 keys and values of the blocks lie that a sequence writes in this step, whatever their sealed form; of
/// one layer and KV head, and of quantized parts only. A token reads its own block from here and all before it sealed.
struct OpenBlocks {
    const std::byte* tails = nullptr; ///< slot 0
    std::size_t tailBytes = 0;        ///< between slots
    const std::byte* fresh = nullptr; ///< fresh block 0
    std::size_t freshBytes = 0;       ///< between fresh blocks
    std::size_t valueOffset = 0;      ///< of V behind K; 0 where K is not quantized
    /// Per block from `firstBlock` of the sequence on: n >= 0 = fresh block n, n < 0 = tail slot -1 - n.
    const std::int32_t* places = nullptr;
    std::int64_t firstBlock = 0;
};

/// Attention of one sequence and one KV head, for the `group` query heads that share it.
struct AttentionArgs {
    KvAccess kv;
    OpenBlocks open;                     ///< read only where a code of `kv` is quantized
    const std::int32_t* table = nullptr; ///< the sequence's block table
    float scale = 1;
    std::int32_t group = 1;
    const float* q = nullptr;       ///< [token][group][headDimK]; heads of a token contiguous
    std::int64_t qStride = 0;       ///< between tokens
    std::int64_t firstPosition = 0; ///< of the first token
    std::int64_t tokens = 0;
    std::int64_t window = 0; ///< > 0: the token at p sees positions p - window + 1..p only
    std::int64_t sinks = 0;  ///< with a window: and positions 0..sinks - 1
};

/// Maximum and sum of exponentials of a row of logits.
struct SoftmaxStats {
    float maximum = 0;
    double sum = 0;          ///< of exp(x - maximum)
    std::int32_t index = -1; ///< lowest index of the maximum, -1 if nothing is above -inf
};

struct KernelTable {
    const char* name; ///< "portable", "AVX2", "AVX-512", "AVX-512 (VNNI)"

    /// out = x * weight / sqrt(mean(x^2) + eps)
    void (*rmsNorm)(const float* x, const float* weight, float eps, std::int64_t count, float* out);
    /// out += x * weight / sqrt(mean(x^2) + eps)
    void (*addRmsNorm)(const float* x, const float* weight, float eps, std::int64_t count, float* out);
    /// Puts one activation row into the panel, as int8, as float32 or both (null arrays are skipped).
    void (*packRow)(const float* x, const Panel& panel, std::int64_t row);
    void (*matmul)(const MatmulArgs& args);
    /// out = values of one row of a packed matrix, times scale
    void (*unpackRow)(const PackedWeight& weight, std::int64_t row, float scale, float* out);
    /// In place: rotates the first 2 * pairs values of a head.
    void (*rope)(RopeStyle style, float* head, const float* cosine, const float* sine, std::int64_t pairs);
    /// Writes one token's K and V of one KV head to its slot (block * blockSize + slot in block), as halves or, where
    /// the code says so, as bfloat16. Values beyond the range of f16 are clamped to it.
    void (*storeKey)(const KvAccess& kv, std::int32_t slot, const float* key);
    void (*storeValue)(const KvAccess& kv, std::int32_t slot, const float* value);
    /// Quantizes a full block: f16 keys [headDimK][blockSize], values [blockSize][headDimV] become the codes of
    /// `block`.
    void (*sealKeys)(const std::byte* open, const KvAccess& kv, std::int32_t block);
    void (*sealValues)(const std::byte* open, const KvAccess& kv, std::int32_t block);
    /// In place: each `span` (a power of two) neighbours of `count` become H x / sqrt(span), H = Sylvester's Hadamard
    /// matrix. Twice is the identity.
    void (*hadamard)(float* x, std::int64_t span, std::int64_t count);
    /// out = activation(gate) * up
    void (*activate)(Activation activation, const float* gate, const float* up, std::int64_t count, float* out);
    /// One token (at args.firstPosition) against the positions [first, last) of one partition, as far as its window and
    /// its sinks hold them. Fills `partial`, the state of an online softmax: [group] maximum, [group] sum of
    /// exp(score - maximum), [group][headDimV] values weighted by the same. `scratch` as for attendTokens.
    void (*attendPartition)(const AttentionArgs& args, std::int64_t first, std::int64_t last, float* partial,
                            float* scratch);
    /// Combines the partials of partitions [0, leading) and [from, count), at least one, in ascending order and
    /// divides: out [group][headDimV]. `partials` is that of partition 0; `leading` <= `from`.
    void (*combinePartials)(const float* partials, std::int64_t leading, std::int64_t from, std::int64_t count,
                            std::int32_t group, std::int32_t headDimV, float* out);
    /// Tokens against everything up to themselves: attendPartition and combinePartials for each, only faster.
    /// out [token][group][headDimV] with `outStride` between tokens; `scratch` as attentionScratchFloats
    /// (step_buffers.h) says.
    void (*attendTokens)(const AttentionArgs& args, float* out, std::int64_t outStride, float* scratch);
    /// Maximum and sum of exp(x - maximum) over `count` values; NaN counts as -inf.
    SoftmaxStats (*softmaxStats)(const float* x, std::int64_t count);
    /// out = exp((x - shift) * factor); NaN becomes 0.
    void (*expScaled)(const float* x, float shift, float factor, std::int64_t count, float* out);
};

const KernelTable& portableKernels();
#if defined(KVSCOPE_X86_KERNELS)
const KernelTable& avx2Kernels();
const KernelTable& avx512Kernels();
const KernelTable& avx512VnniKernels();
#endif

/// Most tokens of one attendTokens call.
inline constexpr std::int64_t kAttentionTokens = 16;

} // namespace kvscope::kernels
