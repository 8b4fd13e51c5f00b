// SPDX-License-Identifier: GPL-3.0-or-later
//
// Every llama and gemma3 model of the reference set, from file to log-probabilities, greedy text and tokens of text,
// through the whole engine.
#include <QTest>
#include <cstdio>
#include <cstring>

#include "engine/model/gguf_file.h"
#include "engine/model/vocabulary_gguf.h"
#include "kernels/cpu/cpu_backend.h"
#include "tests/support/engine_harness.h"
#include "tests/support/model_reference.h"
#include "tests/support/temp_dir.h"

using namespace kvscope;
using namespace kvscope::test;
using nlohmann::json;

namespace {

const char* const kModels[] = {"llama-f32",   "llama-f16",          "llama-bf16",        "llama-q8_0", "llama-q4_0",
                               "llama-q4_1",  "llama-gqa",          "llama-mha",         "llama-mqa",  "llama-spm",
                               "llama-split", "llama-rope-factors", "llama-rope-linear", "gemma3-f32", "gemma3-q8_0"};

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

    /// Copies of the gemma3 models with another window in their metadata, in small and in large blocks.
    void window_data() {
        QTest::addColumn<QString>("name");
        QTest::addColumn<int>("blockSize");
        for (const char* name : {"gemma3-f32", "gemma3-q8_0"})
            for (const int window : {16, 20, 24})
                for (const int blockSize : {16, 64})
                    if (window != 16 || blockSize != 16) // that is in the list above
                        QTest::addRow("%s, window %d, blocks of %d", name, window, blockSize)
                            << (window == 16 ? QString(name) : QStringLiteral("%1-window%2").arg(name).arg(window))
                            << blockSize;
    }
    void window() {
        QFETCH(QString, name);
        QFETCH(int, blockSize);
        const json reference = readReference(dataPath(name.toStdString() + ".json"));
        std::string path = dataPath(reference["files"][0]["name"].get<std::string>());
        TempDir folder;
        if (reference.contains("sliding_window")) {
            const std::string copy = folder.file("window.gguf");
            copyWithWindow(path, copy, reference["sliding_window"].get<std::uint32_t>());
            path = copy;
        }
        api::EngineConfig config = EngineHarness::config(path);
        config.blockSize = blockSize;
        EngineHarness harness;
        harness.load(config);
        compareLogits(harness, reference);
        compareGreedy(harness, reference);
    }

    /// Without the rounding of activations to 8 bits only that of the cache to 16 is left, whatever the weights are.
    void floatActivationsComeCloser_data() {
        QTest::addColumn<QString>("name");
        QTest::addColumn<int>("isa");
        for (const char* name : {"llama-q8_0", "llama-q4_0", "llama-q4_1", "gemma3-q8_0"})
            for (const auto isa : {kernels::Isa::Portable, kernels::Isa::Avx2, kernels::Isa::Avx512})
                if (kernels::cpuSupports(isa))
                    QTest::addRow("%s %s", name, kernels::isaName(isa)) << QString(name) << static_cast<int>(isa);
    }
    void floatActivationsComeCloser() {
        QFETCH(QString, name);
        QFETCH(int, isa);
        const json reference = readReference(dataPath(name.toStdString() + ".json"));
        Deviation deviations[2];
        for (const bool floats : {false, true}) {
            EngineHarness harness;
            api::EngineConfig config =
                EngineHarness::config(dataPath(reference["files"][0]["name"].get<std::string>()));
            config.isa = static_cast<kernels::Isa>(isa);
            config.floatActivations = floats;
            harness.load(config);
            deviations[floats] = deviationOf(harness, reference);
        }
        std::printf("%s: rms %.3g, with float activations %.3g; kl %.3g, %.3g\n", QTest::currentDataTag(),
                    deviations[0].rms(), deviations[1].rms(), deviations[0].klMean(), deviations[1].klMean());
        const json& tolerance = reference["tolerance"]["f32"];
        QVERIFY(deviations[1].rms() < 0.1 * deviations[0].rms());
        QVERIFY(deviations[1].rms() < 0.1 * tolerance["logprob_rms"].get<double>());
        QVERIFY(deviations[1].largest < 0.1 * tolerance["logprob_max"].get<double>());
        QVERIFY(deviations[1].klMean() < 0.1 * tolerance["kl_lumped_mean"].get<double>());
    }

private:
    /// The number behind the key is four bytes wide, after four of its type.
    static void copyWithWindow(const std::string& from, const std::string& to, std::uint32_t window) {
        std::ifstream in(from, std::ios::binary);
        std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
        const std::string key = "gemma3.attention.sliding_window";
        const std::size_t at = bytes.find(key);
        QVERIFY(at != std::string::npos && bytes.find(key, at + 1) == std::string::npos);
        std::memcpy(bytes.data() + at + key.size() + 4, &window, sizeof window);
        std::ofstream out(to, std::ios::binary);
        out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
        QVERIFY(out.good());
    }

    static api::Prompt promptOf(const json& prompt) {
        if (!prompt.contains("messages"))
            return api::TextPrompt{prompt["text"].get<std::string>()};
        api::DialogPrompt dialog;
        for (const json& message : prompt["messages"])
            dialog.messages.push_back({message["role"].get<std::string>(), message["content"].get<std::string>(), {}});
        dialog.addGenerationPrompt = prompt["add_generation_prompt"].get<bool>();
        return dialog;
    }

    static Deviation deviationOf(EngineHarness& harness, const json& reference) {
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
        return deviation;
    }

    static void compareLogits(EngineHarness& harness, const json& reference) {
        const Deviation deviation = deviationOf(harness, reference);
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

    /// The reference ids of a chat are those of the rendered text alone (add_special is false there). The engine puts
    /// the BOS token before them where the file asks for one and its template writes none.
    static std::vector<TokenId> expectedIds(const json& prompt, const model::Vocabulary& vocabulary) {
        auto ids = prompt["ids"].get<std::vector<TokenId>>();
        if (prompt.contains("messages") && vocabulary.addBos && ids.front() != *vocabulary.bos)
            ids.insert(ids.begin(), *vocabulary.bos);
        return ids;
    }

    static void compareTexts(EngineHarness& harness, const json& reference) {
        const auto file = model::GgufFile::open(dataPath(reference["files"][0]["name"].get<std::string>()));
        QVERIFY(file);
        const auto vocabulary = model::vocabularyFromGguf(file->metadata());
        QVERIFY(vocabulary);
        std::int64_t id = 1000;
        for (const json& prompt : reference["prompts"]) {
            if (prompt.contains("messages") ? !harness.engine->model().hasChatTemplate : !prompt.contains("text"))
                continue; // (one file comes without a template)
            const api::Answer answer = harness.run(EngineHarness::request(id++, promptOf(prompt), 1));
            if (answer.error && answer.error->code == ErrorCode::Unsupported)
                continue; // its tokenizer is not built
            QCOMPARE(answer.promptTokenIds, expectedIds(prompt, *vocabulary));
        }
    }
};

QTEST_APPLESS_MAIN(TestEngineReference)
#include "test_engine_reference.moc"
