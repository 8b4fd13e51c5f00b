// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/cpu/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/philox.h"

namespace kvscope::kernels {

namespace {
constexpr float kNever = -std::numeric_limits<float>::infinity();
}

Sampler::Sampler(const KernelTable& kernels, std::int32_t vocab)
    : m_kernels(kernels)
    , m_vocab(vocab)
    , m_logits(static_cast<std::size_t>(vocab))
    , m_weights(static_cast<std::size_t>(vocab))
    , m_counts(static_cast<std::size_t>(vocab)) {
    m_candidates.reserve(static_cast<std::size_t>(vocab));
}

SampledToken Sampler::sample(const float* logits, const SampleRow& row) {
    const SampleParams& p = row.params;
    SampledToken out;
    const SoftmaxStats raw = m_kernels.softmaxStats(logits, m_vocab);
    const bool penalties = p.presencePenalty != 0 || p.frequencyPenalty != 0 || p.repetitionPenalty != 1;
    const bool changed = !row.bias.empty() || penalties || !row.mask.empty();
    if (p.temperature <= 0 && !changed) {
        out.token = raw.index;
    } else {
        std::copy_n(logits, m_vocab, m_logits.data());
        applyBias(row);
        if (penalties)
            applyPenalties(row);
        applyMask(row.mask);
        out.token = draw(p);
    }
    const double logSum = static_cast<double>(raw.maximum) + std::log(raw.sum);
    if (out.token >= 0)
        out.logprob = static_cast<float>(static_cast<double>(logits[out.token]) - logSum);
    if (p.logprobs > 0 && raw.index >= 0)
        reportTop(logits, std::min(p.logprobs, m_vocab), logSum, out);
    return out;
}

void Sampler::applyBias(const SampleRow& row) {
    for (const LogitBias& b : row.bias)
        if (b.token >= 0 && b.token < m_vocab)
            m_logits[static_cast<std::size_t>(b.token)] += b.bias;
}

void Sampler::applyPenalties(const SampleRow& row) {
    const SampleParams& p = row.params;
    const auto known = [&](std::int32_t token) { return token >= 0 && token < m_vocab; };
    for (std::int32_t token : row.answerTokens)
        if (known(token))
            ++m_counts[static_cast<std::size_t>(token)];
    const auto repeat = [&](float& logit) {
        if (p.repetitionPenalty > 0)
            logit = logit > 0 ? logit / p.repetitionPenalty : logit * p.repetitionPenalty;
    };
    constexpr std::int32_t kDone = -1; // instead of its count once a token has been penalised
    for (std::int32_t token : row.answerTokens) {
        if (!known(token))
            continue;
        std::int32_t& count = m_counts[static_cast<std::size_t>(token)];
        if (count == kDone)
            continue;
        float& logit = m_logits[static_cast<std::size_t>(token)];
        repeat(logit);
        logit -= static_cast<float>(count) * p.frequencyPenalty + p.presencePenalty;
        count = kDone;
    }
    for (std::int32_t token : row.promptTokens) {
        if (!known(token) || m_counts[static_cast<std::size_t>(token)] == kDone)
            continue;
        repeat(m_logits[static_cast<std::size_t>(token)]);
        m_counts[static_cast<std::size_t>(token)] = kDone;
    }
    for (const auto& tokens : {row.answerTokens, row.promptTokens})
        for (std::int32_t token : tokens)
            if (known(token))
                m_counts[static_cast<std::size_t>(token)] = 0;
}

void Sampler::applyMask(std::span<const std::uint32_t> mask) {
    if (mask.empty())
        return;
    // A mask that is too short forbids what it does not name.
    for (std::int32_t i = 0; i < m_vocab; ++i) {
        const auto word = static_cast<std::size_t>(i) / 32;
        if (word >= mask.size() || !((mask[word] >> (i % 32)) & 1u))
            m_logits[static_cast<std::size_t>(i)] = kNever;
    }
}

std::int32_t Sampler::draw(const SampleParams& p) {
    const SoftmaxStats stats = m_kernels.softmaxStats(m_logits.data(), m_vocab);
    if (p.temperature <= 0 || stats.index < 0 || p.topK == 1)
        return stats.index;
    const float inverse = 1.0f / p.temperature;
    if (!std::isfinite(inverse) ||
        !std::isfinite(stats.maximum)) // so cold, or so certain, that only the maximum is left
        return stats.index;
    m_kernels.expScaled(m_logits.data(), stats.maximum, inverse, m_vocab, m_weights.data());
    m_candidates.clear();
    m_sorted = false;
    bool all = true; // no list of candidates yet: every id
    if (p.topK > 0 && p.topK < m_vocab) {
        keepTopK(p.topK);
        all = false;
    }
    if (p.topP < 1) {
        if (all)
            gatherNucleus(p.topP);
        keepTopP(p.topP);
        all = false;
    }
    const auto weight = [&](std::int32_t id) { return m_weights[static_cast<std::size_t>(id)]; };
    if (p.minP > 0) { // the most likely token has weight 1
        if (all) {
            for (std::int32_t i = 0; i < m_vocab; ++i)
                if (weight(i) >= p.minP)
                    m_candidates.push_back(i);
        } else {
            std::erase_if(m_candidates, [&](std::int32_t id) { return weight(id) < p.minP; });
        }
        if (m_candidates.empty())
            return stats.index;
        all = false;
    }
    const auto count = all ? m_vocab : static_cast<std::int32_t>(m_candidates.size());
    const auto idAt = [&](std::int32_t i) { return all ? i : m_candidates[static_cast<std::size_t>(i)]; };
    double total = 0;
    for (std::int32_t i = 0; i < count; ++i)
        total += static_cast<double>(weight(idAt(i)));
    const double target = philoxUniform(p.seed, p.tokenIndex) * total;
    double sum = 0;
    std::int32_t last = stats.index;
    for (std::int32_t i = 0; i < count; ++i) {
        const std::int32_t id = idAt(i);
        if (weight(id) <= 0)
            continue;
        last = id;
        sum += static_cast<double>(weight(id));
        if (sum > target)
            return id;
    }
    return last; // the sums are the same, so only rounding could bring us here
}

/// More likely first, the lower id on ties.
bool Sampler::before(std::int32_t a, std::int32_t b) const {
    const float x = m_logits[static_cast<std::size_t>(a)], y = m_logits[static_cast<std::size_t>(b)];
    return x > y || (x == y && a < b);
}

void Sampler::keepTopK(std::int32_t k) {
    // A heap of the best k so far, its worst member on top: nearly every id is refused by one comparison.
    const auto compare = [this](std::int32_t a, std::int32_t b) { return before(a, b); };
    for (std::int32_t i = 0; i < m_vocab; ++i) {
        if (!(m_logits[static_cast<std::size_t>(i)] > kNever)) // forbidden, or not a number
            continue;
        if (static_cast<std::int32_t>(m_candidates.size()) < k) {
            m_candidates.push_back(i);
            std::push_heap(m_candidates.begin(), m_candidates.end(), compare);
        } else if (before(i, m_candidates.front())) {
            std::pop_heap(m_candidates.begin(), m_candidates.end(), compare);
            m_candidates.back() = i;
            std::push_heap(m_candidates.begin(), m_candidates.end(), compare);
        }
    }
    std::sort_heap(m_candidates.begin(), m_candidates.end(), compare);
    m_sorted = true;
}

/// The ids that can be in the smallest set of probability p. What is left out sums to less than (1 - p) of the total,
/// since each of at most `vocab` ids weighs less than (1 - p) * total / vocab.
void Sampler::gatherNucleus(double p) {
    double total = 0;
    for (float w : m_weights)
        total += static_cast<double>(w);
    const auto limit = static_cast<float>(std::max(0.0, 1 - p) * total / m_vocab);
    for (std::int32_t i = 0; i < m_vocab; ++i)
        if (const float w = m_weights[static_cast<std::size_t>(i)]; w > 0 && w >= limit)
            m_candidates.push_back(i);
    m_total = total;
}

void Sampler::keepTopP(double p) {
    if (!m_sorted) {
        std::sort(m_candidates.begin(), m_candidates.end(),
                  [this](std::int32_t a, std::int32_t b) { return before(a, b); });
        m_sorted = true;
    } else {
        m_total = 0;
        for (std::int32_t id : m_candidates)
            m_total += static_cast<double>(m_weights[static_cast<std::size_t>(id)]);
    }
    double sum = 0;
    std::size_t keep = 0;
    while (keep < m_candidates.size() && (keep == 0 || sum < p * m_total))
        sum += static_cast<double>(m_weights[static_cast<std::size_t>(m_candidates[keep++])]);
    m_candidates.resize(keep);
}

void Sampler::reportTop(const float* logits, std::int32_t count, double logSum, SampledToken& out) {
    std::copy_n(logits, m_vocab, m_logits.data());
    m_candidates.clear();
    keepTopK(count);
    for (std::int32_t id : m_candidates)
        out.top.emplace_back(id, static_cast<float>(static_cast<double>(logits[id]) - logSum));
}

} // namespace kvscope::kernels
