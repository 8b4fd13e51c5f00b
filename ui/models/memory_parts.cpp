// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/memory_parts.h"

#include <numeric>

namespace kvscope::ui {
namespace {

std::uint64_t lessOrZero(std::uint64_t a, std::uint64_t b) {
    return a > b ? a - b : 0;
}

} // namespace

std::uint64_t MemoryParts::sum() const {
    return std::accumulate(bytes.begin(), bytes.end(), std::uint64_t(0));
}

MemoryParts memoryParts(const CurveSample* sample, const metrics::MemorySample* host) {
    MemoryParts out;
    if (sample && (sample->presence & metrics::kHasEngineMemory)) {
        out.hasEngine = true;
        out.bytes[MemoryParts::Weights] = sample->weightsBytes;
        out.bytes[MemoryParts::Activations] = sample->activationsBytes;
        for (std::size_t s = 0; s < sample->blocks.size(); ++s) {
            const auto state = kv::BlockState(s);
            const auto part = state == kv::BlockState::Empty    ? MemoryParts::KvEmpty
                              : state == kv::BlockState::Cached ? MemoryParts::KvCached
                                                                : MemoryParts::KvInUse;
            out.bytes[part] += std::uint64_t(sample->blocks[s]) * sample->bytesPerBlock;
        }
        constexpr std::uint64_t kKiB = 1024;
        out.bytes[MemoryParts::KvInUse] += sample->besideUsedKiB * kKiB;
        out.bytes[MemoryParts::KvCached] += sample->besideCachedKiB * kKiB;
        out.bytes[MemoryParts::KvEmpty] += sample->besideEmptyKiB * kKiB;
        out.bytes[MemoryParts::HostTier] = sample->hostTierKiB * kKiB;
    }
    if (host && host->totalBytes > 0) {
        out.hasHost = true;
        out.total = host->totalBytes;
        const std::uint64_t ours = out.sum();
        const std::uint64_t untouched = lessOrZero(ours, host->processBytes);
        out.bytes[MemoryParts::Process] = lessOrZero(host->processBytes, ours);
        out.bytes[MemoryParts::Others] = lessOrZero(host->totalBytes, host->availableBytes + host->processBytes);
        out.bytes[MemoryParts::Free] = lessOrZero(host->availableBytes, untouched);
    }
    return out;
}

} // namespace kvscope::ui
