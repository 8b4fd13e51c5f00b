// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/ids.h"

namespace kvscope::kv {

/// A block as it was when somebody looked: the same content is still there exactly when the generation is.
struct BlockMemory {
    BlockId block;
    std::uint64_t generation = 0;
};

/// What an owner's last ended (or preempted) sequence had in the cache: tokens and blocks.
struct RememberedSequence {
    OwnerId owner;
    std::vector<TokenId> tokens;
    std::vector<BlockMemory> blocks;
    std::uint64_t lastUse = 0;
};

/// Remembers the last sequence of a bounded number of owners, the most recent ones, so that a message can be linked
/// to its blocks after its sequence ended, and the next turn can be compared with the one before.
class OwnerMemory {
public:
    explicit OwnerMemory(std::size_t maxOwners) : m_maxOwners(maxOwners) {}

    /// The entry to fill for this owner, emptied, its memory reused; the longest unused owner gives way.
    RememberedSequence& renew(OwnerId owner);
    const RememberedSequence* find(OwnerId owner) const;
    /// In no order.
    const std::vector<RememberedSequence>& all() const { return m_sequences; }

private:
    std::size_t m_maxOwners;
    std::vector<RememberedSequence> m_sequences;
    std::uint64_t m_uses = 0;
};

} // namespace kvscope::kv
