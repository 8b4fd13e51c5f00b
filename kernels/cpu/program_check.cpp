// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/cpu/program_check.h"

#include <algorithm>

namespace kvscope::kernels {

namespace {

class Checker {
public:
    Checker(const Program& program, const std::vector<PackedWeight>& weights, const std::vector<std::string>& names)
        : m_program(program)
        , m_weights(weights)
        , m_names(names) {}

    std::string run() {
        if (m_program.hidden < 1 || m_program.vocab < 1 || m_program.ops.empty())
            return "The program has no operations, width or vocabulary.";
        if (m_program.maxTokens < 1 || m_program.maxSequences < 1 || m_program.maxLogitRows < 1 ||
            m_program.maxTableEntries < 1)
            return "The program's capacities must be at least 1.";
        for (const RopeSpec& rope : m_program.ropes)
            if (rope.dims < 0 || rope.dims % 2 != 0 ||
                rope.inverseFreq.size() != static_cast<std::size_t>(rope.dims / 2))
                return "A rope needs one frequency for each pair of its dimensions.";
        for (const Op& op : m_program.ops) {
            std::visit([this](const auto& o) { check(o); }, op);
            if (!m_wrong.empty())
                return m_wrong;
        }
        return {};
    }

private:
    void check(const EmbedOp& op) { matrix(op.table, m_program.vocab, m_program.hidden, "embedding"); }
    void check(const QkvOp& op) {
        heads(op.heads, op.kvHeads, op.headDimK, op.headDimV);
        vector(op.norm, m_program.hidden, "attention norm");
        const std::int64_t q = std::int64_t(op.heads) * op.headDimK, k = std::int64_t(op.kvHeads) * op.headDimK;
        const std::int64_t v = std::int64_t(op.kvHeads) * op.headDimV;
        matrix(op.q, q, m_program.hidden, "query projection");
        matrix(op.k, k, m_program.hidden, "key projection");
        matrix(op.v, v, m_program.hidden, "value projection");
        optionalVector(op.qBias, q, "query bias");
        optionalVector(op.kBias, k, "key bias");
        optionalVector(op.vBias, v, "value bias");
        if (op.rope < 0 || static_cast<std::size_t>(op.rope) >= m_program.ropes.size() ||
            m_program.ropes[static_cast<std::size_t>(op.rope)].dims > op.headDimK)
            wrong("A layer names a rope that is missing or wider than its heads.");
        optionalVector(op.qNorm, op.headDimK, "query norm");
        optionalVector(op.kNorm, op.headDimK, "key norm");
    }
    void check(const AttentionOp& op) {
        heads(op.heads, op.kvHeads, op.headDimK, op.headDimV);
        matrix(op.output, m_program.hidden, std::int64_t(op.heads) * op.headDimV, "attention output");
        optionalVector(op.postNorm, m_program.hidden, "norm behind the attention");
        if (op.window < 0 || op.sinks < 0 || (op.sinks > 0 && op.window == 0))
            wrong("A layer's window or sinks are below 0, or it has sinks but no window.");
    }
    void check(const MlpOp& op) {
        vector(op.norm, m_program.hidden, "MLP norm");
        if (!known(op.gate, "MLP gate"))
            return;
        const std::int64_t ff = m_weights[static_cast<std::size_t>(op.gate.index)].rows;
        matrix(op.gate, ff, m_program.hidden, "MLP gate");
        matrix(op.up, ff, m_program.hidden, "MLP up");
        matrix(op.down, m_program.hidden, ff, "MLP down");
        optionalVector(op.postNorm, m_program.hidden, "norm behind the MLP");
    }
    void check(const LogitsOp& op) {
        vector(op.norm, m_program.hidden, "output norm");
        matrix(op.output, m_program.vocab, m_program.hidden, "output");
    }

