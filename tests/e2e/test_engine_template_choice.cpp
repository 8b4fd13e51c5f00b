// SPDX-License-Identifier: GPL-3.0-or-later
//
// Trials U1, U3, U4 and U6 on the engine: files without a usable template, the wrong kinds of file, begin tokens.
#include <QTest>
#include <algorithm>
#include <fstream>
#include <functional>
#include <iterator>

#include "engine/model/model_file.h"
#include "tests/support/default_model.h"
#include "tests/support/engine_harness.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_llama.h"

using namespace kvscope;
using namespace kvscope::test;

namespace {

constexpr const char* kTemplateKey = "tokenizer.chat_template";

api::DialogPrompt hello() {
    return {{{"user", "Hello", {}}}, true, false};
}

std::string contentOf(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

} // namespace

class TestEngineTemplateChoice : public QObject {
    Q_OBJECT
private slots:
    void aFileWithoutTemplateIsAnsweredThroughANamedOne() {
        GgufWriter writer = tinyLlama();
        writer.without(kTemplateKey);
        load(writer, std::string());
        const api::TemplateInfo& info = m_harness.engine->model().chatTemplate;
        QVERIFY(info.guessed);
        QVERIFY(info.problem.find("no chat template") != std::string::npos);
        QVERIFY(!info.name.empty() && info.preview.find("Hello") != std::string::npos);
        QVERIFY(std::find(info.choices.begin(), info.choices.end(), info.name) != info.choices.end());
        QVERIFY(!m_harness.run(m_harness.request(1, hello())).error);

        m_harness.engine->useTemplate("Zephyr");
        const auto changed = m_harness.eventsOf<api::TemplateEvent>();
        QCOMPARE(changed.size(), std::size_t(1));
        QCOMPARE(changed[0].info.name, std::string("Zephyr"));
        QVERIFY(!changed[0].info.guessed && changed[0].info.preview != info.preview);
        QVERIFY(!m_harness.run(m_harness.request(2, hello())).error);

        load(writer, std::string("Zephyr")); // as remembered
        QCOMPARE(m_harness.engine->model().chatTemplate.name, std::string("Zephyr"));
    }

    void aBrokenTemplateIsNamedWithItsLine() {
        GgufWriter writer = tinyLlama();
        writer.text(kTemplateKey, "one\n{% for m in messages %}{{ m.content }}");
        load(writer, std::string());
        const api::TemplateInfo& info = m_harness.engine->model().chatTemplate;
        QVERIFY(info.guessed);
        QVERIFY2(info.problem.find("line ") != std::string::npos, info.problem.c_str());
    }

    void withoutBeingAskedNothingIsGuessed() {
        GgufWriter writer = tinyLlama();
        writer.without(kTemplateKey);
        load(writer, std::nullopt);
        QVERIFY(!m_harness.engine->model().hasChatTemplate);
        const api::Answer answer = m_harness.run(m_harness.request(1, hello()));
        QVERIFY(answer.error && answer.error->code == ErrorCode::Template);
    }

    void thePromptsTokensHaveOneBeginTokenOrNone_data() {
        QTest::addColumn<bool>("addBos");
        QTest::addColumn<bool>("written");
        QTest::addColumn<int>("begins");
        QTest::newRow("asked for and written") << true << true << 1;
        QTest::newRow("asked for") << true << false << 1;
        QTest::newRow("neither") << false << false << 0;
    }
    void thePromptsTokensHaveOneBeginTokenOrNone() {
        QFETCH(bool, addBos);
        QFETCH(bool, written);
        QFETCH(int, begins);
        GgufWriter writer = tinyLlama();
        writer.boolean("tokenizer.ggml.add_bos_token", addBos);
        writer.text(kTemplateKey, std::string(written ? "{{ bos_token }}" : "") +
                                      "{% for m in messages %}{{ m.content }}{{ eos_token }}{% endfor %}");
        std::vector<TokenId> first;
        for (int round = 0; round < 2; ++round) { // the same after loading again
            load(writer, std::string());
            m_harness.engine->queryPrompt(7, hello(), 128);
            const auto answers = m_harness.eventsOf<api::PromptTokensEvent>();
            QCOMPARE(answers.size(), std::size_t(1));
            QCOMPARE(answers[0].key, std::int64_t(7));
            QVERIFY(!answers[0].error && answers[0].beginToken);
            std::vector<TokenId> ids;
            for (const auto& token : answers[0].tokens)
                ids.push_back(token.id);
            QCOMPARE(std::count(ids.begin(), ids.end(), *answers[0].beginToken), begins);
            QVERIFY(round == 0 || ids == first);
            first = ids;
        }
    }

