// SPDX-License-Identifier: GPL-3.0-or-later
//
// Every llama model of the reference set, from file to log-probabilities, greedy text and tokens of text, through the
// whole engine.
#include <QTest>
#include <cstdio>

#include "tests/support/engine_harness.h"
#include "tests/support/model_reference.h"

using namespace kvscope;
using namespace kvscope::test;
using nlohmann::json;

namespace {

const char* const kModels[] = {"llama-f32",   "llama-f16",          "llama-bf16",       "llama-q8_0", "llama-q4_0",
                               "llama-q4_1",  "llama-gqa",          "llama-mha",        "llama-mqa",  "llama-spm",
                               "llama-split", "llama-rope-factors", "llama-rope-linear"};

std::string dataPath(const std::string& name) {
    return std::string(KVSCOPE_TEST_DATA) + "/models/" + name;
}

} // namespace

class TestEngineReference : public QObject {
    Q_OBJECT
private slots:
    void model_data() {
        QTest::addColumn<QString>("name");
        for (const char* name : kModels)
            QTest::newRow(name) << name;
    }

    void model() {
        QFETCH(QString, name);
        const json reference = readReference(dataPath(name.toStdString() + ".json"));
        EngineHarness harness;
        harness.load(EngineHarness::config(dataPath(reference["files"][0]["name"].get<std::string>())));
        compareLogits(harness, reference);
        compareGreedy(harness, reference);
        compareTexts(harness, reference);
    }

private:
    static api::Prompt promptOf(const json& prompt) {
        if (!prompt.contains("messages"))
            return api::TextPrompt{prompt["text"].get<std::string>()};
        api::DialogPrompt dialog;
        for (const json& message : prompt["messages"])
            dialog.messages.push_back({message["role"].get<std::string>(), message["content"].get<std::string>(), {}});
        dialog.addGenerationPrompt = prompt["add_generation_prompt"].get<bool>();
        return dialog;
    }

    static void compareLogits(EngineHarness& harness, const json& reference) {
        Deviation deviation;
        for (const json& prompt : reference["prompts"]) {
            std::vector<std::int64_t> positions;
            for (const json& position : prompt["positions"])
                positions.push_back(position["pos"].get<std::int64_t>());
            const Logits logits = harness.logits(prompt["ids"].get<std::vector<TokenId>>(), positions);
            for (std::size_t i = 0; i < positions.size(); ++i)
                if (positions[i] > 0 || prompt["n"] == 1) // the tolerances leave position 0 out
                    deviation.add(prompt["positions"][i], logits[i]);
        }
        const json& tolerance = reference["tolerance"]["f16"];
        const auto against = [&](const char* what, double value) {
            const double limit = tolerance[what].get<double>();
            const QByteArray text = QByteArray(what) + " is " + QByteArray::number(value) + ", at most " +
                                    QByteArray::number(limit) + " is allowed";
            QVERIFY2(value <= limit, text.constData());
        };
        std::printf("%s: max %.6g rms %.6g kl %.3g\n", reference["name"].get<std::string>().c_str(), deviation.largest,
                    deviation.rms(), deviation.klMean());
        against("logprob_max", deviation.largest);
        against("logprob_rms", deviation.rms());
        against("kl_lumped_mean", deviation.klMean());
    }

    static void compareGreedy(EngineHarness& harness, const json& reference) {
        const double rms = reference["tolerance"]["f16"]["logprob_rms"].get<double>();
        std::int64_t id = 0;
        for (const json& prompt : reference["prompts"]) {
            const auto expected = prompt["greedy"].get<std::vector<TokenId>>();
            api::Request request =
                EngineHarness::request(id++, api::TokenPrompt{prompt["ids"].get<std::vector<TokenId>>()},
                                       static_cast<std::int32_t>(expected.size()));
            request.sampling.ignoreEos = true;
            const api::Answer answer = harness.run(std::move(request));
            QCOMPARE(answer.tokenIds.size(), expected.size());
            const std::size_t certain = firstUncertainStep(prompt, rms);
            for (std::size_t step = 0; step < certain; ++step)
                QCOMPARE(answer.tokenIds[step], expected[step]);
        }
    }

    static void compareTexts(EngineHarness& harness, const json& reference) {
        std::int64_t id = 1000;
        for (const json& prompt : reference["prompts"]) {
            if (prompt.contains("messages") ? !harness.engine->model().hasChatTemplate : !prompt.contains("text"))
                continue; // (one file comes without a template)
            const api::Answer answer = harness.run(EngineHarness::request(id++, promptOf(prompt), 1));
            if (answer.error && answer.error->code == ErrorCode::Unsupported)
                continue; // its tokenizer is not built
            QCOMPARE(answer.promptTokenIds, prompt["ids"].get<std::vector<TokenId>>());
        }
    }
};

QTEST_APPLESS_MAIN(TestEngineReference)
#include "test_engine_reference.moc"
