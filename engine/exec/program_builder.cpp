// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/exec/program_builder.h"

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
    if (config.architecture != "llama")
        return fail(ErrorCode::Unsupported, "Models of architecture '" + config.architecture +
                                                "' cannot be computed yet. Choose another model.");
    kernels::Program program = buildLlama(config, weights);
    program.maxTokens = capacity.maxTokens;
    program.maxSequences = capacity.maxSequences;
    program.maxLogitRows = capacity.maxLogitRows;
    program.maxTableEntries = capacity.maxTableEntries;
    return program;
}

Result<kernels::KvLayout> kvLayout(const model::ModelConfig& config, std::int32_t blockSize, std::int32_t numBlocks) {
    kernels::KvLayout layout;
    layout.layers = config.layerCount();
    layout.kvHeads = config.layers.front().kvHeads;
    layout.headDimK = config.headDimK;
    layout.headDimV = config.headDimV;
    layout.blockSize = blockSize;
    layout.numBlocks = numBlocks;
    for (const model::LayerConfig& layer : config.layers)
        if (layer.kvHeads != layout.kvHeads)
            return fail(ErrorCode::Unsupported, "The layers of this model differ in their number of key/value heads, "
                                                "which is not supported yet. Choose another model.");
    return layout;
}

Result<std::uint64_t> kvBytesPerToken(const model::ModelConfig& config) {
    const auto layout = kvLayout(config, 8, 1);
    if (!layout)
        return tl::unexpected(layout.error());
    return layout->bytesPerBlock() / 8;
}

} // namespace kvscope::exec
