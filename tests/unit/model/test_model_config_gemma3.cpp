// SPDX-License-Identifier: GPL-3.0-or-later
//
// What makes a gemma3 file one: windows and their pattern, two rope bases, norms; and what is refused, in which words.
#include <QTest>

#include "engine/model/kv_size.h"
#include "engine/model/model_config.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/temp_dir.h"

using namespace kvscope;
using namespace kvscope::model;
using kvscope::test::GgufWriter;

namespace {

constexpr std::int64_t kHidden = 48, kHeadDim = 32, kFeedForward = 64, kTokens = 40;

/// Seven layers of weights that are all zero: complete, as the reader sees it.
GgufWriter gemma3() {
    GgufWriter out;
    out.text("general.architecture", "gemma3").u32("gemma3.context_length", 2048).u32("gemma3.block_count", 7);
    out.u32("gemma3.embedding_length", kHidden).u32("gemma3.feed_forward_length", kFeedForward);
    out.u32("gemma3.attention.head_count", 2).u32("gemma3.attention.head_count_kv", 1);
    out.u32("gemma3.attention.key_length", kHeadDim).u32("gemma3.attention.value_length", kHeadDim);
    out.f32("gemma3.attention.layer_norm_rms_epsilon", 1e-6f).f32("gemma3.rope.freq_base", 1e6f);
    out.u32("gemma3.attention.sliding_window", 16).u32("gemma3.vocab_size", kTokens);
    const auto tensor = [&](const std::string& name, std::vector<std::int64_t> dims) {
        out.tensor({name, std::move(dims), TensorType::F32, {}, {}, {}, {}});
    };
    tensor("token_embd.weight", {kHidden, kTokens});
    tensor("output_norm.weight", {kHidden});
    for (int layer = 0; layer < 7; ++layer) {
        const std::string block = "blk." + std::to_string(layer) + ".";
        for (const char* norm : {"attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"})
            tensor(block + norm + ".weight", {kHidden});
        for (const char* norm : {"attn_q_norm", "attn_k_norm"})
            tensor(block + norm + ".weight", {kHeadDim});
        tensor(block + "attn_q.weight", {kHidden, 2 * kHeadDim});
        tensor(block + "attn_k.weight", {kHidden, kHeadDim});
        tensor(block + "attn_v.weight", {kHidden, kHeadDim});
        tensor(block + "attn_output.weight", {2 * kHeadDim, kHidden});
        tensor(block + "ffn_gate.weight", {kHidden, kFeedForward});
        tensor(block + "ffn_up.weight", {kHidden, kFeedForward});
        tensor(block + "ffn_down.weight", {kFeedForward, kHidden});
    }
    return out;
}

struct Flaw {
    const char* name;
    std::function<void(GgufWriter&)> spoil;
    ErrorCode code;
    const char* sentence; ///< must stand in the message
};

std::vector<Flaw> flaws() {
    constexpr auto kCorrupt = ErrorCode::Corrupt, kUnsupported = ErrorCode::Unsupported;
    return {
        {"no window", [](auto& g) { g.without("gemma3.attention.sliding_window"); }, kCorrupt,
         "gemma3.attention.sliding_window"},
        {"window 0", [](auto& g) { g.u32("gemma3.attention.sliding_window", 0); }, kCorrupt,
         "'gemma3.attention.sliding_window' is 0; it must be from 1"},
        {"window as text", [](auto& g) { g.text("gemma3.attention.sliding_window", "16"); }, kCorrupt,
         "gemma3.attention.sliding_window"},
        {"period 0", [](auto& g) { g.u32("gemma3.attention.sliding_window_pattern", 0); }, kCorrupt,
         "'gemma3.attention.sliding_window_pattern' is 0"},
        {"pattern too short",
         [](auto& g) {
             g.booleans("gemma3.attention.sliding_window_pattern", {1, 0});
         },
         kCorrupt, "does not hold one yes or no for each of the 7 layers"},
        {"pattern of numbers",
         [](auto& g) {
             g.u32s("gemma3.attention.sliding_window_pattern", {1, 1, 1, 1, 1, 0, 1});
         },
         kCorrupt, "does not hold one yes or no for each of the 7 layers"},
        {"more heads than values", [](auto& g) { g.u32("gemma3.attention.head_count", 64); }, kCorrupt,
         "64 attention heads, more than the 48 values of 'gemma3.embedding_length'"},
        {"local base below 0", [](auto& g) { g.f32("gemma3.rope.freq_base_swa", -1); }, kCorrupt,
         "gemma3.rope.freq_base_swa"},
        {"rope dimensions odd", [](auto& g) { g.u32("gemma3.rope.dimension_count", 31); }, kCorrupt,
         "'gemma3.rope.dimension_count' is 31; it must be even and at most the head size 32"},
        {"yarn", [](auto& g) { g.text("gemma3.rope.scaling.type", "yarn"); }, kUnsupported,
         "scales positions by 'yarn', which this version does not build for 'gemma3' models"},
        {"soft cap", [](auto& g) { g.f32("gemma3.final_logit_softcapping", 30); }, kUnsupported,
         "limits its logits ('gemma3.final_logit_softcapping')"},
        {"experts", [](auto& g) { g.u32("gemma3.expert_count", 8); }, kUnsupported,
         "mixture of experts ('gemma3.expert_count')"},
        {"no head norm", [](auto& g) { g.withoutTensor("blk.2.attn_q_norm.weight"); }, kCorrupt,
         "the tensor 'blk.2.attn_q_norm.weight' is missing"},
        {"no post norm", [](auto& g) { g.withoutTensor("blk.6.post_ffw_norm.weight"); }, kCorrupt,
         "the tensor 'blk.6.post_ffw_norm.weight' is missing"},
        {"head norm of the wrong width",
         [](auto& g) {
             *g.find("blk.0.attn_k_norm.weight") = {
                 "blk.0.attn_k_norm.weight", {kHidden}, TensorType::F32, {}, {}, {}, {}};
         },
         kCorrupt, "the tensor 'blk.0.attn_k_norm.weight' has the shape"},
        {"bias",
         [](auto& g) {
             g.tensor({"blk.0.attn_q.bias", {2 * kHeadDim}, TensorType::F32, {}, {}, {}, {}});
         },
         kUnsupported, "the tensor 'blk.0.attn_q.bias', which is not known in 'gemma3' models"},
    };
}

} // namespace

