// SPDX-License-Identifier: GPL-3.0-or-later
//
// Who is admitted next, and what a long prompt does to the others: orders, ageing, starvation, the tail of the
// intervals.
#include <QTest>
#include <algorithm>
#include <map>

#include "engine/sched/scheduler.h"
#include "tests/support/kv_harness.h"
#include "tests/support/simulated_model.h"

using namespace kvscope;
using namespace kvscope::sched;
using namespace kvscope::test;

namespace {

/// A step takes as long as it has tokens: 1 microsecond each, and 4 for itself.
constexpr Nanos kPerToken = 1000;
constexpr Nanos kPerStep = 4000;

struct Rig {
    Rig(int numBlocks, const SchedulerConfig& config, int blockSize = 16)
        : Rig(cacheConfig(numBlocks, blockSize), config) {}
    Rig(const kv::CacheConfig& pool, const SchedulerConfig& config)
        : cache(pool)
        , scheduler(cache, config)
        , model(pool.numBlocks, pool.blockSize, 100000, 0, pool.sinks, pool.sinkWindow) {}

    SequenceId submit(const Tokens& tokens, std::int64_t maxNewTokens = 1) {
        SequenceSpec spec;
        spec.request = RequestId(++requests);
        spec.owner = OwnerId(requests);
        spec.tokens = tokens;
        spec.maxNewTokens = maxNewTokens;
        return scheduler.submit(std::move(spec), now);
    }
    /// False: nothing was to be done.
    bool step() {
        const StepPlan& plan = scheduler.schedule(now);
        scheduler.checkInvariants();
        if (plan.empty())
            return false;
        now += kPerStep + plan.tokens * kPerToken;
        std::vector<DrawnToken> drawn;
        for (const TokenId token : model.run(plan))
            drawn.push_back({token, false});
        for (const StepItem& item : plan.items) {
            if (item.samples)
                writtenAt[item.sequence.value()].push_back(now);
            if (std::find(firstSeen.begin(), firstSeen.end(), item.sequence.value()) == firstSeen.end())
                firstSeen.push_back(item.sequence.value());
            largestChunk[item.sequence.value()] = std::max(largestChunk[item.sequence.value()], item.to - item.from);
        }
        scheduler.complete(drawn, now);
        scheduler.checkInvariants();
        return true;
    }
    void drain() {
        while (step()) {
        }
        QVERIFY(scheduler.idle());
    }
    /// 95 % of the intervals between tokens of these sequences are at most this.
    Nanos interval95(const std::vector<SequenceId>& ids) const {
        std::vector<Nanos> intervals;
        for (const SequenceId id : ids) {
            const auto& times = writtenAt.at(id.value());
            for (std::size_t i = 1; i < times.size(); ++i)
                intervals.push_back(times[i] - times[i - 1]);
        }
        std::sort(intervals.begin(), intervals.end());
        return intervals.at(intervals.size() * 95 / 100);
    }

    Nanos now = 0;
    std::int64_t requests = 0;
    kv::KvCache cache;
    Scheduler scheduler;
    SimulatedModel model;
    std::map<std::int64_t, std::vector<Nanos>> writtenAt; ///< by sequence
    std::map<std::int64_t, std::int64_t> largestChunk;
    std::vector<std::int64_t> firstSeen; ///< in the order of their first step
};

SchedulerConfig with(SchedulingPolicy policy, int tokenBudget = 64, int maxSequences = 1) {
    SchedulerConfig config;
    config.policy = policy;
    config.tokenBudget = tokenBudget;
    config.maxSequences = maxSequences;
    config.watermark = 0;
    return config;
}

using Order = std::vector<std::int64_t>;

} // namespace

class TestSchedulingPolicy : public QObject {
    Q_OBJECT
private slots:
    void namesLeadToPoliciesAndBack() {
        for (const SchedulingPolicy policy :
             {SchedulingPolicy::Fcfs, SchedulingPolicy::ShortFirst, SchedulingPolicy::PrefixFirst})
            QVERIFY(schedulingPolicyOf(schedulingPolicyName(policy)) == policy);
        QVERIFY(!schedulingPolicyOf("fastest"));
        QVERIFY(!schedulingPolicyOf(""));
    }

