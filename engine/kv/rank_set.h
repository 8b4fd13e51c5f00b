// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

namespace kvscope::kv {

/// A set of numbers 0..kSize-1 with "the largest that is not above n" in a handful of word operations: a tree of bit
/// words, 64 children each. Nothing is allocated after construction.
class RankSet {
public:
    static constexpr std::int32_t kSize = 64 * 64 * 64;
    static constexpr std::int32_t kNone = -1;

    RankSet() : m_leaves(kSize / 64, 0) {}

    void insert(std::int32_t n) {
        const auto at = static_cast<std::uint32_t>(n);
        m_leaves[at >> 6] |= bit(at);
        m_middle[at >> 12] |= bit(at >> 6);
        m_root |= bit(at >> 12);
    }
    void erase(std::int32_t n) {
        const auto at = static_cast<std::uint32_t>(n);
        if ((m_leaves[at >> 6] &= ~bit(at)) == 0 && (m_middle[at >> 12] &= ~bit(at >> 6)) == 0)
            m_root &= ~bit(at >> 12);
    }
    bool contains(std::int32_t n) const {
        const auto at = static_cast<std::uint32_t>(n);
        return (m_leaves[at >> 6] & bit(at)) != 0;
    }
    /// The largest member that is at most `n`; kNone where there is none.
    std::int32_t floor(std::int32_t n) const {
        const auto at = static_cast<std::uint32_t>(n);
        if (const std::uint64_t here = m_leaves[at >> 6] & upTo(at))
            return number(at >> 6, here);
        if (const std::uint64_t left = m_middle[at >> 12] & below(at >> 6))
            return inLeaf(number(at >> 12, left));
        if (const std::uint64_t left = m_root & below(at >> 12)) {
            const std::int32_t word = number(0, left);
            return inLeaf(number(static_cast<std::uint32_t>(word), m_middle[static_cast<std::size_t>(word)]));
        }
        return kNone;
    }

private:
    static std::uint64_t bit(std::uint32_t n) { return std::uint64_t(1) << (n & 63); }
    static std::uint64_t upTo(std::uint32_t n) { return ~std::uint64_t(0) >> (63 - (n & 63)); }
    static std::uint64_t below(std::uint32_t n) { return bit(n) - 1; }
    /// The largest number whose bit is set in word number `word` of its level.
    static std::int32_t number(std::uint32_t word, std::uint64_t bits) {
        return static_cast<std::int32_t>(word * 64) + 63 - std::countl_zero(bits);
    }
    std::int32_t inLeaf(std::int32_t leaf) const {
        return number(static_cast<std::uint32_t>(leaf), m_leaves[static_cast<std::size_t>(leaf)]);
    }

    std::vector<std::uint64_t> m_leaves;
    std::array<std::uint64_t, 64> m_middle{};
    std::uint64_t m_root = 0;
};

} // namespace kvscope::kv
