// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

namespace kvscope::test {

/// The default model where packaging/fetch_model.sh puts it, or what $KVSCOPE_MODEL names; nothing if it is not there.
inline std::optional<std::string> defaultModel() {
    namespace fs = std::filesystem;
    const auto environment = [](const char* name) {
        const char* value = std::getenv(name); // NOLINT(concurrency-mt-unsafe): tests start single-threaded
        return std::string(value == nullptr ? "" : value);
    };
    std::string path = environment("KVSCOPE_MODEL");
    if (path.empty()) {
        std::string data = environment("XDG_DATA_HOME");
        if (data.empty())
            data = environment("HOME") + "/.local/share";
        path = data + "/kvscope/models/SmolLM2-135M-Instruct.Q4_1.gguf";
    }
    std::error_code ignored;
    if (!fs::is_regular_file(path, ignored))
        return std::nullopt;
    return path;
}

inline constexpr const char* kNoDefaultModel =
    "The default model is not here: packaging/fetch_model.sh gets it, or name one in KVSCOPE_MODEL.";

} // namespace kvscope::test
