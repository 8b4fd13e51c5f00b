// SPDX-License-Identifier: GPL-3.0-or-later
//
// Quantized keys and values through the whole engine: in each form, answers do not depend on chunks, company, threads,
// the prefix cache, preemption or forks: bit for bit, also in layers with windows. Blocks of other sizes are other
// scales, so the size is fixed.
#include <QTest>

#include "kernels/cpu/cpu_backend.h"
#include "tests/support/exactness.h"

using namespace kvscope;
using namespace kvscope::test;

namespace {

using kernels::KvDType;
using kernels::KvFormat;

api::EngineConfig configOf(const KvFormat& format, std::int32_t blockSize = 16, const char* model = "llama-q8_0") {
    api::EngineConfig c = EngineHarness::config(std::string(KVSCOPE_TEST_DATA) + "/models/" + model + ".gguf");
    c.kvFormat = format;
    c.blockSize = blockSize;
    return c;
}

std::string label(const KvFormat& format) {
    return "K " + format.keyName() + ", V " + format.valueName();
}

} // namespace

class TestEngineKvFormats : public QObject {
    Q_OBJECT
private slots:
    void everyWayGivesTheSameBits_data() {
        QTest::addColumn<int>("keys");
        QTest::addColumn<int>("values");
        QTest::addColumn<bool>("rotation");
        QTest::addColumn<int>("isa");
        QTest::addColumn<QByteArray>("model");
        const auto row = [](KvFormat format, kernels::Isa isa, const char* model = "llama-q8_0") {
            QTest::addRow("%s, %s, %s", label(format).c_str(), kernels::isaName(isa), model)
                << static_cast<int>(format.keys) << static_cast<int>(format.values) << format.rotation
                << static_cast<int>(isa) << QByteArray(model);
        };
        for (const KvFormat& format :
             {KvFormat{KvDType::BF16, KvDType::BF16, false, 0}, KvFormat{KvDType::Fp8E4M3, KvDType::Fp8E4M3, false, 0},
              KvFormat{KvDType::Int8, KvDType::Int8, false, 0}, KvFormat{KvDType::Int4, KvDType::Int4, true, 0}})
            row(format, kernels::bestIsa());
        for (const auto isa : {kernels::Isa::Portable, kernels::Isa::Avx2, kernels::Isa::Avx512})
            if (kernels::cpuSupports(isa))
                row({KvDType::Fp8E4M3, KvDType::Int4, false, 0}, isa);
        row({KvDType::Fp8E4M3, KvDType::Int4, false, 0}, kernels::bestIsa(), "gemma3-q8_0");
    }
    void everyWayGivesTheSameBits() {
        QFETCH(int, keys);
        QFETCH(int, values);
        QFETCH(bool, rotation);
        QFETCH(int, isa);
        QFETCH(QByteArray, model);
        api::EngineConfig base =
            configOf({static_cast<KvDType>(keys), static_cast<KvDType>(values), rotation, 0}, 16, model.constData());
        base.isa = static_cast<kernels::Isa>(isa);
        std::vector<Way> ways = allWays(base, 21);
        std::erase_if(ways, [&](const Way& way) { return way.config.blockSize != base.blockSize; });
        for (const int chunk : {1, 7, 48}) { // alone, the tail of a chunk is nobody's company
            Way way;
            way.name = "alone in chunks of " + std::to_string(chunk);
            way.config = base;
            way.config.maxBatchedTokens = chunk;
            ways.push_back(way);
        }
        const auto requests = exactnessRequests(exactnessPrompts(320, 300), 20);
        const std::string difference = compareWays(ways, requests);
        QVERIFY2(difference.empty(), difference.c_str());
    }

    void formsGiveOtherAnswers() {
        // A form that is not used at all would pass the test above.
        const auto prompt = exactnessPrompts(320, 300).back();
        std::vector<std::vector<float>> logits;
        for (const KvFormat& format :
             {KvFormat{}, KvFormat{KvDType::BF16, KvDType::F16, false, 0},
              KvFormat{KvDType::F16, KvDType::BF16, false, 0}, KvFormat{KvDType::Int8, KvDType::F16, false, 0},
              KvFormat{KvDType::F16, KvDType::Int8, false, 0}, KvFormat{KvDType::Int8, KvDType::F16, true, 0},
              KvFormat{KvDType::Int4, KvDType::F16, false, 0}, KvFormat{KvDType::Int4, KvDType::F16, true, 0}}) {
            EngineHarness harness;
            harness.load(configOf(format));
            const auto last = static_cast<std::int64_t>(prompt.size()) - 1;
            logits.push_back(harness.logits(prompt, {last}).front());
            for (std::size_t i = 0; i + 1 < logits.size(); ++i)
                QVERIFY2(logits[i] != logits.back(), label(format).c_str());
        }
    }

