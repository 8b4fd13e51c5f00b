// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTest>
#include <cmath>

#include "app/bench/model_shape.h"
#include "app/bench/roofline.h"

using namespace kvscope;
using namespace kvscope::bench;

namespace {

bool near(double a, double b, double relative = 1e-12) {
    return std::fabs(a - b) <= relative * std::fabs(b);
}

KvRows rows(std::int64_t headDim) {
    return {{{2, headDim, headDim}, {2, headDim, headDim}}, 0};
}

double gain(std::int64_t headDim, const char* form, std::int32_t block) {
    const auto bytes = kvBlockBytes(rows(headDim), *kernels::kvFormatByName(form), block);
    return static_cast<double>(plainBlockBytes(rows(headDim), block)) / static_cast<double>(bytes->sealed);
}

} // namespace

class TestBenchRoofline : public QObject {
    Q_OBJECT
private slots:
    void presetsHaveTheTablesBytesPerToken_data() {
        QTest::addColumn<int>("f16");
        // From the table of configurations; 2 bytes a value.
        const std::vector<std::pair<const char*, int>> table{{"smollm2-135m", 23040},
                                                             {"qwen2.5-0.5b", 12288},
                                                             {"gemma3-270m", 18432},
                                                             {"tinyllama-1.1b", 22528},
                                                             {"qwen3-0.6b", 114688},
                                                             {"r1-distill-qwen-1.5b", 28672},
                                                             {"r1-distill-qwen-7b", 57344},
                                                             {"llama-3.1-8b", 131072},
                                                             {"r1-distill-llama-8b", 131072},
                                                             {"r1-distill-qwen-14b", 196608},
                                                             {"r1-distill-qwen-32b", 262144},
                                                             {"r1-distill-llama-70b", 327680},
                                                             {"qwen3-8b", 147456},
                                                             {"qwen3-30b-a3b", 98304},
                                                             {"deepseek-v2-lite", 31104},
                                                             {"deepseek-v2", 69120},
                                                             {"deepseek-v3", 70272}};
        for (const auto& [name, bytes] : table)
            QTest::newRow(name) << bytes;
    }
    void presetsHaveTheTablesBytesPerToken() {
        QFETCH(int, f16);
        const auto shape = modelPreset(QTest::currentDataTag());
        QVERIFY(shape);
        QCOMPARE(plainBlockBytes(shape->kvRows(), 16), static_cast<std::uint64_t>(16 * f16));
        QCOMPARE(kvBlockBytes(shape->kvRows(), {}, 16)->sealed, static_cast<std::uint64_t>(16 * f16));
    }

    void presetsHaveAboutTheirNamesParameters_data() {
        QTest::addColumn<double>("billions");
        QTest::newRow("smollm2-135m") << 0.1345;
        QTest::newRow("r1-distill-qwen-7b") << 7.615;
        QTest::newRow("llama-3.1-8b") << 8.03;
        QTest::newRow("r1-distill-llama-70b") << 70.55;
        QTest::newRow("qwen3-30b-a3b") << 30.5;
        QTest::newRow("deepseek-v2-lite") << 15.7;
        QTest::newRow("deepseek-v3") << 671.0;
    }
    void presetsHaveAboutTheirNamesParameters() {
        QFETCH(double, billions);
        const auto shape = modelPreset(QTest::currentDataTag());
        QVERIFY(shape);
        QVERIFY2(near(shape->parameters(), billions * 1e9, 0.01), qPrintable(QString::number(shape->parameters())));
    }

    void poolGainsAreThoseOfTheContract() {
        QVERIFY(near(gain(64, "fp8", 16), 2.0));
        QVERIFY(near(gain(64, "int8", 16), 256.0 / 140)); // 1.83
        QVERIFY(near(gain(64, "int8", 32), 256.0 / 136)); // 1.88
        QVERIFY(near(gain(64, "k8v4", 16), 256.0 / 104)); // 2.46
        QVERIFY(near(gain(128, "k8v4", 32), 512.0 / 208));
        QVERIFY(near(gain(64, "f16", 8), 1.0));
        QVERIFY(near(gain(64, "bf16", 8), 1.0));
    }

    void latentRowsKeepTheirRotatedPart() {
        const KvRows latent{{{1, 576, 0}}, 64};
        const auto fp8 = kvBlockBytes(latent, *kernels::kvFormatByName("fp8"), 16);
        QCOMPARE(fp8->sealed, std::uint64_t(16 * (512 + 128)));
        QCOMPARE(fp8->tail, std::uint64_t(16 * 1024)); // the rotated part is 16-bit where it lies
        const auto mixed = kvBlockBytes(latent, *kernels::kvFormatByName("k8v4"), 16);
        QVERIFY(!mixed && mixed.error().code == ErrorCode::Unsupported);
        QVERIFY(!kvBlockBytes(latent, *kernels::kvFormatByName("int4"), 32));
    }

    void onlyQuantizedFormsHaveTails() {
        QCOMPARE(kvBlockBytes(rows(64), {}, 16)->tail, std::uint64_t(0));
        for (const char* name : {"fp8", "int8", "k8v4", "int4"})
            QCOMPARE(kvBlockBytes(rows(64), *kernels::kvFormatByName(name), 32)->tail, plainBlockBytes(rows(64), 32));
        QVERIFY(!kvBlockBytes(rows(64), *kernels::kvFormatByName("int4"), 8)); // as the layout says
    }

    void formsHaveNames() {
        for (const char* name : {"f16", "bf16", "fp8", "int8", "int4", "k8v4"})
            QCOMPARE(kvFormatName(*kernels::kvFormatByName(name)), std::string(name));
        kernels::KvFormat mixed;
        mixed.keys = kernels::KvDType::Fp8E4M3;
        mixed.values = kernels::KvDType::Int8;
        QCOMPARE(kvFormatName(mixed), std::string("fp8_e4m3/int8"));
    }

