// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/bench/report.h"
#include "app/bench/roofline.h"
#include "app/bench/workload.h"
#include "engine/api/engine_config.h"

namespace kvscope::bench {

/// What is to be run, before anything is checked.
struct BenchRequest {
    Workload workload;
    std::vector<Stage> stages;
    std::vector<std::int32_t> concurrency;
    int repeat = 1;
    bool virtualClock = false;
    /// The engine options that were given; a stage sets allocator, dtypes, block size, prefix cache, and what it names.
    api::EngineConfig engine;
    bool maxSequencesGiven = false; ///< else as many as the concurrency
    std::uint64_t kvBytes = 0;    ///< 0 = by the workload's definition, else what 4 of the longest take at the baseline
    std::int64_t maxModelLen = 0; ///< 0 = the longest prompt and answer
    ModelShape model;
    double weightBytes = 0;
    Device device; ///< virtual clock
};

/// The same, checked and laid out: every stage has its number of blocks.
struct BenchPlan {
    BenchRequest request;
    std::uint64_t kvBytes = 0;
    std::int64_t maxModelLen = 0;
    std::vector<StageFacts> stages; ///< blocks for the largest concurrency: tails take part of the bytes
};

/// Errors: InvalidArgument (the workload does not fit the model: with the largest scale that does; a stage's pool does
/// not hold the longest request; weights and cache do not fit the device), those of the layout.
Result<BenchPlan> planBench(BenchRequest request);

/// A stage in a number of bytes; every sequence has a tail where the dtypes are quantized.
Result<StageFacts> layOut(const Stage& stage, const KvRows& rows, std::uint64_t kvBytes, std::int32_t sequences);

/// The model on a device under a stage.
DeployedModel deployed(const BenchPlan& plan, const StageFacts& facts);

/// Most sequences of a step at this concurrency.
std::int32_t sequencesAt(const BenchRequest& request, std::int32_t concurrency);

} // namespace kvscope::bench