    void firstComeFirstServedAsksForNothingElse() {
        Rig rig(100, with(SchedulingPolicy::Fcfs));
        for (const int length : {300, 20, 100, 5})
            rig.submit(tokenRange(1000 * length, length));
        rig.drain();
        QCOMPARE(rig.firstSeen, (Order{1, 2, 3, 4}));
    }

    void shortPromptsGoFirstAndTiesByArrival() {
        Rig rig(100, with(SchedulingPolicy::ShortFirst));
        for (const int length : {300, 20, 100, 5, 20})
            rig.submit(tokenRange(1000 * length, length));
        rig.drain();
        QCOMPARE(rig.firstSeen, (Order{4, 2, 5, 3, 1}));
    }

    void aLongPromptIsShortWhenItIsCached() {
        Rig rig(100, with(SchedulingPolicy::ShortFirst));
        rig.submit(tokenRange(1, 320)); // sequence 1 leaves its prompt in the cache
        rig.drain();
        rig.submit(tokenRange(5000, 100));
        rig.submit(tokenRange(1, 330)); // 320 of 330 are there
        rig.drain();
        QCOMPARE(rig.firstSeen, (Order{1, 3, 2}));
    }

    void theLongestCachedPrefixGoesFirst() {
        Rig rig(100, with(SchedulingPolicy::PrefixFirst));
        rig.submit(tokenRange(1, 320));
        rig.drain();
        rig.submit(tokenRange(9000, 10)); // nothing cached
        rig.submit(tokenRange(1, 64));    // 48: one token is always computed, so its last block is not used
        rig.submit(tokenRange(1, 200));   // 192
        rig.submit(tokenRange(1, 321));   // 320
        rig.drain();
        QCOMPARE(rig.firstSeen, (Order{1, 5, 4, 3, 2}));
    }

    /// The bound that the header states: a newcomer passes only while less has been computed, since the long one came,
    /// than it is long.
    void nobodyStarves_data() {
        QTest::addColumn<int>("policy");
        QTest::newRow("short-first") << int(SchedulingPolicy::ShortFirst);
        QTest::newRow("prefix-first") << int(SchedulingPolicy::PrefixFirst);
    }
    void nobodyStarves() {
        QFETCH(int, policy);
        Rig rig(200, with(SchedulingPolicy(policy)));
        rig.submit(tokenRange(100000, 320), 4); // what later ones find cached
        rig.drain();
        rig.submit(tokenRange(1, 10), 4);
        const std::int64_t before = std::int64_t(rig.scheduler.counters().prefillTokens);
        const SequenceId unlucky = rig.submit(tokenRange(5000, 400), 4); // long, nothing cached
        // Always somebody shorter, and better cached, in the queue.
        for (int i = 0; i < 2000 && rig.scheduler.find(unlucky) && rig.scheduler.find(unlucky)->computed == 0; ++i) {
            while (rig.scheduler.waiting().size() < 4)
                rig.submit(tokenRange(100000, 330), 4);
            rig.step();
        }
        QVERIFY(!rig.scheduler.find(unlucky) || rig.scheduler.find(unlucky)->computed > 0);
        const std::int64_t others = std::int64_t(rig.scheduler.counters().prefillTokens) - before;
        // Its own length (or, for prefix-first, what the others found cached), and those who were let in before.
        QVERIFY2(others <= 400 + 64 + 4 * 20, qPrintable(QString::number(others)));
    }

    void whoWasPreemptedComesBackFirst() {
        SchedulerConfig config = with(SchedulingPolicy::ShortFirst, 256, 4);
        Rig rig(12, config); // 192 slots
        const SequenceId older = rig.submit(tokenRange(1, 60), 100);
        const SequenceId younger = rig.submit(tokenRange(1000, 90), 60);
        while (rig.scheduler.counters().preemptions == 0)
            QVERIFY(rig.step());
        const SequenceId tiny = rig.submit(tokenRange(3000, 3), 2);
        QVERIFY(rig.scheduler.find(younger)->waiting.preempted);
        QVERIFY(rig.scheduler.find(older));
        rig.step();
        QCOMPARE(rig.scheduler.find(tiny)->waiting.kind, WaitingKind::Queue); // shorter, but no answer is waited for
        rig.drain();
        QCOMPARE(rig.firstSeen.back(), tiny.value());
    }

