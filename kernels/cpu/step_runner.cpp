// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/cpu/step_runner.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "kernels/cpu/op_trace.h"
#include "kernels/cpu/weight_packing.h"

namespace kvscope::kernels {

namespace {

/// Bytes of weights of one chunk: large enough that claiming it costs nothing, small enough to share evenly.
constexpr std::size_t kChunkBytes = std::size_t(24) << 10;

std::int64_t groupsPerChunk(const PackedWeight& weight) {
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(kChunkBytes / weight.groupBytes), 1, kMostChunkGroups);
}
std::int64_t divideUp(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
}

std::int64_t nowNanos() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

} // namespace

StepStatus StepRunner::run() {
    m_times = {};
    m_stop[0] = abortAsked();
    m_stop[1] = false;
    bool finished = false;
    m_team.run([&](int thread) {
        begin(thread);
        std::size_t i = 0;
        for (; i < m_.program->ops.size(); ++i) {
            if (m_stop[i % 2].load(std::memory_order_relaxed))
                break;
            runOp(thread, m_.program->ops[i]);
            if (thread == 0)
                m_stop[(i + 1) % 2].store(abortAsked(), std::memory_order_relaxed);
            m_team.barrier();
            if (m_.trace) {
                if (thread == 0)
                    traceOp(i);
                m_team.barrier();
            }
        }
        if (thread == 0)
            finished = i == m_.program->ops.size();
    });
    return finished ? StepStatus::Done : StepStatus::Aborted;
}

/// Hashes what the op computed for each row of the step.
void StepRunner::traceOp(std::size_t index) {
    const StepBuffers& b = *m_.buffers;
    const auto rows = static_cast<std::size_t>(b.tokens());
    std::vector<std::uint64_t> hashes(rows, 0);
    const Op& op = m_.program->ops[index];
    if (const auto* qkvOp = std::get_if<QkvOp>(&op)) {
        const std::size_t width = static_cast<std::size_t>(qkvOp->heads) * static_cast<std::size_t>(qkvOp->headDimK);
        for (std::size_t row = 0; row < rows; ++row) {
            hashes[row] = hashBytes(b.q + row * width, width * sizeof(float));
            for (std::int32_t head = 0; head < qkvOp->kvHeads; ++head)
                hashes[row] = hashCached(qkvOp->layer, head, row, hashes[row]);
        }
    } else if (std::holds_alternative<LogitsOp>(op)) {
        const auto width = static_cast<std::size_t>(m_.program->vocab);
        for (std::int64_t i = 0; i < b.logitRows(); ++i)
            hashes[static_cast<std::size_t>(b.logitRowIds[i])] =
                hashBytes(b.logits + static_cast<std::size_t>(i) * width, width * sizeof(float));
    } else {
        const auto width = static_cast<std::size_t>(m_.program->hidden);
        for (std::size_t row = 0; row < rows; ++row)
            hashes[row] = hashBytes(b.x + row * width, width * sizeof(float));
    }
    m_.trace->opDone(index, hashes);
}

/// The calling thread's phase of one op. Ends without the barrier that `run` adds.
void StepRunner::runOp(int thread, const Op& op) {
    const std::int64_t start = thread == 0 ? nowNanos() : 0;
    std::int64_t* time = nullptr;
    if (const auto* embedOp = std::get_if<EmbedOp>(&op)) {
        embed(thread, *embedOp);
        time = &m_times.embed;
    } else if (const auto* qkvOp = std::get_if<QkvOp>(&op)) {
        qkv(thread, *qkvOp);
        time = &m_times.qkv;
    } else if (const auto* attentionOp = std::get_if<AttentionOp>(&op)) {
        attention(thread, *attentionOp);
        time = &m_times.attention;
    } else if (const auto* mlpOp = std::get_if<MlpOp>(&op)) {
        mlp(thread, *mlpOp);
        time = &m_times.mlp;
    } else if (const auto* logitsOp = std::get_if<LogitsOp>(&op)) {
        logits(thread, *logitsOp);
        time = &m_times.logits;
    }
    if (thread == 0 && time)
        *time += nowNanos() - start;
}

