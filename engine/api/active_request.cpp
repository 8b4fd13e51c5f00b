// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/api/active_request.h"

#include <algorithm>

#include "engine/base/figures.h"
#include "engine/model/dialog.h"

namespace kvscope::api {

namespace {

double milliseconds(Nanos from, Nanos to) {
    return from < 0 || to < 0 ? 0.0 : static_cast<double>(to - from) / 1e6;
}

FinishReason finishReason(sched::EndReason reason) {
    switch (reason) {
    case sched::EndReason::Stopped:
        return FinishReason::Stop;
    case sched::EndReason::MaxTokens:
    case sched::EndReason::MaxLength:
    case sched::EndReason::PoolFull:
        return FinishReason::Length;
    case sched::EndReason::Cancelled:
        return FinishReason::Cancelled;
    case sched::EndReason::TooLong:
    case sched::EndReason::Failed:
        break;
    }
    return FinishReason::Error;
}

/// The sentence of an end that needs one and brought none along.
std::optional<Error> explain(const sched::EndedSequence& ended) {
    const auto tokens = [](std::int64_t n) { return countText(n) + " tokens"; };
    if (ended.reason == sched::EndReason::TooLong)
        return Error{ErrorCode::TooLong,
                     "The prompt and one token of answer need room for " + tokens(ended.neededTokens) + ", at most " +
                         tokens(ended.availableTokens) +
                         " are available; shorten it, or give it more room: blocks of the cache, of "
                         "which some may be pinned, or a longer window."};
    if (ended.reason == sched::EndReason::PoolFull)
        return Error{ErrorCode::Full, "The KV cache is full: the answer was cut because " + tokens(ended.neededTokens) +
                                          " need room and " + tokens(ended.availableTokens) +
                                          " are available; give the cache more blocks."};
    return std::nullopt;
}

MissReason missReason(kv::MissKind kind) {
    switch (kind) {
    case kv::MissKind::None:
        return MissReason::None;
    case kv::MissKind::Disabled:
        return MissReason::Disabled;
    case kv::MissKind::ColdStart:
        return MissReason::ColdStart;
    case kv::MissKind::ShorterThanBlock:
        return MissReason::ShorterThanBlock;
    case kv::MissKind::Diverged:
        return MissReason::Diverged;
    case kv::MissKind::Evicted:
        return MissReason::Evicted;
    case kv::MissKind::PastWindow:
        return MissReason::PastWindow;
    case kv::MissKind::CheaperToCompute:
        return MissReason::CheaperToCompute;
    }
    return MissReason::None;
}

CacheReceipt receipt(const sched::EndedSequence& ended) {
    const sched::SequenceUsage& usage = ended.usage;
    CacheReceipt out;
    out.promptTokens = ended.promptTokens;
    out.reusedTokens = usage.reusedTokens;
    out.computedTokens = usage.computedTokens;
    out.recomputedTokens = usage.recomputedTokens;
    out.newBlocks = usage.newBlocks;
    out.preemptions = usage.preemptions;
    out.swappedBlocks = usage.swappedBlocks;
    out.loadedBlocks = usage.loadedBlocks;
    out.blocksPeak = usage.blocksPeak;
    out.blocksAvailableAfter = ended.blocksAvailableAfter;
    out.blocksCachedAfter = ended.blocksCachedAfter;
    out.missReason = missReason(usage.cause.kind);
    out.divergingToken = usage.cause.divergingToken;
    out.commonPrefix = usage.cause.commonPrefix;
    out.evictedBy = usage.cause.evictedBy;
    if (usage.cause.evictedAt >= 0)
        out.evictedAgo = std::max<Nanos>(0, ended.times.arrival - usage.cause.evictedAt);
    return out;
}

/// Stop strings of a request, and what the template writes behind an answer where no token stands there.
std::vector<std::string> stopTexts(const Request& request, const model::TurnEnd& turnEnd) {
    std::vector<std::string> stops = request.sampling.stop;
    if (std::holds_alternative<DialogPrompt>(request.prompt) && !turnEnd.text.empty() && !request.sampling.ignoreEos)
        stops.push_back(turnEnd.text);
    return stops;
}

Timings timings(const sched::SequenceTimes& times) {
    Timings out;
    out.queueMs = milliseconds(times.arrival, times.firstScheduled);
    out.prefillMs = milliseconds(times.firstScheduled, times.firstToken);
    out.decodeMs = milliseconds(times.firstToken, times.lastToken);
    out.ttftMs = milliseconds(times.arrival, times.firstToken);
    out.e2eMs = milliseconds(times.arrival, times.ended);
    return out;
}

} // namespace

ActiveRequest::ActiveRequest(Request request, EncodedPrompt prompt, std::shared_ptr<const model::Tokenizer> tokenizer,
                             const model::TurnEnd& turnEnd)
    : messageRanges(std::move(prompt.messageRanges))
    , m_request(std::move(request))
    , m_tokenizer(std::move(tokenizer))
    , m_text(m_tokenizer, stopTexts(m_request, turnEnd))
    , m_givenTokens(prompt.givenTokens)
    , m_cut(prompt.cut)
    , m_newCutAt(prompt.newCutAt) {
    if (std::holds_alternative<DialogPrompt>(m_request.prompt))
        m_turnEnd = turnEnd.token;
    m_answer.id = m_request.id;
    m_answer.owner = m_request.owner;
    const auto given = prompt.ids.end() - m_givenTokens;
    m_answer.tokenIds.assign(given, prompt.ids.end());
    prompt.ids.erase(given, prompt.ids.end());
    m_answer.promptTokenIds = std::move(prompt.ids);
    m_text.resume(m_answer.tokenIds);
    for (const auto& [token, bias] : m_request.sampling.logitBias)
        m_bias.push_back({token, static_cast<float>(bias)});
}

kernels::SampleRow ActiveRequest::sampleRow(std::int32_t logitRow, std::int64_t drawIndex) const {
    const SamplingParams& p = m_request.sampling;
    kernels::SampleRow row;
    row.logitRow = logitRow;
    row.params.temperature = static_cast<float>(p.temperature);
    row.params.topK = p.topK;
    row.params.topP = static_cast<float>(p.topP);
    row.params.minP = static_cast<float>(p.minP);
    row.params.presencePenalty = static_cast<float>(p.presencePenalty);
    row.params.frequencyPenalty = static_cast<float>(p.frequencyPenalty);
    row.params.repetitionPenalty = static_cast<float>(p.repeatPenalty);
    row.params.seed = p.seed;
    row.params.tokenIndex = static_cast<std::uint64_t>(drawIndex + m_givenTokens);
    row.params.logprobs = p.logprobs;
    row.bias = m_bias;
    row.promptTokens = m_answer.promptTokenIds;
    row.answerTokens = m_answer.tokenIds;
    return row;
}

bool ActiveRequest::endsAnswer(TokenId token) const {
    return !m_request.sampling.ignoreEos && (m_tokenizer->endsGeneration(token) || token == m_turnEnd);
}

TokenOutcome ActiveRequest::accept(const kernels::SampledToken& token, Nanos now) {
    TokenOutcome out;
    if (endsAnswer(token.token)) {
        m_answer.stopReason = token.token;
        m_answer.endedBy = m_tokenizer->bytes(token.token);
        out.ends = true;
        out.shown = false;
        return out;
    }
    m_answer.tokenIds.push_back(token.token);
    m_answer.tokenTimes.push_back(now);
    if (m_request.sampling.logprobs > 0)
        m_answer.logprobs.push_back({token.token, token.logprob, token.top});
    out.text = m_text.push(token.token);
    if (const auto& stop = m_text.matchedStop()) {
        m_answer.stopReason = *stop;
        m_answer.endedBy = *stop;
        out.ends = true;
    }
    return out;
}

/// Turns are counted as people count them: by what the user said.
std::int32_t ActiveRequest::turnAt(std::int64_t token) const {
    const auto* dialog = std::get_if<DialogPrompt>(&m_request.prompt);
    if (!dialog || token < 0)
        return -1;
    const std::int32_t message = model::messageAt(messageRanges, token);
    if (message < 0)
        return -1;
    const auto end = dialog->messages.begin() + message + 1;
    return static_cast<std::int32_t>(
        std::count_if(dialog->messages.begin(), end, [](const DialogMessage& m) { return m.role == "user"; }));
}

/// Is a cut the reason why no more was reused?
bool ActiveRequest::missedByCut(const CacheReceipt& cache, std::int32_t blockSize) const {
    if (m_newCutAt < 0 || cache.reusedTokens + blockSize >= cache.promptTokens) // sent before, just like this
        return false;
    return cache.missReason == MissReason::None || cache.missReason == MissReason::ShorterThanBlock ||
           (cache.missReason == MissReason::Diverged && cache.divergingToken >= m_newCutAt);
}

Answer ActiveRequest::finish(const sched::EndedSequence& ended, std::int32_t blockSize, std::optional<Error> error,
                             std::string& rest) {
    m_answer.reason = finishReason(ended.reason);
    rest = m_text.finish(m_answer.reason != FinishReason::Stop);
    m_answer.text = m_text.text();
    m_answer.error = error ? std::move(error) : explain(ended);
    m_answer.timings = timings(ended.times);
    m_answer.cache = receipt(ended);
    m_answer.cache.divergingTurn = turnAt(m_answer.cache.divergingToken);
    m_answer.cache.blockSize = blockSize;
    m_answer.cache.cut = m_cut;
    if (missedByCut(m_answer.cache, blockSize))
        m_answer.cache.missReason = MissReason::WindowCut;
    return std::move(m_answer);
}

Answer failedAnswer(const Request& request, Error error) {
    Answer answer;
    answer.id = request.id;
    answer.owner = request.owner;
    answer.reason = FinishReason::Error;
    answer.error = std::move(error);
    return answer;
}

} // namespace kvscope::api
