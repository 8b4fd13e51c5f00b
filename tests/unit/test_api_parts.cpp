// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTest>
#include <thread>

#include "engine/api/backend_reason.h"
#include "engine/api/memory_probe.h"
#include "engine/api/step_abort.h"
#include "engine/api/step_time.h"

using namespace kvscope;
using namespace kvscope::api;

namespace {

/// Counts abort requests and computes nothing.
class CountingBackend final : public kernels::Backend {
public:
    std::atomic<int> aborts{0};
    std::string describe() const override { return "counting"; }
    kernels::BackendResult<kernels::WeightId> addWeight(const kernels::WeightDesc&) override { return {}; }
    kernels::BackendResult<bool> createKvCache(const kernels::KvLayout&) override { return {}; }
    std::uint32_t kvLayoutVersion() const override { return 0; }
    kernels::BackendResult<bool> setProgram(const kernels::Program&) override { return {}; }
    kernels::Ticket submit(const kernels::StepInputs&) override { return {}; }
    kernels::StepStatus await(kernels::Ticket) override { return kernels::StepStatus::Done; }
    void requestAbort() override { ++aborts; }
    kernels::BackendError lastError() const override { return {}; }
    void sample(kernels::Ticket, std::span<const kernels::SampleRow>, std::span<kernels::SampledToken>) override {}
    void readLogits(kernels::Ticket, std::int32_t, std::span<float>) override {}
    void readKv(kernels::KvPart, std::int32_t, std::size_t, std::span<std::byte>) override {}
    void writeKv(kernels::KvPart, std::int32_t, std::size_t, std::span<const std::byte>) override {}
    kernels::BackendMemory memory() const override { return {}; }
    kernels::PhaseTimes phaseTimes() const override { return {}; }
};

const RequestId kA(1), kB(2), kC(3);

} // namespace

class TestApiParts : public QObject {
    Q_OBJECT
private slots:
    void saysWhyTheCpu() {
        QCOMPARE(cpuReason("libkvscope-no-such-driver.so.1"), std::string("no CUDA driver found"));
        // Any library that is there stands for the driver.
        QCOMPARE(cpuReason("libc.so.6"), std::string("this build has no CUDA backend"));
    }

    void abortsOnlyWhenTheLastMemberIsCancelled() {
        CountingBackend backend;
        StepAbort abort;
        abort.attach(&backend);
        const RequestId members[] = {kA, kB};
        QVERIFY(abort.beginStep(members));
        abort.cancel(kC); // not in this step
        QCOMPARE(backend.aborts.load(), 0);
        abort.cancel(kA);
        abort.cancel(kA); // twice is once
        QCOMPARE(backend.aborts.load(), 0);
        abort.cancel(kB);
        QCOMPARE(backend.aborts.load(), 1);
        abort.endStep();
        abort.cancel(kB); // between steps
        QCOMPARE(backend.aborts.load(), 1);
        abort.attach(nullptr);
        abort.abortNow();
        QCOMPARE(backend.aborts.load(), 1);
    }

    void aCancelThatIsStillInTheQueueHoldsTheStepBack() {
        StepAbort abort;
        const RequestId members[] = {kA};
        abort.cancel(kA); // announced before the step, not handled yet
        QVERIFY(!abort.beginStep(members));
        abort.handledCancel();
        QVERIFY(abort.beginStep(members));
    }

    void cancellingWhileBackendsComeAndGo() {
        StepAbort abort;
        std::atomic<bool> stop{false};
        std::thread engine([&] {
            while (!stop) {
                auto backend = std::make_unique<CountingBackend>();
                abort.attach(backend.get());
                const RequestId members[] = {kA};
                abort.beginStep(members);
                abort.endStep();
                abort.attach(nullptr);
            }
        });
        for (int i = 0; i < 20000; ++i)
            abort.cancel(kA);
        stop = true;
        engine.join();
    }

    void stepBudgetConvergesBelowItsTargetAndShrinksAtOnce() {
        constexpr Nanos kTarget = 150'000'000;
        StepTimeBudget budget(512, kTarget);
        constexpr Nanos kPerToken = 1'000'000;
        for (int i = 0; i < 8; ++i)
            budget.stepTook(budget.tokens(), budget.tokens() * kPerToken);
        QVERIFY(budget.tokens() * kPerToken <= kTarget);
        QVERIFY(budget.tokens() * kPerToken > kTarget / 2);
        const int before = budget.tokens();
        budget.stepTook(0, 5'000'000);   // a step that read nothing says nothing
        budget.stepTook(3, 5'000'000);   // nor does the short rest of a prompt
        budget.stepTook(0, 500'000'000); // nor does a slow one that read nothing
        QCOMPARE(budget.tokens(), before);
        budget.stepTook(before, before * kPerToken * 4);
        QVERIFY(budget.tokens() <= before / 3);
        for (int i = 0; i < 20; ++i)
            budget.stepTook(budget.tokens(), 1000);
        QCOMPARE(budget.tokens(), 512);
    }

    void procFieldReadsKibibytes() {
        const std::string_view text = "MemTotal:       1024 kB\nMemAvailable:    512 kB\nHugePages_Total:       0\n";
        QCOMPARE(procField(text, "MemTotal").value_or(0), std::uint64_t(1024 * 1024));
        QCOMPARE(procField(text, "MemAvailable").value_or(0), std::uint64_t(512 * 1024));
        QVERIFY(!procField(text, "HugePages_Total")); // not in kB
        QVERIFY(!procField(text, "Mem"));
        QVERIFY(!procField("", "MemTotal"));
        QVERIFY(!procField("MemTotal:", "MemTotal"));
    }

    void probeReadsThisMachineForBothListeners() {
        MonotonicClock clock;
        MemoryProbe probe(clock);
        metrics::MemorySample window, engine;
        for (int i = 0; i < 500 && !probe.nextForWindow(window); ++i)
            QTest::qSleep(10);
        for (int i = 0; i < 500 && !probe.nextForEngine(engine); ++i)
            QTest::qSleep(10);
        QVERIFY(window.totalBytes > window.availableBytes);
        QVERIFY(window.processBytes > 0 && window.processBytes < window.totalBytes);
        QCOMPARE(window.time, engine.time);
    }

    /// The process's pages are summed up once a second; what it takes in between shows all the same.
    void probeSeesGrowthBetweenTheSums() {
        constexpr std::uint64_t kGrowth = 64 << 20;
        MonotonicClock clock;
        MemoryProbe probe(clock);
        metrics::MemorySample before, after;
        for (int i = 0; i < 500 && !probe.nextForWindow(before); ++i)
            QTest::qSleep(10);
        QVERIFY(before.time > 0);
        std::vector<char> pages(kGrowth);
        std::fill(pages.begin(), pages.end(), char(1));
        const Nanos grown = clock.now();
        for (int i = 0; i < 500 && after.time <= grown + 100'000'000; ++i)
            if (!probe.nextForWindow(after))
                QTest::qSleep(10);
        QVERIFY2(after.processBytes > before.processBytes + kGrowth / 10 * 9,
                 qPrintable(QString::number(after.processBytes)));
        QVERIFY(pages.back() == 1);
    }
};

QTEST_APPLESS_MAIN(TestApiParts)
#include "test_api_parts.moc"
