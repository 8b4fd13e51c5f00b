// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/api/engine.h"

#include "engine/api/block_log.h"
#include "engine/api/engine_impl.h"
#include "engine/api/memory_probe.h"
#include "engine/base/check.h"
#include "kernels/cpu/cpu_backend.h"

namespace kvscope::api {

namespace {

kernels::BackendResult<std::unique_ptr<kernels::Backend>> makeCpu(const EngineConfig& config) {
    kernels::CpuOptions options;
    options.threads = config.threads;
    options.forceIsa = config.isa;
    options.floatActivations = config.floatActivations;
    return kernels::makeCpuBackend(options);
}

/// A scored prompt must compute every token; in a key space of its own it finds nothing in the cache.
std::uint64_t scoringAdapter(RequestId id) {
    return (std::uint64_t(1) << 63) | static_cast<std::uint64_t>(id.value());
}

Error noModel() {
    return {ErrorCode::NotFound, "No model is loaded; choose one first."};
}

} // namespace

Engine::Impl::Impl(EngineParts parts) : m_parts(std::move(parts)) {
    if (!m_parts.makeBackend)
        m_parts.makeBackend = makeCpu;
    if (!m_parts.availableMemory)
        m_parts.availableMemory = availableMemory;
}

Engine::Impl::~Impl() {
    endSession();
}

void Engine::Impl::say(const Event& event) {
    m_parts.listener.onEvent(event);
    if (m_parts.observer && m_model)
        m_parts.observer->event(now(), event);
}

ActiveRequest* Engine::Impl::find(RequestId id) {
    const auto found = m_requests.find(id);
    return found == m_requests.end() ? nullptr : found->second.get();
}

const std::vector<TokenId>* Engine::Impl::keptTokens(RequestId id) const {
    const auto found = m_kept.find(id);
    return found == m_kept.end() ? nullptr : &found->second.tokens;
}

// ---- models ----

Result<void> Engine::Impl::load(const EngineConfig& config, const std::atomic<bool>* cancel) {
    const Nanos start = now();
    m_parts.listener.onEvent(LoadingEvent{config.modelPath, 0});
    LoadContext context{m_parts.clock, {}, 0, {}, nullptr};
    context.makeBackend = m_parts.makeBackend;
    context.availableBytes = m_parts.availableMemory();
    context.cancel = cancel;
    context.progress = [&](double fraction) { m_parts.listener.onEvent(LoadingEvent{config.modelPath, fraction}); };
    auto model = loadModel(config, context);
    if (!model) {
        Error error = model.error();
        if (error.code == ErrorCode::OutOfMemory && m_model)
            error.message += " The model that is loaded now keeps its memory until the new one is ready; unload it "
                             "first.";
        m_parts.listener.onEvent(LoadFailedEvent{config.modelPath, error});
        return tl::unexpected(error);
    }
    endEverything(sched::EndReason::Failed,
                  {ErrorCode::Cancelled, "The model was switched before this answer was finished."});
    endSession();
    m_model = std::move(*model);
    m_config = config;
    m_faulted = false;
    m_model->info.loadMs = static_cast<double>(now() - start) / 1e6;
    m_info = m_model->info;
    beginSession();
    say(LoadedEvent{m_info});
    publish(true);
    return {};
}

void Engine::Impl::beginSession() {
    m_sessionStart = now();
    m_times = {};
    m_peakStates = {};
    m_peakReferenced = 0;
    m_lastMapEpoch = m_idleEpoch = ~std::uint64_t(0);
    m_idle.clear();
    m_fileChangeSaid = false;
    m_readCost = ReadCost(m_model->trace.attentionPerToken);
    m_stepTime = StepTimeBudget(m_model->stepCapacity);
    if (m_parts.blockLog)
        std::exchange(m_parts.blockLog, nullptr)
            ->begin(*m_model->cache, *m_model->scheduler, m_model->trace, m_info.fingerprint);
    if (m_parts.abort)
        m_parts.abort->attach(m_model->backend.get());
    if (m_parts.observer)
        m_parts.observer->sessionStarted({m_sessionStart, m_config, m_info});
}

void Engine::Impl::endSession() {
    if (m_parts.abort)
        m_parts.abort->attach(nullptr);
    if (m_parts.observer && m_model)
        m_parts.observer->sessionEnded(now());
    m_requests.clear();
    m_bySequence.clear();
    m_kept.clear();
    m_model.reset();
}

void Engine::Impl::unload() {
    if (!m_model && !m_faulted)
        return;
    endEverything(sched::EndReason::Failed,
                  {ErrorCode::Cancelled, "The model was unloaded before this answer was finished."});
    say(UnloadedEvent{});
    endSession();
    m_faulted = false;
    m_info = {};
}

Result<void> Engine::Impl::restart(const std::atomic<bool>* cancel) {
    const EngineConfig config = m_config;
    unload();
    return load(config, cancel);
}

void Engine::Impl::fault(const std::string& message) {
    const Error error{ErrorCode::Internal, "The engine stopped because of an internal fault (" + message +
                                               "); restart the engine and ask again."};
    m_endError = error;
    while (!m_requests.empty()) {
        const auto& [id, request] = *m_requests.begin();
        sched::EndedSequence ended; // not asked of the scheduler, whose state cannot be trusted any more
        ended.id = request->sequence;
        ended.request = id;
        ended.owner = request->request().owner;
        ended.reason = sched::EndReason::Failed;
        ended.promptTokens = static_cast<std::int64_t>(request->promptIds().size()) + request->givenTokens();
        endRequest(ended);
    }
    m_endError.reset();
    say(FaultedEvent{error.message});
    if (m_model) {
        // A structure whose invariants are broken is not walked again, not even to give its blocks back: a second fault
        // on the way down would end the program.
        m_model->cache->abandon();
        m_model->scheduler.reset();
        m_model->cache.reset();
    }
    endSession();
    m_faulted = true;
}

// ---- requests ----

void Engine::Impl::submit(Request request, Nanos arrival) {
    if (m_parts.observer && m_model)
        m_parts.observer->requestSubmitted(arrival, request);
    const auto refuse = [&](Error error) { say(FinishedEvent{failedAnswer(request, std::move(error))}); };
    if (m_faulted)
        return refuse({ErrorCode::Internal, "The engine has stopped because of a fault; restart it first."});
    if (!m_model)
        return refuse(noModel());
    if (m_requests.count(request.id) != 0)
        return refuse({ErrorCode::InvalidArgument, "A request with this id is still running."});
    if (auto ok = validate(request.sampling); !ok)
        return refuse(ok.error());
    for (const auto& [token, bias] : request.sampling.logitBias)
        if (token >= m_model->vocab)
            return refuse({ErrorCode::InvalidArgument, "A logit bias names token " + std::to_string(token) +
                                                           "; this model's ids go from 0 to " +
                                                           std::to_string(m_model->vocab - 1) + "."});
    auto prompt = encode(request);
    if (!prompt)
        return refuse(prompt.error());

    if (request.background && !fitsBeside(*prompt, request.sampling.maxTokens))
        return refuse({ErrorCode::Full, "There are not enough empty blocks for it."});

    sched::SequenceSpec spec;
    spec.request = request.id;
    spec.owner = request.owner;
    spec.tokens = prompt->ids;
    spec.maxNewTokens = request.sampling.maxTokens;
    spec.adapter = request.logitPositions.empty() ? request.adapter : scoringAdapter(request.id);
    if (const auto* fork = std::get_if<ForkPrompt>(&request.prompt))
        spec.forkOf = m_kept.at(fork->of).sequence;
    spec.scores = !request.logitPositions.empty();
    spec.retain = request.keepForFork;
    spec.pinPrompt = request.pinPrompt;

    const RequestId id = request.id;
    QueuedEvent queued{id, static_cast<std::int64_t>(prompt->ids.size()), prompt->messageRanges, prompt->adaptations,
                       prompt->opensThought};
    queued.cut = prompt->cut;
    queued.givenTokens.assign(prompt->ids.end() - prompt->givenTokens, prompt->ids.end());
    auto active = std::make_unique<ActiveRequest>(std::move(request), std::move(*prompt), m_model->tokenizer,
                                                  m_model->prompts->turnEnd());
    if (!queued.givenTokens.empty())
        queued.givenText = active->givenText();
    say(queued);
    active->sequence = m_model->scheduler->submit(std::move(spec), arrival);
    m_bySequence.emplace(active->sequence, active.get());
    m_requests.emplace(id, std::move(active));
    collectEnded(); // one that can never be held has ended already
}

/// Could this run without pushing cached blocks out?
bool Engine::Impl::fitsBeside(const EncodedPrompt& prompt, std::int64_t newTokens) const {
    const kv::KvCache& cache = *m_model->cache;
    const auto tokens = static_cast<std::int64_t>(prompt.ids.size()) + newTokens;
    if (cache.contiguous()) {
        const std::int64_t longest =
            m_model->scheduler->reserveFor(static_cast<std::int64_t>(prompt.ids.size()), newTokens);
        return cache.extentFor(tokens, longest) <= cache.largestExtent();
    }
    const std::int64_t shared = cache.lookup(prompt.ids) / cache.blockSize();
    return cache.mostBlocks(tokens, m_model->stepCapacity) - shared <=
           static_cast<std::int64_t>(cache.pool().counts()[static_cast<std::size_t>(kv::BlockState::Empty)]);
}

void Engine::Impl::cancel(RequestId id) {
    if (ActiveRequest* request = find(id); request && m_model) {
        m_model->scheduler->cancel(request->sequence, now());
        collectEnded();
        publish(false);
    }
}

void Engine::Impl::forget(RequestId id) {
    const auto kept = m_kept.find(id);
    if (kept == m_kept.end() || !m_model)
        return;
    m_model->scheduler->dropRetained(kept->second.sequence);
    m_kept.erase(kept);
    publish(false);
}

void Engine::Impl::collectEnded() {
    sayPreemptions(); // nothing of a request is told behind its end
    for (const sched::EndedSequence& ended : m_model->scheduler->takeEnded())
        endRequest(ended);
}

void Engine::Impl::endRequest(const sched::EndedSequence& ended) {
    const auto found = m_requests.find(ended.request);
    KV_CHECK(found != m_requests.end(), "A sequence ended that no request belongs to");
    const std::unique_ptr<ActiveRequest> request = std::move(found->second);
    m_requests.erase(found);
    m_bySequence.erase(ended.id);
    std::string rest;
    const bool failed = ended.reason == sched::EndReason::Failed;
    Answer answer = request->finish(ended, m_info.blockSize, failed ? m_endError : std::nullopt, rest);
    answer.timings.loadMs = m_info.loadMs;
    if (request->request().keepForFork) {
        Kept& kept = m_kept[ended.request];
        kept.tokens = answer.promptTokenIds;
        kept.tokens.insert(kept.tokens.end(), answer.tokenIds.begin(), answer.tokenIds.end());
        kept.sequence = ended.id;
    }
    if (!rest.empty())
        say(TokensEvent{ended.request, std::move(rest), {}, ended.promptTokens + ended.generatedTokens});
    say(FinishedEvent{std::move(answer)});
}

void Engine::Impl::endEverything(sched::EndReason reason, const Error& error) {
    if (!m_model)
        return;
    m_endError = error;
    m_model->scheduler->endAll(reason, now());
    collectEnded();
    m_endError.reset();
}

// ---- the public face ----

Engine::Engine(EngineParts parts) : m_impl(std::make_unique<Impl>(std::move(parts))) {}
Engine::~Engine() = default;
Result<void> Engine::load(const EngineConfig& config, const std::atomic<bool>* cancel) {
    return m_impl->load(config, cancel);
}
void Engine::unload() {
    m_impl->unload();
}
Result<void> Engine::restart(const std::atomic<bool>* cancel) {
    return m_impl->restart(cancel);
}
bool Engine::loaded() const {
    return m_impl->loaded();
}
bool Engine::faulted() const {
    return m_impl->faulted();
}
const ModelInfo& Engine::model() const {
    return m_impl->info();
}
void Engine::submit(Request request, Nanos arrival) {
    m_impl->guarded([&] { m_impl->submit(std::move(request), arrival); });
}
void Engine::cancel(RequestId id) {
    m_impl->guarded([&] { m_impl->cancel(id); });
}
void Engine::forget(RequestId id) {
    m_impl->guarded([&] { m_impl->forget(id); });
}
bool Engine::hasWork() const {
    return m_impl->hasWork();
}
Engine::StepResult Engine::step() {
    StepResult result = StepResult::Faulted;
    m_impl->guarded([&] { result = m_impl->step(); });
    return result;
}
void Engine::tick() {
    m_impl->guarded([&] { m_impl->tick(); });
}
metrics::StepSample Engine::sample() const {
    return m_impl->sample();
}
EngineStats Engine::stats() const {
    return m_impl->stats();
}
void Engine::measure(const Request& request) {
    m_impl->guarded([&] { m_impl->answerMeasure(request); });
}
void Engine::queryBlock(BlockId block) {
    m_impl->guarded([&] { m_impl->queryBlock(block); });
}
void Engine::queryOwner(OwnerId owner) {
    m_impl->guarded([&] { m_impl->queryOwner(owner); });
}
void Engine::useTemplate(const std::string& name) {
    m_impl->guarded([&] { m_impl->useTemplate(name); });
}
void Engine::queryPrompt(std::int64_t key, const DialogPrompt& dialog, std::int64_t maxTokens) {
    m_impl->guarded([&] { m_impl->queryPrompt(key, dialog, maxTokens); });
}

} // namespace kvscope::api