    void forksReuseWholeBlocks() {
        for (const int at : {20, 32, 50}) {
            EngineHarness harness;
            harness.load(configOf({KvDType::Int8, KvDType::Int4, false, 0}));
            const auto prompt = exactnessPrompts(320, 40).back(); // 45 tokens
            api::Request first = EngineHarness::request(1, api::TokenPrompt{prompt}, 20);
            first.sampling.ignoreEos = true;
            first.keepForFork = true;
            const api::Answer one = harness.run(first);
            std::vector<TokenId> known = prompt;
            known.insert(known.end(), one.tokenIds.begin(), one.tokenIds.end());
            known.resize(static_cast<std::size_t>(at));
            known.push_back(7);
            api::Request fork =
                EngineHarness::request(2, api::ForkPrompt{RequestId(1), std::int64_t(at), api::TokenPrompt{{7}}}, 10);
            fork.sampling.ignoreEos = true;
            fork.sampling.logprobs = 2;
            const api::Answer forked = harness.run(fork);
            QCOMPARE(forked.cache.reusedTokens, std::int64_t(at / 16 * 16));

            api::EngineConfig plain = configOf({KvDType::Int8, KvDType::Int4, false, 0});
            plain.prefixCaching = false;
            EngineHarness fresh;
            fresh.load(plain);
            fork.prompt = api::TokenPrompt{known};
            const std::string difference = firstDifference(fresh.run(fork), forked);
            QVERIFY2(difference.empty(), difference.c_str());
        }
    }

    void sizesAreThoseThatAreMade() {
        EngineHarness f16, k8v4;
        f16.load(configOf({}, 32));
        k8v4.load(configOf({KvDType::Fp8E4M3, KvDType::Int4, false, 0}, 32));
        const api::ModelInfo &a = f16.engine->model(), &b = k8v4.engine->model();
        QCOMPARE(a.keyDtype, std::string("f16"));
        QCOMPARE(b.keyDtype, std::string("fp8_e4m3"));
        QCOMPARE(b.valueDtype, std::string("int4"));
        QCOMPARE(a.tailBytes, std::uint64_t(0));
        QVERIFY(b.tailBytes > 0 && b.bytesPerBlock < a.bytesPerBlock * 2 / 3);
        QCOMPARE(k8v4.engine->sample().poolBytes,
                 b.bytesPerBlock * static_cast<std::uint64_t>(b.numBlocks) + b.tailBytes);
        // At equal bytes there are more blocks.
        api::EngineConfig c = configOf({}, 32);
        c.numBlocks = 0;
        c.kvCacheMemoryBytes = 4'000'000;
        f16.load(c);
        c.kvFormat = {KvDType::Fp8E4M3, KvDType::Int4, false, 0};
        k8v4.load(c);
        QVERIFY(k8v4.engine->model().numBlocks > f16.engine->model().numBlocks);
        QVERIFY(k8v4.engine->sample().poolBytes <= 4'000'000);
    }

    void impossibleFormsAreRefusedBeforeTheWeightsAreRead() {
        EngineHarness harness;
        try {
            harness.load(configOf({KvDType::Int4, KvDType::Int4, false, 0}, 8));
            QFAIL("int4 keys in blocks of 8 were accepted");
        } catch (const std::runtime_error& error) {
            QVERIFY(std::string(error.what()).find("int4 keys") != std::string::npos);
        }
    }

    void int4KeysOfASmallModelAreWarnedAbout() {
        EngineHarness harness;
        harness.load(configOf({KvDType::Int4, KvDType::Int4, false, 0}));
        QVERIFY(!harness.engine->model().warnings.empty());
        harness.load(configOf({KvDType::Int8, KvDType::Int4, false, 0}));
        QVERIFY(harness.engine->model().warnings.empty());
    }
};

QTEST_APPLESS_MAIN(TestEngineKvFormats)
#include "test_engine_kv_formats.moc"
