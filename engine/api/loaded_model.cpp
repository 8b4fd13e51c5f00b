// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/api/loaded_model.h"

#include <algorithm>
#include <bit>
#include <filesystem>
#include <map>

#include "engine/api/backend_reason.h"
#include "engine/api/kv_warnings.h"
#include "engine/api/trace_collector.h"
#include "engine/exec/weight_loader.h"
#include "engine/model/vocabulary_gguf.h"

namespace kvscope::api {

namespace {

/// Logit rows beyond one per sequence only serve scoring, and each costs vocab x 4 bytes.
constexpr std::int32_t kLeastLogitRows = 16;
/// Moved once to and fro at load: enough to leave the processor's caches, few enough not to be noticed.
constexpr std::int32_t kCalibrationBlocks = 64;

/// "Q4_1 + Q8_0": the types that hold at least 5 % of the bytes, largest first.
std::string quantizationName(const model::ModelFile& file) {
    std::map<std::string, std::uint64_t> bytes;
    for (const model::TensorInfo& tensor : file.tensors())
        bytes[model::tensorTypeName(tensor.type)] += tensor.bytes;
    std::vector<std::pair<std::uint64_t, std::string>> order;
    for (const auto& [name, size] : bytes)
        if (size * 20 >= file.tensorBytes())
            order.emplace_back(size, name);
    std::sort(order.rbegin(), order.rend());
    std::string out;
    for (const auto& [size, name] : order)
        out += (out.empty() ? "" : " + ") + name;
    return out;
}

/// Any change of a rotary parameter makes other keys, so that blocks computed with it are not taken for these.
std::uint64_t ropeHash(const kernels::Program& program) {
    std::uint64_t hash = 0xCBF29CE484222325ull; // FNV-1a over the bits of every parameter
    const auto mix = [&](std::uint64_t value) { hash = (hash ^ value) * 0x100000001B3ull; };
    for (const kernels::RopeSpec& rope : program.ropes) {
        mix(static_cast<std::uint64_t>(rope.style));
        mix(static_cast<std::uint64_t>(rope.dims));
        mix(std::bit_cast<std::uint32_t>(rope.magnitude));
        for (const float f : rope.inverseFreq)
            mix(std::bit_cast<std::uint32_t>(f));
    }
    return hash;
}

std::uint64_t parameterCount(const model::ModelFile& file) {
    std::uint64_t count = 0;
    for (const model::TensorInfo& tensor : file.tensors())
        count += static_cast<std::uint64_t>(tensor.values());
    return count;
}

Error backendError(const kernels::BackendError& error) {
    return {error.outOfMemory ? ErrorCode::OutOfMemory : ErrorCode::Unsupported, error.message};
}

constexpr std::int64_t kMostTableEntries = std::int64_t(1) << 26; // ids of 4 bytes, kept beside the pool

Result<exec::StepCapacity> stepCapacity(const EngineConfig& config, const PoolPlan& plan) {
    exec::StepCapacity capacity;
    capacity.maxTokens = stepTokens(config);
    capacity.maxSequences = config.maxSequences;
    capacity.maxLogitRows = std::max(config.maxSequences, kLeastLogitRows);
    const bool givesBack = config.windowPolicy == kv::WindowPolicy::Sinks; // sequences may outgrow the pool
    const std::int64_t longest = givesBack ? plan.maxModelLen : std::min(plan.maxModelLen, plan.budget.tokens);
    const std::int64_t entries = config.maxSequences * ((longest + config.blockSize - 1) / config.blockSize);
    if (entries > kMostTableEntries)
        return fail(ErrorCode::InvalidArgument, "--max-num-seqs " + std::to_string(config.maxSequences) +
                                                    " sequences of " + std::to_string(longest) +
                                                    " tokens need too large block tables: give a smaller "
                                                    "--max-model-len or --max-num-seqs, or a larger --block-size.");
    capacity.maxTableEntries = static_cast<std::int32_t>(entries);
    return capacity;
}

/// One load, step by step; each step needs those before it.
class Loader {
public:
    Loader(const EngineConfig& config, const LoadContext& context)
        : m_context(context)
        , m_out(std::make_unique<LoadedModel>()) {
        m_out->config = config;
    }

    Result<std::unique_ptr<LoadedModel>> run() {
        auto file = model::ModelFile::open(m_out->config.modelPath);
        if (!file)
            return tl::unexpected(file.error());
        const auto steps = {&Loader::readConfiguration, &Loader::readTokenizer, &Loader::planMemory,
                            &Loader::loadWeights,       &Loader::makePool,      &Loader::makeScheduler};
        for (const auto step : steps)
            if (auto ok = (this->*step)(*file); !ok)
                return tl::unexpected(ok.error());
        return std::move(m_out);
    }

private:
    Result<kernels::KvLayout> layoutOf(std::int32_t numBlocks) const {
        const EngineConfig& config = m_out->config;
        return exec::kvLayout(model::kvShape(m_config),
                              {config.kvFormat, config.blockSize, numBlocks, config.maxSequences, stepTokens(config),
                               config.allocator == kv::AllocatorKind::Paged});
    }

