// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/bench/model_shape.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "engine/base/json_nesting.h"

namespace kvscope::bench {

namespace {

/// One row of the table of configurations: dense models with grouped attention.
struct Row {
    const char* name;
    std::int64_t layers, hidden, heads, kvHeads, headDim, feedForward, vocab;
    bool tied;
    std::int64_t context;
};
constexpr Row kRows[] = {
    {"smollm2-135m", 30, 576, 9, 3, 64, 1536, 49152, true, 8192},
    {"qwen2.5-0.5b", 24, 896, 14, 2, 64, 4864, 151936, true, 32768},
    {"gemma3-270m", 18, 640, 4, 1, 256, 2048, 262144, true, 32768},
    {"tinyllama-1.1b", 22, 2048, 32, 4, 64, 5632, 32000, false, 2048},
    {"qwen3-0.6b", 28, 1024, 16, 8, 128, 3072, 151936, true, 40960},
    {"qwen3-8b", 36, 4096, 32, 8, 128, 12288, 151936, false, 40960},
    {"llama-3.1-8b", 32, 4096, 32, 8, 128, 14336, 128256, false, 131072},
    {"r1-distill-qwen-1.5b", 28, 1536, 12, 2, 128, 8960, 151936, false, 131072},
    {"r1-distill-qwen-7b", 28, 3584, 28, 4, 128, 18944, 152064, false, 131072},
    {"r1-distill-llama-8b", 32, 4096, 32, 8, 128, 14336, 128256, false, 131072},
    {"r1-distill-qwen-14b", 48, 5120, 40, 8, 128, 13824, 152064, false, 131072},
    {"r1-distill-qwen-32b", 64, 5120, 40, 8, 128, 27648, 152064, false, 131072},
    {"r1-distill-llama-70b", 80, 8192, 64, 8, 128, 28672, 128256, false, 131072},
};

ModelShape shapeOf(const Row& row) {
    ModelShape shape;
    shape.name = row.name;
    shape.layers = row.layers;
    shape.hidden = row.hidden;
    shape.heads = row.heads;
    shape.kvHeads = row.kvHeads;
    shape.headDim = row.headDim;
    shape.feedForward = row.feedForward;
    shape.vocab = row.vocab;
    shape.tied = row.tied;
    shape.context = row.context;
    return shape;
}

ModelShape qwen3Experts() {
    ModelShape shape = shapeOf({"qwen3-30b-a3b", 48, 2048, 32, 4, 128, 6144, 151936, false, 40960});
    shape.experts = 128;
    shape.expertsUsed = 8;
    shape.expertFeedForward = 768;
    return shape;
}

/// DeepSeek V2-Lite, V2, V3: latent attention and experts.
ModelShape deepSeek(const char* name, std::int64_t layers, std::int64_t hidden, std::int64_t heads, bool lite) {
    ModelShape shape = shapeOf({name, layers, hidden, heads, heads, 192, lite ? 10944 : 12288, 102400, false, 163840});
    shape.latent = 512;
    shape.rotated = 64;
    shape.nopeDim = 128;
    shape.valueDim = 128;
    shape.queryRank = lite ? 0 : 1536;
    shape.experts = lite ? 64 : 160;
    shape.expertsUsed = 6;
    shape.sharedExperts = 2;
    shape.expertFeedForward = lite ? 1408 : 1536;
    shape.denseLayers = 1;
    return shape;
}

ModelShape deepSeekV3() {
    ModelShape shape = deepSeek("deepseek-v3", 61, 7168, 128, false);
    shape.feedForward = 18432;
    shape.vocab = 129280;
    shape.experts = 256;
    shape.expertsUsed = 8;
    shape.sharedExperts = 1;
    shape.expertFeedForward = 2048;
    shape.denseLayers = 3;
    return shape;
}

double number(std::int64_t value) {
    return static_cast<double>(value);
}

double attentionParameters(const ModelShape& m) {
    if (m.latent == 0)
        return number(m.hidden) * number(m.headDim) * number(2 * m.heads + 2 * m.kvHeads);
    const double query = m.queryRank > 0 ? number(m.hidden) * number(m.queryRank) +
                                               number(m.queryRank) * number(m.heads) * number(m.nopeDim + m.rotated)
                                         : number(m.hidden) * number(m.heads) * number(m.nopeDim + m.rotated);
    return query + number(m.hidden) * number(m.latent + m.rotated) +
           number(m.latent) * number(m.heads) * number(m.nopeDim + m.valueDim) +
           number(m.heads) * number(m.valueDim) * number(m.hidden);
}

/// Of one layer's feed-forward part, with `experts` of the chosen kind.
double expertLayer(const ModelShape& m, double experts) {
    return 3 * number(m.hidden) * number(m.expertFeedForward) * (experts + number(m.sharedExperts)) +
           number(m.hidden) * number(m.experts);
}

double allLayers(const ModelShape& m, double experts) {
    const double dense = 3 * number(m.hidden) * number(m.feedForward);
    if (m.experts == 0)
        return number(m.layers) * (attentionParameters(m) + dense);
    return number(m.layers) * attentionParameters(m) + number(m.denseLayers) * dense +
           number(m.layers - m.denseLayers) * expertLayer(m, experts);
}

/// Reads sizes from a config.json; the first one that is wrong is kept.
class ConfigReader {
public:
    explicit ConfigReader(const nlohmann::json& json) : m_json(json) {}
    std::int64_t size(const char* key) {
        const std::int64_t value = optional(key, 0);
        if (value == 0)
            m_wrong = m_wrong.empty() ? key : m_wrong;
        return value;
    }
    std::int64_t optional(const char* key, std::int64_t otherwise) {
        const auto found = m_json.find(key);
        if (found == m_json.end() || found->is_null())
            return otherwise;
        constexpr double kMost = 1e9;
        if (!found->is_number() || found->get<double>() < 0 || found->get<double>() > kMost) {
            m_wrong = m_wrong.empty() ? key : m_wrong;
            return otherwise;
        }
        return found->get<std::int64_t>();
    }
    const std::string& wrong() const { return m_wrong; }

private:
    const nlohmann::json& m_json;
    std::string m_wrong;
};

void readExperts(ConfigReader& read, ModelShape& shape) {
    shape.experts =
        read.optional("n_routed_experts", read.optional("num_experts", read.optional("num_local_experts", 0)));
    if (shape.experts == 0)
        return;
    shape.expertsUsed = read.size("num_experts_per_tok");
    shape.expertFeedForward = read.optional("moe_intermediate_size", shape.feedForward);
    shape.sharedExperts = read.optional("n_shared_experts", 0);
    shape.denseLayers = read.optional("first_k_dense_replace", 0);
}

void readLatent(ConfigReader& read, ModelShape& shape) {
    shape.latent = read.optional("kv_lora_rank", 0);
    if (shape.latent == 0)
        return;
    shape.rotated = read.size("qk_rope_head_dim");
    shape.nopeDim = read.size("qk_nope_head_dim");
    shape.valueDim = read.size("v_head_dim");
    shape.queryRank = read.optional("q_lora_rank", 0);
}

} // namespace

KvRows ModelShape::kvRows() const {
    KvRows rows;
    const model::KvLayerShape row =
        latent > 0 ? model::KvLayerShape{1, latent + rotated, 0} : model::KvLayerShape{kvHeads, headDim, headDim};
    rows.layers.assign(static_cast<std::size_t>(layers), row);
    rows.rotated = rotated;
    return rows;
}

double ModelShape::activeParameters() const {
    return allLayers(*this, number(expertsUsed));
}

double ModelShape::parameters() const {
    return allLayers(*this, number(experts)) + outputParameters() * (tied ? 1 : 2);
}

double ModelShape::expertParameters() const {
    return number(layers - denseLayers) * 3 * number(hidden) * number(expertFeedForward) * number(experts);
}

double ModelShape::attentionOpsPerPair() const {
    // Scores and weighted sum, one multiply-add each; latent attention works on the latent row in both.
    const double wide = latent > 0 ? number(2 * latent + rotated) : number(2 * headDim);
    return 2 * number(layers) * number(heads) * wide;
}

const std::vector<ModelShape>& modelPresets() {
    static const std::vector<ModelShape> kPresets = [] {
        std::vector<ModelShape> presets;
        for (const Row& row : kRows)
            presets.push_back(shapeOf(row));
        for (ModelShape& preset : presets)
            if (preset.name == "gemma3-270m")
                preset.note = "15 of the 18 layers of gemma3-270m look back 512 tokens only; here they are counted as "
                              "if they kept everything.";
        presets.push_back(qwen3Experts());
        presets.push_back(deepSeek("deepseek-v2-lite", 27, 2048, 16, true));
        presets.push_back(deepSeek("deepseek-v2", 60, 5120, 128, false));
        presets.push_back(deepSeekV3());
        return presets;
    }();
    return kPresets;
}

Result<ModelShape> modelPreset(std::string_view name) {
    std::string names;
    for (const ModelShape& preset : modelPresets()) {
        if (preset.name == name)
            return preset;
        names += (names.empty() ? "" : ", ") + preset.name;
    }
    return fail(ErrorCode::NotFound,
                "There is no preset '" + std::string(name) + "'; choose one of " + names + ", or give --config.");
}

Result<ModelShape> modelShapeFromConfig(const std::string& text, const std::string& name) {
    const nlohmann::json json = jsonNestsTooDeep(text) ? nlohmann::json(nlohmann::json::value_t::discarded)
                                                       : nlohmann::json::parse(text, nullptr, false);
    if (!json.is_object())
        return fail(ErrorCode::Corrupt, "'" + name + "' is not a JSON object; give the config.json of a model.");
    ConfigReader read(json);
    ModelShape shape;
    shape.name = name;
    shape.layers = read.size("num_hidden_layers");
    shape.hidden = read.size("hidden_size");
    shape.heads = read.size("num_attention_heads");
    shape.kvHeads = read.optional("num_key_value_heads", shape.heads);
    shape.headDim = read.optional("head_dim", shape.heads > 0 ? shape.hidden / shape.heads : 0);
    shape.feedForward = read.size("intermediate_size");
    shape.vocab = read.size("vocab_size");
    shape.context = read.size("max_position_embeddings");
    const auto tied = json.find("tie_word_embeddings");
    shape.tied = tied != json.end() && tied->is_boolean() && tied->get<bool>();
    readExperts(read, shape);
    readLatent(read, shape);
    if (!read.wrong().empty())
        return fail(ErrorCode::Corrupt,
                    "'" + name + "' has no usable '" + read.wrong() + "'; give the config.json of a language model.");
    constexpr std::int64_t kMostLayers = 4096;
    if (shape.layers > kMostLayers || shape.kvHeads < 1 || shape.headDim < 1 || shape.denseLayers > shape.layers)
        return fail(ErrorCode::Corrupt, "'" + name +
                                            "' has sizes that no model has; give the config.json of a "
                                            "language model.");
    return shape;
}

} // namespace kvscope::bench
