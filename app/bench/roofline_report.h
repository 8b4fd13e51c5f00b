// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/bench/roofline.h"

namespace kvscope::bench {

/// One kind of step: a batch that writes, or a prompt that is read.
struct RooflineRow {
    bool writes = true; ///< one token for each of `batch` sequences; false: `batch` tokens of one prompt
    kernels::KvFormat format;
    std::int64_t batch = 1;
    std::int64_t context = 0; ///< tokens of each sequence before the step
    StepCost cost;

    double tokensPerSecond() const { return static_cast<double>(batch) / cost.seconds(); }
    double opsPerByte() const { return (cost.matrixOps + cost.attentionOps) / (cost.weightBytes + cost.kvBytes); }
    /// "memory", "compute" or "launch": what most of its time goes to.
    const char* bound(const Device& device) const;
};

/// What limits steps of this model on this device: batches of 1 to 64 at contexts up to the model's, and prompts.
/// Errors: of the layout, where the model cannot have a dtype.
Result<std::vector<RooflineRow>> rooflineRows(const Device& device, const ModelShape& shape, double weightBytes,
                                              const std::vector<kernels::KvFormat>& formats);

nlohmann::ordered_json rooflineJson(const Device& device, const ModelShape& shape, double weightBytes,
                                    const std::vector<RooflineRow>& rows);
std::string rooflineTable(const Device& device, const ModelShape& shape, double weightBytes,
                          const std::vector<RooflineRow>& rows);

} // namespace kvscope::bench