    bool sinks() const { return m_out->config.windowPolicy == kv::WindowPolicy::Sinks; }

    Result<void> readConfiguration(const model::ModelFile& file) {
        auto config = model::readModelConfig(file);
        if (!config)
            return tl::unexpected(config.error());
        m_config = std::move(*config);
        if (sinks() && model::hasWindowLayers(model::kvShape(m_config)))
            return fail(ErrorCode::Unsupported, "--window-policy sinks is not supported for models with layers that "
                                                "have a window of their own; choose stop or trim.");
        auto layout = layoutOf(1);
        if (!layout)
            return tl::unexpected(layout.error());
        m_out->files = file.identities();
        ModelInfo& info = m_out->info;
        info.path = m_out->config.modelPath;
        info.name = m_config.name.empty() ? std::filesystem::path(info.path).stem().string() : m_config.name;
        info.architecture = m_config.architecture;
        info.quantization = quantizationName(file);
        info.layers = m_config.layerCount();
        info.contextLength = m_config.contextLength;
        info.kvBytesPerToken = bytesPerToken(*layout);
        info.bytesPerBlock = layout->bytesPerBlock();
        info.tailBytes = layout->bytesPerTail() * static_cast<std::uint64_t>(layout->tailSlots);
        info.window = layout->window;
        info.windowLayers =
            static_cast<std::int32_t>(std::count(layout->windowLayers.begin(), layout->windowLayers.end(), true));
        info.windowBlocks = layout->windowBlocks;
        info.bytesPerWindowBlock = layout->bytesPerWindowBlock();
        info.keyDtype = layout->format.keyName();
        info.valueDtype = layout->format.valueName();
        info.warnings = kvWarnings(*layout, info.architecture, parameterCount(file));
        for (const model::FileIdentity& shard : m_out->files)
            info.fileBytes += shard.bytes;
        return {};
    }

    Result<void> readTokenizer(const model::ModelFile& file) {
        auto vocabulary = model::vocabularyFromGguf(file.metadata());
        if (!vocabulary)
            return tl::unexpected(vocabulary.error());
        auto tokenizer = model::Tokenizer::create(std::move(*vocabulary));
        if (!tokenizer)
            return tl::unexpected(tokenizer.error());
        m_out->tokenizer = std::move(*tokenizer);
        m_out->prompts = std::make_unique<PromptEncoder>(m_out->tokenizer, m_config.vocab, m_out->config.chatTemplate);
        m_out->info.chatTemplate = m_out->prompts->templateInfo();
        m_out->info.hasChatTemplate = m_out->prompts->takesDialogs();
        return {};
    }

    Result<void> planMemory(const model::ModelFile& file) {
        PoolQuestion question;
        question.weightsBytes = file.tensorBytes();
        question.bytesPerBlock = m_out->info.bytesPerBlock;
        question.tailBytes = m_out->info.tailBytes;
        question.bytesPerWindowBlock = m_out->info.bytesPerWindowBlock;
        question.windowBlocks = m_out->info.windowBlocks;
        question.contextLength = m_config.contextLength;
        question.availableBytes = m_context.availableBytes;
        auto plan = planPool(m_out->config, question);
        if (!plan)
            return tl::unexpected(plan.error());
        m_plan = *plan;
        ModelInfo& info = m_out->info;
        info.maxModelLen = m_plan.maxModelLen;
        info.windowPolicy = m_out->config.windowPolicy;
        info.blockSize = m_out->config.blockSize;
        info.numBlocks = m_plan.budget.numBlocks;
        info.windowBlocks = std::min(info.windowBlocks, info.numBlocks);
        info.poolRule = exec::kvBudgetRuleName(m_plan.budget.rule);
        info.maxSequences = m_out->config.maxSequences;
        info.hostBlocks = m_plan.hostSlots;
        info.hostBytes = static_cast<std::uint64_t>(m_plan.hostSlots) * hostSlotBytes(question);
        return {};
    }

    Result<void> loadWeights(const model::ModelFile& file) {
        auto backend = m_context.makeBackend(m_out->config);
        if (!backend)
            return tl::unexpected(backendError(backend.error));
        m_out->backend = std::move(*backend.value);
        model::LoadOptions options;
        options.cancel = m_context.cancel;
        options.progress = [this](std::uint64_t done, std::uint64_t total) {
            m_context.progress(total == 0 ? 1.0 : static_cast<double>(done) / static_cast<double>(total));
        };
        auto weights = exec::loadWeights(file, *m_out->backend, options);
        if (!weights)
            return tl::unexpected(weights.error());
        m_weights = std::move(weights->table);
        ModelInfo& info = m_out->info;
        info.fingerprint = weights->fingerprint.text();
        info.weightsBytes = m_out->backend->memory().weights;
        info.backend = m_out->backend->describe();
        info.backendReason = cpuReason();
        return {};
    }

