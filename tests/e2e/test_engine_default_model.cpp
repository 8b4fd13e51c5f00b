// SPDX-License-Identifier: GPL-3.0-or-later
//
// The default model against the exact reference: closeness in KL, and greedy text that must not depend on how it was
// computed. Long.
#include <QTest>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <numeric>

#include "engine/api/engine_thread.h"
#include "engine/model/model_file.h"
#include "engine/model/tokenizer.h"
#include "engine/model/vocabulary_gguf.h"
#include "tests/support/default_model.h"
#include "tests/support/engine_harness.h"
#include "tests/support/exactness.h"
#include "tests/support/model_reference.h"

using namespace kvscope;
using namespace kvscope::test;
using nlohmann::json;

class TestEngineDefaultModel : public QObject {
    Q_OBJECT
private slots:
    void initTestCase() {
        const auto path = defaultModel();
        if (!path)
            QSKIP(kNoDefaultModel);
        m_path = *path;
    }

    void klToTheExactReferenceIsCloseToThatOfLlamaCpp() {
        const json reference = readReference(std::string(KVSCOPE_TEST_DATA) + "/real/smollm2_kl.json");
        const double theirs = reference["kl_lumped_mean"]["f16"].get<double>();
        const double native = klTo(reference, false), floats = klTo(reference, true);
        std::printf("lumped KL over %d positions: %.6f, with float activations %.8f, llama.cpp %.6f\n",
                    reference["n_positions"].get<int>(), native, floats, theirs);
        QVERIFY(native <= 1.25 * theirs);
        QVERIFY(floats <= 0.01 * native); // what is left is the rounding of the cache to 16 bits
    }

    void perplexityIsThatOfTheExactModel_data() {
        QTest::addColumn<bool>("floats");
        QTest::addColumn<double>("limit");
        QTest::newRow("native") << false << 0.005;
        QTest::newRow("float activations") << true << 0.0005;
    }
    void perplexityIsThatOfTheExactModel() {
        QFETCH(bool, floats);
        QFETCH(double, limit);
        const std::string folder = std::string(KVSCOPE_TEST_DATA) + "/real/";
        const json reference = readReference(folder + "smollm2_ppl.json");
        const auto ids = reference["ids"].get<std::vector<TokenId>>();
        if (!floats) { // the text gives these ids
            std::ifstream file(folder + "smollm2_ppl.txt", std::ios::binary);
            const auto tokens = encode({std::istreambuf_iterator<char>(file), {}});
            QCOMPARE(tokens, ids);
        }
        EngineHarness harness;
        harness.load(configOf(floats));
        double sum = 0;
        std::int64_t scored = 0;
        const auto window = reference["window"].get<std::size_t>();
        for (std::size_t first = 0; first < ids.size(); first += window) {
            const std::vector<TokenId> piece(ids.begin() + static_cast<std::ptrdiff_t>(first),
                                             ids.begin() +
                                                 static_cast<std::ptrdiff_t>(std::min(first + window, ids.size())));
            std::vector<std::int64_t> positions(piece.size() - 1);
            std::iota(positions.begin(), positions.end(), 0);
            const Logits logits = harness.logits(piece, positions);
            for (std::size_t i = 0; i + 1 < piece.size(); ++i, ++scored)
                sum -= logSoftmax(logits[i])[static_cast<std::size_t>(piece[i + 1])];
        }
        QCOMPARE(scored, reference["n_scored"].get<std::int64_t>());
        const double exact = reference["reference"]["perplexity"].get<double>();
        const double ours = std::exp(sum / static_cast<double>(scored));
        std::printf("perplexity %s: %.4f, exact %.4f (%+.3f %%), llama.cpp %.4f\n", QTest::currentDataTag(), ours,
                    exact, 100 * (ours / exact - 1), reference["llama_cpp"]["f16"]["perplexity"].get<double>());
        QVERIFY(std::fabs(ours / exact - 1) <= limit);
    }

    /// Divergence from f16 keys and values, with float activations: 8-bit ones are rounded anew by any change of the
    /// cache.
    void formsOfKeysAndValuesKeepTheirQuality() {
        const json reference = readReference(std::string(KVSCOPE_TEST_DATA) + "/real/smollm2_ppl.json");
        auto ids = reference["ids"].get<std::vector<TokenId>>();
        ids.resize(2 * 512);
        const auto kl = [&](const char* name, bool rotation) {
            kernels::KvFormat format = *kernels::kvFormatByName(name == std::string("v4") ? "f16" : name);
            if (name == std::string("v4"))
                format.values = kernels::KvDType::Int4;
            format.rotation = rotation;
            return divergence(ids, format);
        };
        const double int8 = kl("int8", false), fp8 = kl("fp8", false), k8v4 = kl("k8v4", false);
        const double v4 = kl("v4", false), rotated = kl("v4", true);
        std::printf("KL against f16: int8 %.6f, fp8 %.6f, k8v4 %.6f, int4 values %.6f, rotated %.6f\n", int8, fp8, k8v4,
                    v4, rotated);
        QVERIFY(int8 > 0 && int8 <= 0.0005);
        QVERIFY(fp8 <= 0.003);
        QVERIFY(k8v4 <= 0.005);
        QVERIFY(rotated <= 0.85 * v4);
    }

