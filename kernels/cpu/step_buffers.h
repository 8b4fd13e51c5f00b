// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <numeric>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/memory_region.h"

namespace kvscope::kernels {

inline constexpr std::int64_t kRowBlock = 64; ///< activation rows of one matrix chunk
/// Up to so many rows every thread prepares the activations for itself: cheaper than a barrier.
inline constexpr std::int64_t kSoloRows = 4;
inline constexpr std::int64_t kMostChunkGroups = 8; ///< groups of 16 outputs of one matrix chunk

/// Heads that end together on the border of a group of 16 outputs.
constexpr std::int64_t headsPerUnit(std::int64_t headDim) {
    return kGroupRows / std::gcd(headDim, kGroupRows);
}

/// Floats of scratch that KernelTable::attendTokens needs: two softmax states, queries and scores of all rows, and the
/// keys and values of one tile.
constexpr std::int64_t attentionScratchFloats(std::int64_t group, std::int64_t headDimK, std::int64_t headDimV) {
    return kAttentionTokens * group * (2 * (2 + headDimV) + headDimK + kKeyTile) + kKeyTile * (headDimK + headDimV);
}

/// One piece of attention work; exists once per KV head.
struct AttentionItem {
    std::int32_t sequence = 0;
    std::int32_t firstToken = 0; ///< row of the step
    std::int32_t tokens = 0;
    /// Single tokens (decode) are split by partition, so that one long sequence keeps all threads busy; -1: all
    /// partitions of a tile of tokens.
    std::int32_t partition = -1;
};

/// Where the partials of a decoded row lie. count 0: the row was computed whole.
struct RowPartials {
    std::int64_t first = 0; ///< counted in partials of one KV head
    std::int32_t count = 0;
};

/// A block that becomes full in this step is quantized from its f16 form before the layer's attention.
struct BlockSeal {
    std::int32_t place = 0; ///< as in StepBuffers::openPlaces
    std::int32_t entry = 0; ///< of the block tables
};

/// What each thread has for itself.
struct ThreadBuffers {
    Panel panel;           ///< kSoloRows rows
    Panel current;         ///< the panel in use, own or common, cut to the width in use
    float* row = nullptr;  ///< one row of any width
    float* tile = nullptr; ///< kRowBlock rows of a chunk's outputs
    float* attention = nullptr;
};

/// Everything a step reads and writes besides weights and KV: allocated once for the capacities of a program.
class StepBuffers {
public:
    /// Empty string, or the sentence why not.
    std::string allocate(const Program& program, const KvLayout& kv, const std::vector<PackedWeight>& weights,
                         int threads);
    /// Copies the inputs in and plans the attention work. Empty string, or what is wrong with them.
    std::string load(const StepInputs& inputs);

    std::int64_t tokens() const { return m_tokens; }
    std::int64_t sequences() const { return m_sequences; }
    std::int64_t logitRows() const { return m_logitRows; }
    /// Bytes of the arrays that the largest step so far has touched.
    std::size_t peakBytes() const { return m_peakBytes; }
    void setAccessible(bool accessible) const { m_arena.setAccessible(accessible); }

    std::int32_t* tokenIds = nullptr;
    std::int32_t* positions = nullptr;
    std::int32_t* slotIds = nullptr;
    std::int32_t* cuQueryLens = nullptr;
    std::int32_t* sequenceLengths = nullptr;
    std::int32_t* tables = nullptr; ///< where the inputs have a hole, block 0: its slots are only read where masked
    std::int32_t* tableStarts = nullptr;
    /// With a window group: as `tables` and `slotIds`. What the windows have passed is block 0 here: its slots are only
    /// read where they are masked.
    std::int32_t* windowTables = nullptr;
    std::int32_t* windowSlotIds = nullptr;
    std::int32_t* logitRowIds = nullptr;
    std::vector<BlockCopy> copies;
    std::vector<AttentionItem> attention;
    std::vector<RowPartials> rowPartials; ///< (T)

    /// With a quantized format: where each row's f16 goes, in slots. n >= 0: of the fresh blocks; n < 0: of the tails,
    /// slot -1 - n.
    std::vector<std::int32_t> openRows; ///< (T)
    /// Per block that a sequence writes in this step, in order: n >= 0 = fresh block n, n < 0 = tail slot -1 - n.
    std::vector<std::int32_t> openPlaces;
    std::vector<std::int32_t> openStarts; ///< (S) into openPlaces
    std::vector<BlockSeal> seals;         ///< blocks that become full in this step
    std::byte* fresh = nullptr;           ///< f16 blocks of one layer: [block][kvHead][openHeadBytes]

    float* x = nullptr;      ///< [T][hidden]
    float* q = nullptr;      ///< [T][heads * headDimK]
    float* o = nullptr;      ///< [T][heads * headDimV]
    float* h = nullptr;      ///< [T][ff]
    float* y = nullptr;      ///< [T][hidden], what a post norm reads; null where the program has none
    float* logits = nullptr; ///< [L][vocab]
    float* partials = nullptr;
    Panel panel;                ///< all rows of the step
    std::vector<float*> cosine; ///< per rope of the program: [T][dims / 2]
    std::vector<float*> sine;
    std::vector<ThreadBuffers> threads;

private:
    std::string check(const StepInputs& inputs);
    std::string checkSequence(const StepInputs& inputs, std::size_t sequence) const;
    std::string checkWindow(const StepInputs& inputs, std::size_t sequence) const;
    std::string checkTails(const StepInputs& inputs);
    void noteSight(const Program& program);
    bool mayLack(std::int32_t entry, std::int32_t from) const;
    void loadWindow(std::span<const std::int32_t> windowTables);
    void planAttention();
    void planSeals(std::span<const std::int32_t> tailSlots);
    void notePeak();
    bool allocatePanel(Panel& target, std::int64_t rows, std::int64_t cols, bool quants, bool floats);

    Arena m_arena;
    Program m_capacities; ///< without ops
    KvLayout m_kv;
    std::int32_t m_window = 0, m_sinks = 0; ///< what any layer with the pool's blocks sees; window 0 = everything
    std::int64_t m_tokens = 0, m_sequences = 0, m_logitRows = 0;
    std::size_t m_fixedBytes = 0, m_tokenBytes = 0, m_logitRowBytes = 0;
    std::size_t m_peakBytes = 0;
    std::vector<std::uint8_t> m_tailTaken; ///< scratch of check
};

} // namespace kvscope::kernels
