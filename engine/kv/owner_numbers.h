// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/base/ids.h"

namespace kvscope::kv {

/// Small numbers for the owners that blocks carry, so that a block stores two bytes. A number lives as long as a block
/// carries it and is then given to another owner; 0 = nobody.
class OwnerNumbers {
public:
    /// One more block carries this owner. 0 when the owner is invalid or all 65,535 numbers are taken.
    std::uint16_t acquire(OwnerId owner);
    /// One block less carries this number.
    void release(std::uint16_t number);

    OwnerId ownerOf(std::uint16_t number) const { return number == 0 ? OwnerId() : m_owners[number - 1U]; }
    /// `owners()[number - 1]`; numbers out of use resolve to an invalid id.
    std::span<const OwnerId> owners() const { return m_owners; }
    std::uint32_t blocksOf(std::uint16_t number) const { return m_blocks[number - 1U]; }

private:
    std::vector<OwnerId> m_owners;
    std::vector<std::uint32_t> m_blocks; ///< how many blocks carry the number
    std::vector<std::uint16_t> m_unused;
    std::unordered_map<OwnerId, std::uint16_t> m_numbers;
};

} // namespace kvscope::kv
