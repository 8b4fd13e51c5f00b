// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/cpu/step_buffers.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/weight_packing.h"

namespace kvscope::kernels {

namespace {

/// The largest widths that any op of the program needs.
struct Widths {
    std::int64_t q = 0, o = 0, ff = 0, unit = 0, partial = 0, attentionScratch = 0;
    std::int64_t panelCols = 0;
    bool quants = false, floats = false;
    bool postNorms = false;
};

void consume(Widths& w, const PackedWeight& weight) {
    w.panelCols = std::max(w.panelCols, weight.cols);
    (takesQuants(weight) ? w.quants : w.floats) = true;
}

Widths widthsOf(const Program& program, const std::vector<PackedWeight>& weights) {
    Widths w;
    const auto at = [&](WeightId id) -> const PackedWeight& { return weights[static_cast<std::size_t>(id.index)]; };
    for (const Op& op : program.ops) {
        if (const auto* qkv = std::get_if<QkvOp>(&op)) {
            w.q = std::max<std::int64_t>(w.q, std::int64_t(qkv->heads) * qkv->headDimK);
            for (std::int64_t dims : {qkv->headDimK, qkv->headDimV})
                w.unit = std::max(w.unit, headsPerUnit(dims) * dims);
            for (WeightId id : {qkv->q, qkv->k, qkv->v})
                consume(w, at(id));
        } else if (const auto* attention = std::get_if<AttentionOp>(&op)) {
            const std::int64_t record = 2 + attention->headDimV;
            w.o = std::max<std::int64_t>(w.o, std::int64_t(attention->heads) * attention->headDimV);
            w.partial = std::max<std::int64_t>(w.partial, attention->heads * record);
            w.attentionScratch =
                std::max(w.attentionScratch, attentionScratchFloats(attention->heads / attention->kvHeads,
                                                                    attention->headDimK, attention->headDimV));
            consume(w, at(attention->output));
            w.postNorms |= attention->postNorm.valid();
        } else if (const auto* mlp = std::get_if<MlpOp>(&op)) {
            w.ff = std::max(w.ff, at(mlp->gate).rows);
            for (WeightId id : {mlp->gate, mlp->up, mlp->down})
                consume(w, at(id));
            w.postNorms |= mlp->postNorm.valid();
        } else if (const auto* logits = std::get_if<LogitsOp>(&op)) {
            consume(w, at(logits->output));
        }
    }
    return w;
}

std::int64_t roundUp(std::int64_t value, std::int64_t to) {
    return (value + to - 1) / to * to;
}

/// All layers whose parts are quantized have the same shape.
std::size_t freshBlockBytes(const KvLayout& kv) {
    return static_cast<std::size_t>(kv.kvHeads) * kv.openHeadBytes(kv.format.skipLayers);
}

} // namespace

bool StepBuffers::allocatePanel(Panel& target, std::int64_t rows, std::int64_t cols, bool quants, bool floats) {
    const std::int64_t padded = roundUp(rows, kTileRows);
    const auto values = static_cast<std::size_t>(padded * cols);
    const auto blocks = static_cast<std::size_t>(padded * ((cols + kQuantBlock - 1) / kQuantBlock));
    target.cols = cols;
    bool ok = true;
    if (quants) {
        ok &= (target.quants = m_arena.allocateArray<std::int8_t>(values)) != nullptr;
        ok &= (target.scales = m_arena.allocateArray<float>(blocks)) != nullptr;
        ok &= (target.minusSums = m_arena.allocateArray<std::int32_t>(blocks)) != nullptr;
        ok &= (target.scaledSums = m_arena.allocateArray<float>(blocks)) != nullptr;
    }
    if (floats)
        ok &= (target.floats = m_arena.allocateArray<float>(values)) != nullptr;
    return ok;
}

std::string StepBuffers::allocate(const Program& program, const KvLayout& kv, const std::vector<PackedWeight>& weights,
                                  int threadCount) {
    *this = StepBuffers();
    m_kv = kv;
    m_capacities = program;
    m_capacities.ops.clear();
    noteSight(program);
    const Widths w = widthsOf(program, weights);
    const std::int64_t tokens = program.maxTokens, sequences = program.maxSequences, rows = program.maxLogitRows;
    // Partitions of all decoded sequences together: each sequence can have one that is not full.
    const std::int64_t partitions =
        std::int64_t(program.maxTableEntries) * kv.blockSize / kPartition + std::int64_t(sequences);

    bool ok = true;
    const auto ints = [&](std::int32_t*& target, std::int64_t count) {
        ok &= (target = m_arena.allocateArray<std::int32_t>(static_cast<std::size_t>(count))) != nullptr;
    };
    const auto floats = [&](float*& target, std::int64_t count) {
        ok &= (target = m_arena.allocateArray<float>(static_cast<std::size_t>(count))) != nullptr;
    };
    ints(tokenIds, tokens);
    ints(positions, tokens);
    ints(slotIds, tokens);
    ints(cuQueryLens, sequences + 1);
    ints(sequenceLengths, sequences);
    ints(tables, program.maxTableEntries);
    ints(tableStarts, sequences + 1);
    ints(logitRowIds, rows);
    if (kv.hasWindowGroup()) {
        ints(windowTables, program.maxTableEntries);
        ints(windowSlotIds, tokens);
    }
    floats(x, tokens * program.hidden);
    floats(q, tokens * w.q);
    floats(o, tokens * w.o);
    floats(h, tokens * w.ff);
    const std::int64_t normed = w.postNorms ? program.hidden : 0;
    if (normed > 0)
        floats(y, tokens * normed);
    floats(logits, rows * program.vocab);
    floats(partials, partitions * w.partial);
    for (const RopeSpec& rope : program.ropes) {
        floats(cosine.emplace_back(), tokens * (rope.dims / 2));
        floats(sine.emplace_back(), tokens * (rope.dims / 2));
    }
    ok &= allocatePanel(panel, std::max(tokens, rows), w.panelCols, w.quants, w.floats);
    const std::int64_t widest = std::max({w.panelCols, w.o, w.q, std::int64_t(program.hidden)});
    const std::int64_t chunkWidth = std::max(kMostChunkGroups * kGroupRows, w.unit);
    threads.resize(static_cast<std::size_t>(threadCount));
    for (ThreadBuffers& t : threads) {
        ok &= allocatePanel(t.panel, kSoloRows, w.panelCols, w.quants, w.floats);
        floats(t.row, roundUp(widest, kGroupRows));
        floats(t.tile, kRowBlock * chunkWidth);
        floats(t.attention, w.attentionScratch);
    }
    if (kv.hasTails()) {
        const auto blocks = static_cast<std::size_t>(tokens / kv.blockSize); // that a step can both begin and fill
        ok &= (fresh = m_arena.allocate(blocks * freshBlockBytes(kv))) != nullptr;
        openRows.reserve(static_cast<std::size_t>(tokens));
        openPlaces.reserve(blocks + 2 * static_cast<std::size_t>(sequences));
        openStarts.reserve(static_cast<std::size_t>(sequences));
        seals.reserve(blocks + static_cast<std::size_t>(sequences));
    }
    if (!ok)
        return "The system refused memory for the activations of a step. Allow fewer tokens or sequences in a step.";

    copies.reserve(static_cast<std::size_t>(sequences) * 2);
    attention.reserve(static_cast<std::size_t>(partitions + tokens / kAttentionTokens + sequences));
    rowPartials.reserve(static_cast<std::size_t>(tokens));
    const std::int64_t panelBytes = w.panelCols * ((w.quants ? 1 : 0) + (w.floats ? 4 : 0));
    m_tokenBytes = static_cast<std::size_t>((program.hidden + normed + w.q + w.o + w.ff + 3) * 4 + panelBytes);
    m_logitRowBytes = static_cast<std::size_t>(program.vocab) * 4;
    const std::size_t perStep = m_tokenBytes * static_cast<std::size_t>(tokens) +
                                m_logitRowBytes * static_cast<std::size_t>(rows) +
                                static_cast<std::size_t>(partitions * w.partial) * 4;
    m_fixedBytes = m_arena.usedBytes() > perStep ? m_arena.usedBytes() - perStep : 0;
    return {};
}

std::string StepBuffers::checkSequence(const StepInputs& in, std::size_t s) const {
    const std::int32_t first = in.cuQueryLens[s], count = in.cuQueryLens[s + 1] - first;
    const std::int32_t entries = in.tableStarts[s + 1] - in.tableStarts[s];
    const std::int32_t length = in.sequenceLengths[s];
    const std::string name = "Sequence " + std::to_string(s) + " of the step ";
    if (count < 1 || length < count)
        return name + "has " + std::to_string(count) + " tokens and a length of " + std::to_string(length) + ".";
    if (entries < 0 || std::int64_t(entries) * m_kv.blockSize < length)
        return name + "has a block table too short for its length.";
    for (std::int32_t i = in.tableStarts[s]; i < in.tableStarts[s + 1]; ++i)
        if (const std::int32_t block = in.blockTables[static_cast<std::size_t>(i)];
            block < (mayLack(i - in.tableStarts[s], length - count) ? -1 : 0) || block >= m_kv.numBlocks)
            return name + "names block " + std::to_string(block) + ", which the pool does not have.";
    for (std::int32_t t = 0; t < count; ++t) {
        const auto row = static_cast<std::size_t>(first + t);
        const std::int32_t position = length - count + t;
        const std::int32_t entry = in.tableStarts[s] + position / m_kv.blockSize;
        const std::int32_t slot =
            in.blockTables[static_cast<std::size_t>(entry)] * m_kv.blockSize + position % m_kv.blockSize;
        if (in.positions[row] != position || in.slotMapping[row] != slot)
            return name + "has a token whose position or slot does not follow from its table and length.";
        if (in.tokenIds[row] < 0 || in.tokenIds[row] >= m_capacities.vocab)
            return name + "has token " + std::to_string(in.tokenIds[row]) + ", which the vocabulary does not have.";
    }
    return m_kv.hasWindowGroup() ? checkWindow(in, s) : std::string();
}

/// Where one layer sees everything, all of it must be there.
void StepBuffers::noteSight(const Program& program) {
    bool everything = false;
    for (const Op& op : program.ops)
        if (const auto* attention = std::get_if<AttentionOp>(&op); attention && !m_kv.inWindowGroup(attention->layer)) {
            everything = everything || attention->window == 0;
            m_window = std::max(m_window, attention->window);
            m_sinks = std::max(m_sinks, attention->sinks);
        }
    if (everything)
        m_window = 0;
}

/// No token from position `from` on sees a slot of the table's block number `entry`.
bool StepBuffers::mayLack(std::int32_t entry, std::int32_t from) const {
    const std::int64_t first = std::int64_t(entry) * m_kv.blockSize;
    return m_window > 0 && first >= m_sinks && first + m_kv.blockSize <= std::int64_t(from) - m_window + 1;
}

std::string StepBuffers::checkWindow(const StepInputs& in, std::size_t s) const {
    const std::int32_t length = in.sequenceLengths[s];
    const std::int32_t from = length - (in.cuQueryLens[s + 1] - in.cuQueryLens[s]); // position of the first token
    for (std::int32_t i = in.tableStarts[s]; i < in.tableStarts[s + 1]; ++i) {
        const std::int32_t block = in.windowTables[static_cast<std::size_t>(i)];
        const std::int64_t first = std::int64_t(i - in.tableStarts[s]) * m_kv.blockSize;
        const bool seen = first < length && first + m_kv.blockSize > std::int64_t(from) - m_kv.window + 1;
        if (block < (seen ? 0 : -1) || block >= m_kv.windowBlocks)
            return "Sequence " + std::to_string(s) + " of the step names block " + std::to_string(block) +
                   " of the window group, which that does not have, or none where its layers read or write.";
    }
    return {};
}

/// A sequence's slot holds one block: see StepInputs::tailSlots.
std::string StepBuffers::checkTails(const StepInputs& in) {
    if (!m_kv.hasTails())
        return in.tailSlots.empty() ? "" : "The step names tail slots, which this KV cache does not have.";
    if (in.tailSlots.size() != in.sequenceLengths.size())
        return "The step does not name a tail slot for each sequence.";
    m_tailTaken.assign(static_cast<std::size_t>(m_kv.tailSlots), 0);
    for (std::size_t s = 0; s < in.tailSlots.size(); ++s) {
        const std::int32_t slot = in.tailSlots[s], size = m_kv.blockSize;
        if (slot < 0 || slot >= m_kv.tailSlots || m_tailTaken[static_cast<std::size_t>(slot)] != 0)
            return "Sequence " + std::to_string(s) + " of the step names tail slot " + std::to_string(slot) +
                   ", which does not exist or is another's.";
        m_tailTaken[static_cast<std::size_t>(slot)] = 1;
        const std::int32_t to = in.sequenceLengths[s], from = to - (in.cuQueryLens[s + 1] - in.cuQueryLens[s]);
        if (from % size != 0 && to % size != 0 && from / size != to / size)
            return "Sequence " + std::to_string(s) + " of the step begins inside a block and ends inside another.";
    }
    return {};
}

std::string StepBuffers::check(const StepInputs& in) {
    const std::size_t tokens = in.tokenIds.size(), sequences = in.sequenceLengths.size();
    if (tokens == 0 || sequences == 0)
        return "A step needs at least one token.";
    if (tokens > static_cast<std::size_t>(m_capacities.maxTokens) ||
        sequences > static_cast<std::size_t>(m_capacities.maxSequences) ||
        in.logitRows.size() > static_cast<std::size_t>(m_capacities.maxLogitRows) ||
        in.blockTables.size() > static_cast<std::size_t>(m_capacities.maxTableEntries))
        return "The step is larger than the program's capacities.";
    if (in.positions.size() != tokens || in.slotMapping.size() != tokens || in.cuQueryLens.size() != sequences + 1 ||
        in.tableStarts.size() != sequences + 1 || in.cuQueryLens.front() != 0 || in.tableStarts.front() != 0 ||
        in.cuQueryLens.back() != static_cast<std::int32_t>(tokens) ||
        in.tableStarts.back() != static_cast<std::int32_t>(in.blockTables.size()))
        return "The arrays of the step do not fit together.";
    if (!std::is_sorted(in.cuQueryLens.begin(), in.cuQueryLens.end()) ||
        !std::is_sorted(in.tableStarts.begin(), in.tableStarts.end()))
        return "The prefix sums of the step do not ascend.";
    for (std::int32_t row : in.logitRows)
        if (row < 0 || row >= static_cast<std::int32_t>(tokens))
            return "A logit row lies outside the step.";
    for (const BlockCopy& copy : in.copies)
        if (copy.from < 0 || copy.to < 0 || copy.from >= m_kv.numBlocks || copy.to >= m_kv.numBlocks ||
            copy.from == copy.to || copy.slotCount < 0 || copy.slotCount > m_kv.blockSize)
            return "A copy of the step names a block or a number of slots that does not exist.";
    if (in.windowTables.size() != (m_kv.hasWindowGroup() ? in.blockTables.size() : 0))
        return "The step's tables of the window group do not fit to the others.";
    if (m_kv.hasWindowGroup() && !in.copies.empty())
        return "With a window group no block is copied.";
    for (std::size_t s = 0; s < sequences; ++s)
        if (std::string wrong = checkSequence(in, s); !wrong.empty())
            return wrong;
    return checkTails(in);
}

std::string StepBuffers::load(const StepInputs& in) {
    if (std::string wrong = check(in); !wrong.empty())
        return wrong;
    const auto copyIn = [](std::int32_t* to, std::span<const std::int32_t> from) {
        if (!from.empty())
            std::memcpy(to, from.data(), from.size_bytes());
    };
    copyIn(tokenIds, in.tokenIds);
    copyIn(positions, in.positions);
    copyIn(slotIds, in.slotMapping);
    copyIn(cuQueryLens, in.cuQueryLens);
    copyIn(sequenceLengths, in.sequenceLengths);
    std::transform(in.blockTables.begin(), in.blockTables.end(), tables,
                   [](std::int32_t block) { return std::max(block, 0); });
    copyIn(tableStarts, in.tableStarts);
    copyIn(logitRowIds, in.logitRows);
    copies.assign(in.copies.begin(), in.copies.end());
    m_tokens = static_cast<std::int64_t>(in.tokenIds.size());
    m_sequences = static_cast<std::int64_t>(in.sequenceLengths.size());
    m_logitRows = static_cast<std::int64_t>(in.logitRows.size());
    if (m_kv.hasWindowGroup())
        loadWindow(in.windowTables);
    planAttention();
    if (m_kv.hasTails())
        planSeals(in.tailSlots);
    notePeak();
    return {};
}

void StepBuffers::loadWindow(std::span<const std::int32_t> entries) {
    std::transform(entries.begin(), entries.end(), windowTables, [](std::int32_t block) { return std::max(block, 0); });
    for (std::int64_t s = 0; s < m_sequences; ++s)
        for (std::int32_t row = cuQueryLens[s]; row < cuQueryLens[s + 1]; ++row) {
            const std::int32_t position = positions[row];
            windowSlotIds[row] =
                windowTables[tableStarts[s] + position / m_kv.blockSize] * m_kv.blockSize + position % m_kv.blockSize;
        }
}

/// Blocks that are new and become full need no tail: their f16 lives for the step only, layer by layer.
void StepBuffers::planSeals(std::span<const std::int32_t> tailSlots) {
    const std::int32_t size = m_kv.blockSize;
    std::int32_t freshBlocks = 0;
    openRows.clear();
    openPlaces.clear();
    openStarts.clear();
    seals.clear();
    for (std::int32_t s = 0; s < m_sequences; ++s) {
        const std::int32_t to = sequenceLengths[s], from = to - (cuQueryLens[s + 1] - cuQueryLens[s]);
        openStarts.push_back(static_cast<std::int32_t>(openPlaces.size()));
        for (std::int32_t block = from / size; block * size < to; ++block) {
            const bool full = (block + 1) * size <= to, begun = block * size < from;
            const std::int32_t place = full && !begun ? freshBlocks++ : -1 - tailSlots[static_cast<std::size_t>(s)];
            openPlaces.push_back(place);
            if (full)
                seals.push_back({place, tableStarts[s] + block});
            for (std::int32_t p = std::max(from, block * size); p < std::min(to, (block + 1) * size); ++p)
                openRows.push_back(place >= 0 ? place * size + p % size : -1 - ((-1 - place) * size + p % size));
        }
    }
}

void StepBuffers::planAttention() {
    attention.clear();
    rowPartials.assign(static_cast<std::size_t>(m_tokens), {});
    std::int64_t partials = 0;
    for (std::int32_t s = 0; s < m_sequences; ++s) {
        const std::int32_t first = cuQueryLens[s], end = cuQueryLens[s + 1];
        if (end - first == 1) {
            const auto parts = static_cast<std::int32_t>((sequenceLengths[s] + kPartition - 1) / kPartition);
            rowPartials[static_cast<std::size_t>(first)] = {partials, parts};
            for (std::int32_t p = 0; p < parts; ++p)
                attention.push_back({s, first, 1, p});
            partials += parts;
            continue;
        }
        for (std::int32_t t = first; t < end; t += static_cast<std::int32_t>(kAttentionTokens))
            attention.push_back({s, t, std::min(static_cast<std::int32_t>(kAttentionTokens), end - t), -1});
    }
}

void StepBuffers::notePeak() {
    const std::size_t bytes = m_fixedBytes + m_tokenBytes * static_cast<std::size_t>(m_tokens) +
                              m_logitRowBytes * static_cast<std::size_t>(m_logitRows);
    m_peakBytes = std::max(m_peakBytes, bytes);
}

} // namespace kvscope::kernels
