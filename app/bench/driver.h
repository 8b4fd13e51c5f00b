// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <atomic>
#include <functional>
#include <vector>

#include "app/bench/bench_engine.h"
#include "app/bench/measure.h"
#include "app/bench/workload.h"

namespace kvscope::bench {

/// How one run of a workload went.
struct RunResult {
    std::vector<RequestRecord> records; ///< of all requests that were sent, in the order of the workload
    PoolMeter pool;
    RunCounters counters;
    double seconds = 0;
    bool partial = false; ///< interrupted
};

struct DriverOptions {
    std::int32_t concurrency = 1;                      ///< most requests in flight; open loop: no limit
    const std::atomic<bool>* interrupted = nullptr;    ///< asked after every step
    std::function<void(std::int32_t ended)> onEnded{}; ///< progress
};

/// Sends a workload's requests to an engine: closed loop (as one ends the next one that is ready is sent, no think
/// time), or at their arrival times where the workload has them. A request whose predecessor failed is not sent; it is
/// recorded as failed.
RunResult runWorkload(BenchEngine& engine, const Workload& workload, const DriverOptions& options);

} // namespace kvscope::bench
