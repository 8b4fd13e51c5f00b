// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTest>
#include <algorithm>
#include <map>
#include <set>

#include "app/bench/workload.h"

using namespace kvscope;
using namespace kvscope::bench;

namespace {

Workload make(const std::string& name, double scale = 1, std::int32_t requests = 0, std::uint64_t seed = 0) {
    auto workload = makeWorkload({name, scale, seed, requests, 32000});
    if (!workload)
        qFatal("%s", workload.error().message.c_str());
    return std::move(*workload);
}

std::vector<TokenId> part(const PlannedRequest& request, std::size_t from, std::size_t to) {
    return {request.tokens.begin() + static_cast<std::ptrdiff_t>(from),
            request.tokens.begin() + static_cast<std::ptrdiff_t>(to)};
}

} // namespace

class TestBenchWorkload : public QObject {
    Q_OBJECT
private slots:
    void lengthsAreThoseOfTheDefinition_data() {
        QTest::addColumn<QString>("name");
        QTest::addColumn<double>("scale");
        QTest::addColumn<int>("prompt");
        QTest::addColumn<int>("answer");
        QTest::newRow("short") << "short" << 1.0 << 500 << 100;
        QTest::newRow("long-form") << "long-form" << 1.0 << 2000 << 1000;
        QTest::newRow("long-doc") << "long-doc" << 1.0 << 7500 << 500;
        QTest::newRow("short, quarter") << "short" << 0.25 << 125 << 25;
        QTest::newRow("long-doc, quarter") << "long-doc" << 0.25 << 1875 << 125;
        QTest::newRow("long-form, tiny") << "long-form" << 0.01 << 20 << 10;
    }
    void lengthsAreThoseOfTheDefinition() {
        QFETCH(QString, name);
        QFETCH(double, scale);
        QFETCH(int, prompt);
        QFETCH(int, answer);
        const Workload workload = make(name.toStdString(), scale, 7);
        QCOMPARE(workload.requests.size(), std::size_t(7));
        for (const PlannedRequest& request : workload.requests) {
            QCOMPARE(request.promptTokens(), prompt);
            QCOMPARE(request.answerTokens, answer);
            QCOMPARE(requestKindName(request.kind), qPrintable(name.section(',', 0, 0)));
        }
        QCOMPARE(workload.longestSequence(), prompt + answer);
        QCOMPARE(longestAt(name.toStdString(), scale), prompt + answer);
    }

    void mixHasItsSharesInEveryTwenty() {
        const Workload workload = make("mix", 1, 300);
        std::map<RequestKind, int> whole;
        for (std::size_t first = 0; first < 300; first += 20) {
            std::map<RequestKind, int> deck;
            for (std::size_t i = first; i < first + 20; ++i)
                ++deck[workload.requests[i].kind];
            QCOMPARE(deck[RequestKind::Short], 12);
            QCOMPARE(deck[RequestKind::LongForm], 5);
            QCOMPARE(deck[RequestKind::LongDoc], 3);
            for (const auto& [kind, count] : deck)
                whole[kind] += count;
        }
        QCOMPARE(whole[RequestKind::Short], 180);
        QCOMPARE(whole[RequestKind::LongDoc], 45);
        std::set<RequestKind> beginning;
        for (std::size_t i = 0; i < 10; ++i)
            beginning.insert(workload.requests[i].kind);
        QVERIFY(beginning.size() > 1); // shuffled
    }

    void documentsFollowTheirSystemPromptAndQuestionsAreUnique() {
        const Workload workload = make("mix", 1, 300);
        std::set<std::vector<TokenId>> systems, questions;
        std::map<std::vector<TokenId>, std::set<std::vector<TokenId>>> documents;
        for (const PlannedRequest& request : workload.requests) {
            const auto system = part(request, 0, 200);
            systems.insert(system);
            const bool isDocument = request.kind == RequestKind::LongDoc;
            questions.insert(part(request, isDocument ? 7400 : 200, request.tokens.size()));
            if (isDocument)
                documents[system].insert(part(request, 200, 7400));
        }
        QCOMPARE(systems.size(), std::size_t(4));
        QCOMPARE(questions.size(), std::size_t(300));
        QCOMPARE(documents.size(), std::size_t(4));
        std::set<std::vector<TokenId>> all;
        for (const auto& [system, own] : documents) {
            QCOMPARE(own.size(), std::size_t(1));
            all.insert(own.begin(), own.end());
        }
        QCOMPARE(all.size(), std::size_t(4));
    }

    void turnsContinueTheirUsersConversation() {
        const Workload workload = make("multi-turn");
        QCOMPARE(workload.requests.size(), std::size_t(16 * 8));
        std::map<std::int32_t, std::int32_t> newest;
        for (std::size_t i = 0; i < workload.requests.size(); ++i) {
            const PlannedRequest& request = workload.requests[i];
            QCOMPARE(request.owner, static_cast<std::int32_t>(i % 16));
            QCOMPARE(request.turn, static_cast<std::int32_t>(i / 16) + 1);
            QCOMPARE(request.promptTokens(), 400 + 60 * request.turn + 100 * (request.turn - 1));
            QCOMPARE(request.answerTokens, 100);
            QCOMPARE(request.follows, request.turn == 1 ? -1 : newest[request.owner]);
            newest[request.owner] = static_cast<std::int32_t>(i);
        }
        QCOMPARE(part(workload.requests[0], 0, 400), part(workload.requests[15], 0, 400));
        QVERIFY(part(workload.requests[0], 400, 460) != part(workload.requests[15], 400, 460));
        QCOMPARE(workload.longestSequence(), 1680);
        QCOMPARE(longestAt("multi-turn", 1), 1680);
    }

