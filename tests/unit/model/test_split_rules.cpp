// SPDX-License-Identifier: GPL-3.0-or-later
//
// The hand-written splitting rules against the regular expressions that they stand for, run by PCRE (in Qt) over random
// texts; and that none of them takes more than linear time.
#include <QRegularExpression>
#include <QTest>
#include <random>

#include <time.h>

#include "engine/model/pretokenizer.h"
#include "tests/unit/model/text_reference.h"

using namespace kvscope;
using namespace kvscope::model;

namespace {

const QString kContraction = "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])";
const QString kWhitespace = R"(\s*[\r\n]+|\s+(?!\S)|\s+)";
const QString kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))";
const QString kCased = R"((?=\p{L})[^a-z])";
const QString kSmall = R"((?=\p{L})[^A-Z])";
/// Cased letters as far as the texts below hold them.
const QString kSpacedCased = "\\s?[A-Za-zÉéßΣσЖж\u01C5\U00010400]+";
const QString kPunctuationOfLlm = "\\s?[!-/:-~\uFF01-\uFF0F\uFF1A-\uFF5E\u2018-\u201F\u3001\u3002]+";
const QString kEastAsian = "(?:(?!\\s)[\u0800-\u9FA5\uAC00-\uD7FF])+";

QString words(const QString& numbers) {
    return kContraction + R"(|[^\r\n\p{L}\p{N}]?\p{L}+|)" + numbers + R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|)" + kWhitespace;
}

QString casedWords(const QString& numbers, const QString& behind) {
    const QString before = R"([^\r\n\p{L}\p{N}]?)";
    return before + "(?:" + kCased + ")*(?:" + kSmall + ")+" + behind + "|" + before + "(?:" + kCased +
           ")+(?:" + kSmall + ")*" + behind + "|" + numbers + R"(| ?[^\s\p{L}\p{N}]+[\r\n/]*|)" + kWhitespace;
}

struct Kind {
    const char* name;
    QStringList expressions;
};

