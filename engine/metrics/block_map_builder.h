// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "engine/kv/block_pool.h"
#include "engine/metrics/block_map_snapshot.h"

namespace kvscope::metrics {

/// Fills `out` with the pool as it is now; `out`'s memory is reused, so that publishing allocates nothing. `origin`:
/// when the session began, from which `lastRead` counts. Thread: the engine thread. Cost: one pass over 32 bytes a
/// block.
void buildBlockMap(const kv::BlockPool& pool, Nanos now, Nanos origin, BlockMapSnapshot& out);

} // namespace kvscope::metrics
