// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "engine/api/block_trace.h"
#include "engine/api/engine_config.h"
#include "engine/api/host_mover.h"
#include "engine/api/pool_plan.h"
#include "engine/api/prompt_encoder.h"
#include "engine/api/sources.h"
#include "engine/exec/model_runner.h"
#include "engine/kv/kv_cache.h"
#include "engine/model/model_file.h"
#include "engine/model/tokenizer.h"
#include "engine/sched/scheduler.h"

namespace kvscope::api {

/// Everything that one loaded model consists of, in order of construction.
struct LoadedModel {
    EngineConfig config;
    ModelInfo info;
    std::int32_t vocab = 0;
    std::int32_t stepCapacity = 0;  ///< most tokens of a step
    std::int32_t scoreCapacity = 0; ///< most tokens of a step that gives out logits of prompt positions
    std::vector<model::FileIdentity> files;
    std::shared_ptr<const model::Tokenizer> tokenizer;
    std::unique_ptr<PromptEncoder> prompts;
    std::unique_ptr<kernels::Backend> backend;
    std::unique_ptr<exec::ModelRunner> runner;
    std::unique_ptr<HostMover> mover; ///< null = there is no host tier
    std::unique_ptr<kv::KvCache> cache;
    TraceOptions trace;                          ///< what a block log of it records
    std::unique_ptr<sched::Scheduler> scheduler; ///< last: its sequences hold tables of the cache
};

struct LoadContext {
    const Clock& clock;
    std::function<kernels::BackendResult<std::unique_ptr<kernels::Backend>>(const EngineConfig&)> makeBackend;
    std::uint64_t availableBytes = 0;
    std::function<void(double fraction)> progress;
    const std::atomic<bool>* cancel = nullptr;
};

/// Reads, checks and prepares a model: file, configuration, tokenizer, pool plan, weights, pool, program, scheduler.
/// What cannot work is found before the weights are read. Errors: those of the parts; nothing remains of a failed load.
Result<std::unique_ptr<LoadedModel>> loadModel(const EngineConfig& config, const LoadContext& context);

} // namespace kvscope::api
