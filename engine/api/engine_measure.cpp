// SPDX-License-Identifier: GPL-3.0-or-later
//
// What a prompt would need, without running it.
#include <algorithm>

#include "engine/api/engine_impl.h"
#include "engine/api/pool_plan.h"
#include "engine/base/figures.h"

namespace kvscope::api {

namespace {

constexpr std::int64_t kWindowStep = 1024; ///< windows are enlarged to a multiple of this

/// Can a pool of this plan hold a sequence of so many tokens? With sinks only what such a sequence keeps.
bool holds(const EngineConfig& config, const PoolPlan& plan, std::int64_t tokens) {
    const kv::SinkWindow sight{config.sinks, config.window, config.blockSize};
    return plan.budget.tokens >= tokens ||
           (config.windowPolicy == kv::WindowPolicy::Sinks && sight.mostHeld(1) <= plan.budget.numBlocks);
}

std::int64_t roundUp(std::int64_t value, std::int64_t step) {
    return (value + step - 1) / step * step;
}

} // namespace

std::int64_t Engine::Impl::longestSequence() const {
    return std::min(m_info.maxModelLen, m_model->cache->longestTable() + 1); // the last token drawn needs no slot
}

std::optional<WindowRoom> Engine::Impl::windowFor(std::int64_t maxTokens) const {
    if (m_info.windowPolicy != kv::WindowPolicy::Trim)
        return std::nullopt;
    return windowRoom(longestSequence(), maxTokens);
}

Result<EncodedPrompt> Engine::Impl::encode(const Request& request) const {
    return m_model->prompts->encode(
        request.prompt, [this](RequestId id) { return keptTokens(id); }, windowFor(request.sampling.maxTokens));
}

MeasuredEvent Engine::Impl::measure(const Request& request) const {
    MeasuredEvent out;
    out.id = request.id;
    if (!m_model) {
        out.error = Error{ErrorCode::NotFound, "No model is loaded; choose one first."};
        return out;
    }
    const auto prompt = encode(request);
    if (!prompt) {
        out.error = prompt.error();
        return out;
    }
    const kv::KvCache& cache = *m_model->cache;
    out.promptTokens = static_cast<std::int64_t>(prompt->ids.size());
    out.cut = prompt->cut;
    out.window = m_info.maxModelLen;
    out.poolTokens = static_cast<std::int64_t>(cache.numBlocks()) * cache.blockSize();
    out.limit = longestSequence();
    out.cachedTokens =
        std::min(cache.lookup(prompt->ids, request.adapter), std::max<std::int64_t>(0, out.promptTokens - 1));
    out.cachedTokens = out.cachedTokens / cache.blockSize() * cache.blockSize();
    out.newBlocks = cache.contiguous()
                        ? cache.extentFor(out.promptTokens + 1,
                                          m_model->scheduler->reserveFor(out.promptTokens, request.sampling.maxTokens))
                        : static_cast<std::int32_t>(
                              std::max<std::int64_t>(0, cache.mostBlocks(out.promptTokens + 1, m_model->stepCapacity) -
                                                            out.cachedTokens / cache.blockSize()));
    const std::int64_t given = std::max(out.cachedTokens, cache.reusable(prompt->ids, request.adapter));
    out.seconds = secondsToRead(given, out.promptTokens);
    if (out.needed() > out.limit)
        planLarger(request, out);
    return out;
}

/// Could a reload make room for it? The window is enlarged so that an answer fits too, as far as the model goes.
void Engine::Impl::planLarger(const Request& request, MeasuredEvent& out) const {
    if (out.needed() > m_info.contextLength) {
        out.whyNotLarger = "The model's own context ends at " + countText(m_info.contextLength) + " tokens.";
        return;
    }
    const std::int64_t room = roundUp(out.promptTokens + request.sampling.maxTokens, kWindowStep);
    LargerWindow larger;
    larger.maxModelLen = std::max(m_info.maxModelLen, std::min(room, m_info.contextLength));
    PoolQuestion question;
    question.weightsBytes = m_info.weightsBytes;
    question.bytesPerBlock = m_info.bytesPerBlock;
    question.tailBytes = m_info.tailBytes;
    question.bytesPerWindowBlock = m_info.bytesPerWindowBlock;
    if (m_info.windowLayers > 0)
        question.windowBlocks =
            kernels::windowBlocksNeeded(m_info.window, m_info.maxSequences, stepTokens(m_config), m_info.blockSize);
    question.contextLength = m_info.contextLength;
    const std::uint64_t beside = m_parts.availableMemory();
    const std::uint64_t alone = beside + m_info.weightsBytes + m_info.poolBytes() + m_info.hostBytes;
    for (const bool unloadFirst : {false, true})
        for (const bool ownRule : {true, false}) {
            EngineConfig config = m_config;
            setWindow(config, larger.maxModelLen);
            if (!ownRule) { // the pool that the configuration asks for is too small: just enough for this window
                config.numBlocks = (larger.maxModelLen + config.blockSize - 1) / config.blockSize;
                config.kvCacheMemoryBytes = 0;
                config.memoryUtilization.reset();
            }
            question.availableBytes = unloadFirst ? alone : beside;
            const auto plan = planPool(config, question);
            if (!plan || !holds(config, *plan, larger.maxModelLen))
                continue;
            larger.numBlocks = ownRule ? m_config.numBlocks : config.numBlocks;
            larger.poolBytes = plan->budget.bytes;
            larger.unloadFirst = unloadFirst;
            out.larger = larger;
            return;
        }
    out.whyNotLarger = "There is not enough memory for a window of " + countText(larger.maxModelLen) + " tokens.";
}

} // namespace kvscope::api
