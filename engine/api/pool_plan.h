// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

#include "engine/api/engine_config.h"
#include "engine/exec/kv_budget.h"
#include "kernels/backend.h"

namespace kvscope::api {

/// What is known of a model before its weights are read.
struct PoolQuestion {
    std::uint64_t weightsBytes = 0;  ///< of all tensors, as in the file
    std::uint64_t bytesPerBlock = 0; ///< sealed
    std::uint64_t tailBytes = 0;     ///< of all tail slots
    std::uint64_t bytesPerWindowBlock = 0;
    std::int64_t windowBlocks = 0; ///< most of them
    std::int64_t contextLength = 0;
    std::uint64_t availableBytes = 0; ///< memory before the weights are loaded
};

/// K and V of all layers that keep everything, the share of scales included; rounded up.
std::uint64_t bytesPerToken(const kernels::KvLayout& layout);

/// Most tokens of a step.
std::int32_t stepTokens(const EngineConfig& config);
/// The sizes of a pool from the layout it would have.
void askFor(PoolQuestion& question, const kernels::KvLayout& layout);

struct PoolPlan {
    exec::KvBudget budget;
    std::int64_t maxModelLen = 0;
    std::int32_t hostSlots = 0; ///< of the host tier; 0 = there is none
};

/// Bytes of one slot of a host tier: a block of the pool and its companion.
std::uint64_t hostSlotBytes(const PoolQuestion& question);

/// Decides the pool before the weights are read, for the picker and for the engine alike: "available after the weights"
/// is what was available before less the tensors' size, so that both see the same number. The host tier's memory is set
/// aside before the pool's.
/// Errors: OutOfMemory (with the numbers), InvalidArgument (max-model-len above the model's context).
Result<PoolPlan> planPool(const EngineConfig& config, const PoolQuestion& question);

/// The least memory with which planPool does not answer OutOfMemory: the weights, and the pool that was asked for or
/// the smallest one that the share gives.
std::uint64_t smallestNeed(const EngineConfig& config, const PoolQuestion& question);

} // namespace kvscope::api
