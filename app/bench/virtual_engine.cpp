// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/bench/virtual_engine.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "app/bench/random.h"
#include "engine/base/check.h"
#include "engine/base/figures.h"

namespace kvscope::bench {

namespace {

std::string problemOf(const sched::EndedSequence& ended) {
    switch (ended.reason) {
    case sched::EndReason::Stopped:
    case sched::EndReason::MaxTokens:
    case sched::EndReason::MaxLength:
    case sched::EndReason::Cancelled:
        return {};
    case sched::EndReason::PoolFull:
    case sched::EndReason::TooLong:
        return "It needs room for " + countText(ended.neededTokens) + " tokens; " + countText(ended.availableTokens) +
               " fit.";
    case sched::EndReason::Failed:
        return "The step failed.";
    }
    return {};
}

} // namespace

VirtualEngine::VirtualEngine(VirtualParts parts)
    : m_parts(std::move(parts))
    , m_cache(m_parts.cache)
    , m_scheduler(m_cache, m_parts.scheduler) {
    KV_CHECK(m_parts.vocab > 0, "a vocabulary has at least one token");
}

void VirtualEngine::submit(SentRequest request) {
    Active active;
    active.out.index = request.index;
    sched::SequenceSpec spec;
    spec.request = RequestId(request.index);
    spec.owner = OwnerId(request.owner);
    spec.tokens = std::move(request.prompt);
    spec.maxNewTokens = request.answerTokens;
    m_active.emplace(request.index, std::move(active));
    m_scheduler.submit(std::move(spec), m_now);
}

/// Adds the step to the bill and returns its seconds.
double VirtualEngine::price(const sched::StepPlan& plan) {
    m_shares.clear();
    m_writing.clear();
    for (const sched::StepItem& item : plan.items) {
        const StepShare share{item.from, item.to, item.samples};
        m_shares.push_back(share);
        if (item.drawIndex > 0 && item.to - item.from == 1)
            m_writing.push_back(share);
    }
    const StepCost cost = m_parts.roofline.cost(m_shares);
    m_cost += cost;
    m_prefillSeconds +=
        m_writing.empty() ? cost.seconds() : cost.seconds() - m_parts.roofline.cost(m_writing).seconds();
    return cost.seconds();
}

bool VirtualEngine::step() {
    const sched::StepPlan& plan = m_scheduler.schedule(m_now);
    if (plan.empty())
        return false;
    m_now += std::max<Nanos>(1, std::llround(price(plan) * 1e9));
    m_drawn.clear();
    for (const sched::StepItem& item : plan.items) {
        if (!item.samples)
            continue;
        const std::uint64_t stream = mix(m_parts.seed, static_cast<std::uint64_t>(item.request.value()) + 0x616E73);
        const auto token = static_cast<TokenId>(mix(stream, static_cast<std::uint64_t>(item.drawIndex)) %
                                                static_cast<std::uint64_t>(m_parts.vocab));
        m_drawn.push_back({token, false});
        EndedRequest& out = m_active.at(item.request.value()).out;
        out.answer.push_back(token);
        out.tokenTimes.push_back(m_now);
    }
    m_scheduler.complete(m_drawn, m_now);
    return true;
}

void VirtualEngine::cancelAll() {
    m_scheduler.endAll(sched::EndReason::Cancelled, m_now);
}

std::vector<EndedRequest> VirtualEngine::takeEnded() {
    std::vector<EndedRequest> out;
    for (const sched::EndedSequence& ended : m_scheduler.takeEnded()) {
        const auto found = m_active.find(ended.request.value());
        EndedRequest request = std::move(found->second.out);
        m_active.erase(found);
        request.problem = problemOf(ended);
        request.cut = ended.reason == sched::EndReason::Cancelled;
        request.reusedTokens = ended.usage.reusedTokens;
        request.computedTokens = ended.usage.computedTokens;
        request.recomputedTokens = ended.usage.recomputedTokens;
        request.preemptions = ended.usage.preemptions;
        out.push_back(std::move(request));
    }
    return out;
}

PoolState VirtualEngine::pool() const {
    const kv::BlockPool& pool = m_cache.pool();
    const auto blockSize = static_cast<std::uint64_t>(pool.blockSize());
    PoolState state;
    state.allocatedSlots = static_cast<std::uint64_t>(pool.referencedBlocks()) * blockSize;
    state.usedSlots = pool.usedSlots();
    std::uint64_t tails = 0;
    for (const sched::Sequence* sequence : m_scheduler.running()) {
        const std::uint64_t room = sequence->table.blocks().size() * blockSize;
        state.wastedSlots += room - std::min(room, static_cast<std::uint64_t>(sequence->known()));
        state.held += sequence->computed >= sequence->promptTokens ? 1 : 0;
        tails += sequence->computed % pool.blockSize() != 0 ? 1 : 0;
    }
    if (m_cache.contiguous() && pool.available() > 0)
        state.externalFragmentation = 1.0 - static_cast<double>(m_cache.largestExtent()) / pool.available();
    const DeployedModel& model = m_parts.roofline.model();
    state.allocatedBytes = static_cast<std::uint64_t>(pool.referencedBlocks()) * model.sealedBytes;
    state.allocatedBytes += tails * model.tailBytes;
    return state;
}

RunCounters VirtualEngine::counters() const {
    const sched::SchedulerCounters& counted = m_scheduler.counters();
    RunCounters out;
    out.promptTokens = counted.prefixQueryTokens;
    out.reusedTokens = counted.prefixHitTokens;
    out.computedTokens = counted.prefillTokens;
    out.preemptions = counted.preemptions;
    out.evictions = m_cache.counters().totalEvictions();
    out.refused = counted.refused;
    out.steps = counted.steps;
    return out;
}

} // namespace kvscope::bench
