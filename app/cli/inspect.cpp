// SPDX-License-Identifier: GPL-3.0-or-later
#include <cstdio>

#include "app/cli/command.h"
#include "engine/model/inspect.h"

namespace kvscope::cli {

namespace {

using nlohmann::json;

void printReadable(const json& info) {
    for (const auto& [key, value] : info.items()) {
        if (key == "chat_template") {
            std::printf("%-20s %s\n", key.c_str(), value.is_string() ? "present" : "none");
        } else if (key == "tensors") {
            for (const auto& [type, entry] : value.items())
                std::printf("%-20s %s x %s, %s bytes\n", "tensors", entry["count"].dump().c_str(), type.c_str(),
                            entry["bytes"].dump().c_str());
        } else if (key == "problems") {
            for (const json& problem : value)
                std::printf("%-20s %s\n", "problem", problem.get<std::string>().c_str());
        } else {
            const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
            std::printf("%-20s %s\n", key.c_str(), text.c_str());
        }
    }
}

} // namespace

Verb addInspect(CLI::App& app) {
    struct Options {
        std::string path;
        bool asJson = false;
    };
    auto options = std::make_shared<Options>();
    Verb verb;
    verb.app = app.add_subcommand("inspect", "Show what a model file contains and whether it can be run");
    verb.app->add_option("file", options->path, "Model file (GGUF)")->required();
    verb.app->add_flag("--json", options->asJson, "JSON on standard output and nothing else");
    verb.run = [options] {
        const json info = json::parse(valueOrThrow(model::inspectJson(options->path)));
        if (options->asJson)
            printJson(info);
        else
            printReadable(info);
        return 0;
    };
    return verb;
}

} // namespace kvscope::cli
