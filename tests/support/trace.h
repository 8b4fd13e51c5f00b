// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "engine/metrics/log_file.h"

namespace kvscope::test {

struct TraceOptions {
    std::int32_t numBlocks = 384;
    std::int32_t blockSize = 16;
    int steps = 1500; ///< of 20 ms each
    std::uint32_t seed = 1;
};

/// A recorded session made of nothing but arithmetic: five conversations with a pinned, shared beginning grow, finish,
/// come back and evict each other in a small pool. The same options give the same log on every machine. The map and the
/// samples agree (states sum to the pool at every step); every drawn state occurs, also those of tiers and of the
/// contiguous allocator, so that golden pictures can show all of them.
metrics::SessionLog makeTrace(const TraceOptions& options = {});

} // namespace kvscope::test
