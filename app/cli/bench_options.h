// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "app/bench/bench_plan.h"
#include "app/bench/calibrate.h"
#include "app/cli/command.h"
#include "app/cli/engine_options.h"

namespace kvscope::cli {

/// The options of `bench` as they stand on the command line.
struct BenchOptions {
    std::string workload, requestsFile;
    double scale = 1;
    std::string stages;
    std::string concurrency = "1,2,4,8,12,16";
    std::int32_t requests = 0;
    std::uint64_t seed = 0;
    int repeat = 1;
    std::string clock = "real";
    std::string device = "A100-80GB";
    std::string preset, config;
    std::uint64_t weights = 0;
    std::string csvFile, htmlFile, tokenTimesFile;
    bool capacity = false, roofline = false, dryRun = false, asJson = false;
    std::shared_ptr<EngineOptions> engine;
    CLI::App* verb = nullptr;

    bool given(const char* option) const { return verb->get_option(option)->count() > 0; }
};

/// Adds them to the verb.
void addBenchOptions(CLI::App& verb, BenchOptions& options);

/// The model that is to be measured, or whose sizes are to be simulated.
struct BenchModel {
    bench::ModelShape shape;
    double weightBytes = 0;
    bench::Device device;   ///< virtual clock, roofline, dry run
    double loadSeconds = 0; ///< of the model, where it was measured
};
/// UsageError where options contradict each other or miss something; CommandError where a file cannot be read.
/// `measure`: the device `this` and the real clock are measured with the model.
BenchModel benchModel(const BenchOptions& options, const api::EngineConfig& engine, bool measure);

/// Workload and stages, checked and laid out. UsageError for what cannot be asked for.
bench::BenchPlan benchPlan(const BenchOptions& options, const api::EngineConfig& engine, const BenchModel& model);

/// Refuses what belongs to a stage, what the chosen clock does not read, and missing models; by name, exit 2.
void checkBenchOptions(const BenchOptions& options);

} // namespace kvscope::cli
