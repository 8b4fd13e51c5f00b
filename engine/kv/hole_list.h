// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/ids.h"

namespace kvscope::kv {

/// A run of neighbouring blocks.
struct Extent {
    std::int32_t first = 0;
    std::int32_t count = 0;
    bool operator==(const Extent&) const = default;
};

/// The free blocks as the contiguous allocator sees them: holes, the longest possible ones, by first block. There are
/// at most as many as there are tables and pins, plus one, so that looking at all of them is cheap.
class HoleList {
public:
    /// One hole of `numBlocks` blocks.
    explicit HoleList(std::int32_t numBlocks);

    /// Best fit: the first of the shortest holes that hold `count` blocks; invalid when there is none.
    BlockId bestFit(std::int32_t count) const;
    std::int32_t largest() const; ///< blocks of the longest hole
    std::int32_t total() const { return m_total; }
    const std::vector<Extent>& holes() const { return m_holes; }

    /// The block is in use now; it must be free.
    void take(BlockId block);
    /// The block is free again: it joins its neighbours' holes.
    void give(BlockId block);

private:
    /// The first hole that begins behind `block`.
    std::vector<Extent>::iterator behind(BlockId block);

    std::vector<Extent> m_holes;
    std::int32_t m_total = 0;
};

} // namespace kvscope::kv
