// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <atomic>
#include <string>

#include "app/bench/model_shape.h"
#include "app/bench/roofline.h"
#include "engine/api/engine_config.h"

namespace kvscope::bench {

/// A model file's sizes and the bytes of its tensors. Errors: those of reading it; Unsupported architectures.
struct ModelOnDisk {
    ModelShape shape;
    double weightBytes = 0;
};
Result<ModelOnDisk> modelOnDisk(const std::string& path);

/// This machine as a device, by what the engine does with this model on it: operations per second from reading a
/// prompt, bytes per second from writing one answer. `loadSeconds` is what a load takes.
struct Calibration {
    Device device;
    double loadSeconds = 0;
};
/// Errors: those of loading the model; Cancelled.
Result<Calibration> calibrate(const api::EngineConfig& config, const ModelOnDisk& model,
                              const std::atomic<bool>* interrupted);

} // namespace kvscope::bench