/// Copies for copy-on-write and the angles of every token; the angles are shared by all layers and heads.
void StepRunner::begin(int thread) {
    StepBuffers& b = *m_.buffers;
    const std::size_t blockBytes = m_.kv->bytesPerBlock();
    // In order on one thread: a copy may read what an earlier one wrote.
    if (thread == 0)
        for (const BlockCopy& copy : b.copies)
            if (copy.slotCount > 0) // the whole block: the slots behind are written before they are read
                std::memcpy(m_.pool + static_cast<std::size_t>(copy.to) * blockBytes,
                            m_.pool + static_cast<std::size_t>(copy.from) * blockBytes, blockBytes);
    m_team.forChunks(thread, b.tokens(), [&](std::int64_t t) {
        for (std::size_t r = 0; r < m_.program->ropes.size(); ++r) {
            const RopeSpec& rope = m_.program->ropes[r];
            const std::int64_t pairs = rope.dims / 2;
            for (std::int64_t i = 0; i < pairs; ++i) {
                const double angle = static_cast<double>(b.positions[t]) *
                                     static_cast<double>(rope.inverseFreq[static_cast<std::size_t>(i)]);
                b.cosine[r][t * pairs + i] = static_cast<float>(std::cos(angle)) * rope.magnitude;
                b.sine[r][t * pairs + i] = static_cast<float>(std::sin(angle)) * rope.magnitude;
            }
        }
    });
    m_team.barrier();
}

/// Puts rows 0..rows-1 into a panel in the forms that the consuming weights need. source(row, scratch) returns where
/// the row's values are. Few rows: every thread fills its own panel, with no barrier; many: all fill the common one.
template <class RowSource>
const Panel& StepRunner::preparePanel(int thread, std::int64_t rows, std::int64_t cols,
                                      std::initializer_list<WeightId> consumers, RowSource&& source) {
    bool quants = false, floats = false;
    for (WeightId id : consumers)
        (takesQuants(weight(id)) ? quants : floats) = true;
    const bool solo = rows <= kSoloRows;
    ThreadBuffers& own = mine(thread);
    Panel& panel = own.current;
    panel = solo ? own.panel : m_.buffers->panel;
    panel.cols = cols;
    if (!quants)
        panel.quants = nullptr;
    if (!floats)
        panel.floats = nullptr;
    const auto fill = [&](std::int64_t row) { m_.kernels->packRow(source(row, own.row), panel, row); };
    if (solo) {
        for (std::int64_t row = 0; row < rows; ++row)
            fill(row);
        return panel;
    }
    m_team.forChunks(thread, divideUp(rows, kTileRows), [&](std::int64_t tile) {
        for (std::int64_t row = tile * kTileRows; row < std::min(rows, (tile + 1) * kTileRows); ++row)
            fill(row);
    });
    m_team.barrier();
    return panel;
}

void StepRunner::project(const PackedWeight& w, const Panel& panel, std::int64_t firstOutput, std::int64_t endOutput,
                         std::int64_t firstRow, std::int64_t endRow, float* out, std::int64_t stride,
                         const float* bias) const {
    MatmulArgs args;
    args.weight = &w;
    args.panel = &panel;
    args.firstGroup = firstOutput / kGroupRows;
    args.lastGroup = divideUp(endOutput, kGroupRows);
    args.firstRow = firstRow;
    args.lastRow = endRow;
    args.out = out;
    args.stride = stride;
    args.bias = bias;
    m_.kernels->matmul(args);
}

void StepRunner::matmulPhase(int thread, WeightId id, const Panel& panel, std::int64_t rows, float* out,
                             std::int64_t stride, bool add) {
    const PackedWeight& w = weight(id);
    const std::int64_t groups = groupsPerChunk(w), rowBlocks = divideUp(rows, kRowBlock);
    m_team.forChunks(thread, divideUp(w.groups, groups) * rowBlocks, [&](std::int64_t chunk) {
        MatmulArgs args;
        args.weight = &w;
        args.panel = &panel;
        args.firstGroup = chunk / rowBlocks * groups;
        args.lastGroup = std::min(w.groups, args.firstGroup + groups);
        args.firstRow = chunk % rowBlocks * kRowBlock;
        args.lastRow = std::min(rows, args.firstRow + kRowBlock);
        args.out = out + args.firstRow * stride + args.firstGroup * kGroupRows;
        args.stride = stride;
        args.add = add;
        m_.kernels->matmul(args);
    });
}

