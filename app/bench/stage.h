// SPDX-License-Identifier: GPL-3.0-or-later
//
// A stage is a set of options under which the same workload runs in the same number of KV bytes. Its name is the
// options, joined by "+":
//
//   baseline     contiguous, reserve model, f16, block 16, no prefix cache
//   paged        paged, f16, block 16, no prefix cache; further parts change that:
//   f16 bf16 fp8 int8 k8v4 int4       dtype of keys and values
//   block8 block16 block32 block64    tokens of a block
//   prefix                            prefix cache
//   contiguous, reserve-model, reserve-request
//   lru lfu position cost             eviction; lru unless named
//   fcfs short-first prefix-first     scheduling; fcfs unless named
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/bench/kv_bytes.h"
#include "engine/base/result.h"
#include "engine/kv/eviction_policy.h"
#include "engine/sched/admission_order.h"

namespace kvscope::bench {

struct Stage {
    std::string name;
    bool contiguous = false;
    bool reserveRequest = false; ///< contiguous: prompt + answer instead of max-model-len
    kernels::KvFormat format;    ///< of keys and values
    std::int32_t blockSize = 16;
    bool prefixCaching = false;
    kv::EvictionKind eviction = kv::EvictionKind::Lru;
    sched::SchedulingPolicy scheduling = sched::SchedulingPolicy::Fcfs;
};

/// Errors: InvalidArgument, with the part that means nothing and what there is.
Result<Stage> parseStage(const std::string& name);
/// Names separated by commas. Errors also: the same stage twice.
Result<std::vector<Stage>> parseStages(const std::string& list);

/// "baseline,paged,paged+fp8,paged+fp8+block32+prefix"
inline constexpr const char* kDefaultStages = "baseline,paged,paged+fp8,paged+fp8+block32+prefix";
/// Of `bench --capacity`.
inline constexpr const char* kCapacityStages = "baseline,paged,paged+fp8,paged+k8v4";

} // namespace kvscope::bench
