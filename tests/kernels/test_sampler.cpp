// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTest>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "kernels/cpu/philox.h"
#include "kernels/cpu/sampler.h"

using namespace kvscope::kernels;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

SampleParams hot() {
    SampleParams p;
    p.temperature = 1;
    p.seed = 42;
    return p;
}

SampledToken sampleOne(const std::vector<float>& logits, const SampleRow& row) {
    Sampler sampler(portableKernels(), static_cast<std::int32_t>(logits.size()));
    return sampler.sample(logits.data(), row);
}

std::vector<double> softmax(const std::vector<float>& logits, double temperature = 1) {
    std::vector<double> out;
    double sum = 0;
    const double largest = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
    for (float v : logits) {
        out.push_back(std::exp((static_cast<double>(v) - largest) / temperature));
        sum += out.back();
    }
    for (double& v : out)
        v /= sum;
    return out;
}

/// How often each token came in `draws` draws with ascending token index.
std::map<int, int> histogram(const std::vector<float>& logits, SampleRow row, int draws) {
    Sampler sampler(portableKernels(), static_cast<std::int32_t>(logits.size()));
    std::map<int, int> out;
    for (int i = 0; i < draws; ++i) {
        row.params.tokenIndex = static_cast<std::uint64_t>(i);
        ++out[sampler.sample(logits.data(), row).token];
    }
    return out;
}

std::set<int> support(const std::vector<float>& logits, const SampleRow& row, int draws = 3000) {
    std::set<int> out;
    for (const auto& [token, count] : histogram(logits, row, draws))
        out.insert(token);
    return out;
}

} // namespace