/// x += W·panel for all rows, or rmsnorm(W·panel) where there is a norm.
void StepRunner::addToResidual(int thread, WeightId id, const Panel& panel, WeightId postNorm, float eps) {
    StepBuffers& b = *m_.buffers;
    const std::int64_t rows = b.tokens(), hidden = m_.program->hidden;
    if (!postNorm.valid())
        return matmulPhase(thread, id, panel, rows, b.x, hidden, true);
    matmulPhase(thread, id, panel, rows, b.y, hidden, false);
    m_team.barrier();
    m_team.forChunks(thread, rows, [&](std::int64_t row) {
        m_.kernels->addRmsNorm(b.y + row * hidden, vector(postNorm), eps, hidden, b.x + row * hidden);
    });
}

void StepRunner::embed(int thread, const EmbedOp& op) {
    StepBuffers& b = *m_.buffers;
    const PackedWeight& table = weight(op.table);
    m_team.forChunks(thread, b.tokens(), [&](std::int64_t t) {
        m_.kernels->unpackRow(table, b.tokenIds[t], op.scale, b.x + t * table.cols);
    });
}

void StepRunner::qkv(int thread, const QkvOp& op) {
    StepBuffers& b = *m_.buffers;
    const std::int64_t rows = b.tokens(), hidden = m_.program->hidden;
    const Panel& panel = preparePanel(thread, rows, hidden, {op.q, op.k, op.v}, [&](std::int64_t row, float* scratch) {
        m_.kernels->rmsNorm(b.x + row * hidden, vector(op.norm), op.eps, hidden, scratch);
        return scratch;
    });
    const RopeSpec& rope = m_.program->ropes[static_cast<std::size_t>(op.rope)];
    const float* cosine = b.cosine[static_cast<std::size_t>(op.rope)];
    const float* sine = b.sine[static_cast<std::size_t>(op.rope)];
    const std::int64_t pairs = rope.dims / 2, dimsK = op.headDimK, dimsV = op.headDimV;

    // A chunk is some whole heads of q, k or v for a block of rows: the thread that computed a head also rotates it and
    // writes it to its slots, so the whole op needs no barrier of its own.
    const std::int64_t unitK = headsPerUnit(dimsK), unitV = headsPerUnit(dimsV);
    const std::int64_t unitsQ = divideUp(op.heads, unitK), unitsK = divideUp(op.kvHeads, unitK);
    const std::int64_t unitsV = divideUp(op.kvHeads, unitV), rowBlocks = divideUp(rows, kRowBlock);
    float* tile = mine(thread).tile;
    const bool rotated = rotatesKeys(op.layer);
    const auto turn = [&](float* head, const float* norm, std::int64_t row) {
        if (norm)
            m_.kernels->rmsNorm(head, norm, op.eps, dimsK, head);
        m_.kernels->rope(rope.style, head, cosine + row * pairs, sine + row * pairs, pairs);
    };
    const auto bias = [&](WeightId id, std::int64_t first) { return id.valid() ? vector(id) + first : nullptr; };

    m_team.forChunks(thread, (unitsQ + unitsK + unitsV) * rowBlocks, [&](std::int64_t chunk) {
        const std::int64_t firstRow = chunk % rowBlocks * kRowBlock, endRow = std::min(rows, firstRow + kRowBlock);
        std::int64_t unit = chunk / rowBlocks;
        if (unit < unitsQ) {
            const std::int64_t first = unit * unitK, end = std::min<std::int64_t>(op.heads, first + unitK);
            const std::int64_t stride = op.heads * dimsK;
            float* out = b.q + firstRow * stride + first * dimsK;
            project(weight(op.q), panel, first * dimsK, end * dimsK, firstRow, endRow, out, stride,
                    bias(op.qBias, first * dimsK));
            for (std::int64_t row = firstRow; row < endRow; ++row, out += stride)
                for (std::int64_t head = 0; head < end - first; ++head) {
                    turn(out + head * dimsK, vector(op.qNorm), row);
                    if (rotated)
                        m_.kernels->hadamard(out + head * dimsK, rotationSpan(op.headDimK), dimsK);
                }
            return;
        }
        unit -= unitsQ;
        const bool key = unit < unitsK;
        if (!key)
            unit -= unitsK;
        const std::int64_t dims = key ? dimsK : dimsV, heads = key ? unitK : unitV;
        const std::int64_t first = unit * heads, end = std::min<std::int64_t>(op.kvHeads, first + heads);
        const std::int64_t stride = heads * dims;
        project(weight(key ? op.k : op.v), panel, first * dims, end * dims, firstRow, endRow, tile, stride,
                bias(key ? op.kBias : op.vBias, first * dims));
        for (std::int64_t head = first; head < end; ++head) {
            float* values = tile + (head - first) * dims;
            if (key)
                for (std::int64_t row = firstRow; row < endRow; ++row)
                    turn(values + (row - firstRow) * stride, vector(op.kNorm), row);
            storeRows(op, key, static_cast<std::int32_t>(head), values, stride, firstRow, endRow);
        }
    });
}

