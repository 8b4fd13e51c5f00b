// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/metrics/block_map_builder.h"

#include <algorithm>
#include <limits>

namespace kvscope::metrics {

namespace {

constexpr Nanos kLastReadUnit = 250'000'000; // a quarter second

BlockCell cellOf(const kv::BlockFacts& facts, Nanos origin) {
    BlockCell cell;
    cell.state = kv::drawnState(facts);
    cell.fill = facts.fill;
    cell.owner = facts.owner;
    cell.references =
        static_cast<std::uint16_t>(std::min<std::int32_t>(facts.count(), std::numeric_limits<std::uint16_t>::max()));
    if (cell.state != kv::BlockState::Empty) // nobody has ever read an empty block
        cell.lastRead = static_cast<std::uint16_t>((facts.lastRead - origin) / kLastReadUnit);
    return cell;
}

} // namespace

void buildBlockMap(const kv::BlockPool& pool, Nanos now, Nanos origin, BlockMapSnapshot& out) {
    out.time = now;
    out.epoch = pool.epoch();
    out.blockSize = pool.blockSize();
    const auto facts = pool.allFacts();
    out.cells.resize(facts.size());
    std::transform(facts.begin(), facts.end(), out.cells.begin(),
                   [origin](const kv::BlockFacts& block) { return cellOf(block, origin); });
    const auto owners = pool.owners().owners();
    out.owners.assign(owners.begin(), owners.end());
}

} // namespace kvscope::metrics
