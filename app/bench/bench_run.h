// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "app/bench/bench_plan.h"
#include "app/bench/driver.h"
#include "app/bench/virtual_engine.h"

namespace kvscope::bench {

/// How far it is, for a bar.
struct Progress {
    std::int32_t run = 0, runs = 0; ///< the running one from 0, and how many there are
    std::string stage;
    std::int32_t concurrency = 0;
    std::int32_t ended = 0, requests = 0; ///< of this run
};

/// One run, for the export of per-token times.
struct FinishedRun {
    const std::string& stage;
    std::int32_t concurrency, repetition;
    const RunResult& result;
};

struct BenchHooks {
    const std::atomic<bool>* interrupted = nullptr;
    std::function<void(const Progress&)> progress{};
    std::function<void(const FinishedRun&)> finished{};
};

/// Runs every stage at every concurrency, the stages interleaved where there are repetitions. Interrupted, the report
/// has what there is. Errors: of loading the model (real clock), with the stage's name.
Result<Report> runBench(const BenchPlan& plan, const BenchHooks& hooks);

/// One run on the virtual clock.
std::unique_ptr<VirtualEngine> makeVirtualEngine(const BenchPlan& plan, const StageFacts& facts,
                                                 std::int32_t concurrency);

/// The engine configuration of a stage for the real clock: the pool has the blocks that the plan gave it, which are as
/// many as on the virtual clock.
api::EngineConfig engineConfigOf(const BenchPlan& plan, const StageFacts& facts, std::int32_t concurrency);

/// Seconds that `runBench` will about take. Virtual clock: from a part of the workload, simulated and timed. Real
/// clock: all of it simulated on this machine's measured figures (`plan.request.device`).
Result<double> estimateSeconds(const BenchPlan& plan, const std::atomic<bool>* interrupted);

/// Tokens of a step on the virtual clock where --max-num-batched-tokens is not given: the engine's own step capacity.
inline constexpr std::int32_t kVirtualStepTokens = 512;

} // namespace kvscope::bench
