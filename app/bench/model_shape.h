// SPDX-License-Identifier: GPL-3.0-or-later
//
// The sizes of a model as far as time and memory depend on them: from a preset, a config.json or a model file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/bench/kv_bytes.h"
#include "engine/base/result.h"

namespace kvscope::bench {

struct ModelShape {
    std::string name;
    std::string note; ///< what the sizes below do not say of this model; one sentence, or empty
    std::int64_t layers = 0, hidden = 0, heads = 0, kvHeads = 0, headDim = 0;
    std::int64_t feedForward = 0; ///< of dense layers
    std::int64_t vocab = 0;
    bool tied = false; ///< output matrix = embedding
    std::int64_t context = 0;

    // mixture of experts; 0 experts = none
    std::int64_t experts = 0, expertsUsed = 0, sharedExperts = 0, expertFeedForward = 0;
    std::int64_t denseLayers = 0; ///< leading layers without experts, where there are experts

    // multi-head latent attention; latent 0 = none
    std::int64_t latent = 0, rotated = 0, queryRank = 0, nopeDim = 0, valueDim = 0;

    KvRows kvRows() const;
    /// Multiply-adds of the matrices that one token goes through, without the output matrix, experts counted as used.
    double activeParameters() const;
    double outputParameters() const { return static_cast<double>(hidden) * static_cast<double>(vocab); }
    /// Of all experts, layers without experts included once.
    double parameters() const;
    double expertParameters() const; ///< of those, in experts that a router chooses from
    /// Operations (2 per multiply-add) of attention for one token and one token that it attends to, all layers.
    double attentionOpsPerPair() const;
};

/// Presets: the models of the project's table of configurations, in lower case with hyphens ("r1-distill-qwen-7b").
const std::vector<ModelShape>& modelPresets();
/// Errors: NotFound, with all names.
Result<ModelShape> modelPreset(std::string_view name);
/// A config.json as published with models. Errors: Corrupt (no JSON, a size missing or out of range, by its key).
Result<ModelShape> modelShapeFromConfig(const std::string& json, const std::string& name);

} // namespace kvscope::bench
