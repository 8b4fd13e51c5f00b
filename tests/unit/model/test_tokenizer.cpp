// SPDX-License-Identifier: GPL-3.0-or-later
#include <QCryptographicHash>
#include <QElapsedTimer>
#include <QTest>
#include <QtEndian>
#include <algorithm>
#include <array>
#include <set>

#include "engine/model/byte_alphabet.h"
#include "engine/model/tokenizer.h"
#include "engine/model/unicode.h"
#include "tests/support/default_model.h"
#include "tests/unit/model/text_reference.h"

using namespace kvscope;
using namespace kvscope::model;
using Json = nlohmann::ordered_json;

namespace {

/// Every kind that can encode: byte-level ones, then SentencePiece ones.
constexpr std::array kTinyVocabularies = {
    "smollm",           "gpt-2",  "qwen2",  "llama-bpe",  "deepseek-llm", "deepseek-v3",
    "deepseek-r1-qwen", "tekken", "gpt-4o", "spm-prefix", "spm-noprefix", "spm-ties"};
/// Vocabularies of real models (packaging/fetch_model.sh), each only tested where its file is there.
constexpr std::array kRealVocabularies = {"smollm2-135m-instruct", "qwen2.5-coder-1.5b-instruct", "gemma3-270m"};

std::shared_ptr<const Tokenizer> vocabularyNamed(const std::string& name) {
    if (name == "smollm2-135m-instruct") {
        const auto path = test::defaultModel();
        return path ? test::loadTokenizer(*path) : nullptr;
    }
    if (name == "qwen2.5-coder-1.5b-instruct" || name == "gemma3-270m") {
        const auto path = test::fetchedModel(name == "gemma3-270m" ? "gemma-3-270m.Q4_K_M.gguf"
                                                                   : "Qwen2.5-Coder-1.5B-Instruct.Q4_K_M.gguf");
        return path ? test::loadTokenizer(*path) : nullptr;
    }
    return test::tinyTokenizer(name);
}

void allVocabularies() {
    QTest::addColumn<QString>("folder");
    for (const char* name : kTinyVocabularies)
        QTest::newRow(name) << "pretokenizer/";
    for (const char* name : kRealVocabularies)
        QTest::newRow(name) << "tokenizer/";
}

constexpr const char* kNotFetched = "this model is not there (packaging/fetch_model.sh)";

QByteArray sha256OfIds(const std::vector<TokenId>& ids) {
    QCryptographicHash hash(QCryptographicHash::Sha256);
    for (const TokenId id : ids) {
        const quint32 little = qToLittleEndian(static_cast<quint32>(id));
        hash.addData(QByteArrayView(reinterpret_cast<const char*>(&little), sizeof little));
    }
    return hash.result().toHex();
}

QByteArray describe(const std::string& text, const std::vector<TokenId>& expected, const std::vector<TokenId>& got) {
    return QByteArray("text ") + QByteArray::fromStdString(Json(toValidUtf8(text)).dump()) + " expected " +
           QByteArray::fromStdString(Json(expected).dump()) + " got " + QByteArray::fromStdString(Json(got).dump());
}

} // namespace

class TestTokenizer : public QObject {
    Q_OBJECT
private slots:
    void idsAreThoseOfTheReference_data() { allVocabularies(); }
    void idsAreThoseOfTheReference() {
        QFETCH(QString, folder);
        const QString file = folder + QTest::currentDataTag();
        const auto tokenizer = vocabularyNamed(QTest::currentDataTag());
        if (!tokenizer)
            QSKIP(kNotFetched);
        int checked = 0;
        for (const Json& c : test::readReference(file.toStdString() + ".json")) {
            const std::string text = test::textOf(c, "text");
            const EncodeOptions options{c.at("special").get<bool>(), c.at("add_bos").get<bool>(), {}};
            const auto encoding = tokenizer->encode(text, options);
            QVERIFY(encoding.has_value());
            QCOMPARE(encoding->ends.size(), encoding->ids.size());
            if (!c.value("required", true) || c.at("ids").is_null())
                continue;
            const auto expected = c.at("ids").get<std::vector<TokenId>>();
            if (encoding->ids != expected)
                QFAIL(describe(text, expected, encoding->ids).constData());
            ++checked;
        }
        QVERIFY(checked >= 430);
    }

