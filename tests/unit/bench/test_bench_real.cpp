// SPDX-License-Identifier: GPL-3.0-or-later
//
// A stage on the real clock: the engine must be what the plan says, byte for byte, and compute what was asked for.
#include <QTest>

#include "app/bench/bench_run.h"
#include "app/bench/calibrate.h"
#include "app/bench/real_engine.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_llama.h"

using namespace kvscope;
using namespace kvscope::bench;

class TestBenchReal : public QObject {
    Q_OBJECT
private slots:
    void initTestCase() { QVERIFY(test::tinyLlama().write(m_dir.file("m.gguf"))); }

    void theEngineHasTheBlocksAndBytesOfThePlan_data() {
        QTest::addColumn<QString>("stage");
        for (const char* stage :
             {"baseline", "contiguous+reserve-request+int8", "paged", "paged+fp8", "paged+fp8+block32+prefix",
              "paged+k8v4+prefix+lfu", "paged+int4+block32+prefix+cost", "paged+bf16+block8+prefix+position"})
            QTest::newRow(stage) << stage;
    }
    void theEngineHasTheBlocksAndBytesOfThePlan() {
        QFETCH(QString, stage);
        const BenchPlan plan = planOf(stage.toStdString(), "long-doc"); // documents that others have too
        const StageFacts& facts = plan.stages.front();
        RealEngine engine;
        for (const std::int32_t concurrency : plan.request.concurrency) {
            QVERIFY(engine.load(engineConfigOf(plan, facts, concurrency), nullptr));
            const api::ModelInfo& model = engine.model();
            QCOMPARE(static_cast<std::int64_t>(model.numBlocks), facts.numBlocks);
            QCOMPARE(model.bytesPerBlock, facts.bytesPerBlock);
            QCOMPARE(model.maxModelLen, plan.maxModelLen);
            if (concurrency == plan.request.concurrency.back())
                QCOMPARE(model.tailBytes, facts.tailBytes);
            const RunResult result = runWorkload(engine, plan.request.workload, {concurrency});
            for (const RequestRecord& record : result.records)
                QCOMPARE(static_cast<std::int64_t>(record.tokenTimes.size()),
                         plan.request.workload.requests[static_cast<std::size_t>(record.index)].answerTokens);
            QVERIFY(result.pool.peakBytes() > 0 && result.pool.peakBytes() <= plan.kvBytes);
            QCOMPARE(result.pool.externalFragmentation() >= 0, facts.stage.contiguous);
            QCOMPARE(result.counters.reusedTokens > 0, facts.stage.prefixCaching);
        }
    }

    /// Of extents that hold the longest request, as many fit as the budget was made for; the others wait.
    void theBaselineHoldsFour() {
        const BenchPlan plan = planOf("baseline", "mix");
        RealEngine engine;
        QVERIFY(engine.load(engineConfigOf(plan, plan.stages.front(), 8), nullptr));
        const RunResult result = runWorkload(engine, plan.request.workload, {8});
        QCOMPARE(result.pool.peakHeld(), 4);
        QVERIFY(result.pool.waste() > 0.3);
    }

private:
    BenchPlan planOf(const std::string& stages, const std::string& workload) const {
        const auto onDisk = modelOnDisk(m_dir.file("m.gguf"));
        if (!onDisk)
            qFatal("%s", onDisk.error().message.c_str());
        BenchRequest request;
        request.engine.modelPath = m_dir.file("m.gguf");
        request.engine.threads = 1;
        request.model = onDisk->shape;
        request.weightBytes = onDisk->weightBytes;
        request.workload = *makeWorkload({workload, 0.05, 0, 12, static_cast<std::int32_t>(onDisk->shape.vocab)});
        request.stages = *parseStages(stages);
        request.concurrency = {2, 8};
        auto plan = planBench(std::move(request));
        if (!plan)
            qFatal("%s", plan.error().message.c_str());
        return std::move(*plan);
    }

    test::TempDir m_dir;
};

QTEST_APPLESS_MAIN(TestBenchReal)
#include "test_bench_real.moc"
