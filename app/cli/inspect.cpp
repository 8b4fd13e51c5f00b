// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cstdio>
#include <map>

#include "app/cli/command.h"
#include "app/cli/utf8.h"
#include "engine/exec/program_builder.h"
#include "engine/model/model_config.h"
#include "engine/model/model_file.h"

namespace kvscope::cli {

namespace {

using nlohmann::json;

struct Options {
    std::string path;
    bool asJson = false;
};

std::optional<std::int64_t> architectureNumber(const model::GgufMetadata& metadata, const std::string& architecture,
                                               const std::string& key) {
    const model::GgufValue* value = metadata.find(architecture + "." + key);
    if (!value)
        return std::nullopt;
    if (const auto list = value->asIntegers(); list && !list->empty()) // one number per layer
        return *std::max_element(list->begin(), list->end());
    return value->asInteger();
}

/// What the file says about itself, whether or not this program can run it.
void describeFile(json& out, const model::ModelFile& file) {
    const model::GgufMetadata& metadata = file.metadata();
    const std::string architecture(metadata.string("general.architecture").value_or(""));
    out["architecture"] = replaceInvalidUtf8(architecture);
    const auto put = [&](const char* field, const std::string& key) {
        if (const auto n = architectureNumber(metadata, architecture, key))
            out[field] = *n;
    };
    put("layers", "block_count");
    put("heads", "attention.head_count");
    put("kv_heads", "attention.head_count_kv");
    put("head_dim", "attention.key_length");
    put("context_length", "context_length");
    if (!out.contains("kv_heads") && out.contains("heads"))
        out["kv_heads"] = out["heads"];
    if (!out.contains("head_dim") && out.contains("heads") && out["heads"].get<std::int64_t>() > 0)
        if (const auto hidden = architectureNumber(metadata, architecture, "embedding_length"))
            out["head_dim"] = *hidden / out["heads"].get<std::int64_t>();

    json tensors = json::object();
    for (const model::TensorInfo& tensor : file.tensors()) {
        json& entry = tensors[model::tensorTypeName(tensor.type)];
        entry["count"] = entry.value("count", 0) + 1;
        entry["bytes"] = entry.value("bytes", std::uint64_t(0)) + tensor.bytes;
    }
    out["tensors"] = tensors;

    json tokenizer = json::object();
    if (const auto name = metadata.string("tokenizer.ggml.model"))
        tokenizer["model"] = replaceInvalidUtf8(*name);
    if (const auto pre = metadata.string("tokenizer.ggml.pre"))
        tokenizer["pre"] = replaceInvalidUtf8(*pre);
    if (const model::GgufValue* tokens = metadata.find("tokenizer.ggml.tokens"))
        tokenizer["tokens"] = tokens->count;
    out["tokenizer"] = tokenizer.empty() ? json(nullptr) : tokenizer;
    const auto chatTemplate = metadata.string("tokenizer.chat_template");
    out["chat_template"] = chatTemplate ? json(replaceInvalidUtf8(*chatTemplate)) : json(nullptr);
}

json inspectFile(const std::string& path) {
    const model::ModelFile file = valueOrThrow(model::ModelFile::open(path));
    json out = json::object();
    describeFile(out, file);
    json problems = json::array();
    out["kv_bytes_per_token"] = json::object();
    if (const auto config = model::readModelConfig(file); !config) {
        problems.push_back(replaceInvalidUtf8(config.error().message));
    } else if (const auto bytes = exec::kvBytesPerToken(*config); !bytes) {
        problems.push_back(bytes.error().message);
    } else {
        out["kv_bytes_per_token"]["f16"] = *bytes;
        out["head_dim"] = config->headDimK;
    }
    out["problems"] = problems;
    return out;
}

void printReadable(const json& info) {
    for (const auto& [key, value] : info.items()) {
        if (key == "chat_template") {
            std::printf("%-20s %s\n", key.c_str(), value.is_null() ? "none" : "present");
        } else if (key == "tensors") {
            for (const auto& [type, entry] : value.items())
                std::printf("%-20s %s x %s, %s bytes\n", "tensors", type.c_str(), entry["count"].dump().c_str(),
                            entry["bytes"].dump().c_str());
        } else if (key == "problems") {
            for (const json& problem : value)
                std::printf("%-20s %s\n", "problem", problem.get<std::string>().c_str());
        } else {
            std::printf("%-20s %s\n", key.c_str(),
                        value.is_string() ? value.get<std::string>().c_str() : value.dump().c_str());
        }
    }
}

} // namespace

Verb addInspect(CLI::App& app) {
    auto options = std::make_shared<Options>();
    Verb verb;
    verb.app = app.add_subcommand("inspect", "Show what a model file contains and whether it can be run");
    verb.app->add_option("file", options->path, "Model file (GGUF)")->required();
    verb.app->add_flag("--json", options->asJson, "JSON on standard output");
    verb.run = [options] {
        const json info = inspectFile(options->path);
        if (options->asJson)
            printJson(info);
        else
            printReadable(info);
        return 0;
    };
    return verb;
}

} // namespace kvscope::cli
