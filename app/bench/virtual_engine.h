// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "app/bench/bench_engine.h"
#include "app/bench/roofline.h"
#include "engine/kv/kv_cache.h"
#include "engine/sched/scheduler.h"

namespace kvscope::bench {

/// Everything that one run on the virtual clock is made of.
struct VirtualParts {
    explicit VirtualParts(Roofline price) : roofline(std::move(price)) {}

    kv::CacheConfig cache;
    sched::SchedulerConfig scheduler;
    Roofline roofline;
    std::uint64_t seed = 0;
    std::int32_t vocab = 32000;
};

/// The engine's own scheduler and cache without kernels: a step costs what the roofline says, tokens are a function of
/// request and place. The same parts and requests give the same times, to the nanosecond.
class VirtualEngine final : public BenchEngine {
public:
    explicit VirtualEngine(VirtualParts parts);

    Nanos now() const override { return m_now; }
    void waitUntil(Nanos time) override { m_now = std::max(m_now, time); }
    void submit(SentRequest request) override;
    bool step() override;
    void cancelAll() override;
    std::vector<EndedRequest> takeEnded() override;
    PoolState pool() const override;
    RunCounters counters() const override;

    /// Of all steps so far.
    const StepCost& cost() const { return m_cost; }
    /// Of those steps' seconds, the share that prompts took: of each step the part that a step without its prompt
    /// tokens would not have taken.
    double prefillSeconds() const { return m_prefillSeconds; }

private:
    struct Active {
        EndedRequest out;
        std::int64_t sent = 0;
    };
    double price(const sched::StepPlan& plan);

    VirtualParts m_parts;
    kv::KvCache m_cache;
    sched::Scheduler m_scheduler;
    Nanos m_now = 0;
    StepCost m_cost;
    double m_prefillSeconds = 0;
    std::unordered_map<std::int64_t, Active> m_active; ///< by request id
    std::vector<StepShare> m_shares, m_writing;        ///< scratch of a step
    std::vector<sched::DrawnToken> m_drawn;
};

} // namespace kvscope::bench
