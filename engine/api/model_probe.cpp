// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/api/model_probe.h"

#include "engine/api/pool_plan.h"
#include "engine/exec/program_builder.h"
#include "engine/model/inspect.h"

namespace kvscope::api {

Result<ModelProbe> probeModel(const std::string& path, const EngineConfig& config, std::uint64_t availableBytes) {
    auto summary = model::inspectModel(path);
    if (!summary)
        return tl::unexpected(summary.error());
    ModelProbe probe;
    probe.path = path;
    probe.name = summary->name;
    probe.architecture = summary->architecture;
    probe.quantization = summary->quantization;
    probe.fileBytes = summary->fileBytes;
    probe.weightsBytes = summary->weightsBytes;
    const auto layout = exec::kvLayout(summary->kv, {config.kvFormat, config.blockSize, 1, config.maxSequences,
                                                     stepTokens(config), config.allocator == kv::AllocatorKind::Paged});
    // Of a model that this program cannot run, the size of f16 says more than nothing.
    probe.kvBytesPerToken =
        layout ? bytesPerToken(*layout)
               : model::kvBytesPerToken(summary->kv, model::TensorType::F16, model::TensorType::F16).value_or(0);
    probe.contextLength = summary->contextLength.value_or(0);
    probe.availableBytes = availableBytes;
    if (!summary->runs) {
        probe.problem = summary->problems.empty() ? "This file cannot be run." : summary->problems.front();
        return probe;
    }
    if (!layout) {
        probe.problem = layout.error().message;
        return probe;
    }
    PoolQuestion question;
    question.weightsBytes = probe.weightsBytes;
    askFor(question, *layout);
    question.contextLength = probe.contextLength;
    question.availableBytes = availableBytes;
    const auto plan = planPool(config, question);
    if (plan) {
        probe.poolBytes = plan->budget.bytes;
        probe.tokensThatFit = plan->budget.tokens;
    } else if (plan.error().code == ErrorCode::OutOfMemory) {
        const std::uint64_t least = smallestNeed(config, question);
        probe.missingBytes = least > availableBytes ? least - availableBytes : 1;
    } else {
        probe.problem = plan.error().message;
    }
    return probe;
}

} // namespace kvscope::api
