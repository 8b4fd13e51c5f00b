// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

namespace kvscope::bench {

/// What a step (or all steps of a run) reads and computes, and how long each part takes by the roofline.
struct StepCost {
    double weightBytes = 0, kvBytes = 0;
    double matrixOps = 0, attentionOps = 0; ///< a multiply-add counts as two
    double matrixSeconds = 0, attentionSeconds = 0, launchSeconds = 0;

    double seconds() const { return matrixSeconds + attentionSeconds + launchSeconds; }
    StepCost& operator+=(const StepCost& other) {
        weightBytes += other.weightBytes;
        kvBytes += other.kvBytes;
        matrixOps += other.matrixOps;
        attentionOps += other.attentionOps;
        matrixSeconds += other.matrixSeconds;
        attentionSeconds += other.attentionSeconds;
        launchSeconds += other.launchSeconds;
        return *this;
    }
};

} // namespace kvscope::bench