class TestModelConfigGemma3 : public QObject {
    Q_OBJECT
private slots:
    void everySixthLayerIsGlobalUnlessTheFileSaysOtherwise() {
        const auto config = read(gemma3());
        QVERIFY2(config, config ? "" : config.error().message.c_str());
        QCOMPARE(windows(*config), (std::vector<int>{16, 16, 16, 16, 16, 0, 16}));
        QCOMPARE(config->rope.base, 1e6);
        QCOMPARE(config->localRope.base, 10000.0);
        QCOMPARE(config->localRope.dims, 32);
        QVERIFY(config->tiedOutput);

        GgufWriter third = gemma3();
        third.u32("gemma3.attention.sliding_window_pattern", 3).f32("gemma3.rope.freq_base_swa", 5000);
        third.text("gemma3.rope.scaling.type", "linear").f32("gemma3.rope.scaling.factor", 8);
        const auto scaled = read(third);
        QCOMPARE(windows(*scaled), (std::vector<int>{16, 16, 0, 16, 16, 0, 16}));
        QCOMPARE(scaled->localRope.base, 5000.0);
        QCOMPARE(scaled->rope.linearFactor, 8.0); // of the global layers only
        QCOMPARE(scaled->localRope.linearFactor, 1.0);

        GgufWriter one = gemma3();
        QCOMPARE(windows(*read(one.u32("gemma3.attention.sliding_window_pattern", 1))),
                 (std::vector<int>{0, 0, 0, 0, 0, 0, 0}));
        GgufWriter listed = gemma3();
        QCOMPARE(windows(*read(listed.booleans("gemma3.attention.sliding_window_pattern", {0, 1, 1, 0, 1, 0, 0}))),
                 (std::vector<int>{0, 16, 16, 0, 16, 0, 0}));
    }

    void theMetadataAloneSaysTheSame() {
        GgufWriter listed = gemma3();
        listed.booleans("gemma3.attention.sliding_window_pattern", {0, 1, 1, 0, 1, 0, 0});
        GgufWriter third = gemma3();
        third.u32("gemma3.attention.sliding_window_pattern", 3);
        for (const GgufWriter& writer : {gemma3(), listed, third}) {
            const auto config = read(writer);
            QVERIFY(kvShapeFromMetadata(ModelFile::open(m_folder.file("gemma3.gguf"))->metadata()) == kvShape(*config));
        }
    }

    void flawIsRefusedByName_data() {
        QTest::addColumn<int>("index");
        const auto all = flaws();
        for (std::size_t i = 0; i < all.size(); ++i)
            QTest::newRow(all[i].name) << static_cast<int>(i);
    }
    void flawIsRefusedByName() {
        QFETCH(int, index);
        const Flaw flaw = flaws()[static_cast<std::size_t>(index)];
        GgufWriter writer = gemma3();
        flaw.spoil(writer);
        const auto config = read(writer);
        QVERIFY(!config);
        QVERIFY2(config.error().message.find(flaw.sentence) != std::string::npos, config.error().message.c_str());
        QCOMPARE(config.error().code, flaw.code);
    }

private:
    static std::vector<int> windows(const ModelConfig& config) {
        std::vector<int> out;
        for (const LayerConfig& layer : config.layers)
            out.push_back(layer.window);
        return out;
    }
    Result<ModelConfig> read(const GgufWriter& writer) {
        const std::string path = m_folder.file("gemma3.gguf");
        if (!writer.write(path))
            qFatal("The model file could not be written.");
        const auto file = ModelFile::open(path);
        return file ? readModelConfig(*file) : Result<ModelConfig>(tl::unexpected(file.error()));
    }

    test::TempDir m_folder;
};

QTEST_APPLESS_MAIN(TestModelConfigGemma3)
#include "test_model_config_gemma3.moc"
