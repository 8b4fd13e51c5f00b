// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/base/result.h"
#include "engine/kv/allocator.h"
#include "engine/kv/eviction_policy.h"
#include "engine/kv/window_policy.h"
#include "engine/sched/admission_order.h"
#include "kernels/backend.h"

namespace kvscope::api {

/// The engine options of kvscope-cli and of the window, with vLLM's names where vLLM has them.
struct EngineConfig {
    std::string modelPath;
    std::optional<kernels::Isa> isa; ///< none = auto
    /// Dequantized weights and float activations: slow, for evaluation and tests.
    bool floatActivations = false;
    int threads = 0;                      ///< 0 = all cores
    std::int32_t blockSize = 16;          ///< 8, 16, 32, 64
    std::int64_t numBlocks = 0;           ///< > 0 wins over kvCacheMemoryBytes
    std::uint64_t kvCacheMemoryBytes = 0; ///< > 0 wins over the share
    /// Share of available memory (after the weights) for the pool when neither is given; on CPU the default pool is
    /// min(25 % of available memory, 8 x max-model-len tokens).
    std::optional<double> memoryUtilization;
    std::int64_t maxModelLen = 0; ///< 0 = the model's own context length
    /// Form of cached keys and values. Exactness holds for each form; answers of different forms differ.
    kernels::KvFormat kvFormat;
    bool prefixCaching = true; ///< off with the contiguous allocator, whatever stands here
    kv::AllocatorKind allocator = kv::AllocatorKind::Paged;
    kv::ContiguousReserve contiguousReserve = kv::ContiguousReserve::Model; ///< contiguous only
    kv::EvictionKind eviction = kv::EvictionKind::Lru;
    kv::WindowPolicy windowPolicy = kv::WindowPolicy::Stop;
    std::int64_t sinks = 4; ///< Sinks: first tokens that every token attends to
    /// Stop, Trim: tokens that a sequence may have, at most max-model-len; 0 = max-model-len. Sinks: latest tokens that
    /// a token attends to, itself included; not 0.
    std::int64_t window = 0;
    /// host-cache-bytes: memory for a tier below the pool (paged only); 0 = there is none. Beside the pool's memory.
    std::uint64_t hostCacheBytes = 0;
    std::int32_t maxSequences = 16; ///< max-num-seqs
    /// Token budget of a step. 0 = adaptive: on CPU the chunk is chosen so that a step takes at most 150 ms.
    std::int32_t maxBatchedTokens = 0;
    double watermark = 0.01; ///< share of blocks kept back when admitting (paged only)
    sched::SchedulingPolicy schedulingPolicy = sched::SchedulingPolicy::Fcfs;
    std::int32_t longPrefillThreshold = 0;   ///< long-prefill-token-threshold; 0 = no prompt is long
    std::int32_t maxLongPartialPrefills = 1; ///< long prompts that are read at the same time
    /// Chat template by name (model::knownTemplates()) in place of the file's own. Empty = the file's own, and where
    /// that is missing or broken the one that its vocabulary suggests. None = the file's own or no chats at all.
    std::optional<std::string> chatTemplate;
};

/// Sequences may have so many tokens from now on.
inline void setWindow(EngineConfig& config, std::int64_t tokens) {
    config.maxModelLen = tokens;
    if (config.windowPolicy != kv::WindowPolicy::Sinks)
        config.window = 0;
}

/// The first impossible value as a sentence that names its option and range.
Result<void> validate(const EngineConfig& config);

} // namespace kvscope::api
