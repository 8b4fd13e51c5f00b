// SPDX-License-Identifier: GPL-3.0-or-later
//
// Who computes what in the next step. Continuous batching with one token budget:
//
//   schedule()  running sequences first (single tokens, then chunks of prompts), then waiting ones in the order of the
//               policy, each admitted in one all-or-nothing call on the cache
//   ...         the engine computes the plan and draws tokens
//   complete()  appends the tokens, publishes full blocks, ends and releases
//   abandon()   instead of complete() when the step was aborted: nothing has advanced, the next plan repeats it
//
// A running sequence without room for its next token preempts the youngest one, which gives its blocks up and is
// computed again later. The oldest sequence is never preempted for another, and a preempted one re-enters only when its
// whole length and one more block fit, so there is always progress. One that was preempted twice re-enters only when
// all that run can be written to their ends beside it (GrowthOutlook), so that it is not preempted again and again.
//
// Knows token ids and blocks, no text, no kernels. Thread: the engine thread.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/kv/kv_cache.h"
#include "engine/sched/admission_order.h"
#include "engine/sched/schedule_observer.h"
#include "engine/sched/sequence.h"
#include "engine/sched/step_plan.h"

namespace kvscope::sched {

struct SchedulerConfig {
    std::int32_t tokenBudget = 512; ///< most tokens of a step
    std::int32_t maxSequences = 16; ///< most sequences that have blocks
    std::int64_t maxLength = 0;     ///< most tokens of a sequence, prompt and answer; 0 = only the pool limits it
    /// Share of the blocks that stays available when a sequence is admitted. Paged only.
    double watermark = 0.01;
    kv::ContiguousReserve reserve = kv::ContiguousReserve::Model; ///< contiguous only
    SchedulingPolicy policy = SchedulingPolicy::Fcfs;
    /// A prompt with more tokens left to read than this is long: while shorter sequences are there, it reads at most
    /// this many tokens a step. 0 = no prompt is long.
    std::int32_t longPrefillThreshold = 0;
    /// Most long prompts that are being read at the same time; shorter ones pass those that wait. At least 1.
    std::int32_t maxLongPartialPrefills = 1;
};

/// Cumulative; see metrics::StepSample for the definitions.
struct SchedulerCounters {
    std::uint64_t steps = 0; ///< completed
    std::uint64_t prefillTokens = 0;
    std::uint64_t decodeTokens = 0;
    std::uint64_t admitted = 0; ///< first admissions
    std::uint64_t finished = 0;
    std::uint64_t preemptions = 0;
    std::uint64_t swapsOut = 0, swapsIn = 0; ///< of preempted sequences; those that end while they wait never come in
    std::uint64_t swappedBlocks = 0;         ///< of swaps out
    /// Of preemptions that are over: what was expected when they came back (Preemption::expected), and what it took.
    Nanos swapsEstimated = 0, swapsTook = 0, rereadsEstimated = 0, rereadsTook = 0;
    std::uint64_t swaps = 0, rereads = 0; ///< how many these are
    /// Sequences that had to wait although enough blocks were free, because these did not lie together (contiguous
    /// only). Each wait counts once, however many steps it lasts.
    std::uint64_t refused = 0;
    std::uint64_t prefixQueryTokens = 0; ///< of first admissions
    std::uint64_t prefixHitTokens = 0;
    std::uint64_t readmitTokens = 0; ///< after a preemption, counted apart
    std::uint64_t readmitHitTokens = 0;
};

/// Reused and prompt tokens of the last 32 admitted requests.
class HitRateWindow {
public:
    void add(std::int64_t reused, std::int64_t prompt);
    std::int64_t reusedTokens() const { return m_reused; }
    std::int64_t promptTokens() const { return m_prompt; } ///< 0 = nothing admitted yet: a gap, not 0 %

private:
    struct Entry {
        std::int64_t reused = 0, prompt = 0;
    };
    std::array<Entry, 32> m_ring{};
    std::size_t m_next = 0;
    std::int64_t m_reused = 0, m_prompt = 0;
};

class Scheduler {
public:
    /// `cache` outlives the scheduler.
    Scheduler(kv::KvCache& cache, const SchedulerConfig& config);
    ~Scheduler();
    Scheduler(const Scheduler&) = delete;
    Scheduler& operator=(const Scheduler&) = delete;
    Scheduler(Scheduler&&) = delete;
    Scheduler& operator=(Scheduler&&) = delete;

    /// A prompt that can never be held ends at once (TooLong, see takeEnded).
    SequenceId submit(SequenceSpec spec, Nanos now);
    /// Idempotent; unknown and ended ids are ignored. Takes effect at the step boundary: now, if no step is in flight.
    void cancel(SequenceId id, Nanos now);
    /// Ends this one as Failed. Not while a step is in flight; unknown and ended ids are ignored.
    void fail(SequenceId id, Nanos now);
    /// Ends everything, an abandoned step included.
    void endAll(EndReason reason, Nanos now);

    /// From now on; at least 1. Not while a step is in flight.
    void setTokenBudget(std::int32_t tokens);
    std::int32_t tokenBudget() const { return m_config.tokenBudget; }
    /// What the choice between moving and computing goes by, from now on. Not while a step is in flight.
    void setCostRates(const kv::CostRates& rates);

    /// The next step; empty when there is nothing to compute. A plan that is not empty is in flight until it is
    /// completed or abandoned.
    const StepPlan& schedule(Nanos now);
    /// The step is through all layers. `drawn`: one token for each item that samples, in order.
    void complete(std::span<const DrawnToken> drawn, Nanos now);
    /// The step was aborted: what it wrote is undefined, nothing advances. Its copies will be done again.
    void abandon(Nanos now);
    bool inFlight() const { return m_inFlight; }

