// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/history.h"

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
    out.bytesPerBlock = sample.bytesPerBlock;
    out.activationsBytes = sample.activationsPeakBytes;
    return out;
}

} // namespace kvscope::ui
