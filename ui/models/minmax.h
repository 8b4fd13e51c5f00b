// SPDX-License-Identifier: GPL-3.0-or-later
//
// Ten minutes of samples into the few hundred columns of a plot: smallest, largest and last value of each column, so
// that no spike is lost and a stack shows what was true at the end of its column.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "ui/models/history.h"
#include "ui/models/memory_parts.h"

namespace kvscope::ui {

struct MinMax {
    float min = std::numeric_limits<float>::max();
    float max = std::numeric_limits<float>::lowest();
    float last = 0;
    bool empty() const { return min > max; }
    void add(float value) {
        min = std::min(min, value);
        max = std::max(max, value);
        last = value;
    }
};

/// Everything the four strips show of one stretch of time.
struct CurveBucket {
    std::int64_t index = -1; ///< time / width of the buckets
    std::uint32_t samples = 0;
    CurveSample last;
    metrics::MemorySample host; ///< the reading that was newest then; totalBytes 0 = none
    MinMax hitRate, fragmentation;
    std::uint32_t evictions = 0, preemptions = 0;
    double writtenTokens = 0, readTokens = 0; ///< counted in steps that wrote or read
    double writingSeconds = 0, readingSeconds = 0;

    bool hasBlocks() const { return (last.presence & metrics::kHasBlocks) != 0; }
    MemoryParts memory() const { return memoryParts(&last, &host); } ///< at the end of the bucket
    /// Tokens a second while writing (reading), pauses left out; negative = none was written (read).
    double writeRate() const { return writingSeconds > 0 ? writtenTokens / writingSeconds : -1; }
    double readRate() const { return readingSeconds > 0 ? readTokens / readingSeconds : -1; }
};

/// Buckets of one width on an absolute grid of time. New samples only touch the newest buckets, so that a live plot
/// costs what has arrived and not what is visible.
class CurveBuckets {
public:
    /// `count` buckets of `width` nanoseconds that end with the newest one.
    CurveBuckets(Nanos width, std::size_t count);

    Nanos width() const { return m_width; }
    std::size_t count() const { return m_buckets.size(); }
    /// Takes in what has arrived since the last call. Samples before `from` are skipped on the first call.
    void consume(const History<CurveSample>& samples, const History<metrics::MemorySample>& memory,
                 Nanos from = std::numeric_limits<Nanos>::min());
    /// As consume, up to `until` (exclusive): for a view that does not follow the newest sample.
    void consumeUntil(const History<CurveSample>& samples, const History<metrics::MemorySample>& memory, Nanos from,
                      Nanos until);
    std::int64_t indexOf(Nanos time) const;
    /// nullptr = no sample fell into it.
    const CurveBucket* bucket(std::int64_t index) const;
    /// The newest bucket with samples at or before `index`, looking back at most `reach` buckets.
    const CurveBucket* bucketAtOrBefore(std::int64_t index, std::int64_t reach) const;

private:
    void add(const CurveSample& sample, const metrics::MemorySample* memory);

    Nanos m_width;
    std::vector<CurveBucket> m_buckets;
    std::uint64_t m_next = 0, m_nextMemory = 0;
    bool m_started = false, m_hasPrevious = false;
    CurveSample m_previous;
};

} // namespace kvscope::ui
