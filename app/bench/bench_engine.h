// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "app/bench/measure.h"
#include "engine/base/clock.h"
#include "engine/base/ids.h"

namespace kvscope::bench {

/// A request with its whole prompt.
struct SentRequest {
    std::int32_t index = 0; ///< in the workload; names it in EndedRequest
    std::int32_t owner = 0;
    std::vector<TokenId> prompt;
    std::int64_t answerTokens = 1;
};

struct EndedRequest {
    std::int32_t index = 0;
    std::string problem; ///< sentence; empty = it ended as it should
    bool cut = false;    ///< cancelled
    std::vector<TokenId> answer;
    std::vector<Nanos> tokenTimes; ///< of the engine's clock
    std::int64_t reusedTokens = 0, computedTokens = 0, recomputedTokens = 0;
    std::int32_t preemptions = 0;
};

/// What the driver sends requests to. Thread: one.
class BenchEngine {
public:
    virtual ~BenchEngine() = default;
    virtual Nanos now() const = 0;
    /// Nothing happens before this time: sleeps, or turns the clock.
    virtual void waitUntil(Nanos time) = 0;
    virtual void submit(SentRequest request) = 0;
    /// One step. False: there was nothing to compute.
    virtual bool step() = 0;
    virtual void cancelAll() = 0;
    /// Since the last call, each once.
    virtual std::vector<EndedRequest> takeEnded() = 0;
    virtual PoolState pool() const = 0;
    virtual RunCounters counters() const = 0;
};

} // namespace kvscope::bench