    void wrongKindsOfFileLeaveTheLoadedModelAlone() {
        load(tinyLlama(), std::string());
        const api::Answer before = m_harness.run(m_harness.request(1, hello()));
        std::vector<std::string> sentences;
        for (const auto& spoil : std::vector<std::function<std::string(GgufWriter&)>>{
                 [](GgufWriter& g) { return g.text("general.architecture", "clip").build(); },
                 [](GgufWriter& g) { return g.text("general.architecture", "foo").build(); },
                 [](GgufWriter& g) {
                     g.tensors().clear();
                     return g.build();
                 },
                 [](GgufWriter&) { return std::string("<!DOCTYPE html><html></html>"); }}) {
            GgufWriter writer = tinyLlama();
            save("x.gguf", spoil(writer));
            const auto failed = m_harness.engine->load(m_harness.config(m_dir.file("x.gguf")));
            QVERIFY(!failed);
            QVERIFY(failed.error().message.find("corrupt") == std::string::npos);
            sentences.push_back(failed.error().message);
        }
        std::sort(sentences.begin(), sentences.end());
        QVERIFY(std::adjacent_find(sentences.begin(), sentences.end()) == sentences.end());
        const api::Answer after = m_harness.run(m_harness.request(2, hello()));
        QCOMPARE(after.tokenIds, before.tokenIds);
        QVERIFY(after.cache.reusedTokens > 0);
    }

    void aRawPieceIsRefusedWithBothSizesAndTheOtherPiece() {
        const std::string whole = tinyLlama().build();
        save("half.gguf", whole.substr(0, whole.size() - 5000));
        save("half.gguf.partab", whole.substr(whole.size() - 5000));
        const auto half = open("half.gguf");
        QVERIFY(half.find("needs " + std::to_string(whole.size()) + " bytes, the file has " +
                          std::to_string(whole.size() - 5000)) != std::string::npos);
        QVERIFY(half.find("'half.gguf.partab' beside it") != std::string::npos);
        save("short.gguf", whole.substr(0, whole.size() - 1));
        QVERIFY(open("short.gguf").find("needs " + std::to_string(whole.size())) != std::string::npos);
        save("cut.gguf", whole.substr(0, 300));
        QVERIFY(open("cut.gguf").find("the file has 300") != std::string::npos);
    }

    void theDefaultModelWithoutTemplateAnswersAndEnds() {
        const auto path = defaultModel();
        if (!path)
            QSKIP(kNoDefaultModel);
        std::string bytes = contentOf(*path);
        bytes.replace(bytes.find(kTemplateKey), std::string(kTemplateKey).size(), "tokenizer.chat_templatX");
        save("S.gguf", bytes);
        api::EngineConfig config = m_harness.config(m_dir.file("S.gguf"));
        config.chatTemplate = "";
        config.threads = 0;
        m_harness.load(config);
        QCOMPARE(m_harness.engine->model().chatTemplate.name, std::string("ChatML"));
        const api::Answer answer = m_harness.run(m_harness.request(1, hello(), 200));
        QVERIFY(!answer.error);
        QCOMPARE(static_cast<int>(answer.reason), static_cast<int>(api::FinishReason::Stop));
    }

private:
    void load(const GgufWriter& writer, std::optional<std::string> chatTemplate) {
        save("model.gguf", writer.build());
        api::EngineConfig config = m_harness.config(m_dir.file("model.gguf"));
        config.chatTemplate = std::move(chatTemplate);
        m_harness.load(config);
    }
    void save(const std::string& name, const std::string& bytes) {
        std::ofstream(m_dir.file(name), std::ios::binary) << bytes;
    }
    std::string open(const std::string& name) {
        const auto file = model::ModelFile::open(m_dir.file(name));
        return file ? "opened" : file.error().message;
    }

    TempDir m_dir;
    EngineHarness m_harness;
};

QTEST_APPLESS_MAIN(TestEngineTemplateChoice)
#include "test_engine_template_choice.moc"
