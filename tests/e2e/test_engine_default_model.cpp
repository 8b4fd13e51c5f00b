// SPDX-License-Identifier: GPL-3.0-or-later
//
// The default model against the exact reference: closeness in KL, and greedy text that must not depend on how it was
// computed. Long.
#include <QTest>
#include <cstdio>

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

private:
    std::string m_path;
};

QTEST_APPLESS_MAIN(TestEngineDefaultModel)
#include "test_engine_default_model.moc"
