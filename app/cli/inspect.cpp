// SPDX-License-Identifier: GPL-3.0-or-later
#include <cstdio>

#include "app/cli/command.h"
#include "engine/api/pool_plan.h"
#include "engine/exec/program_builder.h"
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

/// Bytes of a token in each form that this program keeps keys and values in, at blocks of 16 tokens: a share of the
/// scales is counted. A form that the model cannot have is left out.
void addKvForms(const std::string& path, json& bytes) {
    const auto summary = model::inspectModel(path);
    if (!summary || summary->kv.empty())
        return;
    for (const char* name : {"f16", "bf16", "fp8", "int8", "k8v4", "int4"}) {
        exec::KvChoice choice;
        choice.format = *kernels::kvFormatByName(name);
        if (const auto layout = exec::kvLayout(summary->kv, choice))
            bytes[name] = api::bytesPerToken(*layout);
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
        json info = json::parse(valueOrThrow(model::inspectJson(options->path)));
        addKvForms(options->path, info["kv_bytes_per_token"]);
        if (options->asJson)
            printJson(info);
        else
            printReadable(info);
        return 0;
    };
    return verb;
}

} // namespace kvscope::cli
