// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <atomic>
#include <initializer_list>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/kernel_team.h"
#include "kernels/cpu/step_buffers.h"

namespace kvscope::kernels {

class OpTrace;

/// Where the keys and values of one layer lie; KV head 0, the others follow at equal distances.
struct LayerCache {
    KvAccess sealed;
    std::size_t headBytes = 0;
    bool inWindowGroup = false; ///< blocks and slots are those of the window group
    /// The f16 of quantized parts: in the tails, and in the blocks that are begun and filled in the same step. Slots as
    /// in StepBuffers::openRows, counted from 0.
    KvAccess tail, fresh;
    std::size_t openHeadBytes = 0;
};

/// All layers. `fresh`: StepBuffers::fresh.
std::vector<LayerCache> layerCaches(const KvLayout& kv, std::byte* pool, std::byte* fresh);

/// What a step works on. All of it outlives the runner's call.
struct StepContext {
    const KernelTable* kernels = nullptr;
    const Program* program = nullptr;
    const std::vector<PackedWeight>* weights = nullptr;
    const KvLayout* kv = nullptr;
    std::byte* pool = nullptr;
    const std::vector<LayerCache>* layers = nullptr;
    StepBuffers* buffers = nullptr;
    const std::atomic<bool>* abort = nullptr;
    OpTrace* trace = nullptr; ///< debug mode: hears a hash of everything computed
};

/// Runs a program over the loaded step on a team. Every thread walks the whole list of ops and takes its chunks of each
/// phase; a phase ends in a barrier exactly where the next one reads what other threads wrote.
class StepRunner {
public:
    StepRunner(const StepContext& context, KernelTeam& team) : m_(context), m_team(team) {}
    /// Done or Aborted.
    StepStatus run();
    const PhaseTimes& times() const { return m_times; }

private:
    void runOp(int thread, const Op& op);
    void traceOp(std::size_t index);
    bool abortAsked() const { return m_.abort->load(std::memory_order_relaxed); }
    void begin(int thread);
    void embed(int thread, const EmbedOp& op);
    void qkv(int thread, const QkvOp& op);
    void attention(int thread, const AttentionOp& op);
    struct SeenPartitions {
        std::int64_t leading = 0, first = 0; ///< [0, leading) and from `first` on
    };
    SeenPartitions seenPartitions(const AttentionOp& op, std::int64_t row) const;
    void attentionItem(int thread, const AttentionOp& op, const AttentionItem& item, std::int32_t kvHead);
    void mlp(int thread, const MlpOp& op);
    void logits(int thread, const LogitsOp& op);

    template <class RowSource>
    const Panel& preparePanel(int thread, std::int64_t rows, std::int64_t cols,
                              std::initializer_list<WeightId> consumers, RowSource&& source);
    void matmulPhase(int thread, WeightId weight, const Panel& panel, std::int64_t rows, float* out,
                     std::int64_t stride, bool add);
    void addToResidual(int thread, WeightId weight, const Panel& panel, WeightId postNorm, float eps);
    void project(const PackedWeight& weight, const Panel& panel, std::int64_t firstOutput, std::int64_t endOutput,
                 std::int64_t firstRow, std::int64_t endRow, float* out, std::int64_t stride, const float* bias) const;

    const PackedWeight& weight(WeightId id) const { return (*m_.weights)[static_cast<std::size_t>(id.index)]; }
    const float* vector(WeightId id) const {
        return id.valid() ? reinterpret_cast<const float*>(weight(id).data) : nullptr;
    }
    KvAccess sealedAccess(std::int32_t layer, std::int32_t kvHead) const;
    KvAccess tailAccess(std::int32_t layer, std::int32_t kvHead) const;
    KvAccess freshAccess(std::int32_t layer, std::int32_t kvHead) const;
    OpenBlocks openBlocks(std::int32_t layer, std::int32_t kvHead, std::int32_t sequence) const;
    void storeRows(const QkvOp& op, bool key, std::int32_t kvHead, float* values, std::int64_t stride,
                   std::int64_t firstRow, std::int64_t endRow) const;
    void sealBlocks(int thread, const AttentionOp& op);
    bool rotatesKeys(std::int32_t layer) const;
    void unrotate(const AttentionOp& op, float* out, std::int64_t heads) const;
    bool inWindowGroup(std::int32_t layer) const { return (*m_.layers)[static_cast<std::size_t>(layer)].inWindowGroup; }
    const std::int32_t* tables(std::int32_t layer) const {
        return inWindowGroup(layer) ? m_.buffers->windowTables : m_.buffers->tables;
    }
    const std::int32_t* slotIds(std::int32_t layer) const {
        return inWindowGroup(layer) ? m_.buffers->windowSlotIds : m_.buffers->slotIds;
    }
    std::uint64_t hashCached(std::int32_t layer, std::int32_t kvHead, std::size_t row, std::uint64_t hash) const;
    ThreadBuffers& mine(int thread) const { return m_.buffers->threads[static_cast<std::size_t>(thread)]; }

    StepContext m_;
    KernelTeam& m_team;
    PhaseTimes m_times;
    /// Thread 0 decides before the last barrier of op i whether op i + 1 runs. Two slots: it may already decide about
    /// the op after next while another thread still reads.
    std::array<std::atomic<bool>, 2> m_stop{};
};

} // namespace kvscope::kernels
