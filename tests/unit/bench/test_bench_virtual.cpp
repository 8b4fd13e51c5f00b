// SPDX-License-Identifier: GPL-3.0-or-later
//
// The virtual clock and the driver against times that are computed here step by step.
#include <QTest>
#include <cmath>

#include "app/bench/driver.h"
#include "app/bench/virtual_engine.h"

using namespace kvscope;
using namespace kvscope::bench;

namespace {

/// Sizes that make the arithmetic readable: 8 KV bytes a token, 100 parameters a token, 20 for an output row.
ModelShape smallShape() {
    ModelShape shape;
    shape.name = "small";
    shape.layers = 1;
    shape.hidden = 2;
    shape.heads = shape.kvHeads = 1;
    shape.headDim = 2;
    shape.feedForward = 14; // 2 x 2 x 4 + 3 x 2 x 14 = 100
    shape.vocab = 10;
    shape.context = 1000;
    return shape;
}

/// 1,000 bytes a second, 1,000 operations a second, no launches.
Device slowDevice() {
    return {"slow", 1000, 1000, 0, 0, 0};
}

constexpr double kWeights = 500;
constexpr std::int32_t kBlock = 8;

std::unique_ptr<VirtualEngine> engineOf(std::int32_t blocks, std::int32_t budget, std::int32_t sequences,
                                        bool prefix = false) {
    VirtualParts parts(Roofline(slowDevice(), {smallShape(), kWeights, kBlock * 8, kBlock * 8, kBlock}));
    parts.seed = 3;
    parts.vocab = 10;
    parts.cache.numBlocks = blocks;
    parts.cache.blockSize = kBlock;
    parts.cache.prefixCaching = prefix;
    parts.cache.keys.salt = 0;
    parts.scheduler.tokenBudget = budget;
    parts.scheduler.maxSequences = sequences;
    parts.scheduler.watermark = 0;
    return std::make_unique<VirtualEngine>(std::move(parts));
}

struct Share {
    int from, to;
    bool samples;
};

/// The roofline once more, written down independently for these sizes, rounded as the clock does.
Nanos stepNanos(const std::vector<Share>& shares) {
    double tokens = 0, rows = 0, attention = 0;
    for (const Share& share : shares) {
        tokens += share.to - share.from;
        rows += share.samples;
        double pairs = 0;
        for (int p = share.from; p < share.to; ++p)
            pairs += p + 1;
        attention += std::max(share.to * 8 / 1000.0, 8 * pairs / 1000.0);
    }
    const double matrices = std::max(kWeights / 1000, 2 * (100 * tokens + 20 * rows) / 1000);
    return std::llround((matrices + attention) * 1e9);
}

Workload requests(std::vector<std::pair<int, int>> lengths) {
    Workload workload;
    workload.name = "test";
    int next = 0;
    for (const auto& [prompt, answer] : lengths) {
        PlannedRequest request;
        request.owner = static_cast<std::int32_t>(workload.requests.size());
        for (int i = 0; i < prompt; ++i)
            request.tokens.push_back(next++);
        request.answerTokens = answer;
        workload.requests.push_back(std::move(request));
    }
    return workload;
}

} // namespace

class TestBenchVirtual : public QObject {
    Q_OBJECT
private slots:
    void oneRequestTakesTheSumOfItsSteps() {
        const Workload workload = requests({{20, 3}});
        const auto engine = engineOf(8, 16, 4);
        const RunResult result = runWorkload(*engine, workload, {1});
        const Nanos first = stepNanos({{0, 16, false}}), second = stepNanos({{16, 20, true}});
        const Nanos third = stepNanos({{20, 21, true}}), fourth = stepNanos({{21, 22, true}});
        const RequestRecord& record = result.records.at(0);
        QCOMPARE(record.tokenTimes,
                 (std::vector<Nanos>{first + second, first + second + third, first + second + third + fourth}));
        QCOMPARE(record.firstToken(), first + second);
        QCOMPARE(record.gaps(), (std::vector<Nanos>{third, fourth}));
        const Row row = summarize(result.records, result.pool, result.counters, result.seconds);
        QVERIFY(std::fabs(row.seconds - static_cast<double>(record.whole()) / 1e9) < 1e-12);
        QVERIFY(std::fabs(row.throughput - 3 / row.seconds) < 1e-9);
        QCOMPARE(row.counters.steps, std::uint64_t(4));
        QCOMPARE(row.counters.computedTokens, std::uint64_t(20));
    }

