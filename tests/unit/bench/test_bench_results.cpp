// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the workloads must show on the virtual clock, at full size: a 7 B model on an A100.
#include <QTest>
#include <cmath>

#include "app/bench/bench_run.h"

using namespace kvscope;
using namespace kvscope::bench;

namespace {

struct Question {
    std::string workload = "mix";
    std::string stages = "paged";
    std::int32_t concurrency = 16;
    std::int32_t requests = 0;
    std::uint64_t kvBytes = 0;
};

constexpr std::uint64_t kToken = 57344; ///< 16-bit

BenchPlan planOf(const Question& question) {
    BenchRequest request;
    request.model = *modelPreset("r1-distill-qwen-7b");
    request.weightBytes = 15.2e9;
    request.device = *knownDevice("A100-80GB");
    request.virtualClock = true;
    request.workload = *makeWorkload({question.workload, 1, 0, question.requests, 32000});
    request.stages = *parseStages(question.stages);
    request.concurrency = {question.concurrency};
    request.kvBytes = question.kvBytes;
    auto plan = planBench(std::move(request));
    if (!plan)
        qFatal("%s", plan.error().message.c_str());
    return std::move(*plan);
}

Report reportOf(const Question& question) {
    auto report = runBench(planOf(question), {});
    if (!report)
        qFatal("%s", report.error().message.c_str());
    return std::move(*report);
}

std::vector<RequestRecord> recordsOf(const Question& question) {
    std::vector<RequestRecord> records;
    BenchHooks hooks;
    hooks.finished = [&](const FinishedRun& run) { records = run.result.records; };
    const BenchPlan plan = planOf(question);
    if (!runBench(plan, hooks))
        qFatal("the run failed");
    return records;
}

const KindFigures& turn(const Row& row, std::int32_t number) {
    for (const KindFigures& kind : row.kinds)
        if (kind.kind == RequestKind::Turn && kind.turn == number)
            return kind;
    qFatal("there is no turn %d", number);
}

/// All histories of multi-turn: the shared system prompt and 8 turns of 16 users, whole blocks of 16.
constexpr std::uint64_t kHistories = (25 + 16 * 80) * 16 * kToken;

} // namespace

class TestBenchResults : public QObject {
    Q_OBJECT
private slots:
    void theSameRunTwiceIsTheSameToTheLastBit() {
        const Question question{"mix", "paged+fp8+block32+prefix", 16, 60};
        const Report a = reportOf(question), b = reportOf(question);
        QCOMPARE(QString::fromStdString(reportJson(a).dump()), QString::fromStdString(reportJson(b).dump()));
    }

    /// The staged test at full size: contiguous memory, then paging, fp8, larger blocks and the prefix cache.
    void theLastStageWritesThreeTimesTheBaseline() {
        const Report report = reportOf({"mix", kDefaultStages, 16, 300});
        QCOMPARE(report.rows.size(), std::size_t(4));
        const Row &baseline = report.rows.front(), &last = report.rows.back();
        const double factor = last.throughput / baseline.throughput;
        QVERIFY2(factor >= 3.2, qPrintable(QString::number(factor)));
        QCOMPARE(baseline.heldPeak, 4.0); // the budget's definition
        QVERIFY(baseline.waste > 0.5);    // most of an extent is never written
        QCOMPARE(baseline.hitRate, 0.0);
        for (std::size_t i = 1; i < 4; ++i)
            QVERIFY(report.rows[i].throughput > 0.97 * report.rows[i - 1].throughput);
        for (const char* field : {"4 -> 14", "1.8 -> 0.9 s", "+40 to 60 %", "-40 to 45 % (fp8)"})
            QVERIFY2(std::any_of(report.comparisons.begin(), report.comparisons.end(),
                                 [&](const Comparison& each) { return each.field == field && !each.reason.empty(); }),
                     field);
    }

