// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/api/session_recorder.h"

#include <nlohmann/json.hpp>

namespace kvscope::api {

using namespace kvscope::metrics;

namespace {

template <class... F> struct Overloaded : F... { using F::operator()...; };
template <class... F> Overloaded(F...) -> Overloaded<F...>;

/// What a user's folders are called does not belong into a file that is given away.
std::string fileName(const std::string& path) {
    return path.substr(path.rfind('/') + 1); // npos + 1 = 0
}

RequestRecord requestRecord(Nanos time, const Request& request) {
    RequestRecord r;
    r.time = time;
    r.request = request.id;
    r.owner = request.owner;
    std::visit(Overloaded{
                   [&](const DialogPrompt& p) {
                       r.prompt = "dialog";
                       r.messages = static_cast<std::int32_t>(p.messages.size());
                   },
                   [&](const TextPrompt&) { r.prompt = "text"; },
                   [&](const TokenPrompt&) { r.prompt = "tokens"; },
                   [&](const ForkPrompt& p) {
                       r.prompt = "fork";
                       r.forkOf = p.of;
                       r.forkAt = p.at.value_or(-1);
                   },
               },
               request.prompt);
    const SamplingParams& s = request.sampling;
    r.adapter = request.adapter;
    r.temperature = s.temperature;
    r.topK = s.topK;
    r.topP = s.topP;
    r.minP = s.minP;
    r.repeatPenalty = s.repeatPenalty;
    r.presencePenalty = s.presencePenalty;
    r.frequencyPenalty = s.frequencyPenalty;
    r.seed = s.seed;
    r.maxTokens = s.maxTokens;
    r.logprobs = s.logprobs;
    r.ignoreEos = s.ignoreEos;
    r.stop = s.stop;
    r.logitBias = s.logitBias;
    return r;
}

/// What is new in a request: the newest message of a dialog (the earlier ones stand with earlier requests).
TextRecord textRecord(Nanos time, const Request& request) {
    TextRecord t;
    t.time = time;
    t.request = request.id;
    t.part = "prompt";
    const auto plain = Overloaded{
        [&](const TextPrompt& p) { t.text = p.text; },
        [&](const TokenPrompt& p) { t.tokens = p.ids; },
    };
    std::visit(Overloaded{
                   [&](const DialogPrompt& p) {
                       if (p.messages.empty())
                           return;
                       t.part = p.messages.back().role;
                       t.text = p.messages.back().content;
                   },
                   [&](const TextPrompt& p) { plain(p); },
                   [&](const TokenPrompt& p) { plain(p); },
                   [&](const ForkPrompt& p) { std::visit(plain, p.then); },
               },
               request.prompt);
    return t;
}

ReceiptRecord receiptRecord(Nanos time, const Answer& answer) {
    const CacheReceipt& c = answer.cache;
    ReceiptRecord r;
    r.time = time;
    r.request = answer.id;
    r.owner = answer.owner;
    r.reason = finishReasonName(answer.reason);
    if (answer.error)
        r.error = errorCodeName(answer.error->code);
    r.promptTokens = c.promptTokens;
    r.reusedTokens = c.reusedTokens;
    r.computedTokens = c.computedTokens;
    r.answerTokens = static_cast<std::int64_t>(answer.tokenIds.size());
    r.newBlocks = c.newBlocks;
    r.preemptions = c.preemptions;
    r.swappedBlocks = c.swappedBlocks;
    r.loadedBlocks = c.loadedBlocks;
    r.blocksPeak = c.blocksPeak;
    r.blocksAvailableAfter = c.blocksAvailableAfter;
    r.blocksCachedAfter = c.blocksCachedAfter;
    r.blockSize = c.blockSize;
    r.missReason = missReasonName(c.missReason);
    r.divergingToken = c.divergingToken;
    r.queueMs = answer.timings.queueMs;
    r.prefillMs = answer.timings.prefillMs;
    r.decodeMs = answer.timings.decodeMs;
    r.ttftMs = answer.timings.ttftMs;
    r.e2eMs = answer.timings.e2eMs;
    return r;
}

EventRecord eventRecord(Nanos time, EventKind kind, RequestId request = {}) {
    EventRecord r;
    r.time = time;
    r.kind = kind;
    r.request = request;
    return r;
}

} // namespace

std::string configurationJson(const EngineConfig& config, const ModelInfo& model) {
    const nlohmann::json json = {
        {"model", fileName(config.modelPath)},
        {"architecture", model.architecture},
        {"quantization", model.quantization},
        {"threads", config.threads},
        {"block_size", model.blockSize},
        {"num_blocks", model.numBlocks},
        {"max_model_len", model.maxModelLen},
        {"max_num_seqs", config.maxSequences},
        {"max_num_batched_tokens", config.maxBatchedTokens},
        {"allocator", kv::allocatorName(config.allocator)},
        {"contiguous_reserve", kv::contiguousReserveName(config.contiguousReserve)},
        {"enable_prefix_caching", config.prefixCaching && config.allocator == kv::AllocatorKind::Paged},
        {"window_policy", kv::windowPolicyName(config.windowPolicy)},
        {"sinks", config.sinks},
        {"window", config.window},
        {"eviction", kv::evictionKindName(config.eviction)},
        {"host_cache_bytes", model.hostBytes},
        {"watermark", config.watermark},
        {"scheduling_policy", sched::schedulingPolicyName(config.schedulingPolicy)},
        {"long_prefill_token_threshold", config.longPrefillThreshold},
        {"max_long_partial_prefills", config.maxLongPartialPrefills},
        {"weights_bytes", model.weightsBytes},
        {"kv_bytes_per_token", model.kvBytesPerToken},
        {"k_dtype", model.keyDtype},
        {"v_dtype", model.valueDtype},
        {"load_ms", model.loadMs},
    };
    return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

SessionRecorder::SessionRecorder(Recorder& recorder, std::string program, std::function<std::int64_t()> wallMillis)
    : m_recorder(recorder)
    , m_program(std::move(program))
    , m_wallMillis(std::move(wallMillis)) {}

void SessionRecorder::sessionStarted(const SessionStart& start) {
    LogHeader header;
    header.program = m_program;
    header.modelName = start.model.name.empty() ? fileName(start.model.path) : start.model.name;
    header.modelFingerprint = start.model.fingerprint;
    header.backend = start.model.backend;
    header.configuration.text = configurationJson(start.config, start.model);
    header.clockOrigin = start.time;
    header.wallOrigin = m_wallMillis();
    m_recorder.begin(std::move(header));
}

void SessionRecorder::requestSubmitted(Nanos time, const Request& request) {
    m_recorder.add(requestRecord(time, request));
    m_recorder.add(textRecord(time, request));
}

void SessionRecorder::event(Nanos time, const Event& event) {
    std::visit(Overloaded{
                   [&](const QueuedEvent& e) {
                       EventRecord r = eventRecord(time, EventKind::Queued, e.id);
                       r.promptTokens = e.promptTokens;
                       m_recorder.add(std::move(r));
                   },
                   [&](const WaitingEvent& e) {
                       EventRecord r = eventRecord(time, EventKind::Waiting, e.id);
                       r.neededBlocks = e.neededBlocks;
                       r.availableBlocks = e.availableBlocks;
                       r.runningLimit = e.runningLimit;
                       r.longPrefillLimit = e.longPrefillLimit;
                       r.preempted = e.preempted;
                       r.lentTo = e.lentTo;
                       m_recorder.add(std::move(r));
                   },
                   [&](const PrefillEvent& e) {
                       EventRecord r = eventRecord(time, EventKind::Prefill, e.id);
                       r.reusedTokens = e.reused;
                       r.doneTokens = e.done;
                       r.totalTokens = e.total;
                       m_recorder.add(std::move(r));
                   },
                   [&](const PreemptionEvent& e) {
                       EventRecord r = eventRecord(time, EventKind::Preemption, e.id);
                       r.swapped = e.swapped;
                       r.blocks = e.blocks;
                       r.tokens = e.tokens;
                       r.estimatedSwapMs = e.estimatedSwapMs;
                       r.estimatedRecomputeMs = e.estimatedRecomputeMs;
                       r.restored = e.restored;
                       r.expectedMs = e.expectedMs;
                       r.tookMs = e.tookMs;
                       m_recorder.add(std::move(r));
                   },
                   [&](const FinishedEvent& e) {
                       m_recorder.add(receiptRecord(time, e.answer));
                       m_recorder.add(TextRecord{time, e.answer.id, "answer", e.answer.text, e.answer.tokenIds});
                   },
                   [&](const FaultedEvent& e) {
                       EventRecord r = eventRecord(time, EventKind::Faulted);
                       r.message = e.message;
                       m_recorder.add(std::move(r));
                   },
                   [&](const FileChangedEvent& e) {
                       EventRecord r = eventRecord(time, EventKind::FileChanged);
                       r.message = fileName(e.path);
                       m_recorder.add(std::move(r));
                   },
                   // Token events are many and the samples count them; the rest is not about the cache.
                   [](const auto&) {},
               },
               event);
}

void SessionRecorder::stepSample(const StepSample& sample) {
    m_recorder.add(sample);
}

void SessionRecorder::blockMap(const BlockMapSnapshot& map) {
    m_recorder.map(map);
}

void SessionRecorder::sequences(Nanos time, const std::vector<SequenceRow>& rows) {
    m_table.time = time;
    m_table.rows.clear();
    for (const SequenceRow& row : rows) {
        SequenceEntry entry;
        entry.request = row.request;
        entry.owner = row.owner;
        entry.state = static_cast<std::int32_t>(row.state);
        entry.tokens = row.tokens;
        entry.promptTokens = row.promptTokens;
        entry.computedTokens = row.computedTokens;
        entry.blocks = row.blocks;
        entry.sharedBlocks = row.sharedBlocks;
        entry.cachedBlocks = row.cachedBlocks;
        entry.cachedPrefix = row.cachedPrefix;
        entry.ttftMs = row.ttftMs;
        entry.itlMs = row.itlMs;
        entry.neededBlocks = row.neededBlocks;
        entry.availableBlocks = row.availableBlocks;
        entry.runningLimit = row.runningLimit;
        entry.longPrefillLimit = row.longPrefillLimit;
        m_table.rows.push_back(entry);
    }
    m_recorder.table(m_table);
}

void SessionRecorder::memorySample(const MemorySample& sample) {
    m_recorder.add(sample);
}

void SessionRecorder::sessionEnded(Nanos time) {
    m_recorder.end(time);
}

} // namespace kvscope::api
