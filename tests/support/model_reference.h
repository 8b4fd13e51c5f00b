// SPDX-License-Identifier: GPL-3.0-or-later
//
// Reads the reference results of a model (tests/data/models/NAME.json) and measures logits against them.
#pragma once

#include <algorithm>
#include <cmath>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/base/ids.h"

namespace kvscope::test {

/// Natural log-probabilities of all tokens.
inline std::vector<double> logSoftmax(std::span<const float> logits) {
    const double largest = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (const float x : logits)
        sum += std::exp(x - largest);
    const double normalizer = largest + std::log(sum);
    std::vector<double> out(logits.begin(), logits.end());
    for (double& x : out)
        x -= normalizer;
    return out;
}

/// KL(reference || ours) over the listed tokens and one bucket for all others.
inline double lumpedKl(const nlohmann::json& position, std::span<const double> ours) {
    double kl = 0, listed = 0;
    for (const auto& entry : position["top"]) {
        const double reference = entry[1].get<double>();
        const double mine = ours[entry[0].get<std::size_t>()];
        kl += std::exp(reference) * (reference - mine);
        listed += std::exp(mine);
    }
    const double rest = position["rest_logprob"].get<double>();
    return kl + std::exp(rest) * (rest - std::log(std::max(1.0 - listed, 1e-300)));
}

/// Deviations over the positions of many prompts.
struct Deviation {
    double largest = 0;
    double squares = 0;
    double kl = 0;
    int values = 0;
    int positions = 0;

    void add(const nlohmann::json& position, std::span<const float> logits) {
        const std::vector<double> ours = logSoftmax(logits);
        for (const auto& entry : position["top"]) {
            const double difference = std::fabs(ours[entry[0].get<std::size_t>()] - entry[1].get<double>());
            largest = std::max(largest, difference);
            squares += difference * difference;
            ++values;
        }
        kl += lumpedKl(position, ours);
        ++positions;
    }
    double rms() const { return values == 0 ? 0 : std::sqrt(squares / values); }
    double klMean() const { return positions == 0 ? 0 : kl / positions; }
};

inline nlohmann::json readReference(const std::string& path) {
    std::ifstream in(path);
    if (!in)
        throw std::runtime_error("Cannot read " + path);
    return nlohmann::json::parse(in);
}

/// First step from which another greedy token would be legitimate: its gap is below three times the deviation allowed.
inline std::size_t firstUncertainStep(const nlohmann::json& prompt, double logprobRms) {
    const auto gaps = prompt["greedy_gap"].get<std::vector<double>>();
    return static_cast<std::size_t>(
        std::find_if(gaps.begin(), gaps.end(), [&](double gap) { return gap < 3 * logprobRms; }) - gaps.begin());
}

} // namespace kvscope::test