/// What a token of the op sees: the partitions of the sinks, as far as they lie apart, and those from `first` on.
StepRunner::SeenPartitions StepRunner::seenPartitions(const AttentionOp& op, std::int64_t row) const {
    const std::int64_t start = std::int64_t(m_.buffers->positions[row]) - op.window + 1;
    if (op.window == 0 || start <= op.sinks)
        return {0, 0};
    const std::int64_t first = start / kPartition;
    return {std::min(first, divideUp(op.sinks, kPartition)), first};
}

void StepRunner::attentionItem(int thread, const AttentionOp& op, const AttentionItem& item, std::int32_t kvHead) {
    StepBuffers& b = *m_.buffers;
    const std::int64_t group = op.heads / op.kvHeads, qStride = std::int64_t(op.heads) * op.headDimK;
    const std::int32_t s = item.sequence;
    if (item.partition >= 0) {
        const SeenPartitions seen = seenPartitions(op, item.firstToken);
        if (item.partition >= seen.leading && item.partition < seen.first)
            return;
    }
    AttentionArgs args;
    args.kv = sealedAccess(op.layer, kvHead);
    if (m_.kv->hasTails())
        args.open = openBlocks(op.layer, kvHead, s);
    args.table = tables(op.layer) + b.tableStarts[s];
    args.scale = op.scale;
    args.group = static_cast<std::int32_t>(group);
    args.q = b.q + item.firstToken * qStride + kvHead * group * op.headDimK;
    args.qStride = qStride;
    args.firstPosition = b.positions[item.firstToken];
    args.tokens = item.tokens;
    args.window = op.window;
    args.sinks = op.sinks;
    if (item.partition < 0) {
        const std::int64_t oStride = std::int64_t(op.heads) * op.headDimV;
        float* out = b.o + item.firstToken * oStride + kvHead * group * op.headDimV;
        m_.kernels->attendTokens(args, out, oStride, mine(thread).attention);
        for (std::int32_t t = 0; t < item.tokens; ++t)
            unrotate(op, out + t * oStride, group);
        return;
    }
    const RowPartials& place = b.rowPartials[static_cast<std::size_t>(item.firstToken)];
    const std::int64_t record = group * (2 + op.headDimV);
    float* partial =
        b.partials + (place.first * op.kvHeads + std::int64_t(kvHead) * place.count + item.partition) * record;
    const std::int64_t first = item.partition * kPartition;
    m_.kernels->attendPartition(args, first, std::min<std::int64_t>(b.sequenceLengths[s], first + kPartition), partial,
                                mine(thread).attention);
}