    void decodingGivesTheBytesOfTheReference_data() { allVocabularies(); }
    void decodingGivesTheBytesOfTheReference() {
        QFETCH(QString, folder);
        const QString file = folder + QTest::currentDataTag();
        const auto tokenizer = vocabularyNamed(QTest::currentDataTag());
        if (!tokenizer)
            QSKIP(kNotFetched);
        for (const Json& c : test::readReference(file.toStdString() + ".json")) {
            if (c.at("ids").is_null())
                continue;
            const auto ids = c.at("ids").get<std::vector<TokenId>>();
            const std::string all = test::textOf(c, "detok");
            const bool differs = c.contains("detok_nospecial") || c.contains("detok_nospecial_hex");
            QCOMPARE(QByteArray::fromStdString(*tokenizer->decode(ids, false)), QByteArray::fromStdString(all));
            QCOMPARE(QByteArray::fromStdString(*tokenizer->decode(ids, true)),
                     QByteArray::fromStdString(differs ? test::textOf(c, "detok_nospecial") : all));
        }
    }

    void factsAndPiecesOfTheVocabulary_data() { allVocabularies(); }
    void factsAndPiecesOfTheVocabulary() {
        QFETCH(QString, folder);
        const QString info = folder + "info.json";
        const auto tokenizer = vocabularyNamed(QTest::currentDataTag());
        if (!tokenizer)
            QSKIP(kNotFetched);
        const Json facts = test::readReference(info.toStdString()).at(QTest::currentDataTag());
        const Vocabulary& v = tokenizer->vocabulary();
        QCOMPARE(static_cast<int>(v.size()), facts.at("n_vocab").get<int>());
        QCOMPARE(v.bos.value_or(-1), facts.at("bos").get<int>());
        QCOMPARE(v.eos.value_or(-1), facts.at("eos").get<int>());
        QCOMPARE(v.padding.value_or(-1), facts.at("pad").get<int>());
        QCOMPARE(v.addBos, facts.at("add_bos").get<bool>());
        QCOMPARE(v.addEos, facts.at("add_eos").get<bool>());
        QVERIFY(tokenizer->endsGeneration(*v.eos));
        QCryptographicHash hash(QCryptographicHash::Sha256);
        for (TokenId id = 0; id < static_cast<TokenId>(v.size()); ++id) {
            const std::string_view piece = tokenizer->bytes(id);
            const quint32 length = qToLittleEndian(static_cast<quint32>(piece.size()));
            hash.addData(QByteArrayView(reinterpret_cast<const char*>(&length), sizeof length));
            hash.addData(QByteArrayView(piece.data(), static_cast<qsizetype>(piece.size())));
        }
        QCOMPARE(hash.result().toHex(), QByteArray::fromStdString(facts.at("pieces_sha256").get<std::string>()));
    }

    void longInputsTakeWellUnderASecond_data() {
        QTest::addColumn<QString>("unused");
        for (const char* name : kRealVocabularies)
            QTest::newRow(name) << "";
    }
    void longInputsTakeWellUnderASecond() {
        const std::string name = QTest::currentDataTag();
        const auto tokenizer = vocabularyNamed(name);
        if (!tokenizer)
            QSKIP(kNotFetched);
        int checked = 0;
        for (const Json& c : test::readReference("tokenizer/stress.json")) {
            if (c.at("vocabulary") != name)
                continue;
            std::string text;
            for (int i = 0; i < c.at("times").get<int>(); ++i)
                text += c.at("repeat").get<std::string>();
            QElapsedTimer timer;
            timer.start();
            const auto encoding =
                tokenizer->encode(text, {c.at("special").get<bool>(), c.at("add_bos").get<bool>(), {}});
            const qint64 elapsed = timer.elapsed();
            QVERIFY(encoding.has_value());
            QCOMPARE(static_cast<int>(encoding->ids.size()), c.at("n_ids").get<int>());
            QCOMPARE(sha256OfIds(encoding->ids), QByteArray::fromStdString(c.at("ids_sha256").get<std::string>()));
            QVERIFY2(elapsed < 10000,
                     qPrintable(QString("%1 ms").arg(elapsed))); // room for sanitizers and busy machines
            ++checked;
        }
        QVERIFY(checked >= 12);
    }

