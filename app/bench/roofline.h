// SPDX-License-Identifier: GPL-3.0-or-later
//
// How long a step takes on a device that is not here, by the roofline: a part of the step takes as long as its bytes
// need at the device's bandwidth or its operations at the device's speed, whichever is more; the parts follow each
// other.
//
//   matrices    max(weights / bandwidth, 2 x parameters x tokens / speed): all tokens of the step share one reading
//   attention   for each sequence max(KV bytes of all it attends to / bandwidth, operations / speed)
//   launches    layers x kernels per layer x time of a launch
//
// Of a mixture of experts a step reads the experts that at least one of its tokens is routed to, by expectation:
// E (1 - (1 - k / E)^tokens). Source of the formula: Williams, Waterman, Patterson 2009, "Roofline".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "app/bench/model_shape.h"
#include "app/bench/step_cost.h"
#include "engine/base/result.h"

namespace kvscope::bench {

/// Effective figures: what good kernels reach, not what the data sheet says.
struct Device {
    std::string name;
    double bytesPerSecond = 0;
    double opsPerSecond = 0; ///< 16-bit multiply and add count as two
    double launchSeconds = 0;
    int launchesPerLayer = 0;
    std::uint64_t memoryBytes = 0; ///< 0 = not known
};

/// "A100-80GB", "H100-80GB", "RTX4090".
const std::vector<Device>& knownDevices();
/// Errors: NotFound, with all names.
Result<Device> knownDevice(std::string_view name);

/// A model as it lies on a device.
struct DeployedModel {
    ModelShape shape;
    double weightBytes = 0;        ///< all of them
    std::uint64_t sealedBytes = 0; ///< of a sealed block
    std::uint64_t plainBytes = 0;  ///< of a block that is being filled: 16 bits a value
    std::int32_t blockSize = 16;
    std::uint64_t tailBytes = 0; ///< of the slot in which that block lies where the dtypes are quantized; else 0
};

/// One sequence's share of a step: its tokens [from, to).
struct StepShare {
    std::int64_t from = 0, to = 0;
    bool samples = true; ///< needs the output matrix for one row
};

class Roofline {
public:
    Roofline(const Device& device, const DeployedModel& model);
    StepCost cost(const std::vector<StepShare>& shares) const;
    const Device& device() const { return m_device; }
    const DeployedModel& model() const { return m_model; }

private:
    double weightsRead(double tokens) const;

    Device m_device;
    DeployedModel m_model;
    double m_expertShare; ///< of the weights, in experts that a router chooses from
};

} // namespace kvscope::bench
