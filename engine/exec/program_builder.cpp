// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/exec/program_builder.h"

#include <algorithm>
#include <array>

#include "engine/base/check.h"

namespace kvscope::exec {

kernels::WeightId WeightTable::find(const std::string& name) const {
    const auto found = m_ids.find(name);
    return found == m_ids.end() ? kernels::WeightId{} : found->second;
}

kernels::WeightId WeightTable::need(const std::string& name) const {
    const kernels::WeightId id = find(name);
    KV_CHECK(id.valid(), "The weight '" + name + "' was not loaded");
    return id;
}

Result<kernels::Program> buildProgram(const model::ModelConfig& config, const WeightTable& weights,
                                      const StepCapacity& capacity) {
    struct Builder {
        const char* architecture;
        kernels::Program (*build)(const model::ModelConfig& config, const WeightTable& weights);
    };
    constexpr std::array kBuilders{Builder{"llama", buildLlama}, Builder{"gemma3", buildGemma3}};
    const auto* const builder = std::find_if(kBuilders.begin(), kBuilders.end(),
                                             [&](const Builder& b) { return config.architecture == b.architecture; });
    if (builder == kBuilders.end())
        return fail(ErrorCode::Unsupported, "Models of architecture '" + config.architecture +
                                                "' cannot be computed yet. Choose another model.");
    kernels::Program program = builder->build(config, weights);
    program.maxTokens = capacity.maxTokens;
    program.maxSequences = capacity.maxSequences;
    program.maxLogitRows = capacity.maxLogitRows;
    program.maxTableEntries = capacity.maxTableEntries;
    return program;
}

void limitSight(kernels::Program& program, std::int32_t sinks, std::int32_t window) {
    for (kernels::Op& op : program.ops)
        if (auto* attention = std::get_if<kernels::AttentionOp>(&op)) {
            attention->sinks = sinks;
            attention->window = window;
        }
}

Result<kernels::KvLayout> kvLayout(const model::KvShape& shape, const KvChoice& choice) {
    for (const model::KvLayerShape& layer : shape)
        if (layer.kvHeads != shape.front().kvHeads || layer.headDimK != shape.front().headDimK ||
            layer.headDimV != shape.front().headDimV)
            return fail(ErrorCode::Unsupported, "The layers of this model differ in their number of key/value heads, "
                                                "which is not supported yet. Choose another model.");
    kernels::KvLayout layout;
    layout.layers = static_cast<std::int32_t>(shape.size());
    if (!shape.empty()) {
        layout.kvHeads = static_cast<std::int32_t>(shape.front().kvHeads);
        layout.headDimK = static_cast<std::int32_t>(shape.front().headDimK);
        layout.headDimV = static_cast<std::int32_t>(shape.front().headDimV);
    }
    layout.blockSize = choice.blockSize;
    layout.numBlocks = choice.numBlocks;
    layout.format = choice.format;
    layout.tailSlots = choice.format.quantized() ? choice.maxSequences : 0;
    if (choice.windowGroup && model::hasWindowLayers(shape)) {
        for (const model::KvLayerShape& layer : shape) {
            layout.windowLayers.push_back(layer.window > 0);
            layout.window = std::max(layout.window, static_cast<std::int32_t>(layer.window));
        }
        layout.windowBlocks =
            kernels::windowBlocksNeeded(layout.window, choice.maxSequences, choice.stepTokens, choice.blockSize);
    }
    if (std::string wrong = kernels::checkKvFormat(layout); !wrong.empty())
        return fail(ErrorCode::InvalidArgument, std::move(wrong));
    return layout;
}

double attentionPerToken(const model::ModelConfig& config) {
    double attention = 0;
    double matrices = 0;
    for (const model::LayerConfig& layer : config.layers) {
        const double heads = static_cast<double>(layer.heads) + layer.kvHeads; // of q and k, of v and the way back
        if (layer.window == 0)
            attention += static_cast<double>(layer.heads) * (config.headDimK + config.headDimV);
        matrices += config.hidden * (heads * (config.headDimK + config.headDimV) + 3.0 * layer.feedForward);
    }
    return attention / matrices;
}

} // namespace kvscope::exec
