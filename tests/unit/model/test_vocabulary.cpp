// SPDX-License-Identifier: GPL-3.0-or-later
//
// The tokenizer keys of model files: defaults, and each way in which they can be wrong.
#include <QTest>
#include <functional>

#include "tests/support/gguf_writer.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/model/text_reference.h"

using namespace kvscope;
using namespace kvscope::model;
using test::GgufWriter;

namespace {

GgufWriter byteLevel() {
    GgufWriter g;
    g.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", "qwen2");
    g.texts("tokenizer.ggml.tokens", {"<s>", "a", "b", "ab", "Ġ", "<|im_end|>"});
    g.i32s("tokenizer.ggml.token_type", {3, 1, 1, 1, 1, 1});
    g.texts("tokenizer.ggml.merges", {"a b"});
    return g;
}

GgufWriter sentencePiece() {
    GgufWriter g;
    g.text("tokenizer.ggml.model", "llama");
    g.texts("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "a", "▁", "▁a"});
    g.i32s("tokenizer.ggml.token_type", {2, 3, 3, 1, 1, 1});
    g.f32s("tokenizer.ggml.scores", {0, 0, 0, -1, -2, -3});
    return g;
}

struct Wrong {
    const char* name;
    std::function<void(GgufWriter&)> spoil;
    const char* sentence;
};

const std::vector<Wrong> kWrongByteLevel = {
    {"no kind", [](auto& g) { g.without("tokenizer.ggml.model"); }, "tokenizer.ggml.model is missing"},
    {"no tokens", [](auto& g) { g.without("tokenizer.ggml.tokens"); }, "tokenizer.ggml.tokens is missing"},
    {"tokens that are numbers",
     [](auto& g) {
         g.i32s("tokenizer.ggml.tokens", {1, 2});
     },
     "not an array of strings"},
    {"empty list of tokens",
     [](auto& g) { g.texts("tokenizer.ggml.tokens", {}).i32s("tokenizer.ggml.token_type", {}); }, ""},
    {"fewer types than tokens",
     [](auto& g) {
         g.i32s("tokenizer.ggml.token_type", {3, 1});
     },
     "2 entries for 6 tokens"},
    {"types that are texts", [](auto& g) { g.texts("tokenizer.ggml.token_type", {"a"}); }, "not an array of integers"},
    {"no merges", [](auto& g) { g.without("tokenizer.ggml.merges"); }, "tokenizer.ggml.merges is missing"},
    {"merge without a pair", [](auto& g) { g.texts("tokenizer.ggml.merges", {"ab"}); }, "is not a pair"},
    {"merge of one part", [](auto& g) { g.texts("tokenizer.ggml.merges", {"a "}); }, "is not a pair"},
    {"merge naming a piece that is no token",
     [](auto& g) {
         g.texts("tokenizer.ggml.merges", {"a b", "a c"});
     },
     "names \"c\", which is no token"},
    {"bos beyond the vocabulary", [](auto& g) { g.u32("tokenizer.ggml.bos_token_id", 6); }, "bos_token_id is 6"},
    {"eos beyond the vocabulary", [](auto& g) { g.u32("tokenizer.ggml.eos_token_id", 4'000'000'000u); },
     "eos_token_id is"},
};

const std::vector<Wrong> kWrongSentencePiece = {
    {"no scores", [](auto& g) { g.without("tokenizer.ggml.scores"); }, "tokenizer.ggml.scores is missing"},
    {"fewer scores than tokens",
     [](auto& g) {
         g.f32s("tokenizer.ggml.scores", {1, 2});
     },
     "2 entries for 6 tokens"},
};

} // namespace

class TestVocabulary : public QObject {
    Q_OBJECT
private slots:
    void wrongKeysAreNamed_data() {
        QTest::addColumn<QByteArray>("file");
        QTest::addColumn<QByteArray>("sentence");
        const auto rows = [](const GgufWriter& good, const std::vector<Wrong>& cases) {
            for (const Wrong& wrong : cases) {
                GgufWriter g = good;
                wrong.spoil(g);
                QTest::newRow(wrong.name) << QByteArray::fromStdString(g.build()) << QByteArray(wrong.sentence);
            }
        };
        rows(byteLevel(), kWrongByteLevel);
        rows(sentencePiece(), kWrongSentencePiece);
    }
    void wrongKeysAreNamed() {
        QFETCH(QByteArray, file);
        QFETCH(QByteArray, sentence);
        const auto vocabulary = read(file.toStdString());
        QVERIFY(!vocabulary.has_value());
        QCOMPARE(static_cast<int>(vocabulary.error().code), static_cast<int>(ErrorCode::Corrupt));
        QVERIFY2(vocabulary.error().message.find(sentence.toStdString()) != std::string::npos,
                 vocabulary.error().message.c_str());
    }

    void defaultsOfByteLevelFiles() {
        const auto v = *read(byteLevel().build());
        QVERIFY(!v.bos && !v.eos && !v.addBos && !v.addEos && !v.addSpacePrefix);
        GgufWriter g = byteLevel();
        QVERIFY(read(g.text("tokenizer.ggml.pre", "llama-bpe").build())->addBos);
        QVERIFY(read(g.text("tokenizer.ggml.pre", "tekken").build())->addBos);
        QVERIFY(!read(g.boolean("tokenizer.ggml.add_bos_token", false).build())->addBos);
    }

    void defaultsOfSentencePieceFiles() {
        const auto v = *read(sentencePiece().build());
        QCOMPARE(*v.bos, 1);
        QCOMPARE(*v.eos, 2);
        QCOMPARE(*v.unknown, 0);
        QVERIFY(v.addBos && v.addSpacePrefix && !v.addEos);
        GgufWriter g = sentencePiece();
        g.boolean("tokenizer.ggml.add_space_prefix", false).boolean("tokenizer.ggml.add_eos_token", true);
        QVERIFY(!read(g.build())->addSpacePrefix);
        QVERIFY(read(g.build())->addEos);
    }

    void aMissingPreTokenizerIsNoGuess() {
        GgufWriter g = byteLevel();
        g.without("tokenizer.ggml.pre");
        const auto tokenizer = *Tokenizer::create(*read(g.build()));
        const auto encoding = tokenizer->encode("ab");
        QVERIFY(!encoding.has_value());
        QVERIFY(encoding.error().message.find("does not name its pre-tokenizer") != std::string::npos);
        QCOMPARE(*tokenizer->decode(std::vector<TokenId>{3, 4, 1}, false), std::string("ab a"));
    }

    void endMarksAreControlTokensWhateverTheFileSays() {
        const auto v = *read(byteLevel().build());
        QCOMPARE(v.types[5], TokenType::Control); // <|im_end|>, normal in the file
        QCOMPARE(endOfGenerationTokens(v), std::vector<TokenId>{5});
    }

    void phi3SwallowsTheSpaceBehindItsMarks() {
        GgufWriter g = sentencePiece();
        QVERIFY(read(g.build())->stripAfter.empty());
        g.text("general.name", "Phi-3 Mini");
        QCOMPARE(read(g.build())->stripAfter, std::vector<TokenId>{2}); // </s>, neither <unk> nor <s>
    }

private:
    Result<Vocabulary> read(const std::string& bytes) {
        std::ofstream(m_dir.file("v.gguf"), std::ios::binary) << bytes;
        const auto file = GgufFile::open(m_dir.file("v.gguf"));
        if (!file)
            return tl::unexpected(file.error());
        return vocabularyFromGguf(file->metadata());
    }

    test::TempDir m_dir;
};

QTEST_APPLESS_MAIN(TestVocabulary)
#include "test_vocabulary.moc"
