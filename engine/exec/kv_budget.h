// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>

#include "engine/base/result.h"

namespace kvscope::exec {

/// Share of the available memory that the pool takes at most when nothing is asked for.
inline constexpr double kDefaultShare = 0.25;

/// Everything that decides the size of the block pool.
struct KvBudgetInputs {
    std::uint64_t bytesPerBlock = 0;       ///< K and V of all layers that keep everything, as they lie in sealed blocks
    std::uint64_t tailBytes = 0;           ///< of all tail slots: part of every pool, whatever its number of blocks
    std::uint64_t bytesPerWindowBlock = 0; ///< of the window group; 0 = there is none
    std::int64_t windowBlocks = 0;         ///< most of them; never more than blocks
    std::int32_t blockSize = 16;           ///< tokens per block
    std::int64_t maxModelLen = 0;          ///< tokens, > 0
    std::int64_t numBlocks = 0;            ///< > 0 wins over everything
    std::uint64_t cacheBytes = 0;          ///< > 0 wins over the share
    std::optional<double> share;           ///< of `availableBytes`, (0, 1]
    std::uint64_t availableBytes = 0;      ///< memory that is left after the weights
};

enum class KvBudgetRule {
    NumBlocks,    ///< --num-blocks
    CacheBytes,   ///< --kv-cache-memory-bytes
    Share,        ///< --gpu-memory-utilization
    QuarterShare, ///< default: 25 % of available memory
    EightContexts ///< default: 8 x max-model-len, when that is less
};
/// The rule in words, for "pool: 4096 blocks (8 x max-model-len)".
const char* kvBudgetRuleName(KvBudgetRule rule);

struct KvBudget {
    std::int32_t numBlocks = 0;
    std::uint64_t bytes = 0; ///< blocks, those of the window group, and tails
    std::int64_t tokens = 0; ///< numBlocks x blockSize: "tokens that fit"
    KvBudgetRule rule = KvBudgetRule::EightContexts;
};

/// Bytes of a pool of so many blocks.
std::uint64_t kvPoolBytes(const KvBudgetInputs& inputs, std::int64_t blocks);

/// The one place that decides how many blocks there are; the model picker and the engine both ask it, so the number
/// that is shown is the number that is made. Order: numBlocks, cacheBytes, share, then on CPU
/// min(25 % of available memory, 8 x max-model-len).
/// Fails when not even one block fits, or when what was asked for exceeds the available memory.
Result<KvBudget> planKvBudget(const KvBudgetInputs& inputs);

} // namespace kvscope::exec
