// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/metrics/block_history.h"

#include <algorithm>
#include <cstring>

namespace kvscope::metrics {

namespace {

/// Far above any pool, and small enough that a damaged log cannot take the memory of the machine.
constexpr std::uint32_t kMostBlocks = 1u << 24;

bool same(const BlockCell& a, const BlockCell& b) {
    return std::memcmp(&a, &b, sizeof(BlockCell)) == 0;
}

/// Runs of equal cells among those for which `wanted(index)` holds.
template <class Wanted> std::vector<CellRun> runsOf(const std::vector<BlockCell>& cells, Wanted wanted) {
    std::vector<CellRun> runs;
    for (std::uint32_t i = 0; i < cells.size(); ++i) {
        if (!wanted(i))
            continue;
        if (!runs.empty() && runs.back().first + runs.back().count == i && same(runs.back().cell, cells[i]))
            ++runs.back().count;
        else
            runs.push_back({i, 1, cells[i]});
    }
    return runs;
}

BlockRecord frame(const BlockMapSnapshot& map) {
    BlockRecord record;
    record.time = map.time;
    record.epoch = map.epoch;
    record.blockSize = map.blockSize;
    record.numBlocks = static_cast<std::uint32_t>(map.cells.size());
    return record;
}

BlockRecord fullFrame(const BlockMapSnapshot& map) {
    BlockRecord record = frame(map);
    record.key = true;
    record.ownersChanged = true;
    record.owners = map.owners;
    record.runs = runsOf(map.cells, [](std::uint32_t) { return true; });
    return record;
}

} // namespace

std::optional<BlockRecord> BlockMapEncoder::encode(const BlockMapSnapshot& map, bool key) {
    if (!m_started || key || map.cells.size() != m_last.cells.size() || map.blockSize != m_last.blockSize) {
        m_last = map;
        m_started = true;
        return fullFrame(map);
    }
    BlockRecord record = frame(map);
    record.runs = runsOf(map.cells, [&](std::uint32_t i) { return !same(map.cells[i], m_last.cells[i]); });
    record.ownersChanged = map.owners != m_last.owners;
    if (record.ownersChanged)
        record.owners = map.owners;
    if (record.runs.empty() && !record.ownersChanged)
        return std::nullopt;
    m_last = map;
    return record;
}

std::optional<BlockRecord> BlockMapEncoder::keyFrame(Nanos time) const {
    if (!m_started)
        return std::nullopt;
    BlockRecord record = fullFrame(m_last);
    record.time = time;
    return record;
}

bool applyBlockRecord(const BlockRecord& record, BlockMapSnapshot& map) {
    // Written by anybody: a run may not leave the pool, and a key frame may not promise a pool that its runs do not
    // fill.
    if (record.numBlocks > kMostBlocks)
        return false;
    std::uint64_t covered = 0;
    for (const CellRun& run : record.runs) {
        if (run.first > record.numBlocks || run.count > record.numBlocks - run.first)
            return false;
        covered += run.count;
    }
    if (record.key ? covered != record.numBlocks : map.cells.size() != record.numBlocks)
        return false;
    map.time = record.time;
    map.epoch = record.epoch;
    map.blockSize = record.blockSize;
    map.cells.resize(record.numBlocks);
    if (record.ownersChanged)
        map.owners = record.owners;
    for (const CellRun& run : record.runs)
        std::fill_n(map.cells.begin() + run.first, run.count, run.cell);
    return true;
}

} // namespace kvscope::metrics
