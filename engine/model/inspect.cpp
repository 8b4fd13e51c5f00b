// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/model/inspect.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "engine/model/chat_template.h"
#include "engine/model/tokenizer.h"
#include "engine/model/vocabulary_gguf.h"

namespace kvscope::model {
namespace {

struct KvTypeName {
    const char* name;
    TensorType type;
};

constexpr std::array<KvTypeName, 4> kKvTypes{{
    {"f32", TensorType::F32},
    {"f16", TensorType::F16},
    {"q8_0", TensorType::Q8_0},
    {"q4_0", TensorType::Q4_0},
}};

/// A number, or one per layer; equal numbers become one.
std::vector<std::int64_t> perLayerNumbers(const GgufMetadata& metadata, const std::string& key) {
    if (const auto one = metadata.integer(key))
        return {*one};
    auto all = metadata.integers(key).value_or(std::vector<std::int64_t>());
    if (!all.empty() && std::all_of(all.begin(), all.end(), [&](std::int64_t n) { return n == all.front(); }))
        all.erase(all.begin() + 1, all.end()); // not resize(1): GCC 12 warns of a growth that cannot be
    return all;
}

std::optional<std::int64_t> headDimOf(const GgufMetadata& metadata, const std::string& prefix) {
    if (const auto given = metadata.integer(prefix + "attention.key_length"))
        return given;
    const auto hidden = metadata.integer(prefix + "embedding_length");
    const auto heads = perLayerNumbers(metadata, prefix + "attention.head_count");
    if (!hidden || heads.empty() || heads.front() <= 0)
        return std::nullopt;
    return *hidden / heads.front();
}

void describeTokenizer(const GgufMetadata& metadata, ModelSummary& summary) {
    summary.tokenizer = metadata.string("tokenizer.ggml.model").value_or("");
    summary.preTokenizer = metadata.string("tokenizer.ggml.pre").value_or("");
    if (const GgufValue* tokens = metadata.find("tokenizer.ggml.tokens"); tokens && tokens->isArray())
        summary.vocab = static_cast<std::int64_t>(tokens->count);
    if (const auto text = metadata.string("tokenizer.chat_template"))
        summary.chatTemplate = std::string(*text);
}

/// Why loading would refuse the vocabulary, in the same words; else what text cannot become tokens for.
void checkTokenizer(const GgufMetadata& metadata, ModelSummary& summary) {
    const auto tokenizer = vocabularyFromGguf(metadata).and_then(Tokenizer::create);
    summary.runs = tokenizer.has_value();
    if (!tokenizer)
        summary.problems.push_back(tokenizer.error().message);
    else if (auto encodes = (*tokenizer)->canEncode(); !encodes)
        summary.problems.push_back(encodes.error().message);
}

void checkTemplate(ModelSummary& summary) {
    if (!summary.chatTemplate || summary.chatTemplate->empty())
        summary.problems.push_back("This file has no chat template, so it cannot chat: it only continues plain text.");
    else if (const auto compiled = ChatTemplate::compile(*summary.chatTemplate); !compiled)
        summary.problems.push_back(compiled.error().message);
}

std::map<std::string, TensorTotal> totalsByType(const ModelFile& file) {
    std::map<std::string, TensorTotal> totals;
    for (const TensorInfo& tensor : file.tensors()) {
        TensorTotal& total = totals[tensorTypeName(tensor.type)];
        ++total.count;
        total.bytes += tensor.bytes;
    }
    return totals;
}

/// Names of the general.file_type numbers: a tensor type, some with the size of the mix behind it.
std::string publishedName(std::int64_t fileType) {
    static const std::map<std::int64_t, const char*> kNames{
        {0, "F32"},     {1, "F16"},     {2, "Q4_0"},    {3, "Q4_1"},    {7, "Q8_0"},    {8, "Q5_0"},    {9, "Q5_1"},
        {10, "Q2_K"},   {11, "Q3_K_S"}, {12, "Q3_K_M"}, {13, "Q3_K_L"}, {14, "Q4_K_S"}, {15, "Q4_K_M"}, {16, "Q5_K_S"},
        {17, "Q5_K_M"}, {18, "Q6_K"},   {25, "IQ4_NL"}, {30, "IQ4_XS"}, {32, "BF16"}};
    const auto it = kNames.find(fileType);
    return it == kNames.end() ? std::string() : it->second;
}

void addTensors(const ModelFile& file, ModelSummary& summary) {
    summary.tensors = totalsByType(file);
    summary.quantization = quantizationLabel(file);
    summary.weightsBytes = file.tensorBytes();
    summary.shards = static_cast<std::uint32_t>(file.shards().size());
    for (const GgufFile& shard : file.shards())
        summary.fileBytes += shard.identity().bytes;
}

nlohmann::json orNull(const std::optional<std::int64_t>& value) {
    return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

nlohmann::json scalarOrList(const std::vector<std::int64_t>& values) {
    if (values.empty())
        return nullptr;
    return values.size() == 1 ? nlohmann::json(values.front()) : nlohmann::json(values);
}

ModelSummary summaryOf(const ModelFile& file, const std::string& path) {
    const GgufMetadata& metadata = file.metadata();
    ModelSummary summary;
    summary.path = path;
    summary.architecture = metadata.string("general.architecture").value_or("");
    summary.name = metadata.string("general.name").value_or(std::filesystem::path(path).filename().string());
    const std::string prefix = summary.architecture + ".";
    summary.layers = metadata.integer(prefix + "block_count");
    summary.heads = perLayerNumbers(metadata, prefix + "attention.head_count");
    summary.kvHeads = perLayerNumbers(metadata, prefix + "attention.head_count_kv");
    if (summary.kvHeads.empty())
        summary.kvHeads = summary.heads;
    summary.headDim = headDimOf(metadata, prefix);
    summary.contextLength = metadata.integer(prefix + "context_length");
    summary.vocab = metadata.integer(prefix + "vocab_size");
    summary.kv = kvShapeFromMetadata(metadata);
    addTensors(file, summary);
    const auto config = readModelConfig(file);
    summary.runs = config.has_value();
    if (!config)
        summary.problems.push_back(config.error().message);
    describeTokenizer(metadata, summary);
    return summary;
}

} // namespace

std::string quantizationLabel(const ModelFile& file) {
    const auto totals = totalsByType(file);
    const std::string published = publishedName(file.metadata().integer("general.file_type").value_or(-1));
    const bool sized = published.ends_with("_S") || published.ends_with("_M") || published.ends_with("_L");
    if (totals.contains(sized ? published.substr(0, published.size() - 2) : published))
        return published;
    const auto most = std::max_element(totals.begin(), totals.end(),
                                       [](const auto& a, const auto& b) { return a.second.bytes < b.second.bytes; });
    return most == totals.end() ? std::string() : most->first;
}

std::vector<std::pair<std::string, std::uint64_t>> kvBytesByType(const KvShape& shape) {
    std::vector<std::pair<std::string, std::uint64_t>> all;
    for (const KvTypeName& type : kKvTypes)
        if (const auto bytes = kvBytesPerToken(shape, type.type, type.type))
            all.emplace_back(type.name, *bytes);
    return all;
}

Result<ModelSummary> inspectModel(const std::string& path) {
    return ModelFile::open(path).map([&](const ModelFile& file) { return summaryOf(file, path); });
}

Result<ModelSummary> inspectModelAndText(const std::string& path) {
    const auto file = ModelFile::open(path);
    if (!file)
        return tl::unexpected(file.error());
    ModelSummary summary = summaryOf(*file, path);
    if (summary.runs)
        checkTokenizer(file->metadata(), summary);
    if (summary.runs)
        checkTemplate(summary);
    return summary;
}

Result<std::string> inspectJson(const std::string& path) {
    const auto summary = inspectModelAndText(path);
    if (!summary)
        return tl::unexpected(summary.error());
    nlohmann::ordered_json kv = nlohmann::ordered_json::object();
    for (const auto& [type, bytes] : kvBytesByType(summary->kv))
        kv[type] = bytes;
    nlohmann::ordered_json tensors = nlohmann::ordered_json::object();
    for (const auto& [type, total] : summary->tensors)
        tensors[type] = {{"count", total.count}, {"bytes", total.bytes}};
    nlohmann::ordered_json out;
    out["name"] = summary->name;
    out["architecture"] = summary->architecture;
    out["layers"] = orNull(summary->layers);
    out["heads"] = scalarOrList(summary->heads);
    out["kv_heads"] = scalarOrList(summary->kvHeads);
    out["head_dim"] = orNull(summary->headDim);
    out["context_length"] = orNull(summary->contextLength);
    out["vocab"] = orNull(summary->vocab);
    out["kv_bytes_per_token"] = std::move(kv);
    if (hasWindowLayers(summary->kv)) { // they keep so many tokens, whatever the length: their bytes are not above
        const auto local = [](const KvLayerShape& layer) { return layer.window > 0; };
        out["window"] = {{"layers", std::count_if(summary->kv.begin(), summary->kv.end(), local)},
                         {"tokens", std::find_if(summary->kv.begin(), summary->kv.end(), local)->window}};
    }
    out["tensors"] = std::move(tensors);
    out["quantization"] = summary->quantization;
    out["weights_bytes"] = summary->weightsBytes;
    out["file_bytes"] = summary->fileBytes;
    out["shards"] = summary->shards;
    out["tokenizer"] = summary->tokenizer;
    out["pre_tokenizer"] = summary->preTokenizer;
    out["chat_template"] = summary->chatTemplate ? nlohmann::ordered_json(*summary->chatTemplate) : nullptr;
    out["runs"] = summary->runs;
    out["problems"] = summary->problems;
    // Names come from the file and need not be UTF-8.
    return out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

} // namespace kvscope::model