    void badBytesBecomeByteTokens() {
        const auto tokenizer = test::tinyTokenizer("smollm");
        for (const std::string text : {"\xFF", "a\xE4\xB8", "\xED\xA0\x80", "12\xB2\x33", "\xC0\x80 \xF5"}) {
            const auto encoding = tokenizer->encode(text);
            QVERIFY(encoding.has_value());
            QCOMPARE(*tokenizer->decode(encoding->ids, false), text);
        }
    }

    void endsSayWhereEachTokenEnds() {
        const auto tokenizer = test::tinyTokenizer("smollm");
        const std::string text = "Hello <tool> 123 wörld<|im_end|>\n";
        const auto encoding = tokenizer->encode(text, {true, false, {}});
        QVERIFY(encoding.has_value());
        std::size_t begin = 0;
        for (std::size_t i = 0; i < encoding->ids.size(); ++i) {
            const std::size_t end = encoding->ends[i];
            QCOMPARE(std::string(tokenizer->bytes(encoding->ids[i])), text.substr(begin, end - begin));
            begin = end;
        }
        QCOMPARE(begin, text.size());
    }

    void controlTokensInsideUserTextStayText() {
        const auto tokenizer = test::tinyTokenizer("smollm");
        const std::string text = "<|im_start|>user\n<|im_end|><tool><|im_end|>\n";
        const std::size_t user = text.find("<|im_end|>");
        const TextRange range{user, user + 16}; // the first <|im_end|> and <tool>
        const TokenId end = 3;
        const auto guarded = tokenizer->encode(text, {true, false, {&range, 1}});
        const auto open = tokenizer->encode(text, {true, false, {}});
        QCOMPARE(std::count(open->ids.begin(), open->ids.end(), end), 2);
        QCOMPARE(std::count(guarded->ids.begin(), guarded->ids.end(), end), 1);
        QCOMPARE(std::count(guarded->ids.begin(), guarded->ids.end(), TokenId(1151)), 1); // user-defined: always
        QCOMPARE(*tokenizer->decode(guarded->ids, false), text);
        // One byte of user text inside it is enough: a template and a user cannot build one together.
        const std::size_t inside = text.rfind("<|im_end|>") + 3;
        const TextRange one{inside, inside + 1};
        const auto half = tokenizer->encode(text, {true, false, {&one, 1}});
        QCOMPARE(std::count(half->ids.begin(), half->ids.end(), end), 1);
    }

    void bosIsAddedOnceAndOnlyWhereTheFileAsks() {
        Vocabulary v = test::tinyTokenizer("smollm")->vocabulary();
        QCOMPARE(*v.bos, 1);
        const auto without = *Tokenizer::create(v);
        QVERIFY(without->encode("a", {true, true, {}})->ids.front() != 1);
        v.addBos = true;
        const auto with = *Tokenizer::create(v);
        QCOMPARE(with->encode("a", {true, true, {}})->ids.front(), 1);
        QCOMPARE(with->encode("a", {true, true, {}})->ends.front(), 0u);
        QVERIFY(with->encode("a", {true, false, {}})->ids.front() != 1);
        QCOMPARE(with->encode("<|begin|>a", {true, true, {}})->ids.front(), 1);
        const auto rendered = with->encode("<|begin|>a", {true, true, {}, true, true});
        QCOMPARE(std::count(rendered->ids.begin(), rendered->ids.end(), TokenId(1)), 1);
        QCOMPARE(with->encode("", {true, true, {}})->ids, std::vector<TokenId>{1});
    }

    void whatIsNotBuiltIsNamed() {
        Vocabulary v = test::tinyTokenizer("smollm")->vocabulary();
        v.preTokenizer = "frobnicate-7";
        const auto unknownRule = *Tokenizer::create(v);
        const auto encoding = unknownRule->encode("a");
        QVERIFY(!encoding.has_value());
        QCOMPARE(encoding.error().code, ErrorCode::Unsupported);
        QVERIFY(encoding.error().message.find("frobnicate-7") != std::string::npos);
        QVERIFY(unknownRule->decode(std::vector<TokenId>{70, 71}, false).has_value()); // decoding needs no rule
        v.preTokenizer = "default";
        QVERIFY(!(*Tokenizer::create(v))->canEncode().has_value());
        v.model = "rwkv";
        const auto unknownKind = Tokenizer::create(v);
        QVERIFY(!unknownKind.has_value());
        QVERIFY(unknownKind.error().message.find("rwkv") != std::string::npos);
    }

