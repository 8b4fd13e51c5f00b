// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/bench/stage.h"

#include <algorithm>

#include "engine/base/split.h"

namespace kvscope::bench {

namespace {

bool applyBlockSize(Stage& stage, const std::string& part) {
    for (const std::int32_t size : {8, 16, 32, 64})
        if (part == "block" + std::to_string(size)) {
            stage.blockSize = size;
            return true;
        }
    return false;
}

bool apply(Stage& stage, const std::string& part) {
    if (part == "baseline" || part == "contiguous" || part == "reserve-model" || part == "reserve-request") {
        stage.contiguous = true;
        stage.reserveRequest = part == "reserve-request";
        return true;
    }
    if (part == "paged") {
        stage.contiguous = false;
        return true;
    }
    if (part == "prefix") {
        stage.prefixCaching = true;
        return true;
    }
    if (const auto format = kernels::kvFormatByName(part)) {
        stage.format = *format;
        return true;
    }
    if (const auto eviction = kv::evictionKindOf(part)) {
        stage.eviction = *eviction;
        return true;
    }
    if (const auto policy = sched::schedulingPolicyOf(part)) {
        stage.scheduling = *policy;
        return true;
    }
    return applyBlockSize(stage, part);
}

} // namespace

Result<Stage> parseStage(const std::string& name) {
    Stage stage;
    stage.name = name;
    for (const std::string& part : split(name, '+'))
        if (!apply(stage, part))
            return fail(ErrorCode::InvalidArgument,
                        "'" + part + "' in the stage '" + name +
                            "' means nothing; a stage is baseline, or paged or contiguous with any of f16, bf16, fp8, "
                            "int8, k8v4, int4, block8 to block64, prefix, reserve-request, lru, lfu, position, cost, "
                            "fcfs, short-first, prefix-first, joined by +.");
    if (stage.contiguous && stage.prefixCaching)
        return fail(ErrorCode::InvalidArgument, "The stage '" + name +
                                                    "' asks for a prefix cache in contiguous memory, where extents "
                                                    "cannot be shared; use paged.");
    return stage;
}

Result<std::vector<Stage>> parseStages(const std::string& list) {
    std::vector<Stage> stages;
    for (const std::string& name : split(list, ',')) {
        auto stage = parseStage(name);
        if (!stage)
            return tl::unexpected(stage.error());
        const bool known =
            std::any_of(stages.begin(), stages.end(), [&](const Stage& other) { return other.name == name; });
        if (known)
            return fail(ErrorCode::InvalidArgument, "The stage '" + name + "' is listed twice; list it once.");
        stages.push_back(std::move(*stage));
    }
    return stages;
}

} // namespace kvscope::bench
