// SPDX-License-Identifier: GPL-3.0-or-later
//
// A text scored over each form of the KV cache against the same text over f16 keys and values.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/cli/eval_score.h"
#include "engine/api/engine_config.h"
#include "engine/base/ids.h"

namespace kvscope::cli {

/// One form of the KV cache and what came of it.
struct EvalRow {
    api::EngineConfig config;
    std::string keys, values; ///< as the engine names them: "fp8_e4m3", "int4/rotated"
    double bytesPerToken = 0; ///< over all layers, scales counted, tails not; what a window passes is given back
    TextScore score;
};

struct EvalText {
    std::vector<TokenId> tokens;
    std::optional<TokenId> begin; ///< put before every window, where the model wants it
    std::int64_t window = 512;    ///< tokens that are scored together, `begin` included
};

/// Blocks of a pool that holds a window and the place of its next token.
std::int64_t blocksToScore(const api::EngineConfig& config, std::int64_t window);

/// Windows of the text: [first, last) of its tokens. The end, if it is shorter, is scored too.
std::vector<std::pair<std::size_t, std::size_t>> windowsOf(const EvalText& text);

/// Fills the rows. All of them share one reference that runs beside them, as many at a time as memory holds.
/// `progress`: scored positions of all rows together, and how many there will be. `stop` asked: what was scored is
/// left in the rows. Errors: those of loading and of computing.
Result<void> evaluate(const EvalText& text, std::vector<EvalRow>& rows,
                      const std::function<void(std::int64_t, std::int64_t)>& progress,
                      const std::function<bool()>& stop);

/// Which row to take, and why, in a sentence or two.
std::string recommendation(const std::vector<EvalRow>& rows, bool floatActivations);

} // namespace kvscope::cli
