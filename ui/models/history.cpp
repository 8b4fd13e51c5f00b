// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/history.h"

#include <algorithm>

namespace kvscope::ui {

CurveSample CurveSample::from(const metrics::StepSample& sample) {
    CurveSample out;
    out.time = sample.time;
    out.presence = sample.presence;
    out.blocks = sample.blocksByState;
    out.hitRate = float(sample.hitRate());
    out.fragmentation = float(sample.internalFragmentation());
    out.prefillTokens = sample.totalPrefillTokens;
    out.decodeTokens = sample.totalDecodeTokens;
    out.stepTime = sample.totalStep;
    out.evictions = std::uint32_t(sample.totalEvictions);
    out.preemptions = std::uint32_t(sample.totalPreemptions);
    out.weightsBytes = sample.weightsBytes;
    out.bytesPerBlock = std::uint32_t(sample.bytesPerBlock);
    const auto kib = [](std::uint64_t bytes) { return std::uint32_t((bytes + 512) / 1024); };
    const std::uint64_t used = sample.windowUsedBytes + sample.tailUsedBytes,
                        all = sample.windowBytes + sample.tailBytes;
    out.besideUsedKiB = kib(used);
    out.besideCachedKiB = kib(sample.windowCachedBytes);
    out.besideEmptyKiB = kib(all - std::min(all, used + sample.windowCachedBytes));
    out.hostTierKiB = kib(sample.hostBytes);
    out.activationsBytes = sample.activationsPeakBytes;
    return out;
}

} // namespace kvscope::ui
