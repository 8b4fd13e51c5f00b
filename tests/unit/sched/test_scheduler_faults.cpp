// SPDX-License-Identifier: GPL-3.0-or-later
//
// Faults that schedulers of this kind shipped with elsewhere, each by name. In all of them the answers must also be
// those that each sequence would have got alone.
#include <QTest>
#include <map>

#include "engine/base/check.h"
#include "engine/sched/scheduler.h"
#include "tests/support/kv_harness.h"
#include "tests/support/simulated_model.h"

using namespace kvscope;
using namespace kvscope::sched;
using namespace kvscope::test;

namespace {

constexpr int kBlockSize = 8;

/// Runs until everything has ended and keeps what each sequence wrote.
struct World {
    World(int numBlocks, SchedulerConfig config)
        : cache(cacheConfig(numBlocks, kBlockSize))
        , scheduler(cache, config)
        , model(numBlocks, kBlockSize, 1000) {}

    SequenceId submit(Tokens tokens, std::int64_t maxNewTokens, SequenceId forkOf = SequenceId()) {
        SequenceSpec spec;
        spec.owner = OwnerId(++m_owners);
        spec.request = RequestId(m_owners);
        spec.tokens = tokens;
        spec.maxNewTokens = maxNewTokens;
        spec.forkOf = forkOf;
        const SequenceId id = scheduler.submit(std::move(spec), 0);
        history[id] = std::move(tokens);
        return id;
    }
    bool step() {
        const StepPlan& plan = scheduler.schedule(0);
        scheduler.checkInvariants();
        if (plan.empty()) {
            collect();
            return false;
        }
        const std::vector<TokenId> tokens = model.run(plan);
        std::vector<DrawnToken> drawn;
        for (const StepItem& item : plan.items)
            if (item.samples) {
                drawn.push_back({tokens[drawn.size()], false});
                history[item.sequence].push_back(drawn.back().token);
            }
        scheduler.complete(drawn, 0);
        scheduler.checkInvariants();
        collect();
        return true;
    }
    void collect() {
        for (EndedSequence& sequence : scheduler.takeEnded())
            ended.emplace(sequence.id, sequence);
    }
    /// Steps until idle; false = more than `limit` steps, which is a livelock.
    bool drain(int limit = 2000) {
        while (!scheduler.idle() && limit-- > 0)
            step();
        collect();
        return scheduler.idle();
    }
    bool answersAreThoseOfSoloRuns() const {
        for (const auto& [id, end] : ended) {
            const Tokens& tokens = history.at(id);
            for (auto n = static_cast<std::size_t>(end.promptTokens); n < tokens.size(); ++n)
                if (tokens[n] != model.nextToken(std::span(tokens).first(n)))
                    return false;
        }
        return true;
    }

    kv::KvCache cache;
    Scheduler scheduler;
    SimulatedModel model;
    std::map<SequenceId, Tokens> history;
    std::map<SequenceId, EndedSequence> ended;

private:
    std::int64_t m_owners = 0;
};

SchedulerConfig config(int tokenBudget = 64, int maxSequences = 16) {
    SchedulerConfig config;
    config.tokenBudget = tokenBudget;
    config.maxSequences = maxSequences;
    return config;
}

} // namespace

class TestSchedulerFaults : public QObject {
    Q_OBJECT
private slots:
    /// One sequence outgrows the pool: elsewhere the engine asserted, or hung.
    void oneSequenceThatOutgrowsThePoolEndsWithAReason() {
        World world(4, config());
        const SequenceId a = world.submit(tokenRange(100, 20), 100);
        QVERIFY(world.drain());
        const EndedSequence& ended = world.ended.at(a);
        QCOMPARE(ended.reason, EndReason::PoolFull);
        QCOMPARE(ended.generatedTokens, std::int64_t(13)); // 32 slots, and one token more that needs none
        QCOMPARE(ended.neededTokens, std::int64_t(33));
        QCOMPARE(ended.availableTokens, std::int64_t(32));
        QCOMPARE(world.cache.available(), 4);
        QVERIFY(world.answersAreThoseOfSoloRuns());
    }

