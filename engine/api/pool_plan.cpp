// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/api/pool_plan.h"

#include <algorithm>
#include <cmath>

#include "engine/base/figures.h"

namespace kvscope::api {

std::uint64_t bytesPerToken(const kernels::KvLayout& layout) {
    const auto slots = static_cast<std::uint64_t>(layout.blockSize);
    return (layout.bytesPerBlock() + slots - 1) / slots;
}

void askFor(PoolQuestion& question, const kernels::KvLayout& layout) {
    question.bytesPerBlock = layout.bytesPerBlock();
    question.tailBytes = layout.bytesPerTail() * static_cast<std::uint64_t>(layout.tailSlots);
}

Result<PoolPlan> planPool(const EngineConfig& config, const PoolQuestion& question) {
    PoolPlan plan;
    plan.maxModelLen = config.maxModelLen > 0 ? config.maxModelLen : question.contextLength;
    if (plan.maxModelLen > question.contextLength)
        return fail(ErrorCode::InvalidArgument, "--max-model-len " + std::to_string(config.maxModelLen) +
                                                    " is more than the model's context of " +
                                                    countText(question.contextLength) + " tokens; give less.");
    if (question.weightsBytes >= question.availableBytes)
        return fail(ErrorCode::OutOfMemory, "The weights need " + sizeText(question.weightsBytes) + " of memory, " +
                                                sizeText(question.availableBytes) +
                                                " are available; close other programs or choose a smaller model.");
    exec::KvBudgetInputs inputs;
    inputs.bytesPerBlock = question.bytesPerBlock;
    inputs.tailBytes = question.tailBytes;
    inputs.blockSize = config.blockSize;
    inputs.maxModelLen = plan.maxModelLen;
    inputs.numBlocks = config.numBlocks;
    inputs.cacheBytes = config.kvCacheMemoryBytes;
    inputs.share = config.memoryUtilization;
    inputs.availableBytes = question.availableBytes - question.weightsBytes;
    auto budget = exec::planKvBudget(inputs);
    if (!budget)
        return tl::unexpected(budget.error());
    plan.budget = *budget;
    return plan;
}

std::uint64_t smallestNeed(const EngineConfig& config, const PoolQuestion& question) {
    const std::uint64_t least = question.bytesPerBlock + question.tailBytes;
    if (config.numBlocks > 0)
        return question.weightsBytes + question.tailBytes +
               question.bytesPerBlock * static_cast<std::uint64_t>(config.numBlocks);
    if (config.kvCacheMemoryBytes > 0)
        return question.weightsBytes + std::max<std::uint64_t>(least, config.kvCacheMemoryBytes);
    const double share = config.memoryUtilization.value_or(exec::kDefaultShare);
    return question.weightsBytes + static_cast<std::uint64_t>(std::ceil(static_cast<double>(least) / share));
}

} // namespace kvscope::api
