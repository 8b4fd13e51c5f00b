// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/kv/kv_cache.h"
#include "engine/sched/sequence.h"

namespace kvscope::sched {

/// Who is admitted next.
enum class SchedulingPolicy : std::uint8_t {
    Fcfs,        ///< first come, first served
    ShortFirst,  ///< the fewest tokens to read first
    PrefixFirst, ///< the longest cached prefix first, before somebody else's blocks take its place
};
const char* schedulingPolicyName(SchedulingPolicy policy); ///< "fcfs", "short-first", "prefix-first"
std::optional<SchedulingPolicy> schedulingPolicyOf(std::string_view name);

/// Puts waiting sequences in the order of a policy.
///
/// Ageing, so that nothing starves: the clock is the tokens that the scheduler has computed, and a sequence's rank is
///     short-first   clock at arrival + tokens it has to read
///     prefix-first  clock at arrival - tokens it finds cached
/// smaller first. So a newcomer is let pass only while less than that many tokens have been computed since the other
/// came: a long prompt waits for at most its own length in tokens of others, whoever comes after it. (The rank of two
/// sequences that wait does not change with time, only with the cache.) Deterministic: no wall clock is asked.
///
/// Sequences that were preempted come before all others, by arrival: somebody reads their answers already.
class AdmissionOrder {
public:
    AdmissionOrder(const kv::KvCache& cache, SchedulingPolicy policy);

    /// Sorts; ties by arrival. For all policies but fcfs asks the cache what each prompt would find, and asks again
    /// only when blocks were published or evicted since.
    void sort(std::vector<Sequence*>& waiting);
    /// Tokens that a waiting sequence would have to read if it were admitted now.
    std::int64_t toRead(Sequence& sequence) const;

private:
    std::uint64_t cacheVersion() const;

    const kv::KvCache& m_cache;
    SchedulingPolicy m_policy;
};

} // namespace kvscope::sched