    Result<void> makePool(const model::ModelFile&) {
        auto layout = layoutOf(m_plan.budget.numBlocks);
        if (!layout)
            return tl::unexpected(layout.error());
        layout->windowBlocks = m_out->info.windowBlocks;
        const auto made = m_out->backend->createKvCache(*layout);
        if (!made)
            return tl::unexpected(backendError(made.error));
        if (auto ok = makeHost(*layout); !ok)
            return ok;
        const auto capacity = stepCapacity(m_out->config, m_plan);
        if (!capacity)
            return tl::unexpected(capacity.error());
        auto program = exec::buildProgram(m_config, m_weights, *capacity);
        if (!program)
            return tl::unexpected(program.error());
        if (sinks())
            exec::limitSight(*program, static_cast<std::int32_t>(m_out->config.sinks),
                             static_cast<std::int32_t>(m_out->config.window));
        const auto set = m_out->backend->setProgram(*program);
        if (!set)
            return tl::unexpected(backendError(set.error));
        m_out->stepCapacity = capacity->maxTokens;
        m_out->scoreCapacity = std::min(capacity->maxTokens, capacity->maxLogitRows);
        m_out->runner = std::make_unique<exec::ModelRunner>(*m_out->backend, *program, m_out->config.blockSize);
        m_ropeHash = ropeHash(*program);
        m_out->vocab = m_config.vocab;
        return {};
    }

    Result<void> makeHost(const kernels::KvLayout& layout) {
        m_host.blockBytes = layout.bytesPerBlock();
        m_host.windowBytes = layout.bytesPerWindowBlock();
        m_host.tailBytes = layout.bytesPerTail();
        if (m_plan.hostSlots == 0)
            return {};
        if (!m_out->backend->movesKv())
            return fail(ErrorCode::Unsupported, "--host-cache-bytes is not supported by this backend (" +
                                                    m_out->info.backend + "); leave it out.");
        auto mover = HostMover::make(*m_out->backend, layout, m_plan.hostSlots, m_context.clock);
        if (!mover)
            return tl::unexpected(mover.error());
        m_out->mover = std::move(*mover);
        m_out->mover->calibrate(std::min({m_plan.hostSlots, layout.numBlocks, kCalibrationBlocks}));
        m_host.slotCount = m_plan.hostSlots;
        m_host.mover = m_out->mover.get();
        return {};
    }

    Result<void> makeScheduler(const model::ModelFile&) {
        kv::CacheConfig cache;
        cache.numBlocks = m_plan.budget.numBlocks;
        cache.blockSize = m_out->config.blockSize;
        cache.allocator = m_out->config.allocator;
        cache.prefixCaching = m_out->config.prefixCaching && cache.allocator == kv::AllocatorKind::Paged;
        cache.eviction = m_out->config.eviction;
        cache.attentionPerToken = exec::attentionPerToken(m_config);
        cache.tailSlots = m_out->config.kvFormat.quantized() ? m_out->config.maxSequences : 0;
        cache.window = m_out->info.window;
        cache.windowBlocks = m_out->info.windowBlocks;
        cache.sinks = sinks() ? m_out->config.sinks : 0;
        cache.sinkWindow = sinks() ? m_out->config.window : 0;
        cache.host = m_host;
        cache.keys.modelFingerprint = m_out->info.fingerprint;
        cache.keys.keyDtype = m_out->info.keyDtype;
        cache.keys.valueDtype = m_out->info.valueDtype;
        cache.keys.layoutVersion = m_out->backend->kvLayoutVersion();
        cache.keys.ropeHash = m_ropeHash;
        m_out->cache = std::make_unique<kv::KvCache>(cache);
        sched::SchedulerConfig config;
        config.tokenBudget = m_out->stepCapacity;
        config.maxSequences = m_out->config.maxSequences;
        config.maxLength = m_plan.maxModelLen;
        config.watermark = m_out->config.watermark;
        config.policy = m_out->config.schedulingPolicy;
        config.longPrefillThreshold = m_out->config.longPrefillThreshold;
        config.maxLongPartialPrefills = m_out->config.maxLongPartialPrefills;
        config.reserve = m_out->config.contiguousReserve;
        m_out->trace = traceOptions(cache, config);
        m_out->scheduler = std::make_unique<sched::Scheduler>(*m_out->cache, config);
        return {};
    }

    const LoadContext& m_context;
    std::unique_ptr<LoadedModel> m_out;
    model::ModelConfig m_config;
    PoolPlan m_plan;
    exec::WeightTable m_weights;
    kv::HostConfig m_host;
    std::uint64_t m_ropeHash = 0;
};

} // namespace

Result<std::unique_ptr<LoadedModel>> loadModel(const EngineConfig& config, const LoadContext& context) {
    if (auto ok = validate(config); !ok)
        return tl::unexpected(ok.error());
    return Loader(config, context).run();
}

} // namespace kvscope::api