    void stampedeIsHistoriesThenAFloodThenOneMoreTurn() {
        const Workload workload = make("stampede");
        QCOMPARE(workload.requests.size(), std::size_t(64 + 64 + 16));
        std::map<std::int32_t, int> phases;
        std::set<std::vector<TokenId>> flood;
        for (const PlannedRequest& request : workload.requests) {
            ++phases[request.phase];
            QCOMPARE(request.phase, request.kind == RequestKind::Flood ? 1 : request.turn == 5 ? 2 : 0);
            if (request.kind != RequestKind::Flood)
                continue;
            QCOMPARE(request.promptTokens(), 500);
            QCOMPARE(request.answerTokens, 20);
            flood.insert(part(request, 0, 16));
        }
        QCOMPARE(phases[0], 64);
        QCOMPARE(phases[1], 64);
        QCOMPARE(phases[2], 16);
        QCOMPARE(flood.size(), std::size_t(64)); // not even a block in common
        // System 400 once, 16 x 640 of the users' own, 8 x 520, in blocks of 16.
        QCOMPARE(workload.poolBlocks16, 25 + 16 * 40 + 8 * 33);
        QCOMPARE(longestAt("stampede", 1), workload.longestSequence());
    }

    void theSeedDecidesAndNothingElse() {
        const Workload first = make("mix", 0.5, 40), again = make("mix", 0.5, 40), other = make("mix", 0.5, 40, 1);
        bool differs = false;
        for (std::size_t i = 0; i < 40; ++i) {
            QCOMPARE(first.requests[i].tokens, again.requests[i].tokens);
            QCOMPARE(first.requests[i].kind, again.requests[i].kind);
            differs |= first.requests[i].tokens != other.requests[i].tokens;
        }
        QVERIFY(differs);
        // More requests are the same ones and further ones.
        const Workload more = make("mix", 0.5, 60);
        for (std::size_t i = 0; i < 40; ++i)
            QCOMPARE(more.requests[i].tokens, first.requests[i].tokens);
    }

    void tokensAreOfTheVocabulary() {
        const auto workload = makeWorkload({"mix", 0.05, 0, 40, 7});
        QVERIFY(workload);
        std::set<TokenId> seen;
        for (const PlannedRequest& request : workload->requests)
            seen.insert(request.tokens.begin(), request.tokens.end());
        QCOMPARE(*seen.begin(), 0);
        QCOMPARE(*seen.rbegin(), 6);
    }

    void theLargestScaleFitsAndTheNextDoesNot_data() {
        QTest::addColumn<QString>("name");
        QTest::addColumn<int>("tokens");
        for (const std::string& name : workloadNames())
            for (const int tokens : {512, 2048, 8000})
                QTest::addRow("%s, %d", name.c_str(), tokens) << QString::fromStdString(name) << tokens;
    }
    void theLargestScaleFitsAndTheNextDoesNot() {
        QFETCH(QString, name);
        QFETCH(int, tokens);
        const double scale = largestScale(name.toStdString(), tokens);
        QVERIFY(scale > 0);
        QVERIFY(longestAt(name.toStdString(), scale) <= tokens);
        QVERIFY(longestAt(name.toStdString(), scale + 0.001) > tokens);
        QVERIFY(make(name.toStdString(), scale).longestSequence() <= tokens);
    }

    void whatCannotBeAskedForIsRefused_data() {
        QTest::addColumn<QString>("name");
        QTest::addColumn<double>("scale");
        QTest::addColumn<int>("requests");
        QTest::addColumn<QString>("named");
        QTest::newRow("name") << "mixed" << 1.0 << 0 << "'mixed'";
        QTest::newRow("scale") << "mix" << 0.0 << 0 << "--scale";
        QTest::newRow("no number") << "mix" << std::nan("") << 0 << "--scale";
        QTest::newRow("requests") << "mix" << 1.0 << -1 << "--requests";
        QTest::newRow("fixed") << "stampede" << 1.0 << 10 << "--requests";
    }
    void whatCannotBeAskedForIsRefused() {
        QFETCH(QString, name);
        QFETCH(double, scale);
        QFETCH(int, requests);
        QFETCH(QString, named);
        const auto workload = makeWorkload({name.toStdString(), scale, 0, requests, 32000});
        QVERIFY(!workload);
        QVERIFY2(QString::fromStdString(workload.error().message).contains(named), workload.error().message.c_str());
    }
};

QTEST_APPLESS_MAIN(TestBenchWorkload)
#include "test_bench_workload.moc"
