// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>

#include "engine/base/ids.h"

namespace kvscope::kv {

class BlockPool;

/// Where a block that became cached enters the eviction order. The order must be a pure function of recorded facts, so
/// that a recorded trace can be replayed under another policy.
class EvictionPolicy {
public:
    virtual ~EvictionPolicy() = default;
    virtual const char* name() const = 0;
    /// The cached block before which `freed` queues up; an invalid id = at the end, evicted last.
    virtual BlockId insertBefore(const BlockPool& pool, BlockId freed) const = 0;
};

/// Least recently used goes first: whoever becomes unreferenced last is evicted last.
std::unique_ptr<EvictionPolicy> makeLruEviction();

} // namespace kvscope::kv
