// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/bench/bench_plan.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/base/figures.h"

namespace kvscope::bench {

namespace {

constexpr std::int64_t kLongestAtOnce = 4; ///< of the default budget
constexpr std::int32_t kBaselineBlock = 16;

std::int64_t blocksFor(std::int64_t tokens, std::int32_t blockSize) {
    return (tokens + blockSize - 1) / blockSize;
}

/// "mix at scale 1 needs 8,000 tokens for a prompt and its answer, ..."
Error tooLong(const Workload& workload, std::int64_t longest, std::int64_t limit, const std::string& whose) {
    std::string message = workload.name + " at scale " + formatted("%g", workload.scale) + " needs " +
                          countText(longest) + " tokens for a prompt and its answer; " + whose + " is " +
                          countText(limit) + ". ";
    const auto& names = workloadNames();
    const bool scales = std::find(names.begin(), names.end(), workload.name) != names.end();
    const double scale = scales ? largestScale(workload.name, limit) : 0;
    if (!scales)
        message += "Leave out the longest requests, or choose another model.";
    else if (scale > 0)
        message += "The largest scale that fits is " + formatted("%g", scale) + ": give --scale " +
                   formatted("%g", scale) + ".";
    else
        message += "No scale fits; choose another model.";
    return {ErrorCode::InvalidArgument, std::move(message)};
}

std::uint64_t defaultBytes(const Workload& workload, const KvRows& rows, std::int64_t maxModelLen) {
    const std::int64_t blocks =
        workload.poolBlocks16 > 0 ? workload.poolBlocks16 : kLongestAtOnce * blocksFor(maxModelLen, kBaselineBlock);
    return static_cast<std::uint64_t>(blocks) * plainBlockBytes(rows, kBaselineBlock);
}

Result<void> checkStage(const BenchPlan& plan, const StageFacts& facts) {
    const std::int64_t slots = facts.numBlocks * facts.stage.blockSize;
    const std::int64_t needed = facts.stage.contiguous && !facts.stage.reserveRequest
                                    ? plan.maxModelLen
                                    : plan.request.workload.longestSequence();
    if (slots < needed)
        return fail(ErrorCode::InvalidArgument, "In the stage '" + facts.stage.name + "' the " +
                                                    sizeText(plan.kvBytes) + " of KV cache hold " + countText(slots) +
                                                    " tokens; the longest request needs " + countText(needed) +
                                                    ". Give a larger --kv-cache-memory-bytes, or a smaller --scale.");
    if (facts.numBlocks > std::numeric_limits<std::int32_t>::max() / facts.stage.blockSize)
        return fail(ErrorCode::InvalidArgument, sizeText(plan.kvBytes) + " are more blocks than can be addressed; "
                                                                         "give a smaller --kv-cache-memory-bytes.");
    return {};
}

} // namespace

std::int32_t sequencesAt(const BenchRequest& request, std::int32_t concurrency) {
    return request.maxSequencesGiven ? request.engine.maxSequences : concurrency;
}

Result<StageFacts> layOut(const Stage& stage, const KvRows& rows, std::uint64_t kvBytes, std::int32_t sequences) {
    auto bytes = kvBlockBytes(rows, stage.format, stage.blockSize);
    if (!bytes)
        return tl::unexpected(bytes.error());
    StageFacts facts;
    facts.stage = stage;
    facts.bytesPerBlock = bytes->sealed;
    facts.bytesPerToken = static_cast<double>(bytes->sealed) / stage.blockSize;
    facts.tailSlots = stage.format.quantized() ? sequences : 0;
    facts.tailBytes = static_cast<std::uint64_t>(facts.tailSlots) * bytes->tail;
    facts.numBlocks = static_cast<std::int64_t>((kvBytes - std::min(kvBytes, facts.tailBytes)) / bytes->sealed);
    const auto plain = static_cast<double>(kvBytes / plainBlockBytes(rows, stage.blockSize));
    facts.poolGain = plain > 0 ? static_cast<double>(facts.numBlocks) / plain : 0;
    return facts;
}

Result<BenchPlan> planBench(BenchRequest request) {
    BenchPlan plan;
    const std::int64_t longest = request.workload.longestSequence();
    if (longest > request.model.context)
        return tl::unexpected(
            tooLong(request.workload, longest, request.model.context, "the context of " + request.model.name));
    if (request.maxModelLen > 0 && longest > request.maxModelLen)
        return tl::unexpected(tooLong(request.workload, longest, request.maxModelLen, "--max-model-len"));
    plan.maxModelLen = request.maxModelLen > 0 ? request.maxModelLen : longest;
    const KvRows rows = request.model.kvRows();
    plan.kvBytes = request.kvBytes > 0 ? request.kvBytes : defaultBytes(request.workload, rows, plan.maxModelLen);
    const std::int32_t most =
        sequencesAt(request, *std::max_element(request.concurrency.begin(), request.concurrency.end()));
    for (const Stage& stage : request.stages) {
        auto facts = layOut(stage, rows, plan.kvBytes, most);
        if (!facts)
            return tl::unexpected(facts.error());
        plan.stages.push_back(std::move(*facts));
    }
    plan.request = std::move(request);
    for (const StageFacts& facts : plan.stages)
        if (auto ok = checkStage(plan, facts); !ok)
            return tl::unexpected(ok.error());
    const Device& device = plan.request.device;
    const double bytes = plan.request.weightBytes + static_cast<double>(plan.kvBytes);
    if (device.memoryBytes > 0 && bytes > static_cast<double>(device.memoryBytes))
        return fail(ErrorCode::InvalidArgument,
                    "Weights and KV cache take " + sizeText(static_cast<std::uint64_t>(bytes)) + "; " + device.name +
                        " has " + sizeText(device.memoryBytes) +
                        ". Give smaller --weights, a smaller --kv-cache-memory-bytes, or another --device.");
    return plan;
}

DeployedModel deployed(const BenchPlan& plan, const StageFacts& facts) {
    DeployedModel model;
    model.shape = plan.request.model;
    model.weightBytes = plan.request.weightBytes;
    model.sealedBytes = facts.bytesPerBlock;
    model.plainBytes = plainBlockBytes(plan.request.model.kvRows(), facts.stage.blockSize);
    model.tailBytes = facts.tailSlots > 0 ? facts.tailBytes / static_cast<std::uint64_t>(facts.tailSlots) : 0;
    model.blockSize = facts.stage.blockSize;
    return model;
}

} // namespace kvscope::bench
