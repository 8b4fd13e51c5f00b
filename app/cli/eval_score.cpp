// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/eval_score.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace kvscope::cli {

namespace {

/// log(sum exp(logits)), in double.
double logSum(std::span<const float> logits) {
    const double largest = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (const float logit : logits)
        sum += std::exp(static_cast<double>(logit) - largest);
    return largest + std::log(sum);
}

std::ptrdiff_t top(std::span<const float> logits) {
    return std::max_element(logits.begin(), logits.end()) - logits.begin();
}

} // namespace

PositionScore scorePosition(std::span<const float> reference, std::span<const float> logits, std::int32_t next) {
    const double ownSum = logSum(logits);
    const double referenceSum = logSum(reference);
    PositionScore out;
    out.surprise = ownSum - static_cast<double>(logits[static_cast<std::size_t>(next)]);
    for (std::size_t i = 0; i < logits.size(); ++i) {
        const double logP = static_cast<double>(reference[i]) - referenceSum;
        out.kl += std::exp(logP) * (logP - (static_cast<double>(logits[i]) - ownSum));
    }
    out.kl = std::max(out.kl, 0.0); // below it only by rounding
    out.sameTop = top(reference) == top(logits);
    return out;
}

void TextScore::add(const PositionScore& score, double reference) {
    const double difference = score.surprise - reference;
    ++m_count;
    m_sameTop += score.sameTop ? 1 : 0;
    m_surprise += score.surprise;
    m_kl += score.kl;
    m_difference += difference;
    m_differenceSquares += difference * difference;
}

double TextScore::perplexity() const {
    return std::exp(m_surprise / static_cast<double>(m_count));
}

double TextScore::perplexityRatio() const {
    return std::exp(m_difference / static_cast<double>(m_count));
}

double TextScore::ratioStandardError() const {
    const auto n = static_cast<double>(m_count);
    if (m_count < 2)
        return 0;
    const double mean = m_difference / n;
    const double variance = std::max(0.0, (m_differenceSquares - n * mean * mean) / (n - 1));
    return perplexityRatio() * std::sqrt(variance / n);
}

double TextScore::klMean() const {
    return m_kl / static_cast<double>(m_count);
}

double TextScore::topAgreement() const {
    return static_cast<double>(m_sameTop) / static_cast<double>(m_count);
}

} // namespace kvscope::cli