    void everyWayGivesTheSameBits() {
        api::EngineConfig base = EngineHarness::config(m_path);
        base.threads = 1;
        const std::string difference =
            compareWays(allWays(base, 21), exactnessRequests(exactnessPrompts(49152, 300), 20));
        QVERIFY2(difference.empty(), difference.c_str());
    }

    /// With no token budget given: in the middle of reading a long prompt, alone and beside another chat (where the
    /// step cannot be aborted and only its length helps).
    void stopTakesEffectWithin200Milliseconds_data() {
        QTest::addColumn<bool>("company");
        QTest::newRow("alone") << false;
        QTest::newRow("beside another chat") << true;
    }
    void stopTakesEffectWithin200Milliseconds() {
        QFETCH(bool, company);
        MonotonicClock clock;
        api::EngineThread engine(clock);
        api::EngineConfig config;
        config.modelPath = m_path;
        config.numBlocks = 1024;
        engine.load(config);
        if (company)
            engine.submit(request(1000, 16, 4000));
        std::vector<double> waits;
        for (std::int64_t id = 0; id < 7; ++id) {
            engine.submit(request(id, 6000, 16));
            waitFor(engine, [&](const api::Event& event) {
                const auto* reading = std::get_if<api::PrefillEvent>(&event);
                return reading && reading->id == RequestId(id) && reading->done > reading->reused + 500;
            });
            const Nanos asked = clock.now();
            engine.cancel(RequestId(id));
            waitFor(engine, [&](const api::Event& event) {
                const auto* finished = std::get_if<api::FinishedEvent>(&event);
                return finished && finished->answer.id == RequestId(id);
            });
            waits.push_back(static_cast<double>(clock.now() - asked) / 1e6);
        }
        std::sort(waits.begin(), waits.end());
        std::printf("stop took %.0f ms (median), %.0f ms (longest)\n", waits[3], waits[6]);
        QVERIFY(waits[3] < 200);
    }

private:
    api::EngineConfig configOf(bool floats) const {
        api::EngineConfig config = EngineHarness::config(m_path);
        config.threads = 0;
        config.floatActivations = floats;
        return config;
    }
    /// Mean KL of the whole distributions after each token but the last of each window of 512.
    double divergence(const std::vector<TokenId>& ids, const kernels::KvFormat& format) {
        double sum = 0;
        std::size_t count = 0;
        for (std::size_t first = 0; first < ids.size(); first += 512) {
            const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(first);
            const std::vector<TokenId> window(begin, begin + 512);
            std::vector<std::int64_t> positions(window.size() - 1);
            std::iota(positions.begin(), positions.end(), 0);
            const auto logits = [&](const kernels::KvFormat& form) {
                api::EngineConfig config = configOf(true);
                config.blockSize = 32;
                config.kvFormat = form;
                EngineHarness harness;
                harness.load(config);
                return harness.logits(window, positions);
            };
            Logits& exact = m_exact[first];
            if (exact.empty())
                exact = logits({});
            const Logits got = logits(format);
            for (std::size_t i = 0; i < positions.size(); ++i, ++count) {
                const std::vector<double> p = logSoftmax(exact[i]), q = logSoftmax(got[i]);
                for (std::size_t v = 0; v < p.size(); ++v)
                    sum += std::exp(p[v]) * (p[v] - q[v]);
            }
        }
        return sum / static_cast<double>(count);
    }
    double klTo(const json& reference, bool floats) const {
        EngineHarness harness;
        harness.load(configOf(floats));
        Deviation deviation;
        for (const json& prompt : reference["prompts"]) {
            std::vector<std::int64_t> positions;
            for (const json& position : prompt["positions"])
                positions.push_back(position["pos"].get<std::int64_t>());
            const Logits logits = harness.logits(prompt["ids"].get<std::vector<TokenId>>(), positions);
            for (std::size_t i = 0; i < positions.size(); ++i)
                deviation.add(prompt["positions"][i], logits[i]);
        }
        return deviation.positions == reference["n_positions"].get<int>() ? deviation.klMean() : 1e9;
    }
    std::vector<TokenId> encode(const std::string& text) const {
        const auto file = model::ModelFile::open(m_path);
        auto vocabulary = model::vocabularyFromGguf(file->metadata());
        return (*model::Tokenizer::create(std::move(*vocabulary)))->encode(text, {})->ids;
    }
    static api::Request request(std::int64_t id, std::size_t promptTokens, std::int32_t maxTokens) {
        std::vector<TokenId> ids(promptTokens);
        for (std::size_t i = 0; i < ids.size(); ++i)
            ids[i] = static_cast<TokenId>((i * 31 + static_cast<std::size_t>(id) * 7) % 40000 + 100);
        api::Request r = EngineHarness::request(id, api::TokenPrompt{ids}, maxTokens);
        r.sampling.ignoreEos = true;
        return r;
    }
    template <class Wanted> static void waitFor(api::EngineThread& engine, Wanted&& wanted) {
        for (;;) {
            if (const auto event = engine.nextEvent(); !event)
                QTest::qSleep(1);
            else if (wanted(*event))
                return;
        }
    }

    std::string m_path;
    std::map<std::size_t, Logits> m_exact; ///< f16, by first token of the window
};

QTEST_APPLESS_MAIN(TestEngineDefaultModel)
#include "test_engine_default_model.moc"
