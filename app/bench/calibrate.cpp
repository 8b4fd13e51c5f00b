// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/bench/calibrate.h"

#include <algorithm>
#include <filesystem>

#include "app/bench/driver.h"
#include "app/bench/real_engine.h"
#include "engine/model/kv_size.h"
#include "engine/model/model_config.h"

namespace kvscope::bench {

namespace {

constexpr std::int64_t kPrompt = 256, kAnswer = 24;
constexpr int kRounds = 3;

/// One request of the length that the model allows.
Workload probe(std::int64_t context, std::uint64_t seed, std::int32_t vocab) {
    Workload workload;
    workload.name = "probe";
    PlannedRequest request;
    request.kind = RequestKind::Logged;
    const std::int64_t prompt = std::min(kPrompt, context / 2);
    for (std::int64_t i = 0; i < prompt; ++i)
        request.tokens.push_back(
            static_cast<TokenId>((seed + static_cast<std::uint64_t>(i) * 7919u) % static_cast<std::uint64_t>(vocab)));
    request.answerTokens = std::max<std::int64_t>(2, std::min(kAnswer, context / 4));
    workload.requests.push_back(std::move(request));
    return workload;
}

} // namespace

Result<ModelOnDisk> modelOnDisk(const std::string& path) {
    auto file = model::ModelFile::open(path);
    if (!file)
        return tl::unexpected(file.error());
    auto config = model::readModelConfig(*file);
    if (!config)
        return tl::unexpected(config.error());
    ModelOnDisk out;
    ModelShape& shape = out.shape;
    shape.name = config->name.empty() ? std::filesystem::path(path).stem().string() : config->name;
    shape.layers = config->layerCount();
    shape.hidden = config->hidden;
    shape.heads = config->layers.front().heads;
    shape.kvHeads = config->layers.front().kvHeads;
    shape.headDim = config->headDimK;
    shape.feedForward = config->layers.front().feedForward;
    shape.vocab = config->vocab;
    shape.tied = config->tiedOutput;
    shape.context = config->contextLength;
    if (model::hasWindowLayers(model::kvShape(*config)))
        shape.note = "Some layers of " + shape.name +
                     " look back over a window only; here they are counted as if they "
                     "kept everything.";
    out.weightBytes = static_cast<double>(file->tensorBytes());
    return out;
}

Result<Calibration> calibrate(const api::EngineConfig& config, const ModelOnDisk& model,
                              const std::atomic<bool>* interrupted) {
    RealEngine engine;
    api::EngineConfig small = config;
    small.prefixCaching = false;
    small.hostCacheBytes = 0;
    small.maxSequences = 1;
    small.maxModelLen = std::min<std::int64_t>(model.shape.context, 2 * kPrompt + kAnswer);
    small.numBlocks = (small.maxModelLen + small.blockSize - 1) / small.blockSize + 1;
    small.kvCacheMemoryBytes = 0;
    small.memoryUtilization.reset();
    const Nanos start = engine.now();
    if (auto ok = engine.load(small, interrupted); !ok)
        return tl::unexpected(ok.error());
    Calibration out;
    out.loadSeconds = static_cast<double>(engine.now() - start) / 1e9;
    DriverOptions options;
    options.interrupted = interrupted;
    double read = 1e30, write = 1e30; // seconds; the fastest round is the one least disturbed by others
    const Workload first = probe(small.maxModelLen, 0, static_cast<std::int32_t>(model.shape.vocab));
    for (int round = 0; round < kRounds; ++round) {
        const Workload workload =
            probe(small.maxModelLen, static_cast<std::uint64_t>(round), static_cast<std::int32_t>(model.shape.vocab));
        const RunResult result = runWorkload(engine, workload, options);
        const RequestRecord& record = result.records.front();
        if (record.status != RequestStatus::Ok)
            return fail(ErrorCode::Cancelled, "This machine was not measured: " + record.problem);
        std::vector<double> gaps;
        for (const Nanos gap : record.gaps())
            gaps.push_back(static_cast<double>(gap) / 1e9);
        read = std::min(read, static_cast<double>(record.firstToken()) / 1e9);
        write = std::min(write, median(std::move(gaps)));
    }
    const auto prompt = static_cast<double>(first.requests.front().promptTokens());
    Device& device = out.device;
    device.name = "this machine (" + engine.model().backend + ")";
    device.opsPerSecond =
        2 * (model.shape.activeParameters() * prompt + model.shape.outputParameters()) / std::max(read, 1e-9);
    device.bytesPerSecond = model.weightBytes / std::max(write, 1e-9);
    return out;
}

} // namespace kvscope::bench
