// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <cstdint>

#include "engine/metrics/log_records.h"

namespace kvscope::metrics {

/// What a session came to, counted from its records: the recorder counts while it records, a reader counts what it
/// reads, and both must agree. Samples are cumulative, so the last one carries every counter of the engine.
struct LogTotals {
    StepSample last;
    MemorySample lastMemory;
    std::uint64_t requests = 0;
    std::uint64_t finished = 0;
    std::uint64_t cancelled = 0;
    std::uint64_t failed = 0;
    std::uint64_t faults = 0;
    std::int64_t promptTokens = 0, reusedTokens = 0, computedTokens = 0, answerTokens = 0; ///< of ended requests
    std::int64_t preemptions = 0;                                                          ///< of ended requests
    /// Blocks by state of the newest map.
    std::array<std::uint32_t, kv::kBlockStateCount> mapByState{};

    void add(const LogRecord& record);

private:
    BlockMapSnapshot m_map;
};

} // namespace kvscope::metrics
