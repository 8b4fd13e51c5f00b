// SPDX-License-Identifier: GPL-3.0-or-later
//
// Texts of special tokens: against an obvious oracle, and vocabularies made to be slow.
#include <QElapsedTimer>
#include <QTest>
#include <algorithm>
#include <functional>
#include <random>
#include <set>

#include <rapidcheck.h>

#include "engine/model/byte_alphabet.h"
#include "engine/model/special_token_finder.h"
#include "engine/model/tokenizer.h"
#include "tests/support/holds.h"

using namespace kvscope;
using namespace kvscope::model;

namespace {

/// As the definition says it: the longest text over the whole text first, then the next; leftmost among equals.
std::vector<SpecialMatch> foundSlowly(const std::string& text, const std::vector<SpecialToken>& tokens,
                                      bool withRestricted, const std::vector<TextRange>& userText) {
    std::vector<bool> taken(text.size());
    std::vector<SpecialMatch> out;
    std::set<std::size_t, std::greater<>> lengths;
    for (const SpecialToken& token : tokens)
        lengths.insert(token.text.size());
    for (const std::size_t length : lengths)
        for (std::size_t at = 0; at + length <= text.size(); ++at) {
            const auto token = std::find_if(tokens.begin(), tokens.end(), [&](const SpecialToken& t) {
                return !t.text.empty() && t.text == std::string_view(text).substr(at, length);
            });
            const auto first = taken.begin() + static_cast<std::ptrdiff_t>(at);
            if (token == tokens.end() || std::find(first, first + static_cast<std::ptrdiff_t>(length), true) !=
                                             first + static_cast<std::ptrdiff_t>(length))
                continue;
            const bool byUser = std::any_of(userText.begin(), userText.end(), [&](const TextRange& range) {
                return range.begin < at + length && range.end > at;
            });
            if (token->restricted && (!withRestricted || byUser))
                continue;
            std::fill_n(first, length, true);
            out.push_back({{at, at + length}, token->token});
        }
    std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.range.begin < b.range.begin; });
    return out;
}

/// Bytes as tokens, and `count` tokens a, aa, aaa, ... of one type behind them.
Vocabulary chainOfTokens(TokenType type, int count) {
    Vocabulary v;
    v.model = "gpt2";
    v.preTokenizer = "gpt-2";
    for (int byte = 0; byte < 256; ++byte)
        v.tokens.push_back(byteSymbol(static_cast<unsigned char>(byte)));
    v.types.assign(v.tokens.size(), TokenType::Normal);
    for (int i = 2; i <= count; ++i) {
        v.tokens.emplace_back(static_cast<std::size_t>(i), 'a');
        v.types.push_back(type);
    }
    return v;
}

constexpr std::size_t kLength = 200'000;
constexpr int kTokens = 3000;

} // namespace

class TestSpecialTokens : public QObject {
    Q_OBJECT
private slots:
    void tokensAreFoundAsTheirDefinitionSays() {
        QVERIFY(test::holds("longest first, then leftmost", test::kHoldsRuns, [] {
            const auto words = rc::gen::container<std::vector<std::string>>(
                rc::gen::container<std::string>(rc::gen::elementOf(std::string("aab"))));
            const auto texts = *words; // empty ones and doubles among them
            const auto text =
                *rc::gen::scale(2.0, rc::gen::container<std::string>(rc::gen::elementOf(std::string("aabc"))));
            std::vector<SpecialToken> tokens;
            for (std::size_t i = 0; i < texts.size(); ++i)
                tokens.push_back({texts[i], static_cast<TokenId>(i), *rc::gen::arbitrary<bool>(), {}});
            std::vector<TextRange> userText;
            for (std::size_t at = 0; at < text.size();) {
                const auto begin = at + *rc::gen::inRange<std::size_t>(0, 12);
                const auto end = std::min(begin + *rc::gen::inRange<std::size_t>(1, 4), text.size());
                if (begin < end)
                    userText.push_back({begin, end});
                at = end + 1;
            }
            const bool withRestricted = *rc::gen::arbitrary<bool>();
            const auto found = SpecialTokenFinder(tokens).find(text, withRestricted, userText);
            const auto expected = foundSlowly(text, tokens, withRestricted, userText);
            RC_ASSERT(found.size() == expected.size());
            for (std::size_t i = 0; i < found.size(); ++i) {
                RC_ASSERT(found[i].range == expected[i].range);
                RC_ASSERT(found[i].token == expected[i].token);
            }
        }));
    }