    /// Sequences that ended since the last call, each once in the scheduler's life.
    std::vector<EndedSequence> takeEnded();
    /// With a host tier: preemptions that are over since the last call. Only the newest are kept.
    std::vector<Preemption> takePreemptions();

    /// Drops the table kept for forks of this ended sequence, if it is still kept.
    void dropRetained(SequenceId id);
    void releasePins();

    /// Null = nobody. Before the first request; it outlives the scheduler. Hears of the cache's evictions too.
    void observe(ScheduleObserver* observer);
    /// Tokens that a request of so many prompt tokens may come to hold, as the contiguous allocator reserves them.
    std::int64_t reserveFor(std::int64_t promptTokens, std::int64_t maxNewTokens) const;

    bool idle() const { return m_sequences.empty(); }
    std::span<const Sequence* const> running() const; ///< by arrival
    std::span<const Sequence* const> waiting() const; ///< by arrival
    const Sequence* find(SequenceId id) const;        ///< null when unknown or ended
    std::size_t retained() const { return m_retained.size(); }
    const SchedulerCounters& counters() const { return m_counters; }
    const HitRateWindow& hitRate() const { return m_hitRate; }

    /// Invariants of the cache, and of the sequences against their tables; throws BrokenInvariant.
    void checkInvariants() const;

private:
    struct Retained {
        SequenceId id;
        std::vector<TokenId> tokens;
        kv::BlockTable table;
    };
    struct ForkSource {
        const kv::BlockTable* table = nullptr;
        std::int64_t tokens = 0; ///< leading tokens in common
        bool reading = false;    ///< it will have computed more of them soon
    };

    void planSingleTokens(Nanos now);
    void planChunks(Nanos now);
    void admitWaiting(Nanos now);
    bool isLong(std::int64_t toRead) const {
        return m_config.longPrefillThreshold > 0 && toRead > m_config.longPrefillThreshold;
    }
    bool longPlaceFree(Sequence& sequence) const;
    std::int64_t chunkOf(const Sequence& sequence) const;
    enum class Admitted { Yes, NotNow, Never };
    Admitted tryAdmit(Sequence& sequence, Nanos now);
    /// From the host tier.
    struct Loaded {
        Nanos took = 0;
        std::uint64_t bytes = 0;
    };
    Loaded loadedSoFar() const;
    void admitted(Sequence& sequence, kv::Admission admission, const Loaded& loaded, Nanos now);
    std::int32_t roomToStay(const Sequence& sequence) const;
    ForkSource forkSource(const Sequence& sequence) const;
    void explainWaiting();
    bool makeRoom(Sequence& sequence, std::int64_t upTo, Nanos now);
    bool dropOldestRetained();
    void preempt(Sequence& victim, OwnerId lentTo);
    std::int64_t withinRoom(const Sequence& sequence, std::int64_t count) const;
    std::int64_t roomOf(const Sequence& sequence) const;
    std::int64_t longestChunk() const;
    void chooseSwap(Sequence& victim);
    void cameBack(Sequence& sequence, const kv::Admission& admission, const Loaded& loaded);
    void countReread(const StepItem& item, Sequence& sequence, Nanos stepTook);
    void preemptionOver(Sequence& sequence);
    kv::MoveTimes moved() const { return m_cache.host() != nullptr ? m_cache.host()->times() : kv::MoveTimes(); }
    std::int64_t inOneTail(const Sequence& sequence, std::int64_t count) const;
    void addItem(Sequence& sequence, std::int64_t count);
    void removeItem(SequenceId id);

    void finishItem(const StepItem& item, Nanos stepTook, Nanos now);
    void appendToken(Sequence& sequence, DrawnToken drawn, Nanos now);
    void end(Sequence& sequence, EndReason reason, Nanos now, std::int64_t needed = 0, std::int64_t available = 0);
    void endCancelled(Nanos now);
    static void insertByArrival(std::vector<Sequence*>& list, Sequence& sequence);
    std::int64_t budgetLeft() const { return m_config.tokenBudget - m_plan.tokens; }

    kv::KvCache& m_cache;
    SchedulerConfig m_config;
    std::int32_t m_watermarkBlocks = 0;
    std::unordered_map<SequenceId, std::unique_ptr<Sequence>> m_sequences;
    std::vector<Sequence*> m_running; ///< by arrival
    std::vector<Sequence*> m_waiting; ///< by arrival
    std::vector<Sequence*> m_turn;    ///< scratch of schedule
    std::vector<Sequence*> m_queue;   ///< scratch of schedule: those that wait, in the order of the policy
    AdmissionOrder m_order;
    std::deque<Retained> m_retained; ///< oldest first
    std::vector<kv::PinnedBlocks> m_pins;
    std::vector<EndedSequence> m_ended;
    std::vector<Preemption> m_preemptions;
    Nanos m_planned = 0; ///< when the plan in flight was ready, by the clock of the steps
    std::vector<SequenceId> m_cancelled;
    StepPlan m_plan;
    std::uint64_t m_stepNumber = 0;
    std::uint64_t m_turns = 0;
    bool m_inFlight = false;
    std::int64_t m_nextId = 1;
    ScheduleObserver* m_observer = nullptr;
    SchedulerCounters m_counters;
    HitRateWindow m_hitRate;
};

} // namespace kvscope::sched
