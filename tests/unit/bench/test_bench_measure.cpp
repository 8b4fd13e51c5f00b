// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTest>
#include <algorithm>
#include <cmath>

#include "app/bench/measure.h"
#include "app/bench/random.h"
#include "app/bench/report.h"

using namespace kvscope;
using namespace kvscope::bench;

namespace {

constexpr Nanos kMs = 1'000'000;

RequestRecord record(Nanos sent, std::vector<Nanos> times, RequestStatus status = RequestStatus::Ok) {
    RequestRecord out;
    out.sent = sent * kMs;
    for (const Nanos time : times)
        out.tokenTimes.push_back(time * kMs);
    out.status = status;
    return out;
}

Row rowOf(const std::vector<RequestRecord>& records) {
    return summarize(records, PoolMeter(), RunCounters(), 1.0);
}

bool near(double a, double b) {
    return std::fabs(a - b) <= 1e-9 * std::max(1.0, std::fabs(b));
}

} // namespace

class TestBenchMeasure : public QObject {
    Q_OBJECT
private slots:
    void firstTokenAndGapsAddUpToTheWhole() {
        const RequestRecord r = record(10, {35, 45, 45, 60}); // two tokens in one step
        QCOMPARE(r.firstToken(), 25 * kMs);
        QCOMPARE(r.gaps(), (std::vector<Nanos>{10 * kMs, 0, 15 * kMs}));
        Nanos sum = r.firstToken();
        for (const Nanos gap : r.gaps())
            sum += gap;
        QCOMPARE(sum, r.whole());
        QCOMPARE(r.whole(), 50 * kMs);
    }

    void oneTokenHasNoGap() {
        const Row row = rowOf({record(0, {40})});
        QCOMPARE(row.finished, 1);
        QVERIFY(near(row.ttftP50Ms, 40));
        QVERIFY(near(row.itlP50Ms, 0));
    }

    void whatFailedWroteNothingOrWasCutIsInNoAverage() {
        const std::vector<RequestRecord> records{
            record(0, {10, 20}),
            record(0, {900, 5000}, RequestStatus::Failed),
            record(0, {}, RequestStatus::Empty),
            record(0, {700}, RequestStatus::Cut),
        };
        const Row row = rowOf(records);
        QCOMPARE(row.finished, 1);
        QCOMPARE(row.planned, 4);
        QVERIFY(near(row.ttftP95Ms, 10));
        QVERIFY(near(row.itlP95Ms, 10));
        QVERIFY(near(row.throughput, 2)); // two tokens in the one second
    }

    void percentilesAreThoseOfANaiveOne() {
        Random random(7);
        for (std::size_t n = 1; n <= 200; n = n * 3 / 2 + 1) {
            std::vector<double> values;
            for (std::size_t i = 0; i < n; ++i)
                values.push_back(static_cast<double>(random.below(1000)));
            std::vector<double> sorted = values;
            std::sort(sorted.begin(), sorted.end());
            for (const double share : {0.0, 0.025, 0.5, 0.95, 1.0}) {
                const double place = share * static_cast<double>(n - 1);
                const auto low = static_cast<std::size_t>(std::floor(place)),
                           high = static_cast<std::size_t>(std::ceil(place));
                const double expected = sorted[low] + (place - std::floor(place)) * (sorted[high] - sorted[low]);
                QVERIFY(near(percentile(values, share), expected));
            }
        }
        QVERIFY(near(percentile({}, 0.5), 0));
    }

    void gapsOfAllRequestsArePooled() {
        const Row row = rowOf({record(0, {10, 12, 14}), record(5, {30, 40})});
        QVERIFY(near(row.itlP50Ms, 2)); // of 2, 2, 10
        QVERIFY(near(row.ttftP50Ms, 17.5));
    }

    void meansAreOverTimeNotOverSteps() {
        PoolMeter meter;
        PoolState state;
        state.allocatedSlots = 100;
        state.usedSlots = 80;
        state.wastedSlots = 10;
        state.allocatedBytes = 1000;
        state.held = 4;
        meter.add(state, 3 * kMs);
        state.allocatedSlots = 200;
        state.usedSlots = 200;
        state.wastedSlots = 0;
        state.allocatedBytes = 2000;
        state.held = 8;
        state.externalFragmentation = 0.5;
        meter.add(state, 1 * kMs);
        QVERIFY(near(meter.meanHeld(), 5));
        QCOMPARE(meter.peakHeld(), 8);
        QVERIFY(near(meter.meanBytes(), 1250));
        QCOMPARE(meter.peakBytes(), std::uint64_t(2000));
        QVERIFY(near(meter.waste(), 30.0 / 500));
        QVERIFY(near(meter.internalFragmentation(), 60.0 / 500));
        QVERIFY(near(meter.externalFragmentation(), 0.5)); // of the time when it was known
    }

    void kindsAndTurnsStandApart() {
        RequestRecord a = record(0, {10}), b = record(0, {30}), c = record(0, {50});
        for (RequestRecord* r : {&a, &b, &c}) {
            r->kind = RequestKind::Turn;
            r->promptTokens = 100;
            r->reusedTokens = 40;
            r->computedTokens = 60;
        }
        c.turn = 2;
        const Row row = rowOf({a, b, c});
        QCOMPARE(row.kinds.size(), std::size_t(2));
        QCOMPARE(row.kinds[0].requests, 2);
        QVERIFY(near(row.kinds[0].hitRate(), 0.4));
        QVERIFY(near(row.kinds[0].ttftP50Ms, 20));
        QCOMPARE(row.kinds[1].turn, 2);
        QCOMPARE(row.kinds[1].computedTokens, 60);
    }

    void ratiosAreMediansOfPairsInsideTheirInterval() {
        const StageRatio same = ratioOf({3, 3, 3}, {3, 3, 3});
        QVERIFY(near(same.median, 1) && near(same.low, 1) && near(same.high, 1));
        QCOMPARE(same.pairs, 3);
        const StageRatio spread = ratioOf({1.0, 2.2, 3.0, 4.4, 5.5}, {1, 2, 3, 4, 5});
        QVERIFY(near(spread.median, 1.1));
        QVERIFY(spread.low >= 1 - 1e-12 && spread.low <= spread.median);
        QVERIFY(spread.high >= spread.median && spread.high <= 1.1 + 1e-9);
    }
};

QTEST_APPLESS_MAIN(TestBenchMeasure)
#include "test_bench_measure.moc"