    void pagingHoldsTwiceTheRequestsAndK8v4FiveTimes() {
        const Report report = reportOf({"mix", kCapacityStages, 64, 300});
        const double contiguous = report.rows[0].heldMean;
        const double paged = report.rows[1].heldMean / contiguous, k8v4 = report.rows[3].heldMean / contiguous;
        // 2.22 where 2.3 was hoped for. Of the pool 83 % belong to requests that are held, 5 % to prompts that are
        // being read, 3 % lie idle when the last requests run out, and 9 % while the next one in order waits until all
        // of it fits. Nobody overtakes, so these 9 % can be read into early, but not held by others.
        QVERIFY2(paged >= 2.15, qPrintable(QString::number(paged)));
        QVERIFY2(k8v4 >= 5, qPrintable(QString::number(k8v4)));
    }

    void extentsAreMeasuredAsSuch() {
        const Report report = reportOf({"mix", "contiguous+reserve-request,paged", 16, 60});
        QVERIFY(report.rows[0].externalFragmentation > 0); // holes of all lengths
        QVERIFY(report.rows[0].counters.refused > 0);
        QCOMPARE(report.rows[1].externalFragmentation, -1.0);
        QCOMPARE(report.rows[1].counters.refused, std::uint64_t(0));
    }

    void everyStageHasTheSameBytes() {
        const BenchPlan plan = planOf({"mix", "paged,paged+fp8,paged+k8v4+block32,paged+int8+prefix", 16, 20});
        QCOMPARE(plan.kvBytes, 4 * 500 * 16 * kToken); // 4 of the longest: 8,000 tokens
        QCOMPARE(plan.maxModelLen, 8000);
        QCOMPARE(plan.stages[0].numBlocks, 2000);
        for (const StageFacts& facts : plan.stages) {
            const std::uint64_t bytes =
                static_cast<std::uint64_t>(facts.numBlocks) * facts.bytesPerBlock + facts.tailBytes;
            QVERIFY(bytes <= plan.kvBytes && bytes + facts.bytesPerBlock > plan.kvBytes);
            QCOMPARE(facts.tailBytes, facts.stage.format.quantized()
                                          ? 16 * static_cast<std::uint64_t>(facts.stage.blockSize) * kToken
                                          : 0);
        }
        QVERIFY(plan.stages[1].poolGain > 1.95);
    }

    void wasteOfMixIsBelowFourPercent_data() {
        QTest::addColumn<QString>("stage");
        QTest::newRow("block 16") << "paged";
        QTest::newRow("block 32") << "paged+block32";
        QTest::newRow("block 32, prefix") << "paged+block32+prefix";
    }
    void wasteOfMixIsBelowFourPercent() {
        QFETCH(QString, stage);
        const Report report = reportOf({"mix", stage.toStdString(), 16, 300});
        QVERIFY2(report.rows[0].waste < 0.04, qPrintable(QString::number(report.rows[0].waste)));
        QVERIFY(report.rows[0].waste > 0.0005);
        QCOMPARE(report.rows[0].finished, 300);
    }

    void withRoomForAllHistoriesATurnComputesWhatIsNew() {
        const Question question{"multi-turn", "paged+prefix", 16, 0, kHistories + 16 * 16 * kToken};
        for (const RequestRecord& record : recordsOf(question)) {
            QCOMPARE(record.status, RequestStatus::Ok);
            if (record.turn > 1) // 60 of the user, 100 of the answer before it: all but its last token is cached
                QVERIFY2(record.computedTokens <= 60 + 1 + 16,
                         qPrintable(QString("turn %1 computed %2").arg(record.turn).arg(record.computedTokens)));
        }
        const Row row = reportOf(question).rows[0];
        const std::int64_t second = turn(row, 2).computedTokens / 16, eighth = turn(row, 8).computedTokens / 16;
        QVERIFY2(std::llabs(second - eighth) <= 16, qPrintable(QString("%1, %2").arg(second).arg(eighth)));
        QCOMPARE(row.counters.evictions, std::uint64_t(0));
    }

    void withRoomForHalfNothingIsComputedMoreThanWithoutACache() {
        for (const std::int32_t concurrency : {1, 4, 16}) {
            const Report report = reportOf({"multi-turn", "paged,paged+prefix", concurrency, 0, kHistories / 2});
            QVERIFY(report.rows[1].counters.computedTokens <= report.rows[0].counters.computedTokens);
            QVERIFY(report.rows[1].counters.evictions > 0); // there was no room for all
            QCOMPARE(report.rows[0].hitRate, 0.0);
        }
    }