    void aHostileVocabularyIsNoSlower_data() {
        QTest::addColumn<int>("type");
        QTest::addColumn<QString>("kind");
        QTest::newRow("control tokens") << int(TokenType::Control) << "gpt2";
        QTest::newRow("user-defined tokens") << int(TokenType::UserDefined) << "gpt2";
        QTest::newRow("merges of a byte-level vocabulary") << int(TokenType::Normal) << "gpt2";
        QTest::newRow("merges of a SentencePiece vocabulary") << int(TokenType::Normal) << "llama";
    }
    void aHostileVocabularyIsNoSlower() {
        QFETCH(int, type);
        QFETCH(QString, kind);
        Vocabulary v = chainOfTokens(TokenType(type), kTokens);
        v.model = kind.toStdString();
        for (std::size_t id = 256; id < v.size() && type == int(TokenType::Normal); ++id)
            v.merges.emplace_back(v.tokens[id].substr(1), "a"); // 256 is "aa"
        for (std::size_t id = 0; id < v.size() && v.model == "llama"; ++id)
            v.scores.push_back(static_cast<float>(id));
        const auto tokenizer = Tokenizer::create(v);
        QVERIFY2(tokenizer, tokenizer ? "" : tokenizer.error().message.c_str());
        std::mt19937 random(11);
        std::vector<std::string> texts(4);
        texts[0].assign(kLength, 'a');
        while (texts[1].size() < kLength) // runs that end just before a token would
            texts[1] += std::string(1 + random() % kTokens, 'a') + "b";
        while (texts[2].size() < kLength)
            texts[2].push_back("aaaaaaab"[random() % 8]);
        for (std::size_t run = 1; texts[3].size() < kLength; run = run % kTokens + 7)
            texts[3] += std::string(run, 'a') + "b";
        std::vector<TextRange> everyThousandth;
        for (std::size_t at = 500; at < kLength; at += 1000)
            everyThousandth.push_back({at, at + 1});
        for (const std::string& text : texts)
            for (const bool withUserText : {false, true}) {
                QElapsedTimer timer;
                timer.start();
                const std::span<const TextRange> userText =
                    withUserText ? std::span<const TextRange>(everyThousandth) : std::span<const TextRange>();
                const auto encoding = (*tokenizer)->encode(text, {true, false, userText});
                const qint64 elapsed = timer.elapsed();
                QVERIFY(encoding.has_value());
                QCOMPARE(QByteArray::fromStdString(*(*tokenizer)->decode(encoding->ids, false)),
                         QByteArray::fromStdString(text));
                qInfo("%zu tokens, %lld ms", encoding->ids.size(), static_cast<long long>(elapsed));
                QVERIFY2(elapsed < 10'000, qPrintable(QString::number(elapsed))); // sanitizers, busy machines
            }
    }

    void moreTextThanAnyVocabularyHasIsRefused() {
        Vocabulary v = chainOfTokens(TokenType::Control, 2);
        v.tokens.emplace_back((std::size_t(16) << 20) + 1, 'x');
        v.types.push_back(TokenType::Control);
        const auto tokenizer = Tokenizer::create(v);
        QVERIFY(tokenizer.has_value()); // it can still be decoded
        QVERIFY((*tokenizer)->canEncode().error().message.find("16 MiB") != std::string::npos);
    }
};

QTEST_APPLESS_MAIN(TestSpecialTokens)
#include "test_special_tokens.moc"
