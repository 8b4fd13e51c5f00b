// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/sched/admission_order.h"

#include <algorithm>
#include <array>
#include <utility>

namespace kvscope::sched {

namespace {

constexpr std::array kPolicies = {
    std::pair{SchedulingPolicy::Fcfs, "fcfs"},
    std::pair{SchedulingPolicy::ShortFirst, "short-first"},
    std::pair{SchedulingPolicy::PrefixFirst, "prefix-first"},
};

} // namespace

const char* schedulingPolicyName(SchedulingPolicy policy) {
    return kPolicies[static_cast<std::size_t>(policy)].second;
}

std::optional<SchedulingPolicy> schedulingPolicyOf(std::string_view name) {
    const auto found =
        std::find_if(kPolicies.begin(), kPolicies.end(), [name](const auto& policy) { return policy.second == name; });
    return found == kPolicies.end() ? std::nullopt : std::optional(found->first);
}

AdmissionOrder::AdmissionOrder(const kv::KvCache& cache, SchedulingPolicy policy) : m_cache(cache), m_policy(policy) {}

/// Moves whenever a lookup may answer differently. Starts at 1, so that 0 is "never asked".
std::uint64_t AdmissionOrder::cacheVersion() const {
    return 1 + m_cache.counters().published + m_cache.counters().totalEvictions() + m_cache.ratesVersion() +
           (m_cache.host() != nullptr ? m_cache.host()->version() : 0);
}

std::int64_t AdmissionOrder::toRead(Sequence& sequence) const {
    if (const std::uint64_t version = cacheVersion(); sequence.lookup.version != version) {
        sequence.lookup.version = version;
        sequence.lookup.cached =
            std::max(m_cache.reusable(sequence.tokens, sequence.spec.adapter), sequence.swapped.tokens());
    }
    return sequence.known() - sequence.lookup.cached;
}

void AdmissionOrder::sort(std::vector<Sequence*>& waiting) {
    if (m_policy == SchedulingPolicy::Fcfs)
        return; // kept by arrival; who was preempted had come before those who wait for their first turn
    for (Sequence* sequence : waiting) {
        const std::int64_t read = toRead(*sequence);
        const std::int64_t ahead = m_policy == SchedulingPolicy::ShortFirst ? read : read - sequence->known();
        sequence->lookup.rank = sequence->clockAtArrival + ahead;
    }
    std::stable_sort(waiting.begin(), waiting.end(), [](const Sequence* a, const Sequence* b) {
        if (a->waiting.preempted != b->waiting.preempted)
            return a->waiting.preempted;
        return !a->waiting.preempted && a->lookup.rank < b->lookup.rank;
    });
}

} // namespace kvscope::sched
