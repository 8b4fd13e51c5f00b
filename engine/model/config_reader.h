// SPDX-License-Identifier: GPL-3.0-or-later
//
// Private to engine/model: what the readers of all architectures share.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "engine/model/model_config.h"

namespace kvscope::model {

struct IntRange {
    std::int64_t least = 0;
    std::int64_t most = 0;
};

/// Reads "<architecture>.<key>" with its type and range checked. The first failure is kept and everything after it is
/// harmless, so that a reader can be written straight down and ask once at its end.
class ConfigReader {
public:
    ConfigReader(const ModelFile& file, std::string architecture);

    std::int64_t required(std::string_view key, IntRange range);
    std::int64_t optional(std::string_view key, IntRange range, std::int64_t otherwise);
    /// One number for all layers or an array of one per layer.
    std::vector<std::int64_t> perLayer(std::string_view key, std::int64_t layers, IntRange range);
    std::vector<std::int64_t> perLayer(std::string_view key, std::int64_t layers, IntRange range,
                                       const std::vector<std::int64_t>& otherwise);
    /// Finite and greater than 0.
    double requiredPositive(std::string_view key);
    double optionalPositive(std::string_view key, double otherwise);
    /// One entry per layer; absent: `otherwise`. A single number n stands for "every nth layer is false".
    std::vector<bool> layerPattern(std::string_view key, std::int64_t layers, std::int64_t otherwise);
    std::string optionalText(std::string_view key, std::string otherwise);
    bool has(std::string_view key) const { return m_file.metadata().contains(full(key)); }
    const std::string& architecture() const { return m_architecture; }

    /// Checks that the tensor exists with exactly this shape and a type that is built; marks it as used.
    void needTensor(const std::string& name, std::initializer_list<std::int64_t> shape);
    /// The same, F32 only: norms and biases, which are read as floats.
    void needFloats(const std::string& name, std::initializer_list<std::int64_t> shape);
    bool hasTensor(std::string_view name) const { return m_file.findTensor(name) != nullptr; }
    /// Marks a tensor that is known to have no effect here.
    void ignoreTensor(std::string_view name);
    /// A tensor that nobody asked for would change the result if it were computed with: refuses it by name.
    void refuseUnusedTensors();

    void failCorrupt(const std::string& sentence);
    void failUnsupported(const std::string& sentence);
    bool failed() const { return m_error.has_value(); }
    const Error& error() const { return *m_error; }
    const ModelFile& file() const { return m_file; }

private:
    std::string full(std::string_view key) const { return m_architecture + "." + std::string(key); }
    const GgufValue* requiredValue(std::string_view key);
    std::int64_t checked(std::string_view key, std::optional<std::int64_t> value, IntRange range);
    double checkedPositive(std::string_view key, std::optional<double> value);
    const TensorInfo* shapedTensor(const std::string& name, std::initializer_list<std::int64_t> shape);

    const ModelFile& m_file;
    std::string m_architecture;
    std::unordered_set<std::string_view> m_used; ///< names inside m_file
    std::optional<Error> m_error;
};

/// Fills what is particular to its architecture; one function per file model_config_<architecture>.cpp.
using ArchitectureReader = void (*)(ConfigReader& reader, ModelConfig& config);
void readLlamaConfig(ConfigReader& reader, ModelConfig& config);
void readGemma3Config(ConfigReader& reader, ModelConfig& config);

} // namespace kvscope::model
