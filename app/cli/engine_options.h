// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "app/cli/command.h"
#include "engine/api/block_log.h"
#include "engine/api/engine.h"

namespace kvscope::cli {

/// Engine options as they stand on the command line, shared by every verb that runs a model.
struct EngineOptions {
    std::string model;
    std::string isa = "auto";
    std::string backend = "auto";
    std::string activations = "native";
    int threads = 0;
    int blockSize = 16;
    std::int64_t numBlocks = 0;
    std::uint64_t cacheBytes = 0;
    double share = 0;
    std::int64_t maxModelLen = 0;
    std::string kvCacheDtype = "auto";
    std::string keyDtype; ///< empty = as kvCacheDtype says
    std::string valueDtype;
    std::string kvRotation = "off";
    int kvSkipLayers = 0;
    bool noPrefixCaching = false;
    std::string eviction = "lru";
    std::string allocator = "paged";
    std::string contiguousReserve; ///< empty = not given
    std::string windowPolicy = "stop";
    std::int64_t sinks = 4;
    std::int64_t window = 0;
    std::uint64_t hostCacheBytes = 0;
    int maxSequences = 16;
    int maxBatchedTokens = 0;
    double watermark = 0.01;
    std::string schedulingPolicy = "fcfs";
    int longPrefillThreshold = 0;
    int maxLongPartialPrefills = 1;
    std::string statsFile;
    std::string blockLogFile;

    const CLI::App* verb = nullptr;
    /// Values of options whose feature is not built yet, only accepted where they name what is done anyway.
    struct Unbuilt;
    std::shared_ptr<Unbuilt> unbuilt;

    /// Whether this option stands on the command line. False for options that the verb does not have.
    bool given(const std::string& option) const;
    /// The same, without rotation and skipped layers where this form has nothing to rotate or leave out: for verbs that
    /// run several forms.
    EngineOptions fittedTo(kernels::KvFormat format) const;
    /// Checks the values. UsageError names the option that is wrong or not supported yet.
    api::EngineConfig config() const;
    /// `--log-blocks`: the log for EngineParts, null where none was asked for. CommandError when it cannot be written.
    std::unique_ptr<api::BlockLog> openBlockLog() const;
    /// `--stats`: CommandError when the file cannot be written, before a long run finds out.
    void checkStatsFile() const;
    /// `--stats`: the counters of the run that has ended, if they were asked for. CommandError when they cannot be
    /// written.
    void writeStats(const api::Engine& engine) const;

private:
    kernels::KvFormat kvFormat() const;
    void chooseCache(api::EngineConfig& config) const;
    CommandError statsNotWritten() const;
};

/// Sentences about choices that the model takes badly, to stderr.
void printWarnings(const api::ModelInfo& model);

/// Why a model could not be loaded: UsageError where it has not what an option asks for, else CommandError.
[[noreturn]] void throwNotLoaded(const Error& error);

/// The run has ended; null = no log was asked for. CommandError when it could not be written to its end.
void closeBlockLog(api::BlockLog* log);

/// Adds the options to a verb; the result lives as long as the verb's run function keeps it. `without`: an option whose
/// name means something else in this verb.
std::shared_ptr<EngineOptions> addEngineOptions(CLI::App& verb, const std::string& without = {});

} // namespace kvscope::cli
