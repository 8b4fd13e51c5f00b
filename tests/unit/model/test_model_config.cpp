// SPDX-License-Identifier: GPL-3.0-or-later
//
// From a readable file to a model that can be computed with: what is accepted, what is refused, and in which words.
#include <QTest>
#include <cmath>
#include <fstream>
#include <limits>

#include <nlohmann/json.hpp>

#include "engine/model/inspect.h"
#include "engine/model/model_config.h"
#include "engine/model/tokenizer.h"
#include "engine/model/vocabulary_gguf.h"
#include "tests/support/default_model.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_llama.h"

using namespace kvscope;
using namespace kvscope::model;
using kvscope::test::ByteWriter;
using kvscope::test::GgufWriter;

namespace {

const std::string kModels = std::string(KVSCOPE_TEST_DATA) + "/models/";

Result<ModelConfig> configOf(const std::string& path) {
    const auto model = ModelFile::open(path);
    if (!model)
        return tl::unexpected(model.error());
    return readModelConfig(*model);
}

struct Flaw {
    const char* name;
    std::function<void(GgufWriter&)> spoil;
    ErrorCode code;
    const char* sentence; ///< must stand in the message
};

constexpr auto kCorrupt = ErrorCode::Corrupt;
constexpr auto kUnsupported = ErrorCode::Unsupported;

std::vector<Flaw> flawsOfKind() {
    return {
        {"no architecture", [](auto& g) { g.without("general.architecture"); }, kCorrupt, "general.architecture"},
        {"unknown architecture", [](auto& g) { g.text("general.architecture", "foo"); }, kUnsupported,
         "has the architecture 'foo', which this version cannot run. It runs: llama, gemma3."},
        {"image projector", [](auto& g) { g.text("general.architecture", "clip"); }, kUnsupported, "is the image part"},
        {"adapter", [](auto& g) { g.text("general.type", "adapter"); }, kUnsupported, "is an adapter (LoRA)"},
        {"importance matrix", [](auto& g) { g.text("general.type", "imatrix"); }, kUnsupported,
         "importance statistics"},
        {"embedding model", [](auto& g) { g.text("general.architecture", "nomic-bert"); }, kUnsupported,
         "is an embedding model ('nomic-bert')"},
        {"embedding model of a chat architecture", [](auto& g) { g.u32("llama.pooling_type", 3); }, kUnsupported,
         "is an embedding model ('llama')"},
        {"reranking model", [](auto& g) { g.u32("llama.pooling_type", 4); }, kUnsupported, "is a reranking model"},
        {"encoder and decoder", [](auto& g) { g.text("general.architecture", "t5"); }, kUnsupported,
         "is an encoder-decoder model"},
        {"image generator", [](auto& g) { g.text("general.architecture", "flux"); }, kUnsupported, "makes images"},
        {"speech model", [](auto& g) { g.text("general.architecture", "wavtokenizer-dec"); }, kUnsupported,
         "is made for speech"},
        {"control vector", [](auto& g) { g.text("general.type", "control_vector"); }, kUnsupported,
         "is a control vector"},
        {"vocabulary only", [](auto& g) { g.tensors().clear(); }, kUnsupported, "holds only a vocabulary"},
        {"mixture of experts", [](auto& g) { g.u32("llama.expert_count", 8); }, kUnsupported, "mixture of experts"},
        {"unknown tensor",
         [](auto& g) {
             g.tensor({"blk.0.attn_output.bias", {64}, TensorType::F32, {}, {}, {}, {}});
         },
         kUnsupported, "the tensor 'blk.0.attn_output.bias', which is not known"},
        {"tensor type not built",
         [](auto& g) {
             auto* t = g.find("blk.1.ffn_up.weight");
             *t = {t->name, t->dims, TensorType::Q5_1, {}, {}, {}, {}};
         },
         kUnsupported, "'blk.1.ffn_up.weight' is of type Q5_1"},
        {"norm not F32",
         [](auto& g) {
             auto* t = g.find("blk.0.ffn_norm.weight");
             *t = {t->name, t->dims, TensorType::F16, {}, {}, {}, {}};
         },
         kUnsupported, "'blk.0.ffn_norm.weight' is of type F16"},
        {"yarn", [](auto& g) { g.text("llama.rope.scaling.type", "yarn"); }, kUnsupported,
         "scales positions by 'yarn'"},
    };
}

std::vector<Flaw> flawsOfNumbers() {
    const auto u32 = [](const char* key, std::uint32_t value) { return [=](GgufWriter& g) { g.u32(key, value); }; };
    const auto f32 = [](const char* key, float value) { return [=](GgufWriter& g) { g.f32(key, value); }; };
    const auto without = [](const char* key) { return [=](GgufWriter& g) { g.without(key); }; };
    const float infinity = std::numeric_limits<float>::infinity();
    return {
        {"no head_count", without("llama.attention.head_count"), kCorrupt, "'llama.attention.head_count' is missing"},
        {"no block_count", without("llama.block_count"), kCorrupt, "'llama.block_count' is missing"},
        {"no embedding_length", without("llama.embedding_length"), kCorrupt, "'llama.embedding_length' is missing"},
        {"no context_length", without("llama.context_length"), kCorrupt, "'llama.context_length' is missing"},
        {"no feed_forward_length", without("llama.feed_forward_length"), kCorrupt, "feed_forward_length' is missing"},
        {"no epsilon", without("llama.attention.layer_norm_rms_epsilon"), kCorrupt, "rms_epsilon' is missing"},
        {"head_count 0", u32("llama.attention.head_count", 0), kCorrupt, "'llama.attention.head_count' is 0"},
        {"head_count_kv 0", u32("llama.attention.head_count_kv", 0), kCorrupt, "head_count_kv' is 0"},
        {"heads no multiple of kv heads", u32("llama.attention.head_count_kv", 3), kCorrupt,
         "3 key/value heads do not"},
        {"embedding no multiple of heads", u32("llama.attention.head_count", 3), kCorrupt,
         "no multiple of the 3 attention heads"},
        {"block_count beyond the tensors", u32("llama.block_count", 3), kCorrupt,
         "the tensor 'blk.2.attn_norm.weight' is missing"},
        {"block_count absurd", u32("llama.block_count", 4'000'000'000u), kCorrupt, "must be from 1 to 1024"},
        {"block_count negative", [](auto& g) { g.i32("llama.block_count", -1); }, kCorrupt, "is -1"},
        {"block_count a text", [](auto& g) { g.text("llama.block_count", "2"); }, kCorrupt, "is not a whole number"},
        {"block_count beyond int64", [](auto& g) { g.u64("llama.block_count", ~0ull); }, kCorrupt,
         "not a whole number"},
        {"fewer blocks than tensors", u32("llama.block_count", 1), kUnsupported, "the tensor 'blk.1.attn_norm.weight'"},
        {"heads for another number of layers",
         [](auto& g) {
             g.u32s("llama.attention.head_count", {2, 2, 2});
         },
         kCorrupt, "has 3 entries for 2 layers"},
        {"heads a list of texts",
         [](auto& g) {
             g.texts("llama.attention.head_count", {"2", "2"});
         },
         kCorrupt, "does not hold whole numbers"},
        {"a layer without heads",
         [](auto& g) {
             g.u32s("llama.attention.head_count", {2, 0});
         },
         kCorrupt, "'llama.attention.head_count' is 0"},
        {"rope dimensions odd", u32("llama.rope.dimension_count", 31), kCorrupt, "it must be even"},
        {"rope dimensions above the head", u32("llama.rope.dimension_count", 34), kCorrupt, "at most the head size 32"},
        {"rope base infinite", f32("llama.rope.freq_base", infinity), kCorrupt,
         "'llama.rope.freq_base' is not a finite"},
        {"rope base negative", f32("llama.rope.freq_base", -1), kCorrupt, "'llama.rope.freq_base' is not a finite"},
        {"rope factor not a number", f32("llama.rope.scaling.factor", std::nanf("")), kCorrupt,
         "scaling.factor' is not"},
        {"epsilon not a number", f32("llama.attention.layer_norm_rms_epsilon", std::nanf("")), kCorrupt,
         "epsilon' is not"},
        {"epsilon 0", f32("llama.attention.layer_norm_rms_epsilon", 0), kCorrupt, "rms_epsilon' is not a finite"},
        {"key length 0", u32("llama.attention.key_length", 0), kCorrupt, "'llama.attention.key_length' is 0"},
    };
}

std::vector<Flaw> flawsOfTensors() {
    const auto gone = [](const char* name) { return [=](GgufWriter& g) { g.withoutTensor(name); }; };
    return {
        {"no embedding", gone("token_embd.weight"), kCorrupt, "the tensor 'token_embd.weight' is missing"},
        {"no final norm", gone("output_norm.weight"), kCorrupt, "the tensor 'output_norm.weight' is missing"},
        {"no attn_v", gone("blk.1.attn_v.weight"), kCorrupt, "the tensor 'blk.1.attn_v.weight' is missing"},
        {"matrix on its side",
         [](auto& g) {
             auto* t = g.find("blk.0.ffn_down.weight");
             std::swap(t->dims[0], t->dims[1]);
         },
         kCorrupt, "'blk.0.ffn_down.weight' has the shape [64, 96], expected [96, 64]"},
        {"matrix with a third dimension",
         [](auto& g) {
             g.find("blk.0.attn_q.weight")->dims = {64, 32, 2};
         },
         kCorrupt, "has the shape [64, 32, 2], expected [64, 64]"},
        {"token list shorter than the embedding",
         [](auto& g) { g.texts("tokenizer.ggml.tokens", std::vector<std::string>(287, "t")); }, kCorrupt,
         "its vocabulary has 287 tokens, but 'token_embd.weight' has 288 rows"},
        {"neither token list nor vocab_size", [](auto& g) { g.without("tokenizer.ggml.tokens"); }, kCorrupt,
         "'llama.vocab_size' is missing"},
        {"rope factors of another size",
         [](auto& g) {
             g.tensor({"rope_freqs.weight", {15}, TensorType::F32, {}, {}, {}, {}});
         },
         kCorrupt, "'rope_freqs.weight' has the shape [15], expected [16]"},
        {"rope factor 0",
         [](auto& g) {
             g.tensor({"rope_freqs.weight", {16}, TensorType::F32, {}, {}, {}, {}});
         },
         kCorrupt, "holds a factor that is not a finite number above 0"},
        {"biases in some layers only",
         [](auto& g) {
             g.tensor({"blk.0.attn_q.bias", {64}, TensorType::F32, {}, {}, {}, {}});
         },
         kCorrupt, "the tensor 'blk.0.attn_k.bias' is missing"},
    };
}

} // namespace

class TestModelConfig : public QObject {
    Q_OBJECT
private slots:
    void init() { m_path = m_dir.file("model.gguf"); }

    void referenceModels_data() {
        QTest::addColumn<QString>("file");
        for (const char* name : {"llama-f32", "llama-f16", "llama-bf16", "llama-q8_0", "llama-q4_0", "llama-q4_1",
                                 "llama-gqa", "llama-mha", "llama-mqa", "llama-rope-factors", "llama-rope-linear",
                                 "llama-spm", "llama-split", "gemma3-f32", "gemma3-q8_0"})
            QTest::newRow(name) << QString(name);
    }

    void referenceModels() {
        QFETCH(QString, file);
        const std::string name = file.toStdString();
        std::ifstream stream(kModels + name + ".json");
        const auto facts = nlohmann::json::parse(stream);
        const auto path = kModels + facts["files"][0]["name"].get<std::string>();
        const auto config = configOf(path);
        QVERIFY2(config, config ? "" : config.error().message.c_str());
        QCOMPARE(config->vocab, facts["n_vocab"].get<std::int32_t>());
        QCOMPARE(config->layerCount(), facts["n_layer"].get<std::int32_t>());
        QCOMPARE(config->contextLength, std::int64_t(2048));
        const auto summary = inspectModel(path);
        QVERIFY(summary && summary->runs);
        QVERIFY(kvShapeFromMetadata(ModelFile::open(path)->metadata()) == kvShape(*config));
        for (const auto& [type, count] : facts["tensor_types"].items())
            QCOMPARE(summary->tensors.at(type).count, count.get<std::uint64_t>());
    }

    void whatTheVariantsAreAbout() {
        QCOMPARE(configOf(kModels + "llama-rope-linear.gguf")->rope.linearFactor, 4.0);
        const auto factors = configOf(kModels + "llama-rope-factors.gguf");
        QCOMPARE(factors->rope.freqFactors.size(), std::size_t(16));
        QCOMPARE(factors->rope.base, 500000.0);
        // heads x head size is not the embedding size here
        QVERIFY(factors->layers[0].heads * factors->headDimK != factors->hidden);
        QVERIFY(configOf(kModels + "llama-gqa.gguf")->tiedOutput);
        QVERIFY(!configOf(kModels + "llama-f32.gguf")->tiedOutput);
        QCOMPARE(std::string(configOf(kModels + "llama-gqa.gguf")->outputTensor()), std::string("token_embd.weight"));
        QCOMPARE(configOf(kModels + "llama-mqa.gguf")->layers[0].kvHeads, 1);
        QCOMPARE(configOf(kModels + "llama-f32.gguf")->rmsEpsilon, 0.002f);
    }

    void perLayerNumbersAreAccepted() {
        // Two layers of different width: 2 and 4 heads of 32, feed-forward 96 and 64.
        GgufWriter writer = test::tinyLlama();
        writer.u32s("llama.attention.head_count", {2, 4}).u32s("llama.attention.head_count_kv", {1, 2});
        writer.u32s("llama.feed_forward_length", {96, 64}).u32("llama.attention.key_length", 32);
        writer.u32("llama.attention.value_length", 32);
        const auto resize = [&](const char* name, std::vector<std::int64_t> dims) {
            *writer.find(name) = {name, std::move(dims), TensorType::F32, {}, {}, {}, {}};
        };
        resize("blk.1.attn_q.weight", {64, 128});
        resize("blk.1.attn_k.weight", {64, 64});
        resize("blk.1.attn_v.weight", {64, 64});
        resize("blk.1.attn_output.weight", {128, 64});
        resize("blk.1.ffn_gate.weight", {64, 64});
        resize("blk.1.ffn_up.weight", {64, 64});
        resize("blk.1.ffn_down.weight", {64, 64});
        QVERIFY(writer.write(m_path));
        const auto config = configOf(m_path);
        QVERIFY2(config, config ? "" : config.error().message.c_str());
        QCOMPARE(config->layers[1].heads, 4);
        QCOMPARE(config->layers[1].kvHeads, 2);
        QCOMPARE(config->layers[1].feedForward, 64);
        QCOMPARE(*kvBytesPerToken(kvShape(*config), TensorType::F16, TensorType::F16), std::uint64_t(3 * 2 * 32 * 2));
        const auto json = nlohmann::json::parse(*inspectJson(m_path));
        QVERIFY(json["heads"] == nlohmann::json({2, 4}));
    }

    void flawIsRefusedByName_data() {
        QTest::addColumn<int>("list");
        QTest::addColumn<int>("index");
        const auto lists = {flawsOfKind(), flawsOfNumbers(), flawsOfTensors()};
        int list = 0;
        for (const auto& flaws : lists) {
            for (std::size_t i = 0; i < flaws.size(); ++i)
                QTest::newRow(flaws[i].name) << list << static_cast<int>(i);
            ++list;
        }
    }

    void flawIsRefusedByName() {
        QFETCH(int, list);
        QFETCH(int, index);
        const auto flaws = list == 0 ? flawsOfKind() : list == 1 ? flawsOfNumbers() : flawsOfTensors();
        const Flaw& flaw = flaws[static_cast<std::size_t>(index)];
        GgufWriter writer = test::tinyLlama();
        flaw.spoil(writer);
        QVERIFY(writer.write(m_path));
        const auto file = ModelFile::open(m_path);
        QVERIFY2(file, file ? "" : file.error().message.c_str()); // the flaw is in the model, not in the file
        const auto config = readModelConfig(*file);
        QVERIFY2(!config, "a flawed model was accepted");
        const QString message = QString::fromStdString(config.error().message);
        QVERIFY2(message.contains(flaw.sentence), qPrintable(message));
        QVERIFY2(message.endsWith('.'), qPrintable(message));
        QCOMPARE(static_cast<int>(config.error().code), static_cast<int>(flaw.code));
        if (flaw.code == kUnsupported)
            QVERIFY2(!message.contains("damaged"), qPrintable(message));
        // The picker shows the same sentence, and inspecting never fails on a readable file.
        const auto summary = inspectModel(m_path);
        QVERIFY(summary && !summary->runs);
        QCOMPARE(summary->problems.front(), config.error().message);
        QVERIFY(nlohmann::json::accept(*inspectJson(m_path)));
    }

    void everyBuiltTypeIsAccepted() {
        for (TensorType type : {TensorType::F32, TensorType::F16, TensorType::BF16, TensorType::Q8_0, TensorType::Q4_0,
                                TensorType::Q4_1}) {
            QVERIFY(test::tinyLlama({.tied = false, .type = type}).write(m_path));
            const auto config = configOf(m_path);
            QVERIFY2(config, config ? "" : config.error().message.c_str());
            QCOMPARE(inspectModel(m_path)->quantization, std::string(tensorTypeName(type)));
        }
    }

    void aLabelIsTakenFromTheFileWhereItsTensorsBearItOut() {
        GgufWriter writer;
        writer.text("general.architecture", "llama").u32("general.file_type", 15);
        writer.tensor({"a", {256, 64}, TensorType::Q8_0, {}, {}, {}, {}});
        QVERIFY(writer.write(m_path));
        QCOMPARE(inspectModel(m_path)->quantization, std::string("Q8_0")); // says Q4_K_M, holds none of it
        writer.tensor({"b", {256}, TensorType::Q4_K, {}, {}, {}, {}});
        QVERIFY(writer.write(m_path));
        QCOMPARE(inspectModel(m_path)->quantization, std::string("Q4_K_M"));
    }

    void kvBytesAreThoseOfTheTable() {
        const auto bytes = [](std::int64_t layers, std::int64_t kvHeads, std::int64_t headDim, TensorType k,
                              TensorType v) {
            const KvShape shape(static_cast<std::size_t>(layers), KvLayerShape{kvHeads, headDim, headDim});
            return *kvBytesPerToken(shape, k, v);
        };
        constexpr auto f16 = TensorType::F16, q8 = TensorType::Q8_0, q4 = TensorType::Q4_0;
        QCOMPARE(bytes(30, 3, 64, f16, f16), std::uint64_t(23'040)); // SmolLM2-135M
        QCOMPARE(bytes(30, 3, 64, q8, q8), std::uint64_t(12'240));
        QCOMPARE(bytes(30, 3, 64, q8, q4), std::uint64_t(9'360));
        QCOMPARE(bytes(30, 3, 64, q4, q4), std::uint64_t(6'480));
        QCOMPARE(bytes(32, 8, 128, f16, f16), std::uint64_t(131'072)); // Llama-3.1-8B
        QCOMPARE(bytes(28, 8, 128, f16, f16), std::uint64_t(114'688)); // Qwen3-0.6B
        // Latent attention: 576 values a layer (V2-Lite, 27 layers), nothing for V.
        QCOMPARE(*kvBytesPerToken(KvShape(27, KvLayerShape{1, 576, 0}), f16, f16), std::uint64_t(31'104));
        QCOMPARE(*kvBytesPerToken(KvShape(61, KvLayerShape{1, 576, 0}), f16, f16), std::uint64_t(70'272));
        KvShape gemma(18, KvLayerShape{1, 256, 256, 512}); // of 270 million parameters: every sixth keeps everything
        gemma[5].window = gemma[11].window = gemma[17].window = 0;
        QCOMPARE(*kvBytesPerToken(gemma, f16, f16), std::uint64_t(3'072));
        QCOMPARE(*kvBytesPerToken(KvShape(18, KvLayerShape{1, 256, 256, 512}), f16, f16), std::uint64_t(18'432));
        QVERIFY(!kvBytesPerToken(KvShape(2, KvLayerShape{1, 40, 40}), q8, q8)); // 40 is no multiple of 32
        QVERIFY(!kvBytesPerToken({}, f16, f16));
    }

    void tokensThatFitAreWholeBlocks() {
        QCOMPARE(tokensThatFit(23'040 * 100, 23'040, 16), std::uint64_t(96));
        QCOMPARE(tokensThatFit(23'040 * 16, 23'040, 16), std::uint64_t(16));
        QCOMPARE(tokensThatFit(23'040 * 16 - 1, 23'040, 16), std::uint64_t(0));
        QCOMPARE(tokensThatFit(1 << 20, 0, 16), std::uint64_t(0));
        QCOMPARE(tokensThatFit(1 << 20, ~0ull, 16), std::uint64_t(0));
    }

    void inspectDescribesWhatIsNotBuilt() {
        GgufWriter writer;
        writer.text("general.architecture", "deepseek2").u32("deepseek2.block_count", 27);
        writer.u32("deepseek2.attention.head_count", 16).u32("deepseek2.attention.head_count_kv", 16);
        writer.u32("deepseek2.embedding_length", 2048).u32("deepseek2.context_length", 163'840);
        writer.u32("deepseek2.attention.key_length", 192).u32("deepseek2.attention.value_length", 128);
        writer.u32("deepseek2.attention.kv_lora_rank", 512).u32("deepseek2.rope.dimension_count", 64);
        writer.text("general.name", "not \xFF utf-8");
        writer.tensor({"token_embd.weight", {256, 4}, TensorType::Q4_K, {}, {}, {}, {}});
        QVERIFY(writer.write(m_path));
        const auto json = nlohmann::json::parse(*inspectJson(m_path));
        QCOMPARE(json["architecture"].get<std::string>(), std::string("deepseek2"));
        QCOMPARE(json["layers"].get<int>(), 27);
        QCOMPARE(json["heads"].get<int>(), 16);
        QCOMPARE(json["head_dim"].get<int>(), 192);
        QCOMPARE(json["context_length"].get<int>(), 163'840);
        QCOMPARE(json["kv_bytes_per_token"]["f16"].get<int>(), 31'104);
        QCOMPARE(json["tensors"]["Q4_K"]["bytes"].get<int>(), 576);
        QCOMPARE(json["tensors"]["Q4_K"]["count"].get<int>(), 1);
        QVERIFY(json["chat_template"].is_null());
        QCOMPARE(json["runs"].get<bool>(), false);
        QCOMPARE(json["problems"].size(), std::size_t(1));
    }

    void inspectDescribesAVocabulary() {
        GgufWriter writer;
        writer.text("general.architecture", "llama");
        test::addTinyVocabulary(writer);
        QVERIFY(writer.write(m_path));
        const auto json = nlohmann::json::parse(*inspectJson(m_path));
        QCOMPARE(json["tokenizer"].get<std::string>(), std::string("gpt2"));
        QCOMPARE(json["pre_tokenizer"].get<std::string>(), std::string("gpt-2"));
        QCOMPARE(json["vocab"].get<int>(), 288);
        QVERIFY(json["layers"].is_null());
        QVERIFY(json["kv_bytes_per_token"].empty());
        QVERIFY(json["tensors"].empty());
        QVERIFY(json["problems"][0].get<std::string>().find("holds only a vocabulary") != std::string::npos);
    }

    void inspectSaysWhatLoadingSaysOfTheTokenizer_data() {
        QTest::addColumn<QString>("flaw");
        QTest::addColumn<bool>("runs");
        QTest::addColumn<QString>("part");
        QTest::newRow("bos") << "bos" << false << "tokenizer.ggml.bos_token_id is 99999, outside the vocabulary";
        QTest::newRow("merges") << "merges" << false << "tokenizer.ggml.merges is missing";
        QTest::newRow("tokens") << "tokens" << false << "tokenizer.ggml.tokens is missing";
        QTest::newRow("kind") << "kind" << false << "The tokenizer kind \"odd\"";
        QTest::newRow("splitting") << "splitting" << true << "odd"; // runs from ids
        QTest::newRow("template") << "template" << true << "The chat template cannot be used: line 2: ";
        QTest::newRow("no template") << "no template" << true << "no chat template";
        QTest::newRow("empty template") << "empty template" << true << "no chat template";
    }
    void inspectSaysWhatLoadingSaysOfTheTokenizer() {
        QFETCH(QString, flaw);
        QFETCH(bool, runs);
        QFETCH(QString, part);
        GgufWriter writer = test::tinyLlama();
        writer.u32("llama.vocab_size", 288); // known without the tokens
        if (flaw == "bos")
            writer.u32("tokenizer.ggml.bos_token_id", 99'999);
        else if (flaw == "kind")
            writer.text("tokenizer.ggml.model", "odd");
        else if (flaw == "splitting")
            writer.text("tokenizer.ggml.pre", "odd");
        else if (flaw.endsWith("template"))
            writer.text("tokenizer.chat_template", flaw == "template" ? "a\n{% if %}" : "");
        else
            writer.without("tokenizer.ggml." + flaw.toStdString());
        if (flaw == "no template")
            writer.without("tokenizer.chat_template");
        QVERIFY(writer.write(m_path));
        const auto summary = inspectModelAndText(m_path);
        QVERIFY2(summary, summary ? "" : summary.error().message.c_str());
        QCOMPARE(summary->runs, runs);
        QCOMPARE(summary->problems.size(), std::size_t(1));
        const QString problem = QString::fromStdString(summary->problems.front());
        QVERIFY2(problem.contains(part), qPrintable(problem));
        if (runs)
            return;
        const auto loaded = ModelFile::open(m_path).and_then(
            [](const ModelFile& file) { return vocabularyFromGguf(file.metadata()).and_then(Tokenizer::create); });
        QVERIFY(!loaded);
        QCOMPARE(summary->problems.front(), loaded.error().message);
    }

    void inspectOfAHostileNumberStaysFinite() {
        for (std::uint32_t layers : {0u, 5'000u, 4'000'000'000u}) {
            GgufWriter writer = test::tinyLlama();
            writer.u32("llama.block_count", layers);
            QVERIFY(writer.write(m_path));
            const auto summary = inspectModel(m_path);
            QVERIFY(summary);
            QVERIFY(summary->kv.empty());
            QVERIFY(kvBytesByType(summary->kv).empty());
        }
    }

    void inspectOfTheDefaultModel() {
        const auto path = test::defaultModel();
        if (!path)
            QSKIP(test::kNoDefaultModel);
        const auto json = nlohmann::json::parse(*inspectJson(*path));
        QCOMPARE(json["architecture"].get<std::string>(), std::string("llama"));
        QCOMPARE(json["layers"].get<int>(), 30);
        QCOMPARE(json["heads"].get<int>(), 9);
        QCOMPARE(json["kv_heads"].get<int>(), 3);
        QCOMPARE(json["head_dim"].get<int>(), 64);
        QCOMPARE(json["context_length"].get<int>(), 8192);
        QCOMPARE(json["kv_bytes_per_token"]["f16"].get<int>(), 23'040);
        QCOMPARE(json["tensors"]["Q4_1"]["count"].get<int>(), 210);
        QCOMPARE(json["tensors"]["Q8_0"]["bytes"].get<int>(), 30'081'024);
        QVERIFY(json["problems"].empty());
        QVERIFY(json["runs"].get<bool>());
    }

private:
    test::TempDir m_dir;
    std::string m_path;
};

QTEST_APPLESS_MAIN(TestModelConfig)
#include "test_model_config.moc"
