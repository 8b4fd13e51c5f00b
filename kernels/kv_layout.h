// SPDX-License-Identifier: GPL-3.0-or-later
//
// How many bytes keys and values take, and where they lie. Pure arithmetic, for backends and for whoever plans a pool.
//
// A part (the keys or the values of one layer) is either of 16 bits, then its bytes in a block are the same while the
// block is filled and after it is sealed; or it is quantized, then a sealed block holds codes, and the block being
// filled lies as f16 in a *tail*: each sequence has one slot of the tail arena for the one block that it fills.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope::kernels {

/// Element type of cached keys or values, as the user chooses it.
enum class KvDType : std::uint8_t { F16, BF16, Fp8E4M3, Int8, Int4 };

/// "f16", "bf16", "fp8_e4m3", "int8", "int4": stable, part of block keys.
const char* kvDTypeName(KvDType type);
/// By these names, and "fp8" for fp8_e4m3.
std::optional<KvDType> kvDTypeByName(std::string_view name);
bool isQuantized(KvDType type);

/// How the bytes of a part are coded in a sealed block; B = block size, d = head dimension.
enum class KvCode : std::uint8_t {
    F16,       ///< K [d][B], V [B][d] halves
    BF16,      ///< the same, bfloat16
    Fp8,       ///< K [d][B], V [B][d] bytes: sign, 4 exponent bits (bias 7), 3 mantissa bits; up to 448, no scale
    Int8,      ///< K [d][B] bytes, then [d] f16 scales (per channel of the block);
               ///< V [B][d] bytes, then [B][ceil(d / 32)] f16 scales (per token in groups of 32)
    Int4,      ///< nibbles, value = nibble * scale + minimum. K [d][B / 2] bytes, then [d]{scale, minimum} f16;
               ///< V [B][16 * ceil(d / 32)] bytes, then [B][ceil(d / 32)]{scale, minimum} f16
    Codebook4, ///< keys only: nibbles [d][B / 2] that name one of 16 levels, then [B] f16 factors (per token)
};
// Nibbles: 8 bytes hold 16 neighbours, the low nibble of byte j is the jth and the high nibble the (8 + j)th.

inline constexpr std::int32_t kKvGroup = 32; ///< values that share a scale
/// Widest head that int8 and int4 take: the kernels keep the scales of a tile of keys beside them.
inline constexpr std::int32_t kMostQuantizedDims = 256;

/// What the user chooses about the form of keys and values.
struct KvFormat {
    KvDType keys = KvDType::F16;
    KvDType values = KvDType::F16;
    /// Hadamard rotation over the head dimension before quantizing to int8 or int4: spreads what stands out in single
    /// channels. int4 keys then use a codebook of Lloyd-Max levels and one factor a token that restores its norm.
    bool rotation = false;
    std::int32_t skipLayers = 0; ///< the first and the last so many layers stay f16

    bool rotatesKeys() const { return rotation && (keys == KvDType::Int8 || keys == KvDType::Int4); }
    bool rotatesValues() const { return rotation && (values == KvDType::Int8 || values == KvDType::Int4); }
    /// Some part is quantized: blocks that are being filled lie in tails.
    bool quantized() const { return isQuantized(keys) || isQuantized(values); }
    /// "int8", "int8/rotated", "int8/rotated/skip 2": everything that the bytes of a part depend on, for block keys.
    std::string keyName() const;
    std::string valueName() const;
    friend bool operator==(const KvFormat&, const KvFormat&) = default;
};

/// `--kv-cache-dtype`: a dtype for both, or a preset: "auto" (f16), "fp8", "int8", "k8v4" (fp8 keys, int4 values),
/// "int4". Nothing when there is no such name. Only keys and values are set.
std::optional<KvFormat> kvFormatByName(std::string_view name);

/// Blocks that the layers of a window may need at once, for so many sequences and steps of at most `stepTokens` tokens:
/// sequences x (ceil((window + stepTokens) / blockSize) + 1), as far as 32 bits go. Never more than the pool's blocks.
std::int32_t windowBlocksNeeded(std::int32_t window, std::int32_t sequences, std::int32_t stepTokens,
                                std::int32_t blockSize);

/// Values that a rotation mixes: the largest power of two that divides the head dimension.
std::int32_t rotationSpan(std::int32_t headDim);

/// What of the KV cache is moved as a whole.
enum class KvPart {
    Block,       ///< over all layers that keep everything
    WindowBlock, ///< over the layers of the window group
    Tail,        ///< a tail slot; the parts of 16 bits of its block lie in the block
};

/// Shape of the KV cache. Sizes and offsets in bytes.
struct KvLayout {
    std::int32_t layers = 0;
    std::int32_t kvHeads = 0;
    std::int32_t headDimK = 0;
    std::int32_t headDimV = 0;
    std::int32_t blockSize = 16; ///< slots per block: 8, 16, 32 or 64 (divides the attention tile of 64)
    std::int32_t numBlocks = 0;
    KvFormat format;
    std::int32_t tailSlots = 0; ///< f16 blocks being filled; 0 unless the format is quantized
    /// The window group: layers that look back over `window` tokens only have `windowBlocks` blocks of their own, with
    /// ids of their own. Empty: there is none. Else one flag a layer.
    std::vector<bool> windowLayers;
    std::int32_t window = 0; ///< the longest that a layer of the group has
    std::int32_t windowBlocks = 0;

    bool hasWindowGroup() const { return !windowLayers.empty(); }
    bool inWindowGroup(std::int32_t layer) const {
        return hasWindowGroup() && windowLayers[static_cast<std::size_t>(layer)];
    }
    KvCode keyCode(std::int32_t layer) const;
    KvCode valueCode(std::int32_t layer) const;
    bool hasTails() const { return format.quantized(); }

    /// One KV head of one layer in a sealed block: keys, then values.
    std::size_t keyBytes(std::int32_t layer) const;
    std::size_t valueBytes(std::int32_t layer) const;
    /// Where head `kvHead` of `layer` begins inside a block of its group.
    std::size_t headOffset(std::int32_t layer, std::int32_t kvHead) const;
    /// One block over all layers that keep everything, sealed (and while it is filled, as far as its parts are of 16
    /// bits); the same over the layers of the window group.
    std::size_t bytesPerBlock() const { return groupBytes(false); }
    std::size_t bytesPerWindowBlock() const { return groupBytes(true); }

    /// The f16 keys and values of one KV head that a tail slot holds: only those of quantized parts.
    std::size_t openKeyBytes(std::int32_t layer) const;
    std::size_t openHeadBytes(std::int32_t layer) const;
    std::size_t openHeadOffset(std::int32_t layer, std::int32_t kvHead) const;
    std::size_t bytesPerTail() const;

    /// All blocks and all tail slots, in this order: blocks, those of the window group, tails.
    std::size_t poolBytes() const;
    std::size_t windowOffset() const { return static_cast<std::size_t>(numBlocks) * bytesPerBlock(); }
    std::size_t tailOffset() const {
        return windowOffset() + static_cast<std::size_t>(windowBlocks) * bytesPerWindowBlock();
    }

    std::size_t partBytes(KvPart part) const;
    std::int32_t partCount(KvPart part) const;
    /// Of the first of its kind, in the pool; the others follow.
    std::size_t partOffset(KvPart part) const;

private:
    std::size_t groupBytes(bool ofWindowGroup) const;
};

/// Empty, or the sentence why this model cannot have this format.
std::string checkKvFormat(const KvLayout& layout);

} // namespace kvscope::kernels
