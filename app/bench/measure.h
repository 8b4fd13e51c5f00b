// SPDX-License-Identifier: GPL-3.0-or-later
//
// From times and pool states to figures. Everything here can be computed again from the exported per-token times:
//
//   first token   first generated token - sent (thinking counts as generated)
//   gaps          between neighbouring tokens: tokens - 1 of them, the first token is not among them
//   whole         first token + sum of the gaps = last token - sent
//   percentile    of n sorted values: linear between the ranks around p (n - 1)
//
// Requests that failed, were cut or wrote nothing are listed by name and are in no average.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/bench/step_cost.h"
#include "app/bench/workload.h"
#include "engine/base/clock.h"

namespace kvscope::bench {

enum class RequestStatus : std::uint8_t {
    Ok,
    Failed, ///< ended with an error
    Empty,  ///< ended without a token
    Cut,    ///< still running when the run was interrupted
};
const char* requestStatusName(RequestStatus status); ///< "ok", "failed", "empty", "cut"

/// What happened to one request.
struct RequestRecord {
    std::int32_t index = 0; ///< in the workload
    RequestKind kind = RequestKind::Short;
    std::int32_t turn = 1;
    std::int32_t owner = 0;
    RequestStatus status = RequestStatus::Ok;
    std::string problem; ///< sentence, unless Ok
    Nanos sent = 0;      ///< from the start of the run
    std::vector<Nanos> tokenTimes;
    std::int64_t promptTokens = 0;
    std::int64_t reusedTokens = 0;
    std::int64_t computedTokens = 0;
    std::int64_t recomputedTokens = 0;
    std::int32_t preemptions = 0;

    Nanos firstToken() const { return tokenTimes.front() - sent; }
    std::vector<Nanos> gaps() const;
    Nanos whole() const { return tokenTimes.back() - sent; }
};

/// Linear between the two nearest ranks; `values` need not be sorted. 0 when there are none.
double percentile(std::vector<double> values, double share);
double median(std::vector<double> values);

/// The pool at the end of a step.
struct PoolState {
    std::uint64_t allocatedSlots = 0; ///< of blocks with references, each once; contiguous: of all extents
    std::uint64_t usedSlots = 0;      ///< of those, written
    /// Of those, such that no token known so far will be written there: the end of last blocks, the rest of extents. A
    /// prompt that is being read has its blocks already; they are not waste.
    std::uint64_t wastedSlots = 0;
    std::uint64_t allocatedBytes = 0;  ///< sealed blocks, those of a window group, and tails
    double externalFragmentation = -1; ///< 1 - largest free extent / all free slots; -1 = not contiguous
    std::int32_t held = 0;             ///< requests whose whole prompt is resident
};

/// Means over time: each state counts as long as the step took at whose end it was seen.
class PoolMeter {
public:
    void add(const PoolState& state, Nanos duration);
    double meanHeld() const { return ratio(m_held, m_time); }
    std::int32_t peakHeld() const { return m_peakHeld; }
    double meanBytes() const { return ratio(m_bytes, m_time); }
    std::uint64_t peakBytes() const { return m_peakBytes; }
    double waste() const { return ratio(m_wasted, m_allocated); }
    double internalFragmentation() const { return ratio(m_allocated - m_used, m_allocated); }
    double externalFragmentation() const {
        return m_fragmentationTime > 0 ? m_fragmentation / m_fragmentationTime : -1;
    }

private:
    static double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }
    double m_time = 0, m_held = 0, m_bytes = 0, m_allocated = 0, m_used = 0, m_wasted = 0;
    double m_fragmentation = 0, m_fragmentationTime = 0;
    std::int32_t m_peakHeld = 0;
    std::uint64_t m_peakBytes = 0;
};

/// Counters of a run that engine and cache keep.
struct RunCounters {
    std::uint64_t promptTokens = 0;   ///< of admitted requests
    std::uint64_t reusedTokens = 0;   ///< of those, served from cached blocks
    std::uint64_t computedTokens = 0; ///< prompt tokens computed, those computed again after a preemption included
    std::uint64_t preemptions = 0;
    std::uint64_t evictions = 0;
    std::uint64_t refused = 0; ///< contiguous: no hole was large enough although as much memory was free
    std::uint64_t steps = 0;
};

/// A kind of request (and, of conversations, a turn) on its own.
struct KindFigures {
    RequestKind kind = RequestKind::Short;
    std::int32_t turn = 1;
    std::int32_t requests = 0;
    std::int64_t promptTokens = 0, reusedTokens = 0, computedTokens = 0;
    double ttftP50Ms = 0;
    double hitRate() const {
        return promptTokens == 0 ? 0 : static_cast<double>(reusedTokens) / static_cast<double>(promptTokens);
    }
};

/// One line of the result. Names as in the JSON output.
struct Row {
    std::string stage;
    std::int32_t concurrency = 0;
    std::int32_t finished = 0; ///< requests in the averages; the others are listed
    std::int32_t planned = 0;
    bool partial = false;  ///< interrupted before all requests had ended
    double seconds = 0;    ///< first request sent to last one ended
    double throughput = 0; ///< generated tokens of finished requests per second
    double ttftP50Ms = 0, ttftP95Ms = 0, itlP50Ms = 0, itlP95Ms = 0;
    double kvPeakBytes = 0, kvMeanBytes = 0;
    double heldMean = 0, heldPeak = 0;
    double waste = 0, internalFragmentation = 0, externalFragmentation = -1;
    double hitRate = 0;
    RunCounters counters;
    StepCost cost;             ///< virtual clock: of all steps
    double prefillSeconds = 0; ///< virtual clock: what the steps took longer because of prompts
    std::vector<KindFigures> kinds;
};

/// All of a run but its names. `seconds` is the time from the first request sent to the last one ended.
Row summarize(const std::vector<RequestRecord>& records, const PoolMeter& pool, const RunCounters& counters,
              double seconds);

} // namespace kvscope::bench
