// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cpu/kernel_table.h"

namespace kvscope::kernels {

/// Draws one token from one row of logits; the pipeline is described at SampleParams. Keeps scratch memory of the
/// vocabulary's size, so one sampler serves one thread. The result is a pure function of the arguments.
class Sampler {
public:
    Sampler(const KernelTable& kernels, std::int32_t vocab);
    SampledToken sample(const float* logits, const SampleRow& row);

private:
    void applyBias(const SampleRow& row);
    void applyPenalties(const SampleRow& row);
    void applyMask(std::span<const std::uint32_t> mask);
    std::int32_t draw(const SampleParams& params);
    void keepTopK(std::int32_t k);
    void gatherNucleus(double p);
    void keepTopP(double p);
    bool before(std::int32_t a, std::int32_t b) const;
    void reportTop(const float* logits, std::int32_t count, double logSum, SampledToken& out);

    const KernelTable& m_kernels;
    std::int32_t m_vocab;
    std::vector<float> m_logits;        ///< after bias, penalties and mask
    std::vector<float> m_weights;       ///< exp((logit - max) / temperature)
    std::vector<std::int32_t> m_counts; ///< of answer tokens, zero between calls
    std::vector<std::int32_t> m_candidates;
    bool m_sorted = false; ///< candidates by descending logit, then ascending id
    double m_total = 0;    ///< weight of all before top-p
};

} // namespace kvscope::kernels
