// SPDX-License-Identifier: GPL-3.0-or-later
//
// What reading and moving cost, learned from what they took.
#include <QTest>
#include <cmath>

#include "engine/api/host_mover.h"
#include "engine/api/read_cost.h"

using namespace kvscope;
using namespace kvscope::api;

namespace {

constexpr double kToken = 50'000, kAttention = 20; ///< nanoseconds

Nanos took(std::int64_t from, std::int64_t to) {
    const auto a = static_cast<double>(from), b = static_cast<double>(to);
    return static_cast<Nanos>(kToken * (b - a) + kAttention * (b * (b - 1) - a * (a - 1)) / 2);
}

void read(ReadCost& cost, std::int64_t from, std::int64_t to, double factor = 1) {
    double positions = 0;
    for (std::int64_t p = from; p < to; ++p)
        positions += static_cast<double>(p);
    cost.step(to - from, positions, static_cast<Nanos>(factor * static_cast<double>(took(from, to))));
}

bool near(double value, double expected, double share) {
    return std::fabs(value - expected) <= share * expected;
}

} // namespace

class TestReadCost : public QObject {
    Q_OBJECT
private slots:
    void aTokenSeesWhatIsBeforeItAndInSight() {
        QCOMPARE(ReadCost::positionsSeen(0, 4, 1000), 0.0 + 1 + 2 + 3);
        QCOMPARE(ReadCost::positionsSeen(3, 6, 1000), 3.0 + 4 + 5);
        QCOMPARE(ReadCost::positionsSeen(3, 8, 5), 3.0 + 4 + 5 + 5 + 5);
        QCOMPARE(ReadCost::positionsSeen(7, 9, 5), 5.0 + 5);
        QCOMPARE(ReadCost::positionsSeen(9, 9, 5), 0.0);
    }

    void bothPartsAreLearned() {
        ReadCost cost(1e-5); // expects far less attention than there is
        QCOMPARE(cost.nanosPerToken(), 0.0);
        for (std::int64_t at = 0; at < 4096; at += 128)
            read(cost, at, at + 128);
        QVERIFY(near(cost.nanosPerToken(), kToken, 0.02));
        QVERIFY(near(cost.nanosPerTokenAndPosition(), kAttention, 0.05));
    }

    /// Steps that all stand at one place say nothing of growth: then it is the expected one.
    void growthIsTheExpectedOneUntilItIsSeen() {
        ReadCost cost(kAttention / kToken);
        for (int i = 0; i < 10; ++i)
            read(cost, 0, 64);
        QVERIFY(near(cost.nanosPerToken(), kToken, 0.02));
        QVERIFY(near(cost.nanosPerTokenAndPosition(), kAttention, 0.05));
    }

    void anInterruptedStepSpoilsNothing() {
        ReadCost cost(kAttention / kToken);
        for (int i = 0; i < 20; ++i)
            read(cost, 64 * i, 64 * i + 64);
        read(cost, 0, 64, 500);
        for (int i = 0; i < 20; ++i)
            read(cost, 64 * i, 64 * i + 64);
        QVERIFY(near(cost.nanosPerToken(), kToken, 0.3));
        QVERIFY(cost.nanosPerTokenAndPosition() >= 0);
    }

    void anotherSpeedIsLearnedSoon() {
        ReadCost cost(kAttention / kToken);
        for (int i = 0; i < 30; ++i)
            read(cost, 0, 64);
        for (int i = 0; i < 60; ++i) // somebody else took half of the processor
            read(cost, 0, 64, 2);
        QVERIFY(near(cost.nanosPerToken(), 2 * kToken, 0.1));
    }

    void whatSaysNothingIsNotCounted() {
        ReadCost cost(0.001);
        cost.step(0, 0, 100);
        cost.step(10, 45, 0);
        QCOMPARE(cost.nanosPerToken(), 0.0);
    }

    void movesAreSmoothedAndOutliersCut() {
        MoveRate rate;
        QCOMPARE(rate.nanosPerByte(), 0.0);
        rate.add(1000, 500);
        QCOMPARE(rate.nanosPerByte(), 0.5);
        rate.add(1000, 5'000'000); // interrupted: counts as four times the rate
        QVERIFY(near(rate.nanosPerByte(), 0.5 + 0.1 * 1.5, 1e-9));
        rate.add(0, 100);
        QVERIFY(near(rate.nanosPerByte(), 0.65, 1e-9));
        for (int i = 0; i < 100; ++i)
            rate.add(1000, 100);
        QVERIFY(near(rate.nanosPerByte(), 0.1, 0.01));
    }
};

QTEST_APPLESS_MAIN(TestReadCost)
#include "test_read_cost.moc"