    void aPromptThatCanNeverBeHeldEndsNowAndNobodyElseSuffers() {
        World world(4, config());
        const SequenceId b = world.submit(tokenRange(500, 5), 3);
        const SequenceId a = world.submit(tokenRange(100, 33), 1);
        const SequenceId c = world.submit(tokenRange(900, 5), 3);
        QVERIFY(world.drain());
        QCOMPARE(world.ended.at(a).reason, EndReason::TooLong);
        QCOMPARE(world.ended.at(a).neededTokens, std::int64_t(34));
        QCOMPARE(world.ended.at(a).availableTokens, std::int64_t(33));
        QCOMPARE(world.ended.at(b).reason, EndReason::MaxTokens);
        QCOMPARE(world.ended.at(c).reason, EndReason::MaxTokens);
    }

    void aPromptThatFillsThePoolExactlyGetsItsToken() {
        World world(4, config());
        const SequenceId a = world.submit(tokenRange(100, 32), 1);
        QVERIFY(world.drain());
        QCOMPARE(world.ended.at(a).reason, EndReason::MaxTokens);
    }

    /// Pool exhaustion aborted every running request.
    void exhaustionCostsTheYoungestOnly() {
        World world(6, config());
        for (int i = 0; i < 4; ++i)
            world.submit(tokenRange(100 * i, 6), 24);
        QVERIFY(world.drain());
        for (const auto& [id, ended] : world.ended) {
            QCOMPARE(ended.reason, EndReason::MaxTokens);
            QCOMPARE(ended.generatedTokens, std::int64_t(24));
        }
        QVERIFY(world.scheduler.counters().preemptions > 0);
        QCOMPARE(world.ended.begin()->second.usage.preemptions, 0); // the oldest never gives way
        QVERIFY(world.answersAreThoseOfSoloRuns());
    }

    /// Preemption thrash: in and out without progress.
    void aPreemptedSequenceIsNotPreemptedAgainWithoutProgress() {
        World world(8, config(8));
        for (int i = 0; i < 6; ++i)
            world.submit(tokenRange(100 * i, 14), 30);
        QVERIFY(world.drain());
        for (const auto& [id, ended] : world.ended)
            // Each time somebody must have ended or outgrown a whole block in between.
            QVERIFY2(ended.usage.preemptions <= 6, qPrintable(QString::number(ended.usage.preemptions)));
        QVERIFY(world.answersAreThoseOfSoloRuns());
    }