void StepRunner::attention(int thread, const AttentionOp& op) {
    StepBuffers& b = *m_.buffers;
    const auto items = static_cast<std::int64_t>(b.attention.size());
    if (!b.seals.empty())
        sealBlocks(thread, op);
    m_team.forChunks(thread, items * op.kvHeads, [&](std::int64_t chunk) {
        attentionItem(thread, op, b.attention[static_cast<std::size_t>(chunk % items)],
                      static_cast<std::int32_t>(chunk / items));
    });
    m_team.barrier();
    const std::int64_t width = std::int64_t(op.heads) * op.headDimV, group = op.heads / op.kvHeads;
    const std::int64_t record = group * (2 + op.headDimV);
    const Panel& panel =
        preparePanel(thread, b.tokens(), width, {op.output}, [&](std::int64_t row, float* scratch) -> const float* {
            const RowPartials& place = b.rowPartials[static_cast<std::size_t>(row)];
            if (place.count == 0)
                return b.o + row * width;
            const SeenPartitions seen = seenPartitions(op, row);
            for (std::int64_t kvHead = 0; kvHead < op.kvHeads; ++kvHead)
                m_.kernels->combinePartials(b.partials + (place.first * op.kvHeads + kvHead * place.count) * record,
                                            seen.leading, seen.first, place.count, static_cast<std::int32_t>(group),
                                            op.headDimV, scratch + kvHead * group * op.headDimV);
            unrotate(op, scratch, op.heads);
            return scratch;
        });
    addToResidual(thread, op.output, panel, op.postNorm, op.postEps);
}

void StepRunner::mlp(int thread, const MlpOp& op) {
    StepBuffers& b = *m_.buffers;
    const std::int64_t rows = b.tokens(), hidden = m_.program->hidden;
    const PackedWeight &gate = weight(op.gate), &up = weight(op.up);
    const std::int64_t ff = gate.rows;
    const Panel& panel = preparePanel(thread, rows, hidden, {op.gate, op.up}, [&](std::int64_t row, float* scratch) {
        m_.kernels->rmsNorm(b.x + row * hidden, vector(op.norm), op.eps, hidden, scratch);
        return scratch;
    });
    const std::int64_t groups = std::min(groupsPerChunk(gate), groupsPerChunk(up));
    const std::int64_t rowBlocks = divideUp(rows, kRowBlock), width = groups * kGroupRows;
    float* tile = mine(thread).tile;
    m_team.forChunks(thread, divideUp(gate.groups, groups) * rowBlocks, [&](std::int64_t chunk) {
        const std::int64_t firstRow = chunk % rowBlocks * kRowBlock, endRow = std::min(rows, firstRow + kRowBlock);
        const std::int64_t first = chunk / rowBlocks * width, end = std::min(ff, first + width);
        float* out = b.h + firstRow * ff + first;
        project(gate, panel, first, end, firstRow, endRow, out, ff, nullptr);
        project(up, panel, first, end, firstRow, endRow, tile, width, nullptr);
        for (std::int64_t row = 0; row < endRow - firstRow; ++row)
            m_.kernels->activate(op.activation, out + row * ff, tile + row * width, end - first, out + row * ff);
    });
    m_team.barrier();
    const Panel& inner = preparePanel(thread, rows, ff, {op.down},
                                      [&](std::int64_t row, float*) -> const float* { return b.h + row * ff; });
    addToResidual(thread, op.down, inner, op.postNorm, op.eps);
}

void StepRunner::logits(int thread, const LogitsOp& op) {
    StepBuffers& b = *m_.buffers;
    const std::int64_t rows = b.logitRows(), hidden = m_.program->hidden;
    if (rows == 0)
        return;
    const Panel& panel = preparePanel(thread, rows, hidden, {op.output}, [&](std::int64_t row, float* scratch) {
        m_.kernels->rmsNorm(b.x + b.logitRowIds[row] * hidden, vector(op.norm), op.eps, hidden, scratch);
        return scratch;
    });
    matmulPhase(thread, op.output, panel, rows, b.logits, m_.program->vocab, false);
}

} // namespace kvscope::kernels
