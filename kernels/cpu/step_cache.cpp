// SPDX-License-Identifier: GPL-3.0-or-later
//
// StepRunner's part about the KV cache: where a layer's keys and values lie, writing them, quantizing full blocks.
#include "kernels/cpu/op_trace.h"
#include "kernels/cpu/step_runner.h"

namespace kvscope::kernels {

namespace {

bool isQuantizedCode(KvCode code) {
    return code != KvCode::F16 && code != KvCode::BF16;
}

} // namespace

std::vector<LayerCache> layerCaches(const KvLayout& kv, std::byte* pool, std::byte* fresh) {
    std::vector<LayerCache> out(static_cast<std::size_t>(kv.layers));
    for (std::int32_t layer = 0; layer < kv.layers; ++layer) {
        LayerCache& cache = out[static_cast<std::size_t>(layer)];
        KvAccess& sealed = cache.sealed;
        cache.inWindowGroup = kv.inWindowGroup(layer);
        sealed.pool = cache.inWindowGroup ? pool + kv.windowOffset() : pool;
        sealed.blockBytes = cache.inWindowGroup ? kv.bytesPerWindowBlock() : kv.bytesPerBlock();
        sealed.headOffset = kv.headOffset(layer, 0);
        sealed.valueOffset = kv.keyBytes(layer);
        sealed.blockSize = kv.blockSize;
        sealed.headDimK = kv.headDimK;
        sealed.headDimV = kv.headDimV;
        sealed.keyCode = kv.keyCode(layer);
        sealed.valueCode = kv.valueCode(layer);
        cache.headBytes = kv.keyBytes(layer) + kv.valueBytes(layer);
        cache.openHeadBytes = kv.openHeadBytes(layer);

        KvAccess& tail = cache.tail = sealed;
        tail.pool = pool + kv.tailOffset();
        tail.blockBytes = kv.bytesPerTail();
        tail.headOffset = kv.openHeadOffset(layer, 0);
        tail.valueOffset = kv.openKeyBytes(layer);
        tail.keyCode = tail.valueCode = KvCode::F16;

        cache.fresh = tail;
        cache.fresh.pool = fresh;
        cache.fresh.blockBytes = cache.openHeadBytes * static_cast<std::size_t>(kv.kvHeads);
        cache.fresh.headOffset = 0;
    }
    return out;
}

namespace {

KvAccess atHead(KvAccess access, std::int32_t kvHead, std::size_t headBytes) {
    access.headOffset += static_cast<std::size_t>(kvHead) * headBytes;
    return access;
}

} // namespace

KvAccess StepRunner::sealedAccess(std::int32_t layer, std::int32_t kvHead) const {
    const LayerCache& cache = (*m_.layers)[static_cast<std::size_t>(layer)];
    return atHead(cache.sealed, kvHead, cache.headBytes);
}
KvAccess StepRunner::tailAccess(std::int32_t layer, std::int32_t kvHead) const {
    const LayerCache& cache = (*m_.layers)[static_cast<std::size_t>(layer)];
    return atHead(cache.tail, kvHead, cache.openHeadBytes);
}
KvAccess StepRunner::freshAccess(std::int32_t layer, std::int32_t kvHead) const {
    const LayerCache& cache = (*m_.layers)[static_cast<std::size_t>(layer)];
    return atHead(cache.fresh, kvHead, cache.openHeadBytes);
}

OpenBlocks StepRunner::openBlocks(std::int32_t layer, std::int32_t kvHead, std::int32_t sequence) const {
    const StepBuffers& b = *m_.buffers;
    const KvAccess tail = tailAccess(layer, kvHead), fresh = freshAccess(layer, kvHead);
    OpenBlocks open;
    open.tails = tail.pool + tail.headOffset;
    open.tailBytes = tail.blockBytes;
    open.fresh = fresh.pool + fresh.headOffset;
    open.freshBytes = fresh.blockBytes;
    open.valueOffset = tail.valueOffset;
    open.places = b.openPlaces.data() + b.openStarts[static_cast<std::size_t>(sequence)];
    open.firstBlock =
        (b.sequenceLengths[sequence] - (b.cuQueryLens[sequence + 1] - b.cuQueryLens[sequence])) / m_.kv->blockSize;
    return open;
}

bool StepRunner::rotatesKeys(std::int32_t layer) const {
    return m_.kv->format.rotatesKeys() && isQuantizedCode((*m_.layers)[static_cast<std::size_t>(layer)].sealed.keyCode);
}

/// Takes attention's output back from rotated values.
void StepRunner::unrotate(const AttentionOp& op, float* out, std::int64_t heads) const {
    if (m_.kv->format.rotatesValues() &&
        isQuantizedCode((*m_.layers)[static_cast<std::size_t>(op.layer)].sealed.valueCode))
        m_.kernels->hadamard(out, rotationSpan(op.headDimV), heads * op.headDimV);
}

/// Writes rows of one KV head to their slots, or, where the part is quantized, to the f16 form of their block.
/// values[(row - firstRow) * stride]; rotated in place where the format says so.
void StepRunner::storeRows(const QkvOp& op, bool key, std::int32_t kvHead, float* values, std::int64_t stride,
                           std::int64_t firstRow, std::int64_t endRow) const {
    const StepBuffers& b = *m_.buffers;
    const std::int32_t* slots = slotIds(op.layer);
    const KvAccess kv = sealedAccess(op.layer, kvHead);
    const auto store = key ? m_.kernels->storeKey : m_.kernels->storeValue;
    if (!isQuantizedCode(key ? kv.keyCode : kv.valueCode)) {
        for (std::int64_t row = firstRow; row < endRow; ++row, values += stride)
            store(kv, slots[row], values);
        return;
    }
    const KvAccess tail = tailAccess(op.layer, kvHead), fresh = freshAccess(op.layer, kvHead);
    const bool rotates = key ? m_.kv->format.rotatesKeys() : m_.kv->format.rotatesValues();
    const std::int32_t dims = key ? op.headDimK : op.headDimV;
    for (std::int64_t row = firstRow; row < endRow; ++row, values += stride) {
        if (rotates)
            m_.kernels->hadamard(values, rotationSpan(dims), dims);
        const std::int32_t place = b.openRows[static_cast<std::size_t>(row)];
        store(place >= 0 ? fresh : tail, place >= 0 ? place : -1 - place, values);
    }
}

/// Quantizes the blocks that became full in this step, before any token of the layer attends.
void StepRunner::sealBlocks(int thread, const AttentionOp& op) {
    const StepBuffers& b = *m_.buffers;
    if ((*m_.layers)[static_cast<std::size_t>(op.layer)].openHeadBytes == 0) // kept f16
        return;
    const auto count = static_cast<std::int64_t>(b.seals.size());
    m_team.forChunks(thread, count * op.kvHeads, [&](std::int64_t chunk) {
        const BlockSeal& seal = b.seals[static_cast<std::size_t>(chunk % count)];
        const auto kvHead = static_cast<std::int32_t>(chunk / count);
        const KvAccess kv = sealedAccess(op.layer, kvHead);
        const KvAccess from = seal.place >= 0 ? freshAccess(op.layer, kvHead) : tailAccess(op.layer, kvHead);
        const auto index = static_cast<std::size_t>(seal.place >= 0 ? seal.place : -1 - seal.place);
        const std::byte* open = from.pool + index * from.blockBytes + from.headOffset;
        if (isQuantizedCode(kv.keyCode))
            m_.kernels->sealKeys(open, kv, tables(op.layer)[seal.entry]);
        if (isQuantizedCode(kv.valueCode))
            m_.kernels->sealValues(open + from.valueOffset, kv, tables(op.layer)[seal.entry]);
    });
    m_team.barrier();
}

/// Of the key and value that a row of the step has written.
std::uint64_t StepRunner::hashCached(std::int32_t layer, std::int32_t kvHead, std::size_t row,
                                     std::uint64_t hash) const {
    const StepBuffers& b = *m_.buffers;
    const KvAccess kv = sealedAccess(layer, kvHead);
    KvAccess open = kv;
    const std::int32_t sealedSlot = slotIds(layer)[row];
    std::int32_t slot = sealedSlot;
    if (m_.kv->hasTails()) {
        const std::int32_t place = b.openRows[row];
        open = place >= 0 ? freshAccess(layer, kvHead) : tailAccess(layer, kvHead);
        slot = place >= 0 ? place : -1 - place;
    }
    hash = isQuantizedCode(kv.keyCode) ? hashKey(open, slot, hash) : hashKey(kv, sealedSlot, hash);
    return isQuantizedCode(kv.valueCode) ? hashValue(open, slot, hash) : hashValue(kv, sealedSlot, hash);
}

} // namespace kvscope::kernels