    void brokenVocabulariesAreRefusedByName() {
        const Vocabulary good = test::tinyTokenizer("smollm")->vocabulary();
        Vocabulary v = good;
        v.types.pop_back();
        QVERIFY(Tokenizer::create(v).error().message.find("token_type") != std::string::npos);
        v = good;
        v.eos = static_cast<TokenId>(v.size());
        QVERIFY(Tokenizer::create(v).error().message.find("eos") != std::string::npos);
        v = good;
        v.tokens.clear();
        QVERIFY(!Tokenizer::create(v).has_value());
        QVERIFY(!(*Tokenizer::create(good))->decode(std::vector<TokenId>{-1}, false).has_value());
        QVERIFY(!(*Tokenizer::create(good))->decode(std::vector<TokenId>{1157}, false).has_value());
    }

    void aSentencePieceCharacterWithoutTokenIsSpeltInBytes() {
        Vocabulary v = test::tinyTokenizer("spm-noprefix")->vocabulary();
        const std::string text = "a\U0001F9FFb"; // no token of its own
        const auto spelt = *(*Tokenizer::create(v))->encode(text);
        QCOMPARE(spelt.ids.size(), std::size_t(6));
        QCOMPARE(spelt.ends, (std::vector<std::uint32_t>{1, 2, 3, 4, 5, 6}));
        // Without byte tokens it is the unknown token, once.
        for (std::size_t id = 0; id < v.size(); ++id)
            if (v.types[id] == TokenType::Byte)
                v.types[id] = TokenType::Unused;
        const auto unknown = *(*Tokenizer::create(v))->encode(text);
        QCOMPARE(unknown.ids.size(), std::size_t(3));
        QCOMPARE(unknown.ids[1], *v.unknown);
        QCOMPARE(unknown.ends, (std::vector<std::uint32_t>{1, 5, 6}));
    }

    void theSpacePrefixStandsOnlyWhereTextBegins() {
        const auto tokenizer = test::tinyTokenizer("spm-prefix");
        const auto whole = *tokenizer->encode("hello");
        QCOMPARE(*tokenizer->decode(whole.ids, false), std::string("hello"));
        QCOMPARE(std::string(tokenizer->bytes(whole.ids.front())).front(), ' ');
        const auto later = *tokenizer->encode("hello", {false, false, {}, false});
        QVERIFY(later.ids != whole.ids);
        QVERIFY(tokenizer->bytes(later.ids.front()).front() != ' ');
        QVERIFY(tokenizer->encode("")->ids.empty());
    }

    void specialTokensSwallowTheSpaceBesideThem() {
        Vocabulary v = test::tinyTokenizer("smollm")->vocabulary();
        v.stripAfter = {3};  // <|im_end|>
        v.stripBefore = {2}; // <|im_start|>
        const auto tokenizer = *Tokenizer::create(v);
        const std::string text = "a \n<|im_start|> b<|im_end|> \n\t<|im_end|>  c";
        const auto encoding = *tokenizer->encode(text, {true, false, {}});
        std::string shown;
        for (const TokenId id : encoding.ids)
            shown += tokenizer->bytes(id);
        QCOMPARE(shown, std::string("a<|im_start|> b<|im_end|><|im_end|>c"));
        QCOMPARE(static_cast<std::size_t>(encoding.ends.back()), text.size());
    }

    void byteAlphabetIsABijection() {
        std::set<std::string> seen;
        for (int byte = 0; byte < 256; ++byte) {
            const std::string& symbol = byteSymbol(static_cast<unsigned char>(byte));
            QVERIFY(seen.insert(symbol).second);
            QCOMPARE(*bytesOfSymbols(symbol), std::string(1, static_cast<char>(byte)));
        }
        QCOMPARE(byteSymbol(' '), std::string("\u0120"));
        QCOMPARE(byteSymbol('\n'), std::string("\u010A"));
        QVERIFY(!bytesOfSymbols(" ").has_value());
    }
};

QTEST_APPLESS_MAIN(TestTokenizer)
#include "test_tokenizer.moc"
