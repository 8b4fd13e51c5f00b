// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/exec/weight_loader.h"

namespace kvscope::exec {

namespace {

/// Read as floats while the configuration was read; no operation uses it as a weight.
bool isConfiguration(const model::TensorInfo& tensor) {
    return tensor.name == "rope_freqs.weight";
}

} // namespace

Result<LoadedWeights> loadWeights(const model::ModelFile& file, kernels::Backend& backend,
                                  const model::LoadOptions& options) {
    LoadedWeights out;
    const auto sink = [&](const model::TensorInfo& tensor, std::span<const std::byte> bytes) -> Result<void> {
        if (isConfiguration(tensor))
            return {};
        kernels::WeightDesc desc;
        desc.name = tensor.name;
        desc.type = static_cast<kernels::DType>(tensor.type); // both are the file's own numbers
        desc.rows = tensor.rows();
        desc.cols = tensor.cols();
        desc.data = bytes.data();
        desc.bytes = bytes.size();
        const auto added = backend.addWeight(desc);
        if (!added)
            return fail(added.error.outOfMemory ? ErrorCode::OutOfMemory : ErrorCode::Unsupported, added.error.message);
        out.table.add(tensor.name, *added.value);
        return {};
    };
    auto fingerprint = file.stream(sink, options);
    if (!fingerprint)
        return tl::unexpected(fingerprint.error());
    out.fingerprint = *fingerprint;
    return out;
}

} // namespace kvscope::exec