    void heads(std::int32_t heads, std::int32_t kvHeads, std::int32_t dimK, std::int32_t dimV) {
        if (heads < 1 || kvHeads < 1 || heads % kvHeads != 0 || dimK < 1 || dimV < 1)
            wrong("A layer has " + std::to_string(heads) + " heads for " + std::to_string(kvHeads) +
                  " KV heads, which does not divide.");
    }
    bool known(WeightId id, const char* what) {
        if (id.valid() && static_cast<std::size_t>(id.index) < m_weights.size())
            return true;
        wrong(std::string("The program names no weight for its ") + what + ".");
        return false;
    }
    void shape(WeightId id, std::int64_t rows, std::int64_t cols, bool wantVector, const char* what) {
        if (!known(id, what))
            return;
        const PackedWeight& w = m_weights[static_cast<std::size_t>(id.index)];
        if (w.rows != rows || w.cols != cols || (w.groups == 0) != wantVector)
            wrong("Weight \"" + m_names[static_cast<std::size_t>(id.index)] + "\" (" + what + ") is " +
                  std::to_string(w.rows) + " x " + std::to_string(w.cols) + ", expected " + std::to_string(rows) +
                  " x " + std::to_string(cols) + ".");
    }
    void matrix(WeightId id, std::int64_t rows, std::int64_t cols, const char* what) {
        shape(id, rows, cols, false, what);
    }
    void vector(WeightId id, std::int64_t count, const char* what) { shape(id, 1, count, true, what); }
    void optionalVector(WeightId id, std::int64_t count, const char* what) {
        if (id.valid())
            vector(id, count, what);
    }
    void wrong(std::string sentence) {
        if (m_wrong.empty())
            m_wrong = std::move(sentence);
    }

    const Program& m_program;
    const std::vector<PackedWeight>& m_weights;
    const std::vector<std::string>& m_names;
    std::string m_wrong;
};

} // namespace

std::string checkProgram(const Program& program, const std::vector<PackedWeight>& weights,
                         const std::vector<std::string>& names) {
    return Checker(program, weights, names).run();
}

std::string checkProgramAgainstKv(const Program& program, const KvLayout& kv) {
    const auto fits = [&](const auto& op) {
        return op.layer >= 0 && op.layer < kv.layers && op.kvHeads == kv.kvHeads && op.headDimK == kv.headDimK &&
               op.headDimV == kv.headDimV;
    };
    const auto sees = [&](const AttentionOp& op) { // what the group keeps
        return !kv.inWindowGroup(op.layer) || (op.window > 0 && op.window <= kv.window && op.sinks == 0);
    };
    for (const Op& op : program.ops) {
        const auto* qkv = std::get_if<QkvOp>(&op);
        const auto* attention = std::get_if<AttentionOp>(&op);
        if ((qkv && !fits(*qkv)) || (attention && !fits(*attention)))
            return "The KV cache's layers, heads or head sizes are not those of the program.";
        if (attention && !sees(*attention))
            return "A layer of the KV cache's window group looks back further than that keeps.";
    }
    return {};
}

std::string checkKvLayout(const KvLayout& kv) {
    if (kv.layers < 1 || kv.kvHeads < 1 || kv.headDimK < 1 || kv.headDimV < 1 || kv.numBlocks < 1)
        return "A KV cache needs at least one layer, head, dimension and block.";
    if (kv.blockSize != 8 && kv.blockSize != 16 && kv.blockSize != 32 && kv.blockSize != 64)
        return "The block size must be 8, 16, 32 or 64, not " + std::to_string(kv.blockSize) + ".";
    if (std::string wrong = checkKvFormat(kv); !wrong.empty())
        return wrong;
    if (kv.hasWindowGroup()) {
        const auto inGroup = std::count(kv.windowLayers.begin(), kv.windowLayers.end(), true);
        if (kv.windowLayers.size() != static_cast<std::size_t>(kv.layers) || inGroup < 1 || inGroup >= kv.layers ||
            kv.window < 1 || kv.windowBlocks < 1)
            return "A window group needs a window, a block, and some but not all of the layers.";
    }
    if (kv.hasTails() != (kv.tailSlots > 0))
        return kv.hasTails() ? "A quantized KV cache needs a tail slot for each sequence."
                             : "Only a quantized KV cache has tail slots.";
    if (std::int64_t(kv.numBlocks) * kv.blockSize > INT32_MAX)
        return "The KV cache has more than 2,147,483,647 slots; choose fewer blocks.";
    return {};
}

} // namespace kvscope::kernels
