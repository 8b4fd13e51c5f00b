// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <cstdint>

#include "engine/base/clock.h"
#include "engine/kv/block_state.h"

namespace kvscope::metrics {

/// Which groups of a sample its source reports. What is absent is drawn as "not reported", never as 0.
enum Presence : std::uint32_t {
    kHasBlocks = 1u << 0,       ///< blocksByState, usedSlots, referencedBlocks, blockSize, numBlocks
    kHasPrefix = 1u << 1,       ///< prefix counters and hit rate
    kHasTokens = 1u << 2,       ///< prefillTokens, decodeTokens
    kHasRequests = 1u << 3,     ///< running, waiting, preemptions
    kHasEngineMemory = 1u << 4, ///< weights, pool, activations
    kHasHostMemory = 1u << 5,   ///< process rest, others, available, total
    kHasPhases = 1u << 6,       ///< phase times
    kHasExtents = 1u << 7,      ///< largestFreeExtent, totalRefused: the allocator is the contiguous one
    kHasHostTier = 1u << 8,     ///< host blocks, swaps and what was moved: there is a host tier
};

/// One sample at the end of a step (or of a 100 ms tick when idle). Counters named `total...` are cumulative since the
/// session began, so that a lost sample costs resolution and never totals. Trivially copyable, fixed size.
struct StepSample {
    Nanos time = 0;         ///< monotonic
    std::uint64_t step = 0; ///< number of steps run so far
    std::uint32_t presence = 0;

    // gauges
    std::array<std::uint32_t, kv::kBlockStateCount> blocksByState{}; ///< sums to numBlocks
    std::uint32_t numBlocks = 0;
    std::uint32_t blockSize = 0;
    std::uint32_t referencedBlocks = 0;  ///< blocks with references, each once
    std::uint64_t usedSlots = 0;         ///< filled slots of those, each block once
    std::uint32_t largestFreeExtent = 0; ///< blocks
    std::uint32_t hostBlocks = 0;        ///< slots of the host tier ...
    std::uint32_t hostUsedBlocks = 0;    ///< ... that hold something ...
    std::uint32_t hostHeldBlocks = 0;    ///< ... and of those, held by sequences that were swapped out
    std::uint32_t running = 0;
    std::uint32_t waiting = 0;
    /// reused / prompt tokens of the last 32 admitted requests; both 0 = no request in the window = a gap
    std::uint64_t recentReusedTokens = 0;
    std::uint64_t recentPromptTokens = 0;

    // cumulative
    std::uint64_t totalPrefillTokens = 0;
    std::uint64_t totalDecodeTokens = 0;
    std::uint64_t totalPrefixQueryTokens = 0; ///< prompt tokens of admitted requests
    std::uint64_t totalPrefixHitTokens = 0;   ///< of those, served from cached blocks
    std::uint64_t totalReadmitTokens = 0;     ///< tokens queried when readmitted after a preemption (counted apart)
    std::uint64_t totalReadmitHitTokens = 0;
    std::uint64_t totalAdmitted = 0;
    std::uint64_t totalFinished = 0;
    std::uint64_t totalPreemptions = 0;
    /// Waits of requests although enough blocks were free, which did not lie together.
    std::uint64_t totalRefused = 0;
    std::uint64_t totalEvictions = 0;                  ///< cached blocks whose content was forgotten for room
    std::uint64_t totalCopies = 0;                     ///< copy-on-write copies
    std::uint64_t totalSwapsOut = 0, totalSwapsIn = 0; ///< sequences
    std::uint64_t totalSwappedBlocks = 0;              ///< of swaps out
    std::uint64_t totalHostHitBlocks = 0;              ///< loaded by admissions
    std::uint64_t totalHostEvictions = 0;
    std::uint64_t totalStoredBytes = 0, totalLoadedBytes = 0; ///< device to host, host to device
    Nanos totalStore = 0, totalLoad = 0;

    // cumulative phase times, nanoseconds
    Nanos totalSchedule = 0;
    Nanos totalEmbed = 0, totalQkv = 0, totalAttention = 0, totalMlp = 0, totalLogits = 0, totalSampling = 0;
    Nanos totalPostprocess = 0;
    Nanos totalPublish = 0; ///< building and handing over samples and block maps
    Nanos totalStep = 0;

    // memory, bytes
    std::uint64_t weightsBytes = 0;
    std::uint64_t poolBytes = 0;
    std::uint64_t bytesPerBlock = 0;                                           ///< of the layers that keep everything
    std::uint64_t windowUsedBytes = 0, windowCachedBytes = 0, windowBytes = 0; ///< blocks of the window group; all
    std::uint64_t tailUsedBytes = 0, tailBytes = 0;                            ///< f16 blocks being filled; all
    std::uint64_t hostBytes = 0;                                               ///< of the host tier, used or not
    std::uint64_t activationsPeakBytes = 0;

    /// 1 − used slots / (referenced blocks × block size); negative = no referenced block = a gap.
    double internalFragmentation() const {
        if (referencedBlocks == 0 || blockSize == 0)
            return -1.0;
        return 1.0 - static_cast<double>(usedSlots) / (static_cast<double>(referencedBlocks) * blockSize);
    }
    /// 1 − largest free extent / total free; negative = not reported (paged), or nothing is free: a gap.
    double externalFragmentation() const {
        const std::uint32_t free = blocksByState[static_cast<std::size_t>(kv::BlockState::Empty)] +
                                   blocksByState[static_cast<std::size_t>(kv::BlockState::Cached)];
        if ((presence & kHasExtents) == 0 || free == 0)
            return -1.0;
        return 1.0 - static_cast<double>(largestFreeExtent) / free;
    }
    /// Negative = nothing admitted in the window = a gap.
    double hitRate() const {
        return recentPromptTokens == 0
                   ? -1.0
                   : static_cast<double>(recentReusedTokens) / static_cast<double>(recentPromptTokens);
    }
};

/// Host memory as the probe thread reads it, 10 Hz.
struct MemorySample {
    Nanos time = 0;
    std::uint64_t totalBytes = 0;     ///< MemTotal
    std::uint64_t availableBytes = 0; ///< MemAvailable
    std::uint64_t processBytes = 0;   ///< Pss of this process (smaps_rollup, moved by statm in between)
};

} // namespace kvscope::metrics
