// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

namespace kvscope::test {

inline std::string environment(const char* name) {
    const char* value = std::getenv(name); // NOLINT(concurrency-mt-unsafe): tests start single-threaded
    return value == nullptr ? "" : value;
}

inline std::optional<std::string> regularFile(const std::string& path) {
    std::error_code ignored;
    return std::filesystem::is_regular_file(path, ignored) ? std::optional(path) : std::nullopt;
}

/// A model where packaging/fetch_model.sh puts it; nothing if it is not there.
inline std::optional<std::string> fetchedModel(const std::string& fileName) {
    std::string data = environment("XDG_DATA_HOME");
    if (data.empty())
        data = environment("HOME") + "/.local/share";
    return regularFile(data + "/kvscope/models/" + fileName);
}

/// The default model where packaging/fetch_model.sh puts it, or what $KVSCOPE_MODEL names; nothing if it is not there.
inline std::optional<std::string> defaultModel() {
    const std::string named = environment("KVSCOPE_MODEL");
    return named.empty() ? fetchedModel("SmolLM2-135M-Instruct.Q4_1.gguf") : regularFile(named);
}

inline constexpr const char* kNoDefaultModel =
    "The default model is not here: packaging/fetch_model.sh gets it, or name one in KVSCOPE_MODEL.";

} // namespace kvscope::test