    void theStampedePoolHoldsTheHistoriesAndEightOfTheFlood() {
        const BenchPlan plan = planOf({"stampede", "paged+prefix", 8});
        QCOMPARE(plan.stages[0].numBlocks, 929);
        const Row row = reportOf({"stampede", "paged+prefix", 8}).rows[0];
        QCOMPARE(row.finished, 144);
        QVERIFY(turn(row, 5).hitRate() < 0.5); // least recently used: the flood has washed most of it away
        QVERIFY(turn(row, 4).hitRate() > 0.8); // before it came all was there
    }

    void fameBringsTheReturningUsersTheirHistories() {
        const Report report =
            reportOf({"stampede", "paged+prefix+lru,paged+prefix+lfu,paged+prefix+position,paged+prefix+cost", 8});
        std::vector<double> rates;
        for (const Row& row : report.rows)
            rates.push_back(turn(row, 5).hitRate());
        QVERIFY2(std::max(rates[1], rates[3]) > rates[0], qPrintable(QString("lru %1, lfu %2, position %3, cost %4")
                                                                         .arg(rates[0])
                                                                         .arg(rates[1])
                                                                         .arg(rates[2])
                                                                         .arg(rates[3])));
    }

    void aWorkloadThatDoesNotFitIsRefusedWithTheLargestScale() {
        BenchRequest request;
        request.model = *modelPreset("tinyllama-1.1b"); // 2,048 tokens
        request.workload = *makeWorkload({"mix", 1, 0, 20, 32000});
        request.stages = *parseStages("paged");
        request.concurrency = {1};
        const auto plan = planBench(request);
        QVERIFY(!plan);
        QVERIFY2(plan.error().message.find("--scale 0.256") != std::string::npos, plan.error().message.c_str());
        request.workload = *makeWorkload({"mix", 0.256, 0, 20, 32000});
        QVERIFY(planBench(request));
        request.kvBytes = 1 << 20; // 46 tokens
        QVERIFY(planBench(request).error().message.find("--kv-cache-memory-bytes") != std::string::npos);
    }

    void whatDoesNotFitTheCardIsRefused() {
        BenchRequest request = planOf({"mix", "paged", 1, 20}).request;
        request.device = *knownDevice("RTX4090");
        QVERIFY(planBench(request));
        request.weightBytes = 24e9;
        QVERIFY(planBench(request).error().message.find("RTX4090") != std::string::npos);
    }

    void theFieldsFiguresAreSetBesideOurs() {
        const Report report = reportOf({"mix", "paged,paged+fp8,paged+fp8+prefix", 16, 60});
        const auto has = [&](const char* field) {
            return std::any_of(report.comparisons.begin(), report.comparisons.end(), [&](const Comparison& each) {
                return each.field == field && !each.ours.empty() && !each.reason.empty();
            });
        };
        QVERIFY(has("+40 to 60 %"));
        QVERIFY(has("-40 to 45 % (fp8)"));
        QVERIFY(!has("4 -> 14")); // without a baseline there is nothing to compare
    }

    void anInterruptedReportIsValidAndSaysSo() {
        std::atomic<bool> stop = false;
        BenchHooks hooks;
        hooks.interrupted = &stop;
        hooks.progress = [&](const Progress& progress) { stop = progress.run == 1 && progress.ended == 10; };
        const BenchPlan plan = planOf({"mix", "paged,paged+fp8,paged+k8v4", 4, 40});
        const auto report = runBench(plan, hooks);
        QVERIFY(report);
        QVERIFY(!report->complete);
        QCOMPARE(report->rows.size(), std::size_t(2));
        QVERIFY(!report->rows[0].partial && report->rows[1].partial);
        QVERIFY(report->rows[1].finished >= 10 && report->rows[1].finished < 40);
        QVERIFY(!report->listed.empty());
    }

    void anEstimateIsNeitherNothingNorForever() {
        const BenchPlan plan = planOf({"mix", "paged", 16, 40});
        const auto seconds = estimateSeconds(plan, nullptr);
        QVERIFY(seconds && *seconds > 0 && *seconds < 600);
    }
};

QTEST_APPLESS_MAIN(TestBenchResults)
#include "test_bench_results.moc"
