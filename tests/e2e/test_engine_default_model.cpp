// SPDX-License-Identifier: GPL-3.0-or-later
//
// The default model against the exact reference: closeness in KL, and greedy text that must not depend on how it was
// computed. Long.
#include <QTest>
#include <cstdio>

#include "engine/api/engine_thread.h"
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
        EngineHarness harness;
        api::EngineConfig config = EngineHarness::config(m_path);
        config.threads = 0;
        harness.load(config);
        Deviation deviation;
        for (const json& prompt : reference["prompts"]) {
            std::vector<std::int64_t> positions;
            for (const json& position : prompt["positions"])
                positions.push_back(position["pos"].get<std::int64_t>());
            const Logits logits = harness.logits(prompt["ids"].get<std::vector<TokenId>>(), positions);
            for (std::size_t i = 0; i < positions.size(); ++i)
                deviation.add(prompt["positions"][i], logits[i]);
        }
        QCOMPARE(deviation.positions, reference["n_positions"].get<int>());
        const double theirs = reference["kl_lumped_mean"]["f16"].get<double>();
        std::printf("lumped KL over %d positions: %.6f, llama.cpp %.6f\n", deviation.positions, deviation.klMean(),
                    theirs);
        QVERIFY(deviation.klMean() <= 1.25 * theirs);
    }

    void everyWayGivesTheSameBits() {
        api::EngineConfig base = EngineHarness::config(m_path);
        base.threads = 1;
        const std::string difference =
            compareWays(allWays(base, 21), exactnessRequests(exactnessPrompts(49152, 300), 24));
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
};

QTEST_APPLESS_MAIN(TestEngineDefaultModel)
#include "test_engine_default_model.moc"
