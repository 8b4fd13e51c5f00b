// SPDX-License-Identifier: GPL-3.0-or-later
//
// Faults that caches and schedulers of this kind shipped with elsewhere, and the tests here that would notice them. The
// table is checked: a test that is renamed or removed must be named here anew. Faults of features that do not exist yet
// (snapshots, tiers, windows) get their row with the feature.
#include <QFile>
#include <QTest>

namespace {

struct Row {
    const char* fault;
    const char* file; ///< below tests/
    const char* test;
};

constexpr const char* kKvFaults = "unit/kv/test_kv_faults.cpp";
constexpr const char* kKvCache = "unit/kv/test_kv_cache.cpp";
constexpr const char* kKvParts = "unit/kv/test_kv_parts.cpp";
constexpr const char* kSchedulerFaults = "unit/sched/test_scheduler_faults.cpp";
constexpr const char* kScheduler = "property/test_scheduler_property.cpp";
constexpr const char* kCache = "property/test_kv_property.cpp";
constexpr const char* kHost = "property/test_host_property.cpp";

constexpr Row kRows[] = {
    {"a block shared inside one table is freed twice", kKvFaults, "freeingTwiceCannotBeWritten"},
    {"a block shared inside one table is freed twice", kCache, "theCacheAgreesWithANaiveOne"},
    {"the same block is listed twice for a request", kKvCache, "blocksAreNeverListedTwiceInOneTable"},
    {"duplicate blocks corrupt the free queue", kKvParts, "freeListRefusesTheSameBlockTwice"},
    {"null blocks corrupt the free queue", kKvParts, "freeListRefusesWhatIsNoBlock"},
    {"evictable size counts shared blocks twice", kKvFaults, "availableCountsASharedBlockOnce"},
    {"a hit block is reset on reuse and the index forgets it", kKvFaults, "aHitBlockStaysFindableAfterItsSecondUse"},
    {"stale cached-token counts after preemption", kSchedulerFaults, "countsStartAnewAfterAPreemption"},
    {"one sequence outgrows the pool: assertion or hang", kSchedulerFaults,
     "oneSequenceThatOutgrowsThePoolEndsWithAReason"},
    {"one sequence outgrows the pool: assertion or hang", kSchedulerFaults,
     "aPromptThatCanNeverBeHeldEndsNowAndNobodyElseSuffers"},
    {"estimate at admission disagrees with the later allocation", kKvFaults, "whatAdmissionPromisedIsThere"},
    {"estimate at admission disagrees with the later allocation", kKvFaults, "aRequestNeverEvictsItsOwnHits"},
    {"predictable hash of 'no parent'", kKvParts, "withoutAGivenSaltTheRootIsUnpredictable"},
    {"a collision serves another prompt's KV", kKvFaults, "aCollisionCostsTimeNeverContent"},
    {"a collision serves another prompt's KV", kKvFaults, "aCollisionOfTheParentIsNoticed"},
    {"a collision serves another prompt's KV", kCache, "contentIsNeverMixedUpWhenAllKeysCollide"},
    {"a collision serves another prompt's KV", kHost, "contentIsNeverMixedUpWhenKeysCollide"},
    {"the key lacks KV dtype, adapter or layout", kKvParts, "everyFieldOfTheContextChangesEveryKey"},
    {"the key lacks KV dtype, adapter or layout", kKvCache, "adaptersDoNotShareBlocks"},
    {"two dtypes with equal row size are taken for each other", kKvParts, "everyFieldOfTheContextChangesEveryKey"},
    {"an unfinished store is visible to readers", kKvFaults, "aBlockBeingWrittenIsNoHit"},
    {"pool exhaustion aborts every running request", kSchedulerFaults, "exhaustionCostsTheYoungestOnly"},
    {"deadlock or livelock", kScheduler, "everyAnswerIsThatOfASoloRunAndEverythingEnds"},
    {"deadlock or livelock", kScheduler, "theSameInExtents"},
    {"deadlock or livelock", kScheduler, "theSameWithAHostTier"},
    {"the host cache is not budgeted: killed for memory", "e2e/test_engine_host.cpp",
     "memoryIsSetAsideBeforeItIsTaken"},
    {"preemption thrash", kSchedulerFaults, "aPreemptedSequenceIsNotPreemptedAgainWithoutProgress"},
    {"never re-admits at 0 % use", kSchedulerFaults, "aPreemptedSequenceThatFillsThePoolComesBackWhenAlone"},
    {"a cache hit changes greedy output", kSchedulerFaults, "aCacheHitDoesNotChangeTheAnswer"},
    {"a cache hit changes greedy output", "e2e/test_exactness_matrix.cpp", "everyRunEqualsItsRequestsAlone"},
};

} // namespace

class TestFaultTable : public QObject {
    Q_OBJECT
private slots:
    void everyFaultHasItsTest_data() {
        QTest::addColumn<QString>("file");
        QTest::addColumn<QString>("test");
        for (const Row& row : kRows)
            QTest::addRow("%s: %s", row.fault, row.test) << row.file << row.test;
    }
    void everyFaultHasItsTest() {
        QFETCH(QString, file);
        QFETCH(QString, test);
        QFile source(QStringLiteral(KVSCOPE_SOURCE_DIR "/tests/") + file);
        QVERIFY2(source.open(QIODevice::ReadOnly), qPrintable(file));
        QVERIFY2(source.readAll().contains(("void " + test + "() {").toUtf8()), qPrintable(test));
    }
};

QTEST_APPLESS_MAIN(TestFaultTable)
#include "test_fault_table.moc"
