// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <nlohmann/json.hpp>

#include "engine/api/engine.h"
#include "engine/api/request.h"

namespace kvscope::cli {

/// The answer as `generate --json` prints it.
nlohmann::json answerJson(const api::Answer& answer);

/// The run as `--stats` writes it: blocks by state at peak and end, hits, evictions, preemptions, phase times.
nlohmann::json statsJson(const api::EngineStats& stats, const api::ModelInfo& model);

} // namespace kvscope::cli