    void twoInFlightShareTheirSteps() {
        const Workload workload = requests({{8, 3}, {8, 2}});
        const auto engine = engineOf(8, 16, 4);
        const RunResult result = runWorkload(*engine, workload, {2});
        const Nanos both = stepNanos({{0, 8, true}, {0, 8, true}});
        const Nanos write = stepNanos({{8, 9, true}, {8, 9, true}});
        const Nanos last = stepNanos({{9, 10, true}});
        QCOMPARE(result.records[0].tokenTimes, (std::vector<Nanos>{both, both + write, both + write + last}));
        QCOMPARE(result.records[1].tokenTimes, (std::vector<Nanos>{both, both + write}));
    }

    void aClosedLoopSendsTheNextOneWhenOneEnds() {
        const Workload workload = requests({{8, 2}, {8, 2}});
        const auto engine = engineOf(8, 16, 4);
        const RunResult result = runWorkload(*engine, workload, {1});
        const Nanos each = stepNanos({{0, 8, true}}) + stepNanos({{8, 9, true}});
        QCOMPARE(result.records[0].sent, Nanos(0));
        QCOMPARE(result.records[1].sent, each);
        QCOMPARE(result.records[1].whole(), each);
    }

    void arrivalsAreKeptToTheNanosecond() {
        Workload workload = requests({{8, 1}, {8, 1}});
        workload.requests[0].arrival = 0;
        workload.requests[1].arrival = 1000;
        const auto engine = engineOf(8, 16, 4);
        const RunResult result = runWorkload(*engine, workload, {1});
        QCOMPARE(result.records[1].sent, Nanos(1000) * 1'000'000'000);
        QCOMPARE(result.records[1].firstToken(), stepNanos({{0, 8, true}}));
    }

    void whoArrivesWhileAStepRunsWaitsForItsEnd() {
        Workload workload = requests({{8, 1}, {8, 1}});
        workload.requests[0].arrival = 0;
        workload.requests[1].arrival = 0.5; // inside the first step
        const auto engine = engineOf(8, 16, 4);
        const RunResult result = runWorkload(*engine, workload, {1});
        const Nanos step = stepNanos({{0, 8, true}});
        QVERIFY(step > 500'000'000);
        QCOMPARE(result.records[1].sent, Nanos(500'000'000));
        QCOMPARE(result.records[1].firstToken(), 2 * step - 500'000'000); // its wait counts
    }

    void aTurnContainsTheAnswerBeforeIt() {
        Workload workload = requests({{8, 8}, {8, 2}});
        workload.requests[1].follows = 0;
        workload.requests[1].historyTokens = 16;
        const auto engine = engineOf(16, 64, 4, true);
        const RunResult result = runWorkload(*engine, workload, {4});
        QCOMPARE(result.records[1].promptTokens, 24);
        // 15 of the first one's tokens were computed, its last one never: one whole block.
        QCOMPARE(result.records[1].reusedTokens, 8);
        QCOMPARE(result.records[1].computedTokens, 16);
    }

    void phasesWaitForEachOther() {
        Workload workload = requests({{8, 2}, {8, 4}, {8, 1}});
        workload.requests[2].phase = 1;
        const auto engine = engineOf(16, 64, 4);
        const RunResult result = runWorkload(*engine, workload, {4});
        QCOMPARE(result.records[2].sent, result.records[1].tokenTimes.back());
    }

    void meansAreThoseOfTheStates() {
        // 20 tokens in chunks of 16: 3 blocks of 8 from the start; the end of the last one is waste until it is filled.
        const Workload workload = requests({{20, 3}});
        const auto engine = engineOf(8, 16, 4);
        const RunResult result = runWorkload(*engine, workload, {1});
        const double first = static_cast<double>(stepNanos({{0, 16, false}}));
        const double second = static_cast<double>(stepNanos({{16, 20, true}}));
        const double third = static_cast<double>(stepNanos({{20, 21, true}}));
        const double fourth = static_cast<double>(stepNanos({{21, 22, true}})); // it ends: nothing is held after it
        const double all = first + second + third + fourth;
        const double allocated = 24 * (first + second + third);
        const double used = 16 * first + 20 * second + 21 * third;
        const double wasted = 4 * first + 3 * second + 2 * third; // known: 20, 21, 22
        QVERIFY(std::fabs(result.pool.meanHeld() - (second + third) / all) < 1e-12);
        QVERIFY(std::fabs(result.pool.meanBytes() - allocated * 8 / all) < 1e-9);
        QVERIFY(std::fabs(result.pool.internalFragmentation() - (1 - used / allocated)) < 1e-12);
        QVERIFY(std::fabs(result.pool.waste() - wasted / allocated) < 1e-12);
        QCOMPARE(result.pool.peakBytes(), std::uint64_t(24 * 8));
    }

    void whatCanNeverFitIsListedAndTheOthersGoOn() {
        const Workload workload = requests({{100, 2}, {8, 2}});
        const auto engine = engineOf(4, 16, 4);
        const RunResult result = runWorkload(*engine, workload, {2});
        QCOMPARE(result.records[0].status, RequestStatus::Failed);
        QVERIFY(result.records[0].problem.find("33") != std::string::npos); // 4 blocks of 8, and the last token drawn
        QCOMPARE(result.records[1].status, RequestStatus::Ok);
    }

    void whoContinuesAFailedOneIsListedToo() {
        Workload workload = requests({{100, 2}, {8, 2}, {8, 1}});
        workload.requests[1].follows = 0;
        workload.requests[1].historyTokens = 102;
        const auto engine = engineOf(4, 16, 4);
        const RunResult result = runWorkload(*engine, workload, {1});
        QCOMPARE(result.records.size(), std::size_t(3));
        QCOMPARE(result.records[1].status, RequestStatus::Failed);
        QVERIFY(!result.records[1].problem.empty());
        QCOMPARE(result.records[2].status, RequestStatus::Ok);
    }

    void interruptedThereIsAPartialResult() {
        const Workload workload = requests({{8, 50}, {8, 50}, {8, 50}});
        std::atomic<bool> stop = false;
        DriverOptions options{1, &stop, [&](std::int32_t) { stop = true; }}; // after the first one
        const auto engine = engineOf(16, 16, 4);
        const RunResult result = runWorkload(*engine, workload, options);
        QVERIFY(result.partial);
        QCOMPARE(result.records.at(0).status, RequestStatus::Ok);
        QCOMPARE(result.records.size(), std::size_t(1));
        stop = true;
        const auto second = engineOf(16, 16, 4);
        QVERIFY(runWorkload(*second, workload, {2, &stop, {}}).records.empty());
    }

    void whatRunsWhenItIsInterruptedIsCut() {
        const Workload workload = requests({{8, 1}, {8, 50}});
        std::atomic<bool> stop = false;
        const auto engine = engineOf(16, 16, 4);
        const RunResult result = runWorkload(*engine, workload, {2, &stop, [&](std::int32_t) { stop = true; }});
        QCOMPARE(result.records[1].status, RequestStatus::Cut);
        QCOMPARE(result.records[1].tokenTimes.size(), std::size_t(1));
    }
};

QTEST_APPLESS_MAIN(TestBenchVirtual)
#include "test_bench_virtual.moc"
