// SPDX-License-Identifier: GPL-3.0-or-later
//
// Perplexity, KL and their errors against sums done by hand, and the advice that follows from them.
#include <QTest>
#include <cmath>
#include <random>

#include "app/cli/eval_run.h"

using namespace kvscope;
using namespace kvscope::cli;

namespace {

std::vector<float> logs(std::initializer_list<double> probabilities, double shift = 0) {
    std::vector<float> out;
    for (const double p : probabilities)
        out.push_back(static_cast<float>(std::log(p) + shift));
    return out;
}

EvalRow row(const char* keys, double bytes, double kl, double ratio, double spread = 0.001) {
    EvalRow out;
    out.keys = out.values = keys;
    out.bytesPerToken = bytes;
    for (int i = 0; i < 1000; ++i) {
        PositionScore score;
        score.kl = kl;
        score.surprise = 3 + std::log(ratio) + (i % 2 == 0 ? spread : -spread);
        out.score.add(score, 3);
    }
    return out;
}

} // namespace

class TestEvalScore : public QObject {
    Q_OBJECT
private slots:
    void aPositionAgainstItselfCostsNothing() {
        const auto p = logs({0.5, 0.25, 0.25});
        const PositionScore score = scorePosition(p, p, 1);
        QVERIFY(std::abs(score.surprise - std::log(4.0)) < 1e-6);
        QCOMPARE(score.kl, 0.0);
        QVERIFY(score.sameTop);
    }

    void kullbackLeiblerIsThatOfTheBooks() {
        // KL(p || q) = 0.5 log(0.5 / 0.25) + 0.25 log(0.25 / 0.5) + 0.25 log(0.25 / 0.25)
        const PositionScore score = scorePosition(logs({0.5, 0.25, 0.25}, 7), logs({0.25, 0.5, 0.25}, -3), 0);
        QVERIFY(std::abs(score.kl - 0.25 * std::log(2.0)) < 1e-6); // shifts of the logits change nothing
        QVERIFY(std::abs(score.surprise - std::log(4.0)) < 1e-6);
        QVERIFY(!score.sameTop);
    }

    void equalLogitsAgreeOnTheLowestId() {
        QVERIFY(scorePosition(logs({0.4, 0.4, 0.2}), logs({0.4, 0.4, 0.2}), 2).sameTop);
        QVERIFY(!scorePosition(logs({0.4, 0.4, 0.2}), logs({0.39, 0.41, 0.2}), 2).sameTop);
    }

    void sumsAndTheirErrorAreThoseOfTheFormula() {
        std::mt19937 random(7);
        std::normal_distribution<double> noise(0.01, 0.2);
        TextScore score;
        std::vector<double> differences;
        double surprise = 0, kl = 0;
        for (int i = 0; i < 5000; ++i) {
            const double reference = 2 + 0.001 * i, difference = noise(random);
            differences.push_back(difference);
            surprise += reference + difference;
            kl += 0.002 * (i % 3);
            PositionScore position;
            position.surprise = reference + difference;
            position.kl = 0.002 * (i % 3);
            position.sameTop = i % 5 != 0;
            score.add(position, reference);
        }
        double mean = 0, variance = 0;
        for (const double d : differences)
            mean += d / 5000;
        for (const double d : differences)
            variance += (d - mean) * (d - mean) / 4999;
        QCOMPARE(score.positions(), std::int64_t(5000));
        QVERIFY(std::abs(score.perplexity() / std::exp(surprise / 5000) - 1) < 1e-12);
        QVERIFY(std::abs(score.perplexityRatio() / std::exp(mean) - 1) < 1e-12);
        QVERIFY(std::abs(score.ratioStandardError() / (std::exp(mean) * std::sqrt(variance / 5000)) - 1) < 1e-9);
        QVERIFY(std::abs(score.klMean() - kl / 5000) < 1e-15);
        QCOMPARE(score.topAgreement(), 0.8);
    }

    void windowsCoverTheTextOnce_data() {
        QTest::addColumn<int>("tokens");
        QTest::addColumn<int>("window");
        QTest::addColumn<bool>("begin");
        for (const int tokens : {2, 3, 15, 16, 17, 31, 32, 33, 1000})
            for (const int window : {2, 3, 16, 64})
                for (const bool begin : {false, true})
                    QTest::addRow("%d in %d%s", tokens, window, begin ? " with a begin token" : "")
                        << tokens << window << begin;
    }
    void windowsCoverTheTextOnce() {
        QFETCH(int, tokens);
        QFETCH(int, window);
        QFETCH(bool, begin);
        EvalText text;
        text.tokens.assign(std::size_t(tokens), 5);
        text.window = window;
        if (begin)
            text.begin = 1;
        std::size_t next = 0;
        for (const auto& [first, last] : windowsOf(text)) {
            QCOMPARE(first, next);
            QVERIFY(last - first + (begin ? 1 : 0) <= std::size_t(window));
            QVERIFY(last - first + (begin ? 1 : 0) >= 2); // something can be predicted
            next = last;
        }
        QVERIFY(std::size_t(tokens) - next <= 1);
    }

    void theSmallestThatIsGoodIsRecommended() {
        std::vector<EvalRow> rows;
        rows.push_back(row("f16", 256, 0, 1));
        rows.push_back(row("fp8_e4m3", 128, 0.002, 1.001));
        rows.push_back(row("int4", 72, 0.2, 1.2));
        const std::string text = recommendation(rows, false);
        QVERIFY2(text.rfind("fp8_e4m3: ", 0) == 0, text.c_str());
        QVERIFY2(text.find("the largest here 2.00 times as many") != std::string::npos, text.c_str());
        QVERIFY2(text.find("int4 would take 72, but its KL is 0.2000.") != std::string::npos, text.c_str());
        rows.back() = row("int4", 72, 0.002, 1.2);
        QVERIFY(recommendation(rows, false).find("but its perplexity is 20.00 % higher") != std::string::npos);
    }

    void aBadRatioCountsOnlyBeyondItsError() {
        std::vector<EvalRow> rows;
        rows.push_back(row("f16", 256, 0, 1));
        rows.push_back(row("int8", 136, 0.001, 1.02, 1.0)); // 2 % more, give or take 3 %
        QVERIFY(recommendation(rows, false).rfind("int8: ", 0) == 0);
        rows.back() = row("int8", 136, 0.001, 1.02, 0.001);
        QVERIFY(recommendation(rows, false).rfind("f16: ", 0) == 0);
    }

    void floatActivationsAskForMore() {
        std::vector<EvalRow> rows;
        rows.push_back(row("f16", 256, 0, 1));
        rows.push_back(row("int4", 72, 0.008, 1.001));
        QVERIFY(recommendation(rows, false).rfind("int4: ", 0) == 0);
        QVERIFY(recommendation(rows, true).rfind("f16: ", 0) == 0);
    }

    void nothingGoodMeansF16() {
        std::vector<EvalRow> rows;
        rows.push_back(row("int4", 72, 0.3, 1.4));
        QVERIFY(recommendation(rows, false).find("stay with f16") != std::string::npos);
    }
};

QTEST_APPLESS_MAIN(TestEvalScore)
#include "test_eval_score.moc"