    /// The same in a crowd: who had to give way twice comes back only to stay.
    void nobodyIsPreemptedForEver() {
        // Each prompt its own, or after the same 32 tokens: what is common does not come back with the end of one.
        for (const auto& [blocks, common] : {std::pair(40, 0), {64, 0}, {100, 0}, {48, 32}, {72, 32}}) {
            World world(blocks, config(256, 64));
            for (int i = 0; i < 100; ++i) {
                std::vector<TokenId> prompt = tokenRange(50'000, common);
                const std::vector<TokenId> own = tokenRange(100 * i, 5 + i % 11);
                prompt.insert(prompt.end(), own.begin(), own.end());
                world.submit(prompt, 20 + i % 37);
            }
            QVERIFY(world.drain(20000));
            QVERIFY(world.scheduler.counters().preemptions > 60);
            for (const auto& [id, ended] : world.ended) {
                QCOMPARE(ended.reason, EndReason::MaxTokens);
                QVERIFY2(ended.usage.preemptions <= 3, qPrintable(QString::number(ended.usage.preemptions)));
            }
            QVERIFY(world.answersAreThoseOfSoloRuns());
        }
    }

    /// "Never re-admits at 0 % use": its length and one more block exceed the pool, yet it fits when it is alone.
    void aPreemptedSequenceThatFillsThePoolComesBackWhenAlone() {
        World world(4, config());
        world.submit(tokenRange(100, 8), 8);                       // grows to 2 blocks
        const SequenceId b = world.submit(tokenRange(500, 23), 9); // to 32 slots: the whole pool
        QVERIFY(world.drain());
        QVERIFY(world.ended.at(b).usage.preemptions > 0);
        QCOMPARE(world.ended.at(b).reason, EndReason::MaxTokens);
        QVERIFY(world.answersAreThoseOfSoloRuns());
    }

    /// Stale counts after a preemption gave an index error: everything is counted anew, the receipt keeps its first.
    void countsStartAnewAfterAPreemption() {
        World world(5, config());
        const SequenceId a = world.submit(tokenRange(100, 15), 20);
        const SequenceId b = world.submit(tokenRange(500, 15), 20);
        QVERIFY(world.drain());
        QVERIFY(world.ended.at(b).usage.preemptions > 0);
        for (const SequenceId id : {a, b}) {
            const SequenceUsage& usage = world.ended.at(id).usage;
            QCOMPARE(usage.reusedTokens + usage.computedTokens, std::int64_t(15));
        }
        QVERIFY(world.ended.at(b).usage.recomputedTokens > 0);
        QVERIFY(world.answersAreThoseOfSoloRuns());
    }

    void aCacheHitDoesNotChangeTheAnswer() {
        Tokens answers[2];
        for (const bool caching : {false, true}) {
            kv::CacheConfig cacheSettings = cacheConfig(12, kBlockSize);
            cacheSettings.prefixCaching = caching;
            kv::KvCache cache(cacheSettings);
            Scheduler scheduler(cache, config(7));
            SimulatedModel model(12, kBlockSize, 1000);
            for (int turn = 0; turn < 3; ++turn) {
                SequenceSpec spec;
                spec.owner = OwnerId(1);
                spec.tokens = tokenRange(100, 18 + 3 * turn);
                spec.maxNewTokens = 6;
                scheduler.submit(spec, 0);
                while (!scheduler.idle()) {
                    std::vector<DrawnToken> drawn;
                    for (const TokenId token : model.run(scheduler.schedule(0))) {
                        drawn.push_back({token, false});
                        answers[caching].push_back(token);
                    }
                    scheduler.complete(drawn, 0);
                }
            }
            QCOMPARE(scheduler.counters().prefixHitTokens > 0, caching);
        }
        QCOMPARE(answers[0], answers[1]);
    }

    /// An aborted step in the middle of a copy-on-write: the copy is made again from an untouched source.
    void aForkSurvivesAbortedSteps() {
        World world(10, config());
        const SequenceId a = world.submit(tokenRange(100, 13), 9);
        const SequenceId b = world.submit(tokenRange(100, 13) + Tokens{5}, 9, a);
        world.step();
        for (std::size_t copies : {0u, 1u, 0u}) {
            const StepPlan& plan = world.scheduler.schedule(0);
            QVERIFY(plan.copies.size() >= 1);
            world.model.runAborted(plan, copies);
            world.scheduler.abandon(0);
            world.scheduler.checkInvariants();
        }
        QVERIFY(world.drain());
        QCOMPARE(world.ended.at(b).usage.reusedTokens, std::int64_t(13));
        QVERIFY(world.answersAreThoseOfSoloRuns());
    }

    void endingEverythingInTheMiddleOfAStepLeavesNothing() {
        World world(10, config(9));
        for (int i = 0; i < 4; ++i)
            world.submit(tokenRange(100 * i, 12), 9);
        world.step();
        world.scheduler.schedule(0);
        world.scheduler.endAll(EndReason::Failed, 0);
        world.collect();
        QCOMPARE(world.ended.size(), std::size_t(4));
        QVERIFY(world.scheduler.idle());
        QCOMPARE(world.cache.available(), 10);
        world.cache.checkInvariants();
    }

    void pinsThatLeaveTooLittleEndWhatCannotFit() {
        World world(4, config());
        SequenceSpec pinned;
        pinned.owner = OwnerId(90);
        pinned.tokens = tokenRange(900, 17);
        pinned.maxNewTokens = 1;
        pinned.pinPrompt = true;
        world.history[world.scheduler.submit(pinned, 0)] = pinned.tokens;
        QVERIFY(world.drain());
        const SequenceId a = world.submit(tokenRange(100, 20), 4); // 3 blocks, 2 can be had
        QVERIFY(world.drain());
        QCOMPARE(world.ended.at(a).reason, EndReason::TooLong);
        QCOMPARE(world.ended.at(a).availableTokens, std::int64_t(16));
    }

    void aStepCannotBeScheduledTwice() {
        World world(4, config());
        world.submit(tokenRange(1, 3), 2);
        world.scheduler.schedule(0);
        QVERIFY_THROWS_EXCEPTION(BrokenInvariant, world.scheduler.schedule(0));
        QVERIFY_THROWS_EXCEPTION(BrokenInvariant, world.scheduler.complete({}, 0));
    }
};

QTEST_APPLESS_MAIN(TestSchedulerFaults)
#include "test_scheduler_faults.moc"
