// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTest>

#include "app/bench/requests_file.h"

using namespace kvscope;
using namespace kvscope::bench;

namespace {

Result<Workload> read(const std::string& text, std::int32_t limit = 0) {
    return readRequests(text, "log", approximateTokens(1000), 1000, limit);
}

} // namespace

class TestBenchRequestsFile : public QObject {
    Q_OBJECT
private slots:
    void conversationsBecomeTurns() {
        const auto w = read(R"([
            {"id": "a", "conversations": [{"from": "system", "value": "12345678"}, {"from": "human", "value": "abcd"},
                {"from": "gpt", "value": "0123456789ab"}, {"from": "human", "value": "wxyz"},
                {"from": "gpt", "value": "y"}, {"from": "human", "value": "no answer"}]},
            {"messages": [{"role": "assistant", "content": "first"}, {"role": "user", "content": "abcd"},
                {"role": "assistant", "content": ""}]}])");
        QVERIFY2(w.has_value(), w ? "" : w.error().message.c_str());
        QCOMPARE(w->requests.size(), std::size_t(3));
        QCOMPARE(w->requests[0].tokens.size(), std::size_t(3)); // system and question, 4 bytes a token
        QCOMPARE(w->requests[0].answerTokens, 3);
        QCOMPARE(w->requests[1].follows, 0);
        QCOMPARE(w->requests[1].turn, 2);
        QCOMPARE(w->requests[1].historyTokens, 6);
        QCOMPARE(w->requests[1].promptTokens(), 7);
        QCOMPARE(w->requests[2].follows, -1);
        QCOMPARE(w->requests[2].owner, 1);
        QCOMPARE(w->requests[2].answerTokens, 1); // an empty answer still takes its end
        QVERIFY(!w->openLoop());
    }

    void linesCarryArrivalsInTheirOrder() {
        const auto w = read("{\"prompt\": \"abcdefgh\", \"max_tokens\": 5, \"arrival\": 2.5}\n\n"
                            "{\"prompt_tokens\": 7, \"max_tokens\": 3, \"arrival\": 0.5}\n"
                            "{\"prompt_ids\": [1, 2, 3], \"max_tokens\": 1, \"arrival\": 2.5}\n");
        QVERIFY2(w.has_value(), w ? "" : w.error().message.c_str());
        QVERIFY(w->openLoop());
        QCOMPARE(w->requests[0].promptTokens(), 7);
        QCOMPARE(w->requests[0].arrival, 0.5);
        QCOMPARE(w->requests[1].promptTokens(), 2);
        QCOMPARE(w->requests[2].tokens, (std::vector<TokenId>{1, 2, 3}));
    }

    void tracesShareWhatTheirHashesShare() {
        const auto w =
            read("{\"timestamp\": 0, \"input_length\": 1100, \"output_length\": 9, \"hash_ids\": [5, 6, 7]}\n"
                 "{\"timestamp\": 1500, \"input_length\": 1100, \"output_length\": 9, \"hash_ids\": [5, 6, 8]}\n");
        QVERIFY2(w.has_value(), w ? "" : w.error().message.c_str());
        QCOMPARE(w->requests[1].arrival, 1.5);
        const auto& a = w->requests[0].tokens;
        const auto& b = w->requests[1].tokens;
        QCOMPARE(a.size(), std::size_t(1100));
        QVERIFY(std::equal(a.begin(), a.begin() + 1024, b.begin()));
        QVERIFY(a[1024] != b[1024] || a[1025] != b[1025] || a[1026] != b[1026]);
    }

    void equalBeginningsHaveEqualTokensAndNothingElse() {
        const TextTokens tokens = approximateTokens(1'000'000);
        const auto a = tokens("The same beginning, then this"), b = tokens("The same beginning, then that");
        QCOMPARE(a.size(), b.size());
        QVERIFY(std::equal(a.begin(), a.begin() + 6, b.begin()));
        QVERIFY(a.back() != b.back());
        QVERIFY(tokens("abcdabcd")[0] != tokens("abcdabcd")[1]); // what stands before a token is part of it
    }

    void theLimitCutsTheFile() {
        const auto w =
            read("{\"prompt_tokens\": 1, \"max_tokens\": 1}\n{\"prompt_tokens\": 1, \"max_tokens\": 1}\n", 1);
        QVERIFY(w);
        QCOMPARE(w->requests.size(), std::size_t(1));
    }

    void whatIsWrongIsNamedWithItsPlace_data() {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("named");
        QTest::newRow("empty") << ""
                               << "no request";
        QTest::newRow("not JSON") << "{\"prompt_tokens\": 1, \"max_tokens\": 1}\nx"
                                  << "Line 2";
        QTest::newRow("no prompt") << "{\"max_tokens\": 1}"
                                   << "prompt_tokens";
        QTest::newRow("no answer") << "{\"prompt_tokens\": 3}"
                                   << "max_tokens";
        QTest::newRow("zero") << "{\"prompt_tokens\": 3, \"max_tokens\": 0}"
                              << "max_tokens";
        QTest::newRow("vocabulary") << "{\"prompt_ids\": [1000], \"max_tokens\": 1}"
                                    << "vocabulary";
        QTest::newRow("arrival") << "{\"prompt_tokens\": 3, \"max_tokens\": 1, \"arrival\": -2}"
                                 << "arrival";
        QTest::newRow("some arrivals") << "{\"prompt_tokens\": 3, \"max_tokens\": 1, \"arrival\": 2}\n"
                                          "{\"prompt_tokens\": 3, \"max_tokens\": 1}"
                                       << "every line or on none";
        QTest::newRow("no conversation") << "[{\"id\": 1}]"
                                         << "Entry 1";
        QTest::newRow("no text") << "[{\"messages\": [{\"role\": \"user\"}]}]"
                                 << "Entry 1";
    }
    void whatIsWrongIsNamedWithItsPlace() {
        QFETCH(QString, text);
        QFETCH(QString, named);
        const auto w = read(text.toStdString());
        QVERIFY(!w);
        QVERIFY2(QString::fromStdString(w.error().message).contains(named), w.error().message.c_str());
    }
};

QTEST_APPLESS_MAIN(TestBenchRequestsFile)
#include "test_bench_requests_file.moc"
