// SPDX-License-Identifier: GPL-3.0-or-later
//
// A block log: everything that hits and evictions depend on, as JSON lines, and the replay of one. The records are what
// a scheduler was told (requests, cancels, budgets, times, drawn tokens) and what it and its cache decided (admissions,
// evictions), so that a replay under the recorded options can be compared record by record, and a replay under others
// shows what they would have brought.
//
// A block log holds token ids, which are text: it is written only where the user asks for it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engine/base/result.h"
#include "engine/kv/allocator.h"
#include "engine/kv/cost_rates.h"
#include "engine/kv/eviction_log.h"
#include "engine/kv/eviction_policy.h"
#include "engine/sched/admission_order.h"
#include "engine/sched/sequence.h"

namespace kvscope::api {

inline constexpr const char* kTraceFormat = "kvscope-blocks";
inline constexpr int kTraceVersionMajor = 1; ///< a newer one is refused by name; unknown fields and records are ignored
inline constexpr int kTraceVersionMinor = 3; ///< 1: windows; 2: sinks, the host tier; 3: why each ended

/// The options that decide who hits and who is evicted.
struct TraceOptions {
    kv::AllocatorKind allocator = kv::AllocatorKind::Paged;
    kv::ContiguousReserve reserve = kv::ContiguousReserve::Model;
    std::int32_t blockSize = 16;
    std::int32_t numBlocks = 0;
    std::int32_t tailSlots = 0; ///< quantized KV, see kv::CacheConfig
    std::int32_t window = 0;    ///< of the window group, whose size follows from the others; 0 = there is none
    std::int64_t sinks = 0, sinkWindow = 0; ///< see kv::CacheConfig
    bool prefixCaching = true;
    kv::EvictionKind eviction = kv::EvictionKind::Lru;
    double attentionPerToken = 0; ///< see kv::RecomputeCost
    std::int32_t maxSequences = 16;
    std::int64_t maxLength = 0;
    double watermark = 0.01;
    sched::SchedulingPolicy policy = sched::SchedulingPolicy::Fcfs;
    std::int32_t longPrefillThreshold = 0;
    std::int32_t maxLongPartialPrefills = 1;
    std::int32_t tokenBudget = 512; ///< at the beginning
    /// The host tier, and the sizes that its estimates go by; see kv::HostConfig.
    std::int32_t hostSlots = 0;
    std::uint64_t blockBytes = 0, windowBlockBytes = 0, tailBytes = 0;

    bool operator==(const TraceOptions&) const = default;
};

// ---- what the scheduler was told ----

struct TraceSubmit {
    SequenceId id; ///< 1, 2, ... in order
    OwnerId owner;
    Nanos time = 0;
    std::vector<TokenId> tokens;
    std::int64_t maxNewTokens = 0;
    std::uint64_t adapter = 0;
    SequenceId forkOf;
    bool retain = false, scores = false, pinPrompt = false;
};
struct TraceCancel {
    SequenceId id;
    bool inFlight = false;      ///< while a step was computed
    std::int64_t generated = 0; ///< tokens that it had drawn by then
};
struct TraceFail {
    SequenceId id;
};
struct TraceDropRetained {
    SequenceId id;
};
struct TraceBudget {
    std::int32_t tokens = 0;
};
struct TraceRates {
    kv::CostRates rates;
};
struct TraceUnpin {};
struct TraceEndAll {};

struct TraceEvent {
    std::uint64_t at = 0;        ///< plans made by then, aborted ones included
    std::size_t endedBefore = 0; ///< how many of BlockTrace::ended had ended by then
    std::variant<TraceSubmit, TraceCancel, TraceFail, TraceDropRetained, TraceBudget, TraceRates, TraceUnpin,
                 TraceEndAll>
        what;
};

/// One plan that was not empty.
struct TraceStep {
    Nanos scheduled = 0, completed = 0;
    bool aborted = false;
    std::int32_t blocksInUse = 0; ///< with references, while it was computed
};

/// What a sequence drew.
struct TraceAnswer {
    std::vector<TokenId> tokens;
    bool stopped = false; ///< its last token ended it
    std::int32_t preemptions = 0;
    std::optional<sched::EndReason> reason; ///< none: the log was written before version 1.3
};

// ---- what was decided ----

struct TraceAdmission {
    SequenceId id;
    bool first = true; ///< not after a preemption
    std::int64_t tokens = 0, reused = 0;
    std::int32_t loaded = 0; ///< blocks filled from the host tier
    bool operator==(const TraceAdmission&) const = default;
};
/// With a host tier.
struct TracePreemption {
    SequenceId id;
    bool swapped = false; ///< else it is read again
    std::int32_t blocks = 0;
    bool operator==(const TracePreemption&) const = default;
};
struct TraceEviction {
    std::uint64_t at = 0; ///< in the making of which plan, counted from 0
    BlockId block;
    std::int32_t firstPosition = 0;
    std::uint32_t uses = 0;
    Nanos age = 0;
    kv::EvictionReason reason = kv::EvictionReason::Admission;
    bool operator==(const TraceEviction&) const = default;
};

struct BlockTrace {
    std::string program, modelFingerprint;
    TraceOptions options;
    std::vector<TraceEvent> events;
    std::vector<TraceStep> steps;
    std::map<SequenceId, TraceAnswer> answers;
    std::vector<SequenceId> ended; ///< in order
    std::vector<TraceAdmission> admissions;
    std::vector<TraceEviction> evictions;
    std::vector<TracePreemption> preemptions;
};

struct TraceTotals {
    std::uint64_t requests = 0, steps = 0, preemptions = 0;
    std::uint64_t queryTokens = 0, hitTokens = 0;               ///< of first admissions
    std::uint64_t readmitQueryTokens = 0, readmitHitTokens = 0; ///< after a preemption
    std::array<std::uint64_t, kv::kEvictionReasonCount> evictions{};
    std::int32_t peakBlocks = 0;
    std::uint64_t swaps = 0, loadedBlocks = 0; ///< with a host tier
    /// By EndReason; too_long and pool_full are those that the pool could not hold. A log before 1.3 says nothing of
    /// it.
    std::array<std::uint64_t, sched::kEndReasonCount> ended{};
};
TraceTotals totalsOf(const BlockTrace& trace);

/// Errors: NotFound, Corrupt (with the line), Unsupported (a newer major version).
Result<BlockTrace> readBlockTrace(const std::string& path);

/// Runs the recorded requests on a scheduler and cache with these options; kernels are not needed, as the tokens that
/// were drawn are known. A request arrives when as many plans were made, and everything has ended that had ended
/// before it in the recording (or nothing else is left to do); a sequence that goes on beyond what it drew is
/// cancelled. Under the recorded options the result has the recorded admissions and evictions.
BlockTrace replayTrace(const BlockTrace& recorded, const TraceOptions& options);

/// Empty when both decided the same; else a sentence about the first difference.
std::string traceDifference(const BlockTrace& recorded, const BlockTrace& replayed);

} // namespace kvscope::api
