// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace kvscope::kv {

/// What a sequence keeps under WindowPolicy::Sinks: the token at position p attends to positions below `sinks` and to
/// p - window + 1 .. p, wherever chunks and blocks begin. So what is kept is a function of the position, in whole
/// blocks; those between the sinks and the window have been *passed* and are given back.
///
/// Up to position sinks + window - 1 a token sees everything before it: until then its keys and values are those of a
/// model without a window.
struct SinkWindow {
    std::int64_t sinks = 0;
    std::int64_t window = 0; ///< 0 = everything is kept
    std::int64_t blockSize = 16;

    bool on() const { return window > 0; }
    /// Leading blocks that are never passed.
    std::size_t sinkBlocks() const { return static_cast<std::size_t>((sinks + blockSize - 1) / blockSize); }
    /// Blocks before that of a position which its window may reach.
    std::int64_t windowBlocks() const { return (window - 1 + blockSize - 1) / blockSize; }
    /// Of a sequence of so many tokens the blocks [sinkBlocks, this) are passed: no token from the beginning of the
    /// block that the next one is written to sees them.
    std::size_t passedBefore(std::int64_t tokens) const {
        const std::int64_t before = tokens / blockSize - windowBlocks();
        return std::max(sinkBlocks(), static_cast<std::size_t>(std::max<std::int64_t>(0, before)));
    }
    /// Most blocks that a sequence of any length has while it is computed in chunks of so many tokens.
    std::int64_t mostHeld(std::int64_t chunk) const {
        return static_cast<std::int64_t>(sinkBlocks()) + windowBlocks() + (chunk + 2 * blockSize - 2) / blockSize;
    }
    /// The longest chunk with which a sequence of any length has at most so many blocks; below 1 = there is none.
    std::int64_t chunkWithin(std::int64_t blocks) const {
        return (blocks - static_cast<std::int64_t>(sinkBlocks()) - windowBlocks()) * blockSize - (blockSize - 1);
    }
    /// Leading tokens whose keys and values do not depend on the two numbers.
    std::int64_t unaffected() const { return sinks + window; }
};

} // namespace kvscope::kv
