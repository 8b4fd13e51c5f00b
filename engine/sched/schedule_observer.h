// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <span>

#include "engine/base/clock.h"
#include "engine/base/ids.h"
#include "engine/kv/cost_rates.h"
#include "engine/kv/eviction_log.h"

namespace kvscope::sched {

struct Sequence;
struct Preemption;
struct EndedSequence;
struct StepPlan;
struct DrawnToken;

/// Hears everything that the scheduler and its cache are told, in order, and what they decide: whoever repeats the
/// first on a scheduler of the same configuration gets the second again. Thread: that of the scheduler; must not call
/// it back.
class ScheduleObserver : public kv::CacheObserver {
public:
    // ---- told ----
    virtual void submitted(const Sequence& sequence, Nanos now) = 0;
    virtual void cancelled(const Sequence& sequence, bool inFlight) = 0;
    virtual void failed(const Sequence& sequence) = 0;
    virtual void allEnded() = 0; ///< by endAll, before it does so
    virtual void pinsReleased() = 0;
    virtual void retainedDropped(SequenceId id) = 0;
    virtual void budgetChanged(std::int32_t tokens) = 0;
    virtual void ratesChanged(const kv::CostRates& rates) = 0;
    /// A plan that is not empty. What it decided (evictions, admissions) was told before.
    virtual void scheduled(const StepPlan& plan, Nanos now) = 0;
    /// Before anything of the step is counted.
    virtual void completed(std::span<const DrawnToken> drawn, Nanos now) = 0;
    virtual void abandoned() = 0;

    // ---- decided ----
    virtual void admitted(const Sequence& sequence, std::int64_t reusedTokens, std::int32_t loadedBlocks) = 0;
    /// With a host tier: whether it was swapped out.
    virtual void preempted(const Preemption& preemption) = 0;
    virtual void ended(const EndedSequence& ended, std::span<const TokenId> tokens) = 0;
};

} // namespace kvscope::sched
