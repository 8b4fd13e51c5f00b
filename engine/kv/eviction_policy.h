// SPDX-License-Identifier: GPL-3.0-or-later
//
// Who goes when blocks run out. A block that becomes cached is given a rank; the lowest rank is evicted first, equal
// ranks in the order in which they came. A rank is a pure function of facts that a block log records, so that a
// recorded trace can be replayed under another policy.
//
// What fades is never touched again while it waits: instead of lowering the ranks of all that is cached, a rank counts
// from the turnover clock at which it was given (64 steps up = twice the worth = one half-life later), so that
// old and new can be compared by their numbers alone.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "engine/kv/reuse_facts.h"

namespace kvscope::kv {

/// Everything that an order may depend on.
struct EvictionFacts {
    ReuseFacts reuse;         ///< faded to now, at least one use
    std::int64_t index = 0;   ///< of the block in the sequence that filled it: 0 = the first
    std::uint64_t behind = 0; ///< the highest rank given to a cached block that follows this one; 0 = none follows
};

class EvictionPolicy {
public:
    virtual ~EvictionPolicy() = default;
    virtual const char* name() const = 0;
    /// Ranks of blocks that are cached at the same time must differ by less than FreeList::kRankSpan.
    virtual std::uint64_t rank(const EvictionFacts& block) const = 0;
};

enum class EvictionKind : std::uint8_t {
    Lru,      ///< least recently used goes first
    Lfu,      ///< least often used goes first; each use counts half as much for every half-life of the turnover clock
    Position, ///< the latest place in its sequence goes first: beginnings, which many prompts share, stay longest
    Cost,     ///< the least (cost of computing it again x expected reuse / bytes) goes first
};
inline constexpr int kEvictionKindCount = 4;
const char* evictionKindName(EvictionKind kind); ///< "lru", "lfu", "position", "cost"
std::optional<EvictionKind> evictionKindOf(std::string_view name);

/// What it costs to compute a block again: (1 + attention x tokens before it) per token, relative to a token's other
/// work. All blocks of a pool have the same bytes, so that the worth of a block orders them as its worth per byte does.
struct RecomputeCost {
    std::int32_t blockSize = 16; ///< tokens per block
    double attentionPerToken = 0;
};

std::unique_ptr<EvictionPolicy> makeEviction(EvictionKind kind, const RecomputeCost& cost = {});

} // namespace kvscope::kv