std::vector<Kind> kinds() {
    const QString marked =
        kContraction + R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|)" + kWhitespace;
    // No raw string: moc reads a quotation mark in one as its end.
    const QString v3 =
        "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
        "| ?[\\p{P}\\p{S}]+[\\r\\n]*|" +
        kWhitespace;
    return {
        {"gpt-2", {kGpt2}},
        {"smollm", {R"(\p{N})", kGpt2}},
        {"qwen2", {words(R"(\p{N})")}},
        {"llama-bpe", {words(R"(\p{N}{1,3})")}},
        {"qwen35", {marked}},
        {"seed-coder", {kContraction + R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|)" + kWhitespace}},
        {"bailingmoe", {words(R"(\p{N})").replace(R"(\s*[\r\n]+)", R"(\s*[\r\n])")}},
        {"tekken", {casedWords(R"(\p{N})", "")}},
        {"gpt-4o", {casedWords(R"(\p{N}{1,3})", kContraction + "?")}},
        {"deepseek-llm", {R"([\r\n])", kSpacedCased, kPunctuationOfLlm, R"(\s+\z)", kEastAsian, R"(\p{N}+)"}},
        {"deepseek-coder", {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", kEastAsian, R"(\p{N})"}},
        {"deepseek-v3", {R"(\p{N}{1,3})", "[\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+", v3}},
    };
}

/// Matches and the gaps between them, of each piece that the expression before left.
QStringList splitByExpressions(const QString& text, const std::vector<QRegularExpression>& expressions) {
    QStringList pieces{text};
    for (const QRegularExpression& expression : expressions) {
        QStringList next;
        for (const QString& piece : pieces) {
            qsizetype done = 0;
            for (auto it = expression.globalMatch(piece); it.hasNext();) {
                const QRegularExpressionMatch match = it.next();
                if (match.capturedStart() > done)
                    next << piece.mid(done, match.capturedStart() - done);
                next << match.captured();
                done = match.capturedEnd();
            }
            if (done < piece.size())
                next << piece.mid(done);
        }
        pieces = next;
    }
    return pieces;
}

QStringList splitByRules(const QString& text, const PreTokenizer& kind) {
    const std::string bytes = text.toStdString();
    const CodePoints codePoints(bytes);
    QStringList pieces;
    std::size_t begin = 0;
    for (const std::size_t pieceEnd : splitPieces(kind, codePoints)) {
        const std::size_t end = codePoints.offsets[pieceEnd];
        pieces << QString::fromStdString(bytes.substr(begin, end - begin));
        begin = end;
    }
    return pieces;
}

/// Texts in which everything that some rule asks about meets everything else.
QString randomText(std::mt19937& random) {
    static const QStringList kParts = {
        " ",    "  ",  "\n",     "\r\n",   "\t", "\u00A0", "\u3000",     "\u2028", "\u0085", "\u000B", "'",      "'s",
        "'S",   "'ll", "'Re",    "'x",     "a",  "bc",     "A",          "BC",     "É",      "é",      "ß",      "Σ",
        "σ",    "Ж",   "\u01C5", "中",     "か", "カ",     "한",         "ไ",      "\u0301", "\u093F", "1",      "22",
        "4444", "½",   "Ⅷ",      "\u0967", ".",  ",",      "/",          "//",     "_",      "$",      "+",      "€",
        "，",   "。",  "、",     "‘",      "～", "😀",      "\U00010400", "\u200D", "\u0001", "\uE000", "\uFEFF", "<",
        "|",    "(",   "x"};
    std::uniform_int_distribution<int> length(0, 24);
    std::uniform_int_distribution<qsizetype> part(0, kParts.size() - 1);
    QString text;
    for (int left = length(random); left > 0; --left)
        text += kParts[part(random)];
    return text;
}

double cpuMilliseconds(const PreTokenizer& kind, const std::string& text) {
    const auto now = [] {
        timespec time{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time); // does not run while other programs do
        return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
    };
    const CodePoints codePoints(text);
    const double start = now();
    if (splitPieces(kind, codePoints).back() != codePoints.size())
        throw std::logic_error("the last piece does not end at the end");
    return now() - start;
}

} // namespace

class TestSplitRules : public QObject {
    Q_OBJECT
private slots:
    void rulesSplitLikeTheirExpressions_data() {
        QTest::addColumn<QStringList>("expressions");
        for (const Kind& kind : kinds())
            QTest::newRow(kind.name) << kind.expressions;
    }
    void rulesSplitLikeTheirExpressions() {
        QFETCH(QStringList, expressions);
        const PreTokenizer& kind = **findPreTokenizer(QTest::currentDataTag());
        std::vector<QRegularExpression> compiled;
        for (const QString& source : expressions)
            compiled.emplace_back(source, QRegularExpression::UseUnicodePropertiesOption);
        std::mt19937 random(7);
        for (int i = 0; i < 1500; ++i) {
            const QString text = randomText(random);
            const QStringList expected = splitByExpressions(text, compiled);
            const QStringList got = splitByRules(text, kind);
            QVERIFY2(got == expected, qPrintable(expected.join("¦") + "\n     but: " + got.join("¦")));
        }
    }

    void everyKindIsLinear_data() {
        QTest::addColumn<QByteArray>("repeated");
        for (const char* part : {"a", "A",  "É",  "aA", "ÉA",      " ", "\n", " \n",    "\r",   "9",
                                 "'", "'s", "'ſ", "中", "e\u0301", ".", " .", "\u3000", "\xFF", "😀 "})
            QTest::newRow(part) << QByteArray(part);
    }
    void everyKindIsLinear() {
        QFETCH(QByteArray, repeated);
        const auto text = [&](qsizetype bytes) { return repeated.repeated(bytes / repeated.size()).toStdString(); };
        for (const Kind& kind : kinds()) {
            const PreTokenizer& rules = **findPreTokenizer(kind.name);
            // A character of another class at the end: whitespace that is not trailing after all.
            const double small = cpuMilliseconds(rules, text(10'000) + "x");
            const double large = cpuMilliseconds(rules, text(160'000) + "x");
            QVERIFY2(large < 60 * small + 50, // 16 times if linear, 256 times if quadratic
                     qPrintable(QString("%1: %2 ms, %3 ms").arg(kind.name).arg(small).arg(large)));
        }
    }

    void everyNameHasItsKind_data() {
        QTest::addColumn<QByteArray>("kind");
        const auto rows = [](const char* kind, std::initializer_list<const char*> names) {
            for (const char* name : names)
                QTest::newRow(name) << QByteArray(kind);
        };
        rows("gpt-2", {"gpt-2", "mpt", "olmo", "jais", "trillion"});
        rows("smollm", {"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"});
        rows("qwen2", {"qwen2", "deepseek-r1-qwen", "megrez", "stablelm2", "hunyuan", "solar-open"});
        rows("llama-bpe", {"llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral"});
        rows("dbrx", {"dbrx", "smaug-bpe"});
        for (const char* own : {"qwen35", "deepseek-llm", "deepseek-coder", "deepseek-v3", "tekken", "gpt-4o"})
            rows(own, {own});
    }
    void everyNameHasItsKind() {
        QFETCH(QByteArray, kind);
        const auto found = findPreTokenizer(QTest::currentDataTag());
        QVERIFY(found.has_value());
        QCOMPARE((*found)->name, std::string_view(kind.constData()));
    }

    void onlyVocabulariesOfWholeWordsLookThemUpFirst() {
        for (const Kind& kind : kinds()) {
            const PreTokenizer& rules = **findPreTokenizer(kind.name);
            const bool whole = rules.name == "llama-bpe" || rules.name == "tekken";
            QCOMPARE(rules.wholePieceFirst, whole);
            QCOMPARE(rules.addBosByDefault, whole);
        }
        QVERIFY(!(*findPreTokenizer("dbrx"))->wholePieceFirst);
    }

    void aNameThatIsNotBuiltIsNeverGuessed() {
        for (const char* name : {"frobnicate-7", "default", "", "QWEN2", "qwen2 "}) {
            const auto kind = findPreTokenizer(name);
            QVERIFY(!kind.has_value());
            QCOMPARE(static_cast<int>(kind.error().code), static_cast<int>(ErrorCode::Unsupported));
            QVERIFY(kind.error().message.find("tokenizer.ggml.pre") != std::string::npos);
        }
    }
};

QTEST_APPLESS_MAIN(TestSplitRules)
#include "test_split_rules.moc"
