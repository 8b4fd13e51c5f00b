// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/api/pool_plan.h"

#include <algorithm>
#include <cmath>

#include "engine/base/figures.h"

namespace kvscope::api {

namespace {

/// Tokens of a step where the user gave no budget: enough for full speed of the matrix kernels. The step time budget
/// keeps the actual chunk below it on slow machines.
constexpr std::int32_t kAdaptiveCapacity = 512;

} // namespace

std::uint64_t bytesPerToken(const kernels::KvLayout& layout) {
    const auto slots = static_cast<std::uint64_t>(layout.blockSize);
    return (layout.bytesPerBlock() + slots - 1) / slots;
}

void askFor(PoolQuestion& question, const kernels::KvLayout& layout) {
    question.bytesPerBlock = layout.bytesPerBlock();
    question.tailBytes = layout.bytesPerTail() * static_cast<std::uint64_t>(layout.tailSlots);
    question.bytesPerWindowBlock = layout.bytesPerWindowBlock();
    question.windowBlocks = layout.windowBlocks;
}

std::int32_t stepTokens(const EngineConfig& config) {
    return config.maxBatchedTokens > 0 ? config.maxBatchedTokens : kAdaptiveCapacity;
}

namespace {

exec::KvBudgetInputs sizes(const PoolQuestion& question) {
    exec::KvBudgetInputs inputs;
    inputs.bytesPerBlock = question.bytesPerBlock;
    inputs.tailBytes = question.tailBytes;
    inputs.bytesPerWindowBlock = question.bytesPerWindowBlock;
    inputs.windowBlocks = question.windowBlocks;
    return inputs;
}

constexpr std::uint64_t kMostHostSlots = std::uint64_t(1) << 24;

/// How many slots the host tier has, and that there is memory for them beside the weights.
Result<std::int32_t> planHost(const EngineConfig& config, const PoolQuestion& question) {
    const std::uint64_t slots = config.hostCacheBytes / hostSlotBytes(question);
    if (slots == 0)
        return fail(ErrorCode::InvalidArgument, "--host-cache-bytes must hold one block of " +
                                                    sizeText(hostSlotBytes(question)) + " at least, or be 0.");
    const std::uint64_t left = question.availableBytes - question.weightsBytes;
    if (config.hostCacheBytes >= left)
        return fail(ErrorCode::OutOfMemory, "--host-cache-bytes asks for " + sizeText(config.hostCacheBytes) +
                                                ", but " + sizeText(left) +
                                                " of memory are left after the weights, for the pool too; give less.");
    return static_cast<std::int32_t>(std::min(slots, kMostHostSlots));
}

} // namespace

std::uint64_t hostSlotBytes(const PoolQuestion& question) {
    return question.bytesPerBlock + question.bytesPerWindowBlock;
}

Result<PoolPlan> planPool(const EngineConfig& config, const PoolQuestion& question) {
    PoolPlan plan;
    plan.maxModelLen = config.maxModelLen > 0 ? config.maxModelLen : question.contextLength;
    if (plan.maxModelLen > question.contextLength)
        return fail(ErrorCode::InvalidArgument, "--max-model-len " + std::to_string(config.maxModelLen) +
                                                    " is more than the model's context of " +
                                                    countText(question.contextLength) + " tokens; give less.");
    if (config.window > plan.maxModelLen)
        return fail(ErrorCode::InvalidArgument, "--window " + std::to_string(config.window) +
                                                    " is more than the longest sequence of " +
                                                    countText(plan.maxModelLen) + " tokens; give less.");
    if (config.window > 0 && config.windowPolicy != kv::WindowPolicy::Sinks)
        plan.maxModelLen = config.window;
    if (question.weightsBytes >= question.availableBytes)
        return fail(ErrorCode::OutOfMemory, "The weights need " + sizeText(question.weightsBytes) + " of memory, " +
                                                sizeText(question.availableBytes) +
                                                " are available; close other programs or choose a smaller model.");
    if (config.hostCacheBytes > 0) {
        const auto slots = planHost(config, question);
        if (!slots)
            return tl::unexpected(slots.error());
        plan.hostSlots = *slots;
    }
    exec::KvBudgetInputs inputs = sizes(question);
    inputs.blockSize = config.blockSize;
    inputs.maxModelLen = plan.maxModelLen;
    inputs.numBlocks = config.numBlocks;
    inputs.cacheBytes = config.kvCacheMemoryBytes;
    inputs.share = config.memoryUtilization;
    inputs.availableBytes = question.availableBytes - question.weightsBytes - config.hostCacheBytes;
    auto budget = exec::planKvBudget(inputs);
    if (!budget)
        return tl::unexpected(budget.error());
    plan.budget = *budget;
    return plan;
}

std::uint64_t smallestNeed(const EngineConfig& config, const PoolQuestion& question) {
    const std::uint64_t least = exec::kvPoolBytes(sizes(question), 1);
    const std::uint64_t beside = question.weightsBytes + config.hostCacheBytes;
    if (config.numBlocks > 0)
        return beside + exec::kvPoolBytes(sizes(question), config.numBlocks);
    if (config.kvCacheMemoryBytes > 0)
        return beside + std::max<std::uint64_t>(least, config.kvCacheMemoryBytes);
    const double share = config.memoryUtilization.value_or(exec::kDefaultShare);
    return beside + static_cast<std::uint64_t>(std::ceil(static_cast<double>(least) / share));
}

} // namespace kvscope::api
