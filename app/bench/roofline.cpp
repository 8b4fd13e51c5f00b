// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/bench/roofline.h"

#include <algorithm>
#include <cmath>

namespace kvscope::bench {

namespace {

// A layer as fused as serving engines have it: norm, QKV, rotate and write, attention, combine, output, norm, gate and
// up, down. In a captured graph a launch costs about 2.5 us from one kernel's end to the next one's start.
constexpr int kLaunchesPerLayer = 9;
constexpr double kLaunchSeconds = 2.5e-6;

} // namespace

const std::vector<Device>& knownDevices() {
    static const std::vector<Device> kDevices{
        {"A100-80GB", 1.6e12, 170e12, kLaunchSeconds, kLaunchesPerLayer, 80'000'000'000},
        {"H100-80GB", 2.7e12, 540e12, kLaunchSeconds, kLaunchesPerLayer, 80'000'000'000},
        {"RTX4090", 0.81e12, 90e12, kLaunchSeconds, kLaunchesPerLayer, 24'000'000'000},
    };
    return kDevices;
}

Result<Device> knownDevice(std::string_view name) {
    std::string names;
    for (const Device& device : knownDevices()) {
        if (device.name == name)
            return device;
        names += (names.empty() ? "" : ", ") + device.name;
    }
    return fail(ErrorCode::NotFound,
                "There is no device '" + std::string(name) + "'; choose one of " + names + ", or this.");
}

Roofline::Roofline(const Device& device, const DeployedModel& model)
    : m_device(device)
    , m_model(model)
    , m_expertShare(model.shape.experts > 0 ? model.shape.expertParameters() / model.shape.parameters() : 0) {}

double Roofline::weightsRead(double tokens) const {
    if (m_expertShare == 0)
        return m_model.weightBytes;
    const double missed =
        1 - static_cast<double>(m_model.shape.expertsUsed) / static_cast<double>(m_model.shape.experts);
    const double touched = 1 - std::pow(missed, tokens);
    return m_model.weightBytes * (1 - m_expertShare * (1 - touched));
}

StepCost Roofline::cost(const std::vector<StepShare>& shares) const {
    StepCost cost;
    double tokens = 0, rows = 0;
    for (const StepShare& share : shares) {
        const auto count = static_cast<double>(share.to - share.from);
        // Whole blocks in their dtype, the last one 16-bit as far as it is filled.
        const std::int64_t sealed = share.to / m_model.blockSize, tail = share.to % m_model.blockSize;
        const double bytes = static_cast<double>(sealed) * static_cast<double>(m_model.sealedBytes) +
                             static_cast<double>(tail) * static_cast<double>(m_model.plainBytes) / m_model.blockSize;
        // Position p attends to p + 1 tokens.
        const double pairs = count * (static_cast<double>(share.from + share.to) + 1) / 2;
        const double ops = m_model.shape.attentionOpsPerPair() * pairs;
        cost.kvBytes += bytes;
        cost.attentionOps += ops;
        cost.attentionSeconds += std::max(bytes / m_device.bytesPerSecond, ops / m_device.opsPerSecond);
        tokens += count;
        rows += share.samples ? 1 : 0;
    }
    cost.weightBytes = weightsRead(tokens);
    cost.matrixOps = 2 * (m_model.shape.activeParameters() * tokens + m_model.shape.outputParameters() * rows);
    cost.matrixSeconds = std::max(cost.weightBytes / m_device.bytesPerSecond, cost.matrixOps / m_device.opsPerSecond);
    cost.launchSeconds = m_device.launchSeconds * m_device.launchesPerLayer * static_cast<double>(m_model.shape.layers);
    return cost;
}

} // namespace kvscope::bench
