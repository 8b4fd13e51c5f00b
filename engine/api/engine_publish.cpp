// SPDX-License-Identifier: GPL-3.0-or-later
//
// What goes out beside the answers: samples, the block map, the sequence table, details.
#include <algorithm>

#include "engine/api/engine_impl.h"
#include "engine/metrics/block_map_builder.h"

namespace kvscope::api {

namespace {

constexpr Nanos kMapInterval = 16'000'000;
constexpr Nanos kIdleInterval = 100'000'000; // it walks the blocks of all idle chats
constexpr std::size_t kIdleShown = 32;
constexpr Nanos kFileInterval = 1'000'000'000;

double milliseconds(Nanos nanos) {
    return static_cast<double>(nanos) / 1e6;
}

} // namespace

void Engine::Impl::tick() {
    watchFiles(now());
    publish(true);
}

/// `sampled`: with a sample (after each step and each tick); without, only the map, if it is time.
void Engine::Impl::publish(bool sampled) {
    if (!m_model)
        return;
    const Nanos time = now();
    if (sampled) {
        const metrics::StepSample current = sample();
        m_parts.listener.onSample(current);
        if (m_parts.observer)
            m_parts.observer->stepSample(current);
    }
    publishBlockMap(time);
    publishSequences();
}

metrics::StepSample Engine::Impl::sample() const {
    metrics::StepSample s = m_times;
    s.time = now();
    if (!m_model)
        return s;
    const kv::BlockPool& pool = m_model->cache->pool();
    const sched::Scheduler& scheduler = *m_model->scheduler;
    const sched::SchedulerCounters& counters = scheduler.counters();
    const kv::CacheCounters& cache = m_model->cache->counters();
    const kernels::BackendMemory memory = m_model->backend->memory();
    s.step = counters.steps;
    s.presence = metrics::kHasBlocks | metrics::kHasPrefix | metrics::kHasTokens | metrics::kHasRequests |
                 metrics::kHasEngineMemory | metrics::kHasPhases;
    if (m_model->cache->contiguous()) {
        s.presence |= metrics::kHasExtents;
        s.largestFreeExtent = static_cast<std::uint32_t>(m_model->cache->largestExtent());
    }
    sampleHost(s);
    s.blocksByState = pool.counts();
    s.numBlocks = static_cast<std::uint32_t>(pool.numBlocks());
    s.blockSize = static_cast<std::uint32_t>(pool.blockSize());
    s.referencedBlocks = static_cast<std::uint32_t>(pool.referencedBlocks());
    s.usedSlots = pool.usedSlots();
    s.running = static_cast<std::uint32_t>(scheduler.running().size());
    s.waiting = static_cast<std::uint32_t>(scheduler.waiting().size());
    s.recentReusedTokens = static_cast<std::uint64_t>(scheduler.hitRate().reusedTokens());
    s.recentPromptTokens = static_cast<std::uint64_t>(scheduler.hitRate().promptTokens());
    s.totalPrefillTokens = counters.prefillTokens;
    s.totalDecodeTokens = counters.decodeTokens;
    s.totalPrefixQueryTokens = counters.prefixQueryTokens;
    s.totalPrefixHitTokens = counters.prefixHitTokens;
    s.totalReadmitTokens = counters.readmitTokens;
    s.totalReadmitHitTokens = counters.readmitHitTokens;
    s.totalAdmitted = counters.admitted;
    s.totalFinished = counters.finished;
    s.totalPreemptions = counters.preemptions;
    s.totalRefused = counters.refused;
    s.totalEvictions = cache.totalEvictions();
    s.totalCopies = cache.copies;
    s.weightsBytes = memory.weights;
    s.poolBytes = memory.kvPool;
    s.bytesPerBlock = m_info.bytesPerBlock;
    if (const kv::WindowGroup* window = m_model->cache->window()) {
        const auto bytesOf = [&](std::int32_t blocks) {
            return static_cast<std::uint64_t>(blocks) * m_info.bytesPerWindowBlock;
        };
        s.windowUsedBytes = bytesOf(window->numBlocks() - window->available());
        s.windowCachedBytes = bytesOf(window->cached());
        s.windowBytes = bytesOf(window->numBlocks());
    }
    s.tailBytes = m_info.tailBytes;
    if (m_info.tailBytes > 0) { // a slot each
        const auto all = static_cast<std::uint64_t>(m_info.maxSequences);
        s.tailUsedBytes = m_info.tailBytes / all * (all - static_cast<std::uint64_t>(m_model->cache->freeTailSlots()));
    }
    s.activationsPeakBytes = memory.activationsPeak;
    return s;
}

void Engine::Impl::sampleHost(metrics::StepSample& s) const {
    const kv::HostTier* host = m_model->cache->host();
    if (host == nullptr)
        return;
    const sched::SchedulerCounters& counters = m_model->scheduler->counters();
    s.presence |= metrics::kHasHostTier;
    s.hostBlocks = static_cast<std::uint32_t>(host->slotCount());
    s.hostUsedBlocks = static_cast<std::uint32_t>(host->used());
    s.hostHeldBlocks = static_cast<std::uint32_t>(host->held());
    s.hostBytes = m_model->mover->bytes();
    s.totalSwapsOut = counters.swapsOut;
    s.totalSwapsIn = counters.swapsIn;
    s.totalSwappedBlocks = counters.swappedBlocks;
    s.totalHostHitBlocks = host->counters().hitBlocks;
    s.totalHostEvictions = host->counters().evictions;
    s.totalStoredBytes = host->counters().storedBytes;
    s.totalLoadedBytes = host->counters().loadedBytes;
    s.totalStore = host->times().store;
    s.totalLoad = host->times().load;
}

void Engine::Impl::watchPeak() {
    const kv::BlockPool& pool = m_model->cache->pool();
    if (static_cast<std::uint32_t>(pool.referencedBlocks()) > m_peakReferenced) {
        m_peakReferenced = static_cast<std::uint32_t>(pool.referencedBlocks());
        m_peakStates = pool.counts();
    }
}

EngineStats Engine::Impl::stats() const {
    EngineStats out;
    out.last = sample();
    out.peakBlocksByState = m_peakStates;
    out.peakReferencedBlocks = m_peakReferenced;
    if (!m_model)
        return out;
    const kv::CacheCounters& counters = m_model->cache->counters();
    for (std::size_t i = 0; i < kv::kEvictionReasonCount; ++i)
        out.evictionsByReason.emplace_back(kv::evictionReasonName(static_cast<kv::EvictionReason>(i)),
                                           counters.evictions[i]);
    out.evictedAge = counters.evictedAge;
    out.eviction = m_model->cache->pool().eviction().name();
    out.allocator = kv::allocatorName(m_model->config.allocator);
    const sched::SchedulerCounters& scheduled = m_model->scheduler->counters();
    out.swaps = {scheduled.swaps, scheduled.swapsEstimated, scheduled.swapsTook};
    out.rereads = {scheduled.rereads, scheduled.rereadsEstimated, scheduled.rereadsTook};
    if (const kv::HostTier* host = m_model->cache->host()) {
        out.hostDeclinedBlocks = host->counters().declinedBlocks;
        out.hostRefusedBlocks = host->counters().refused;
        out.rates = m_model->cache->costRates();
    }
    return out;
}

void Engine::Impl::publishBlockMap(Nanos time) {
    if (m_model->cache->pool().epoch() == m_lastMapEpoch || time - m_lastMap < kMapInterval)
        return;
    metrics::BlockMapSnapshot* slot = m_parts.listener.blockMapSlot();
    if (!slot && !m_parts.observer)
        return;
    metrics::BlockMapSnapshot& map = slot ? *slot : m_ownMap;
    metrics::buildBlockMap(m_model->cache->pool(), time, m_sessionStart, map);
    m_lastMapEpoch = map.epoch;
    m_lastMap = time;
    if (m_parts.observer)
        m_parts.observer->blockMap(map);
    if (slot)
        m_parts.listener.blockMapReady();
}

void Engine::Impl::publishSequences() {
    std::vector<SequenceRow>* rows = m_parts.listener.sequencesSlot();
    if (!rows)
        return;
    rows->clear();
    const auto add = [&](const sched::Sequence& sequence) {
        SequenceRow row;
        row.request = sequence.spec.request;
        row.owner = sequence.spec.owner;
        row.state = sequence.phase == sched::SequencePhase::Waiting   ? SequenceState::Waiting
                    : sequence.phase == sched::SequencePhase::Reading ? SequenceState::Reading
                                                                      : SequenceState::Writing;
        row.tokens = sequence.known();
        row.promptTokens = sequence.promptTokens;
        row.computedTokens = sequence.computed;
        row.cachedPrefix = sequence.usage.reusedTokens;
        if (sequence.table) {
            row.blocks = sequence.table.heldBlocks();
            row.sharedBlocks = m_model->cache->sharedBlocks(sequence.table);
        }
        if (sequence.times.firstToken >= 0)
            row.ttftMs = milliseconds(sequence.times.firstToken - sequence.times.arrival);
        if (const Nanos mean = sequence.intervals.mean(); mean >= 0)
            row.itlMs = milliseconds(mean);
        row.neededBlocks = sequence.waiting.neededBlocks;
        row.availableBlocks = sequence.waiting.availableBlocks;
        row.runningLimit = sequence.waiting.places;
        row.longPrefillLimit = sequence.waiting.longPrefills;
        rows->push_back(row);
    };
    for (const sched::Sequence* sequence : m_model->scheduler->running())
        add(*sequence);
    for (const sched::Sequence* sequence : m_model->scheduler->waiting())
        add(*sequence);
    addIdle(*rows);
    if (m_parts.observer)
        m_parts.observer->sequences(now(), *rows);
    m_parts.listener.sequencesReady();
}

/// Owners whose blocks went back to the cache, behind those that have work.
void Engine::Impl::addIdle(std::vector<SequenceRow>& rows) {
    const std::uint64_t epoch = m_model->cache->pool().epoch();
    const Nanos time = now();
    const bool first = m_idleEpoch == ~std::uint64_t(0);
    if (first || (epoch != m_idleEpoch && time - m_idleCounted >= kIdleInterval)) {
        m_model->cache->idleOwners(kIdleShown, m_idle);
        m_idleEpoch = epoch;
        m_idleCounted = time;
    }
    const auto busy = static_cast<std::ptrdiff_t>(rows.size());
    for (const kv::IdleOwner& idle : m_idle) {
        const auto works = [&](const SequenceRow& row) { return row.owner == idle.owner; };
        if (std::any_of(rows.begin(), rows.begin() + busy, works))
            continue;
        SequenceRow row;
        row.owner = idle.owner;
        row.state = SequenceState::Idle;
        row.tokens = idle.tokens;
        row.blocks = idle.blocks;
        row.cachedBlocks = idle.stillThere;
        rows.push_back(row);
    }
}

void Engine::Impl::watchFiles(Nanos time) {
    if (!m_model || m_fileChangeSaid || time - m_lastFileCheck < kFileInterval)
        return;
    m_lastFileCheck = time;
    for (const model::FileIdentity& file : m_model->files)
        if (const auto changed = model::fileChanged(file)) {
            m_fileChangeSaid = true;
            say(FileChangedEvent{file.path, *changed});
            return;
        }
}

void Engine::Impl::queryBlock(BlockId block) {
    if (!m_model || block.value() < 0 || block.value() >= m_model->cache->numBlocks())
        return;
    const kv::BlockDetail detail = m_model->cache->detail(block);
    BlockDetailEvent event;
    event.block = block;
    event.state = detail.state;
    event.fill = detail.facts.fill;
    event.owners = detail.owners;
    event.references = detail.facts.references;
    event.firstPosition = detail.facts.firstPosition;
    event.tokens = detail.tokens;
    if (auto text = m_model->tokenizer->decode(detail.tokens, false))
        event.text = std::move(*text);
    if (detail.hasKey)
        event.key = detail.key.hex();
    event.lastRead = detail.facts.lastRead;
    m_parts.listener.onEvent(event); // an answer to a look, not part of what happened: not for the session log
}

void Engine::Impl::queryOwner(OwnerId owner) {
    if (!m_model)
        return;
    const kv::OwnerBlocks blocks = m_model->cache->ownerBlocks(owner);
    OwnerBlocksEvent event;
    event.owner = owner;
    event.tokens = blocks.tokens;
    event.blocks = blocks.blocks;
    event.blockSize = m_model->cache->blockSize();
    m_parts.listener.onEvent(event);
}

void Engine::Impl::useTemplate(const std::string& name) {
    if (!m_model)
        return;
    m_model->config.chatTemplate = name; // also after a restart
    m_model->prompts = std::make_unique<PromptEncoder>(m_model->tokenizer, m_model->vocab, name);
    m_model->info.chatTemplate = m_model->prompts->templateInfo();
    m_model->info.hasChatTemplate = m_model->prompts->takesDialogs();
    m_parts.listener.onEvent(TemplateEvent{m_model->info.path, m_model->info.chatTemplate});
}

void Engine::Impl::queryPrompt(std::int64_t key, const DialogPrompt& dialog, std::int64_t maxTokens) {
    if (!m_model)
        return;
    PromptTokensEvent event;
    event.key = key;
    event.beginToken = m_model->tokenizer->vocabulary().bos;
    auto prompt = m_model->prompts->encode(dialog, {}, windowFor(maxTokens));
    if (prompt) {
        for (const TokenId id : prompt->ids)
            event.tokens.push_back({id, std::string(m_model->tokenizer->bytes(id)), m_model->tokenizer->isSpecial(id)});
        event.messageRanges = std::move(prompt->messageRanges);
    } else {
        event.error = prompt.error();
    }
    m_parts.listener.onEvent(event); // an answer to a look: not for the session log
}

} // namespace kvscope::api
