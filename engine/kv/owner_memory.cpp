// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/kv/owner_memory.h"

#include <algorithm>

namespace kvscope::kv {

RememberedSequence& OwnerMemory::renew(OwnerId owner) {
    auto entry = std::find_if(m_sequences.begin(), m_sequences.end(), [&](const auto& s) { return s.owner == owner; });
    if (entry == m_sequences.end()) {
        if (m_sequences.size() < m_maxOwners)
            entry = m_sequences.emplace(m_sequences.end());
        else
            entry = std::min_element(m_sequences.begin(), m_sequences.end(),
                                     [](const auto& a, const auto& b) { return a.lastUse < b.lastUse; });
    }
    entry->owner = owner;
    entry->tokens.clear();
    entry->blocks.clear();
    entry->lastUse = ++m_uses;
    return *entry;
}

const RememberedSequence* OwnerMemory::find(OwnerId owner) const {
    const auto entry =
        std::find_if(m_sequences.begin(), m_sequences.end(), [&](const auto& s) { return s.owner == owner; });
    return entry == m_sequences.end() ? nullptr : &*entry;
}

} // namespace kvscope::kv
