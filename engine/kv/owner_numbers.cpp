// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/kv/owner_numbers.h"

#include <limits>

#include "engine/base/check.h"

namespace kvscope::kv {

std::uint16_t OwnerNumbers::acquire(OwnerId owner) {
    if (!owner.valid())
        return 0;
    if (const auto known = m_numbers.find(owner); known != m_numbers.end()) {
        ++m_blocks[known->second - 1U];
        return known->second;
    }
    std::uint16_t number = 0;
    if (!m_unused.empty()) {
        number = m_unused.back();
        m_unused.pop_back();
    } else if (m_owners.size() < std::numeric_limits<std::uint16_t>::max()) {
        m_owners.emplace_back();
        m_blocks.push_back(0);
        number = static_cast<std::uint16_t>(m_owners.size());
    } else {
        return 0;
    }
    m_owners[number - 1U] = owner;
    m_blocks[number - 1U] = 1;
    m_numbers.emplace(owner, number);
    return number;
}

void OwnerNumbers::release(std::uint16_t number) {
    if (number == 0)
        return;
    std::uint32_t& blocks = m_blocks[number - 1U];
    KV_CHECK(blocks > 0, "an owner lost more blocks than it had");
    if (--blocks > 0)
        return;
    m_numbers.erase(m_owners[number - 1U]);
    m_owners[number - 1U] = OwnerId();
    m_unused.push_back(number);
}

} // namespace kvscope::kv