    // ---- long prompts ----

    void aLongPromptIsReadInSmallPiecesOnlyWhileOthersWrite() {
        SchedulerConfig config = with(SchedulingPolicy::Fcfs, 512, 4);
        config.longPrefillThreshold = 64;
        Rig rig(200, config);
        const SequenceId alone = rig.submit(tokenRange(1, 1024), 1);
        rig.drain();
        QCOMPARE(rig.largestChunk[alone.value()], std::int64_t(512));
        rig.submit(tokenRange(3000, 10), 100);
        rig.step();
        const SequenceId beside = rig.submit(tokenRange(5000, 1024), 1);
        rig.drain();
        QCOMPARE(rig.largestChunk[beside.value()], std::int64_t(64));
    }

    void onlySoManyLongPromptsAreReadAtOnceAndShortOnesPass() {
        SchedulerConfig config = with(SchedulingPolicy::Fcfs, 128, 8);
        config.longPrefillThreshold = 100;
        config.maxLongPartialPrefills = 1;
        Rig rig(400, config);
        rig.submit(tokenRange(1000, 1000), 2);
        const SequenceId second = rig.submit(tokenRange(3000, 1000), 2);
        rig.submit(tokenRange(6000, 20), 200);
        rig.step();
        QCOMPARE(rig.scheduler.find(second)->waiting.kind, WaitingKind::LongPrefills);
        QCOMPARE(rig.scheduler.find(second)->waiting.longPrefills, 1);
        rig.drain();
        QCOMPARE(rig.firstSeen, (Order{1, 3, 2}));
    }

    void withTwoPlacesTwoAreRead() {
        SchedulerConfig config = with(SchedulingPolicy::Fcfs, 1024, 8);
        config.longPrefillThreshold = 100;
        config.maxLongPartialPrefills = 2;
        Rig rig(400, config);
        rig.submit(tokenRange(50000, 5), 300);
        rig.step();
        for (int i = 1; i <= 3; ++i)
            rig.submit(tokenRange(1000 * i, 900), 2);
        rig.step();
        const auto running = rig.scheduler.running();
        QCOMPARE(running.size(), std::size_t(3));
        rig.drain();
    }

    /// The contract of the knob: short chats beside a prompt of 8,000 tokens see at least half as long tails.
    void shortChatsKeepTheirPaceBesideALongPrompt() {
        const auto tail = [](int threshold) {
            SchedulerConfig config = with(SchedulingPolicy::Fcfs, 512, 16);
            config.longPrefillThreshold = threshold;
            Rig rig(1200, config);
            std::vector<SequenceId> chats;
            for (int i = 0; i < 6; ++i)
                chats.push_back(rig.submit(tokenRange(1000 * i, 50), 120));
            rig.step();
            rig.submit(tokenRange(50000, 8000), 20);
            rig.drain();
            return rig.interval95(chats);
        };
        const Nanos without = tail(0), with64 = tail(64);
        QVERIFY2(with64 * 2 <= without, qPrintable(QStringLiteral("%1 and %2").arg(with64).arg(without)));
    }

    /// With sinks one long chunk may take all that is free; the other reader waits a step instead of losing its place.
    void readersWithSinksDoNotPreemptOneAnother() {
        kv::CacheConfig pool = cacheConfig(60, 16);
        pool.sinks = 4;
        pool.sinkWindow = 256;
        SchedulerConfig config = with(SchedulingPolicy::Fcfs, 512, 16);
        config.longPrefillThreshold = 64;
        config.maxLongPartialPrefills = 2;
        Rig rig(pool, config);
        rig.submit(tokenRange(100000, 8), 12); // beside which the others read 64 tokens a step
        rig.submit(tokenRange(1, 3000));
        rig.submit(tokenRange(50000, 3000));
        rig.drain();
        QVERIFY(rig.largestChunk[2] > 200 || rig.largestChunk[3] > 200);
        QCOMPARE(rig.scheduler.counters().preemptions, std::uint64_t(0));
        QCOMPARE(rig.scheduler.counters().finished, std::uint64_t(3));
    }
};

QTEST_APPLESS_MAIN(TestSchedulingPolicy)
#include "test_scheduling_policy.moc"