class TestSampler : public QObject {
    Q_OBJECT
private slots:
    void philoxKnownAnswers() {
        using Words = std::array<std::uint32_t, 4>;
        QVERIFY((philox4x32({0, 0, 0, 0}, {0, 0}) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
        QVERIFY((philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
                 Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
        QVERIFY((philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
                 Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
        double sum = 0;
        for (std::uint64_t i = 0; i < 100000; ++i) {
            const double u = philoxUniform(7, i);
            QVERIFY(u >= 0 && u < 1);
            sum += u;
        }
        QVERIFY(std::fabs(sum / 100000 - 0.5) < 0.005);
        QVERIFY(philoxUniform(7, 1) != philoxUniform(8, 1));
    }

    void greedyTakesTheLargestAndTheLowerIdOnTies() {
        SampleRow row;
        QCOMPARE(sampleOne({1, 5, 3, 5}, row).token, 1);
        QCOMPARE(sampleOne({-kInf, std::numeric_limits<float>::quiet_NaN(), -3}, row).token, 2);
        row.params.temperature = 1e-45f; // 1 / temperature is not finite: greedy
        QCOMPARE(sampleOne({1, 5, 3, 5}, row).token, 1);
        row.params.temperature = 1e-6f;
        for (std::uint64_t i = 0; i < 50; ++i) {
            row.params.tokenIndex = i;
            QCOMPARE(sampleOne({1, 5, 3, 4.999f}, row).token, 1);
        }
    }

    void drawsFollowTheDistribution() {
        const std::vector<float> logits = {0, 1, 2, -1, 0.5f, -20};
        for (float temperature : {0.7f, 1.0f, 1.8f}) {
            SampleRow row;
            row.params = hot();
            row.params.temperature = temperature;
            constexpr int kDraws = 40000;
            const auto counts = histogram(logits, row, kDraws);
            const auto p = softmax(logits, static_cast<double>(temperature));
            double chi = 0;
            for (int i = 0; i < 5; ++i) {
                const double expected = p[static_cast<std::size_t>(i)] * kDraws;
                const auto it = counts.find(i);
                const double seen = it == counts.end() ? 0 : it->second;
                chi += (seen - expected) * (seen - expected) / expected;
            }
            QVERIFY2(chi < 18.5, qPrintable(QString::number(chi))); // 4 degrees of freedom, p = 0.001; fixed seed
        }
    }

    void theSameSeedAndIndexGiveTheSameTokenInAnyCompany() {
        std::mt19937 random(1);
        std::normal_distribution<float> normal(0, 2);
        std::vector<float> logits(1000);
        for (float& v : logits)
            v = normal(random);
        SampleRow row;
        row.params = hot();
        row.params.topP = 0.9f;
        row.params.tokenIndex = 17;
        const std::int32_t alone = sampleOne(logits, row).token;
        Sampler used(portableKernels(), 1000); // one that has worked before, with every stage in use
        SampleRow other = row;
        const std::vector<std::int32_t> tokens = {1, 2, 3, 3};
        other.promptTokens = tokens;
        other.answerTokens = tokens;
        other.params.repetitionPenalty = 1.5f;
        other.params.presencePenalty = 0.5f;
        other.params.topK = 7;
        other.params.logprobs = 3;
        used.sample(logits.data(), other);
        QCOMPARE(used.sample(logits.data(), row).token, alone);
    }

    void biasPenaltiesAndMaskInTheirOrder() {
        SampleRow row;
        const std::vector<LogitBias> bias = {{2, 10}, {77, 1}}; // a token outside the vocabulary is ignored
        row.bias = bias;
        QCOMPARE(sampleOne({1, 5, 3, 0}, row).token, 2);
        // Repetition works on the biased logit: 13 / 4 < 5.
        const std::vector<std::int32_t> prompt = {2};
        row.promptTokens = prompt;
        row.params.repetitionPenalty = 4;
        QCOMPARE(sampleOne({1, 5, 3, 0}, row).token, 1);
        // The mask is last: what it forbids no bias brings back.
        const std::uint32_t mask[] = {0b1001};
        row.mask = mask;
        QCOMPARE(sampleOne({1, 5, 3, 0}, row).token, 0);
        const std::uint32_t none[] = {0};
        row.mask = none;
        QCOMPARE(sampleOne({1, 5, 3, 0}, row).token, -1);
        row.params.temperature = 1;
        QCOMPARE(sampleOne({1, 5, 3, 0}, row).token, -1);
    }

    void penaltiesCountAsDocumented() {
        // Seen by their effect on which of two tokens wins.
        const auto wins = [](float penalised, SampleRow row) { return sampleOne({penalised, 0}, row).token == 0; };
        const std::vector<std::int32_t> thrice = {0, 0, 0};
        SampleRow row;
        row.answerTokens = thrice;
        row.params.frequencyPenalty = 1;
        QVERIFY(!wins(2.9f, row));
        QVERIFY(wins(3.1f, row));
        row.params.frequencyPenalty = 0;
        row.params.presencePenalty = 1;
        QVERIFY(!wins(0.9f, row));
        QVERIFY(wins(1.1f, row));
        row.params.frequencyPenalty = 1;
        QVERIFY(!wins(3.9f, row));
        QVERIFY(wins(4.1f, row));
        SampleRow promptOnly; // presence and frequency look at the answer only
        promptOnly.promptTokens = thrice;
        promptOnly.params.presencePenalty = 5;
        promptOnly.params.frequencyPenalty = 5;
        QVERIFY(wins(0.1f, promptOnly));
        SampleRow both; // in prompt and answer: the repetition penalty applies once
        both.promptTokens = thrice;
        both.answerTokens = thrice;
        both.params.repetitionPenalty = 2;
        const std::vector<LogitBias> rival = {{1, 3}};
        both.bias = rival;
        QVERIFY(!wins(5.9f, both));
        QVERIFY(wins(6.1f, both));
        const std::vector<LogitBias> low = {{1, -5}};
        both.bias = low; // negative logits are multiplied
        QVERIFY(wins(-2.4f, both));
        QVERIFY(!wins(-2.6f, both));
    }

    void topKKeepsExactlyK() {
        SampleRow row;
        row.params = hot();
        row.params.temperature = 5;
        row.params.topK = 3;
        QCOMPARE(support({1, 2, 2, 2, 2}, row), (std::set<int>{1, 2, 3})); // ties: the lower ids
        row.params.topK = 100;                                             // more than there are
        QCOMPARE(support({1, 2, 2, 2, 2}, row).size(), std::size_t(5));
        row.params.topK = 1;
        QCOMPARE(support({1, 2, 2, 2, 2}, row), std::set<int>{1});
        const std::uint32_t mask[] = {0b10001};
        row.mask = mask;
        row.params.topK = 3; // fewer allowed than k
        QCOMPARE(support({1, 2, 2, 2, 2}, row), (std::set<int>{0, 4}));
    }

    void topPKeepsTheSmallestSetThatReachesP() {
        std::vector<float> logits;
        for (double p : {0.1, 0.4, 0.2, 0.3})
            logits.push_back(static_cast<float>(std::log(p)));
        SampleRow row;
        row.params = hot();
        for (const auto& [p, expected] : std::vector<std::pair<float, std::set<int>>>{{0.0f, {1}},
                                                                                      {0.39f, {1}},
                                                                                      {0.41f, {1, 3}},
                                                                                      {0.69f, {1, 3}},
                                                                                      {0.71f, {1, 2, 3}},
                                                                                      {0.95f, {0, 1, 2, 3}}}) {
            row.params.topP = p;
            QCOMPARE(support(logits, row), expected);
        }
        // After top-k the probabilities are those of what is left: 0.4 / 0.7 = 0.57.
        row.params.topK = 2;
        row.params.topP = 0.55f;
        QCOMPARE(support(logits, row), std::set<int>{1});
        row.params.topP = 0.6f;
        QCOMPARE(support(logits, row), (std::set<int>{1, 3}));
    }

    void topPOverALargeVocabularyEqualsSorting() {
        std::mt19937 random(3);
        std::normal_distribution<float> normal(0, 3);
        std::vector<float> logits(20000);
        for (float& v : logits)
            v = normal(random);
        const auto p = softmax(logits);
        std::vector<int> order(logits.size());
        std::iota(order.begin(), order.end(), 0);
        std::sort(order.begin(), order.end(), [&](int a, int b) {
            return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)];
        });
        double sum = 0;
        std::set<int> nucleus;
        for (int id : order) {
            if (sum >= 0.5)
                break;
            nucleus.insert(id);
            sum += p[static_cast<std::size_t>(id)];
        }
        SampleRow row;
        row.params = hot();
        row.params.topP = 0.5f;
        const auto seen = support(logits, row, 4000);
        QVERIFY(seen.size() > 20);
        for (int id : seen)
            QVERIFY(nucleus.count(id));
    }

    void minPIsRelativeToTheMostLikely() {
        std::vector<float> logits;
        for (double p : {0.1, 0.4, 0.21, 0.29})
            logits.push_back(static_cast<float>(std::log(p)));
        SampleRow row;
        row.params = hot();
        row.params.minP = 0.5f;
        QCOMPARE(support(logits, row), (std::set<int>{1, 2, 3}));
        row.params.minP = 0.6f;
        QCOMPARE(support(logits, row), (std::set<int>{1, 3}));
        row.params.topP = 0.95f;
        row.params.topK = 3;
        QCOMPARE(support(logits, row), (std::set<int>{1, 3}));
        row.params.minP = 1;
        QCOMPARE(support(logits, row), std::set<int>{1});
    }

    void logprobsAreOfTheRawLogits() {
        const std::vector<float> logits = {2, 1, 4, 3, -7};
        const auto p = softmax(logits);
        SampleRow row;
        const std::vector<LogitBias> bias = {{1, 100}};
        row.bias = bias;
        row.params = hot();
        row.params.logprobs = 3;
        const SampledToken got = sampleOne(logits, row);
        QCOMPARE(got.token, 1);
        QVERIFY(std::fabs(static_cast<double>(got.logprob) - std::log(p[1])) < 1e-6);
        QCOMPARE(got.top.size(), std::size_t(3));
        const int order[] = {2, 3, 0};
        for (std::size_t i = 0; i < 3; ++i) {
            QCOMPARE(got.top[i].first, order[i]);
            QVERIFY(std::fabs(static_cast<double>(got.top[i].second) -
                              std::log(p[static_cast<std::size_t>(order[i])])) < 1e-6);
        }
        row.params.logprobs = 50; // more than there are
        QCOMPARE(sampleOne(logits, row).top.size(), std::size_t(5));
    }
};

QTEST_APPLESS_MAIN(TestSampler)
#include "test_sampler.moc"
