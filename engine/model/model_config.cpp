// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/model/model_config.h"

#include <array>
#include <optional>

#include "engine/model/config_reader.h"
#include "engine/model/foreign_file.h"

namespace kvscope::model {
namespace {

struct Architecture {
    const char* name;
    ArchitectureReader read;
};

constexpr std::array<Architecture, 2> kArchitectures{{{"llama", readLlamaConfig}, {"gemma3", readGemma3Config}}};

/// Files that are well-formed GGUF but no language model: said as what they are.
std::optional<Error> wrongKind(const ModelFile& file, std::string_view architecture) {
    const std::string_view type = file.metadata().string("general.type").value_or("model");
    const auto pooling = file.metadata().integer(std::string(architecture) + ".pooling_type").value_or(0);
    if (const auto sentence = wrongKindSentence(type, architecture, static_cast<long>(pooling)))
        return Error{ErrorCode::Unsupported, file.path() + *sentence};
    if (file.tensors().empty())
        return Error{ErrorCode::Unsupported,
                     file.path() + " holds only a vocabulary, no weights. Choose the complete model."};
    return std::nullopt;
}

} // namespace

std::string layerTensorName(std::int32_t layer, std::string_view part) {
    return "blk." + std::to_string(layer) + "." + std::string(part);
}

std::vector<std::string> builtArchitectures() {
    std::vector<std::string> names;
    for (const Architecture& architecture : kArchitectures)
        names.emplace_back(architecture.name);
    return names;
}

Result<ModelConfig> readModelConfig(const ModelFile& file) {
    const std::string_view architecture = file.metadata().string("general.architecture").value_or("");
    if (auto error = wrongKind(file, architecture))
        return tl::unexpected(*error);
    if (architecture.empty())
        return fail(ErrorCode::Corrupt, file.path() + " does not say which architecture it has "
                                                      "('general.architecture'). Convert or download it again.");
    for (const Architecture& built : kArchitectures) {
        if (architecture != built.name)
            continue;
        ModelConfig config;
        config.architecture = architecture;
        config.name = file.metadata().string("general.name").value_or("");
        ConfigReader reader(file, config.architecture);
        built.read(reader, config);
        if (reader.failed())
            return tl::unexpected(reader.error());
        return config;
    }
    std::string names;
    for (const std::string& name : builtArchitectures())
        names += (names.empty() ? "" : ", ") + name;
    return fail(ErrorCode::Unsupported, file.path() + " has the architecture '" + forSentence(architecture) +
                                            "', which this version cannot run. It runs: " + names + ".");
}

} // namespace kvscope::model
