// SPDX-License-Identifier: GPL-3.0-or-later
//
// Preempted sequences and the host tier: swapped out or read again, whichever is estimated cheaper, and what it took.
#include <algorithm>
#include <utility>

#include "engine/base/check.h"
#include "engine/sched/scheduler.h"

namespace kvscope::sched {

namespace {

constexpr std::size_t kKeptPreemptions = 4096; ///< for somebody who asks once in a while

} // namespace

void Scheduler::setCostRates(const kv::CostRates& rates) {
    KV_CHECK(!m_inFlight, "the cost rates change between steps only");
    if (m_observer && !(rates == m_cache.costRates()))
        m_observer->ratesChanged(rates);
    m_cache.setCostRates(rates);
}

void Scheduler::chooseSwap(Sequence& victim) {
    victim.lookup.version = 0; // it finds more than before
    victim.preemption.reset(); // it was not as before yet: nothing to compare an estimate with
    if (victim.table.tokens() == 0)
        return;
    const kv::SwapEstimate estimate = m_cache.estimateSwap(victim.table);
    Preemption preemption;
    preemption.sequence = victim.id;
    preemption.request = victim.spec.request;
    preemption.tokens = victim.table.tokens();
    preemption.blocks = estimate.blocks;
    preemption.estimatedStore = static_cast<Nanos>(estimate.storeNanos);
    preemption.estimatedSwap = static_cast<Nanos>(estimate.swapNanos());
    preemption.estimatedRead = static_cast<Nanos>(estimate.withoutNanos());
    const bool cheaper = !m_cache.costRates().known() || estimate.swapNanos() < estimate.withoutNanos();
    if (estimate.possible && cheaper) {
        const Nanos before = moved().store;
        victim.swapped = m_cache.swapOut(victim.table);
        preemption.took = moved().store - before;
        preemption.swaps = static_cast<bool>(victim.swapped);
    }
    if (preemption.swaps) {
        ++m_counters.swapsOut;
        m_counters.swappedBlocks += static_cast<std::uint64_t>(preemption.blocks);
        victim.usage.swappedBlocks += preemption.blocks;
    }
    if (m_observer)
        m_observer->preempted(preemption);
    victim.preemption = preemption;
}

Scheduler::Loaded Scheduler::loadedSoFar() const {
    const kv::HostTier* host = m_cache.host();
    return host == nullptr ? Loaded() : Loaded{host->times().load, host->counters().loadedBytes};
}

/// It was admitted again, for which so much was loaded.
void Scheduler::cameBack(Sequence& sequence, const kv::Admission& admission, const Loaded& loaded) {
    Preemption& preemption = *sequence.preemption;
    const std::int64_t here = std::min(admission.reusedTokens, preemption.tokens); // the rest comes with the next steps
    preemption.took += loaded.took;
    preemption.restored =
        std::min<std::int64_t>(static_cast<std::int64_t>(admission.loadedBlocks) * m_cache.blockSize(), here);
    const kv::CostRates& rates = m_cache.costRates();
    preemption.expected = (preemption.swaps ? preemption.estimatedStore : 0) +
                          static_cast<Nanos>(rates.nanosPerByteLoaded * static_cast<double>(loaded.bytes) +
                                             rates.toRead(here, preemption.tokens));
    if (preemption.swaps) {
        ++m_counters.swapsIn;
        sequence.swapped.release();
    }
    if (here == preemption.tokens)
        preemptionOver(sequence);
}

/// Its share of a step, as far as it read what it had read before.
void Scheduler::countReread(const StepItem& item, Sequence& sequence, Nanos stepTook) {
    Preemption& preemption = *sequence.preemption;
    const std::int64_t again = std::max<std::int64_t>(0, std::min(item.to, preemption.tokens) - item.from);
    preemption.restored += again;
    preemption.took += static_cast<Nanos>(static_cast<double>(stepTook) * static_cast<double>(again) /
                                          static_cast<double>(m_plan.tokens));
    if (item.to >= preemption.tokens)
        preemptionOver(sequence);
}

/// All is as it was before.
void Scheduler::preemptionOver(Sequence& sequence) {
    const Preemption over = *std::exchange(sequence.preemption, std::nullopt);
    ++(over.swaps ? m_counters.swaps : m_counters.rereads);
    (over.swaps ? m_counters.swapsEstimated : m_counters.rereadsEstimated) += over.expected;
    (over.swaps ? m_counters.swapsTook : m_counters.rereadsTook) += over.took;
    if (m_preemptions.size() == kKeptPreemptions)
        m_preemptions.erase(m_preemptions.begin());
    m_preemptions.push_back(over);
}

std::vector<Preemption> Scheduler::takePreemptions() {
    return std::exchange(m_preemptions, {});
}

} // namespace kvscope::sched