    /// Every part by hand, for one step of a 7 B model on an A100.
    void aStepCostsWhatAHandCalculationSays() {
        const auto shape = modelPreset("r1-distill-qwen-7b");
        const Device device = *knownDevice("A100-80GB");
        QVERIFY(near(device.bytesPerSecond, 1.6e12) && near(device.opsPerSecond, 170e12));
        constexpr double kWeights = 15.2e9, kToken = 57344;
        const Roofline roofline(device, {*shape, kWeights, 16 * 57344, 16 * 57344, 16});
        // A prompt's tokens 512 .. 1,023, and an answer's token 2,000.
        const StepCost cost = roofline.cost({{512, 1024, false}, {2000, 2001, true}});
        const double perLayer = 3584.0 * 128 * (28 + 4 + 4 + 28) + 3.0 * 3584 * 18944;
        const double matrixOps = 2 * (28 * perLayer * 513 + 3584.0 * 152064);
        QVERIFY(near(cost.matrixOps, matrixOps));
        QVERIFY(near(cost.matrixSeconds, matrixOps / 170e12)); // 513 tokens: the operations are the limit
        QVERIFY(cost.matrixSeconds > kWeights / 1.6e12);
        double pairs = 0; // position p attends to p + 1
        for (int p = 512; p < 1024; ++p)
            pairs += p + 1;
        const double promptOps = 4.0 * 28 * 28 * 128 * pairs, answerBytes = 2001 * kToken;
        QVERIFY(near(cost.attentionOps, promptOps + 4.0 * 28 * 28 * 128 * 2001));
        QVERIFY(near(cost.kvBytes, 1024 * kToken + answerBytes));
        QVERIFY(
            near(cost.attentionSeconds, std::max(promptOps / 170e12, 1024 * kToken / 1.6e12) + answerBytes / 1.6e12));
        QVERIFY(near(cost.launchSeconds, 28 * 9 * 2.5e-6));
        // Alone, an answer's token waits for the weights.
        QVERIFY(near(roofline.cost({{2000, 2001, true}}).matrixSeconds, kWeights / 1.6e12));
    }

    void quantizedBlocksAreReadInTheirDtypeAndTheTailIn16Bits() {
        const auto shape = modelPreset("r1-distill-qwen-7b");
        const Roofline roofline(*knownDevice("A100-80GB"), {*shape, 15.2e9, 32 * 28672, 32 * 57344, 32});
        QVERIFY(near(roofline.cost({{99, 100, true}}).kvBytes, 96 * 28672.0 + 4 * 57344.0));
    }

    void ofExpertsAStepReadsThoseThatAreUsed() {
        const auto shape = modelPreset("qwen3-30b-a3b");
        const Roofline roofline(*knownDevice("H100-80GB"), {*shape, 61e9, 1, 1, 16});
        const double experts = shape->expertParameters() / shape->parameters() * 61e9;
        QVERIFY(near(roofline.cost({{0, 1, true}}).weightBytes, 61e9 - experts * (1 - 8.0 / 128), 1e-9));
        const double one = roofline.cost({{0, 1, true}}).weightBytes,
                     many = roofline.cost({{0, 500, true}}).weightBytes;
        QVERIFY(one < many && many <= 61e9);
        QVERIFY(near(many, 61e9, 1e-6)); // all of them, with 500 tokens
    }

    void configFilesAreRead() {
        const auto dense = modelShapeFromConfig(
            R"({"num_hidden_layers":28,"hidden_size":3584,"num_attention_heads":28,"num_key_value_heads":4,
                "intermediate_size":18944,"vocab_size":152064,"max_position_embeddings":131072,
                "tie_word_embeddings":false})",
            "config.json");
        QVERIFY(dense);
        const auto preset = modelPreset("r1-distill-qwen-7b");
        QVERIFY(near(dense->parameters(), preset->parameters()));
        QCOMPARE(dense->headDim, 128);
        QCOMPARE(plainBlockBytes(dense->kvRows(), 1), std::uint64_t(57344));
        const auto latent = modelShapeFromConfig(
            R"({"num_hidden_layers":61,"hidden_size":7168,"num_attention_heads":128,"num_key_value_heads":128,
                "intermediate_size":18432,"vocab_size":129280,"max_position_embeddings":163840,"kv_lora_rank":512,
                "qk_rope_head_dim":64,"qk_nope_head_dim":128,"v_head_dim":128,"q_lora_rank":1536,
                "n_routed_experts":256,"num_experts_per_tok":8,"n_shared_experts":1,"moe_intermediate_size":2048,
                "first_k_dense_replace":3})",
            "v3.json");
        QVERIFY(latent);
        QCOMPARE(plainBlockBytes(latent->kvRows(), 1), std::uint64_t(70272));
        QVERIFY(near(latent->parameters(), modelPreset("deepseek-v3")->parameters()));
        const auto broken = modelShapeFromConfig(R"({"num_hidden_layers":28})", "b.json");
        QVERIFY(!broken && broken.error().message.find("hidden_size") != std::string::npos);
        QVERIFY(!modelShapeFromConfig("[]", "b.json"));
        QVERIFY(!modelShapeFromConfig(R"({"num_hidden_layers":-1})", "b.json"));
    }

    void unknownNamesAreAnsweredWithTheKnownOnes() {
        QVERIFY(modelPreset("gpt-5").error().message.find("r1-distill-qwen-7b") != std::string::npos);
        QVERIFY(knownDevice("TPU").error().message.find("A100-80GB") != std::string::npos);
    }
};

QTEST_APPLESS_MAIN(TestBenchRoofline)
#include "test_bench_roofline.moc"
