// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>

#include "engine/api/engine_config.h"
#include "engine/base/result.h"

namespace kvscope::api {

/// What a model file would need and leave, without loading it: the model picker's row.
struct ModelProbe {
    std::string path, name, architecture, quantization;
    std::uint64_t fileBytes = 0;
    std::uint64_t weightsBytes = 0;    ///< tensors as they lie in the file
    std::uint64_t kvBytesPerToken = 0; ///< at the current KV dtype
    std::int64_t contextLength = 0;
    std::uint64_t availableBytes = 0; ///< memory that the machine has left now
    std::uint64_t poolBytes = 0;      ///< of the pool that loading would make
    std::int64_t tokensThatFit = 0;   ///< in that pool; 0 = it does not fit
    std::uint64_t missingBytes = 0;   ///< > 0: does not fit, and how much is lacking
    std::string problem;              ///< not empty: this program cannot run it, and why, as a sentence
};

/// Reads header and tensor table of `path` (never the weights) and asks the same budget that the engine asks when it
/// loads. `config` gives the pool options; its modelPath is not used. `availableBytes` is what the machine would have
/// left with no model loaded. Errors: not a readable model file at all. Any thread; takes milliseconds.
Result<ModelProbe> probeModel(const std::string& path, const EngineConfig& config, std::uint64_t availableBytes);

} // namespace kvscope::api
