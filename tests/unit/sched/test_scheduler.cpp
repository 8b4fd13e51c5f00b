// SPDX-License-Identifier: GPL-3.0-or-later
//
// The scheduler step by step: who computes what, exact block ids, order of admission and preemption.
#include <QTest>

#include "engine/base/check.h"
#include "engine/sched/scheduler.h"
#include "tests/support/kv_harness.h"
#include "tests/support/simulated_model.h"

using namespace kvscope;
using namespace kvscope::sched;
using namespace kvscope::test;

namespace {

SequenceSpec spec(const Tokens& tokens, std::int64_t maxNewTokens = 4, OwnerId owner = OwnerId(1)) {
    SequenceSpec spec;
    spec.request = RequestId(owner.value());
    spec.owner = owner;
    spec.tokens = tokens;
    spec.maxNewTokens = maxNewTokens;
    return spec;
}

/// A cache, a scheduler and a model; one step() is what the engine does.
struct Rig {
    explicit Rig(int numBlocks, SchedulerConfig config = {}, int blockSize = 8)
        : cache(cacheConfig(numBlocks, blockSize))
        , scheduler(cache, config)
        , model(numBlocks, blockSize, 1000) {}

    /// "sequence:from-to" for each item, e.g. "1:0-8 2:5-6".
    std::string step() {
        const StepPlan& plan = scheduler.schedule(now);
        scheduler.checkInvariants();
        std::string text;
        for (const StepItem& item : plan.items)
            text += (text.empty() ? "" : " ") + std::to_string(item.sequence.value()) + ":" +
                    std::to_string(item.from) + "-" + std::to_string(item.to) + (item.samples ? "" : "...");
        if (plan.empty())
            return text;
        std::vector<DrawnToken> drawn;
        for (const TokenId token : model.run(plan))
            drawn.push_back({token, false});
        now += 10;
        scheduler.complete(drawn, now);
        scheduler.checkInvariants();
        return text;
    }
    void drain() {
        for (int i = 0; i < 1000 && !scheduler.idle(); ++i)
            step();
    }
    const Sequence& at(SequenceId id) const { return *scheduler.find(id); }

    Nanos now = 0;
    kv::KvCache cache;
    Scheduler scheduler;
    SimulatedModel model;
};

SchedulerConfig limits(int tokenBudget, int maxSequences = 16, double watermark = 0) {
    SchedulerConfig config;
    config.tokenBudget = tokenBudget;
    config.maxSequences = maxSequences;
    config.watermark = watermark;
    return config;
}

} // namespace

class TestScheduler : public QObject {
    Q_OBJECT
private slots:
    void aPromptIsReadInChunksAndThenWritten() {
        Rig rig(10, limits(7));
        const SequenceId a = rig.scheduler.submit(spec(tokenRange(100, 17), 3), rig.now);
        QCOMPARE(rig.step(), std::string("1:0-7..."));
        QCOMPARE(rig.at(a).phase, SequencePhase::Reading);
        QCOMPARE(idsOf(rig.at(a).table.blocks()), (Ids{0, 1, 2})); // room for the whole prompt from the start
        QCOMPARE(rig.step(), std::string("1:7-14..."));
        QCOMPARE(rig.step(), std::string("1:14-17"));
        QCOMPARE(rig.at(a).phase, SequencePhase::Writing);
        QCOMPARE(rig.step(), std::string("1:17-18"));
        QCOMPARE(rig.step(), std::string("1:18-19"));
        QVERIFY(rig.scheduler.idle());
        const auto ended = rig.scheduler.takeEnded();
        QCOMPARE(ended.size(), std::size_t(1));
        QCOMPARE(ended[0].reason, EndReason::MaxTokens);
        QCOMPARE(ended[0].generatedTokens, std::int64_t(3));
        QCOMPARE(ended[0].usage.computedTokens, std::int64_t(17));
        QCOMPARE(ended[0].usage.newBlocks, 3);
        QCOMPARE(ended[0].blocksAvailableAfter, 10);
        QCOMPARE(ended[0].blocksCachedAfter, 2);
        QCOMPARE(rig.scheduler.counters().prefillTokens, std::uint64_t(17));
        QCOMPARE(rig.scheduler.counters().decodeTokens, std::uint64_t(2));
        QVERIFY(rig.scheduler.takeEnded().empty());
    }

    void chunkEndsMeetBlockEndsExactly() {
        Rig rig(10, limits(8));
        const SequenceId a = rig.scheduler.submit(spec(tokenRange(100, 16), 2), rig.now);
        QCOMPARE(rig.step(), std::string("1:0-8..."));
        QCOMPARE(rig.step(), std::string("1:8-16"));
        QCOMPARE(idsOf(rig.at(a).table.blocks()), (Ids{0, 1}));
        QCOMPARE(rig.step(), std::string("1:16-17")); // the next token's block is taken only now
        QCOMPARE(rig.cache.lookup(tokenRange(100, 17)), std::int64_t(16));
    }

    void answersComeBeforeChunksSoThatALongPasteDoesNotHoldThemUp() {
        Rig rig(40, limits(16));
        rig.scheduler.submit(spec(tokenRange(1000, 100), 9, OwnerId(1)), rig.now); // the older one
        rig.step();
        rig.scheduler.submit(spec(tokenRange(500, 4), 9, OwnerId(2)), rig.now);
        QCOMPARE(rig.step(), std::string("1:16-32...")); // no budget left for the newcomer
        rig.scheduler.setTokenBudget(24);
        QCOMPARE(rig.step(), std::string("1:32-56..."));
        rig.scheduler.setTokenBudget(50);
        QCOMPARE(rig.step(), std::string("1:56-100 2:0-4"));
        rig.scheduler.submit(spec(tokenRange(2000, 100), 9, OwnerId(3)), rig.now);
        QCOMPARE(rig.step(), std::string("1:100-101 2:4-5 3:0-48..."));
        QCOMPARE(rig.step(), std::string("1:101-102 2:5-6 3:48-96..."));
    }

    void withTooSmallABudgetAnswersTakeTurns() {
        Rig rig(20, limits(100));
        for (int i = 0; i < 3; ++i)
            rig.scheduler.submit(spec(tokenRange(100 * i, 3), 8, OwnerId(i)), rig.now);
        QCOMPARE(rig.step(), std::string("1:0-3 2:0-3 3:0-3"));
        rig.scheduler.setTokenBudget(2);
        QCOMPARE(rig.step(), std::string("1:3-4 2:3-4"));
        QCOMPARE(rig.step(), std::string("3:3-4 1:4-5"));
        QCOMPARE(rig.step(), std::string("2:4-5 3:4-5"));
        QCOMPARE(rig.step(), std::string("1:5-6 2:5-6"));
    }

    void firstComeFirstServedAndNobodyOvertakes() {
        Rig rig(6, limits(100));
        rig.scheduler.submit(spec(tokenRange(100, 25), 8, OwnerId(1)), rig.now); // 4 blocks
        rig.step();
        const SequenceId big = rig.scheduler.submit(spec(tokenRange(500, 20), 4, OwnerId(2)), rig.now);  // needs 3
        const SequenceId small = rig.scheduler.submit(spec(tokenRange(900, 3), 4, OwnerId(3)), rig.now); // would fit
        QCOMPARE(rig.step(), std::string("1:25-26"));
        QCOMPARE(rig.at(big).waiting.kind, WaitingKind::Blocks);
        QCOMPARE(rig.at(big).waiting.neededBlocks, 3);
        QCOMPARE(rig.at(big).waiting.availableBlocks, 2);
        QCOMPARE(rig.at(small).waiting.kind, WaitingKind::Queue);
        rig.drain();
        const auto ended = rig.scheduler.takeEnded();
        QCOMPARE(ended.size(), std::size_t(3));
        QCOMPARE(ended[0].owner, OwnerId(1));
    }

    void placesAreLimited() {
        Rig rig(10, limits(100, 2));
        for (int i = 1; i <= 3; ++i)
            rig.scheduler.submit(spec(tokenRange(100 * i, 3), 3, OwnerId(i)), rig.now);
        QCOMPARE(rig.step(), std::string("1:0-3 2:0-3"));
        QCOMPARE(rig.at(SequenceId(3)).waiting.kind, WaitingKind::Places);
        QCOMPARE(rig.at(SequenceId(3)).waiting.places, 2);
        rig.step();
        rig.step();
        QCOMPARE(rig.step(), std::string("3:0-3"));
    }

    void theWatermarkHoldsBackOnlyWhileOthersRun() {
        Rig rig(10, limits(100, 16, 0.25));                                      // 2 blocks
        rig.scheduler.submit(spec(tokenRange(100, 80), 1, OwnerId(1)), rig.now); // all ten: alone it may
        QCOMPARE(rig.step(), std::string("1:0-80"));
        rig.scheduler.submit(spec(tokenRange(500, 40), 9, OwnerId(2)), rig.now); // 5
        rig.scheduler.submit(spec(tokenRange(900, 30), 9, OwnerId(3)), rig.now); // 4, and 2 must stay back
        QCOMPARE(rig.step(), std::string("2:0-40"));
        QCOMPARE(rig.at(SequenceId(3)).waiting.neededBlocks, 6);
        QCOMPARE(rig.at(SequenceId(3)).waiting.availableBlocks, 5);
    }

    void theYoungestIsPreemptedAndComesBackWhenItFits() {
        Rig rig(6, limits(100));
        rig.scheduler.submit(spec(tokenRange(100, 16), 12, OwnerId(1)), rig.now);
        rig.scheduler.submit(spec(tokenRange(500, 23), 12, OwnerId(2)), rig.now);
        QCOMPARE(rig.step(), std::string("1:0-16 2:0-23"));
        QCOMPARE(rig.cache.available(), 1);
        QCOMPARE(rig.step(), std::string("1:16-17 2:23-24")); // the last block goes to 1
        QCOMPARE(rig.step(), std::string("1:17-18"));         // 2 needs a fourth block: it is the youngest itself
        const Sequence& two = rig.at(SequenceId(2));
        QCOMPARE(two.phase, SequencePhase::Waiting);
        QVERIFY(two.waiting.preempted);
        QVERIFY(!two.waiting.lentTo.valid());
        QCOMPARE(two.usage.preemptions, 1);
        // Its 25 tokens and one more block: 5 of the 3 that are left.
        rig.step();
        QCOMPARE(two.waiting.kind, WaitingKind::Blocks);
        QCOMPARE(two.waiting.neededBlocks, 5);
        QCOMPARE(two.waiting.availableBlocks, 3);
        while (rig.scheduler.find(SequenceId(1)) != nullptr)
            rig.step();
        QCOMPARE(rig.step(), std::string("2:16-25")); // two of its full blocks were still cached, the third went to 1
        QCOMPARE(rig.scheduler.counters().readmitTokens, std::uint64_t(25));
        QCOMPARE(rig.scheduler.counters().readmitHitTokens, std::uint64_t(16));
        QCOMPARE(rig.scheduler.hitRate().promptTokens(), std::int64_t(39)); // first admissions only
        rig.drain();
        QCOMPARE(rig.scheduler.takeEnded().back().generatedTokens, std::int64_t(12));
    }

    void blocksAreLentByName() {
        Rig rig(4, limits(100));
        rig.scheduler.submit(spec(tokenRange(100, 16), 9, OwnerId(1)), rig.now);
        rig.scheduler.submit(spec(tokenRange(500, 15), 9, OwnerId(2)), rig.now);
        rig.step();
        QCOMPARE(rig.step(), std::string("1:16-17"));
        QCOMPARE(rig.at(SequenceId(2)).waiting.lentTo, OwnerId(1));
    }

    /// A younger sequence that was already planned in this step loses its place in the plan with its blocks.
    void aPreemptedSequenceLeavesThePlan() {
        Rig rig(4, limits(100));
        rig.scheduler.submit(spec(tokenRange(100, 15), 9, OwnerId(1)), rig.now);
        rig.scheduler.submit(spec(tokenRange(500, 10), 9, OwnerId(2)), rig.now);
        rig.step();
        rig.scheduler.setTokenBudget(1);
        QCOMPARE(rig.step(), std::string("1:15-16"));
        rig.scheduler.setTokenBudget(100);
        // 2 waited longer and is planned first; then 1 needs its third block and takes it.
        QCOMPARE(rig.cache.available(), 0);
        QCOMPARE(rig.step(), std::string("1:16-17"));
        QCOMPARE(rig.at(SequenceId(2)).phase, SequencePhase::Waiting);
    }

    void cancelWaitsForTheStepBoundaryAndIsIdempotent() {
        Rig rig(10, limits(100));
        const SequenceId a = rig.scheduler.submit(spec(tokenRange(100, 20), 8), rig.now);
        const StepPlan& plan = rig.scheduler.schedule(rig.now);
        rig.scheduler.cancel(a, rig.now);
        rig.scheduler.cancel(a, rig.now);
        QVERIFY(rig.scheduler.takeEnded().empty());
        std::vector<DrawnToken> drawn;
        for (const TokenId token : rig.model.run(plan))
            drawn.push_back({token, false});
        rig.scheduler.complete(drawn, rig.now);
        const auto ended = rig.scheduler.takeEnded();
        QCOMPARE(ended.size(), std::size_t(1));
        QCOMPARE(ended[0].reason, EndReason::Cancelled);
        QCOMPARE(ended[0].generatedTokens, std::int64_t(0)); // the token drawn meanwhile is not part of it
        QCOMPARE(rig.cache.lookup(tokenRange(100, 20)), std::int64_t(16)); // what was computed stays findable
        rig.scheduler.cancel(a, rig.now);
        QVERIFY(rig.scheduler.takeEnded().empty());
        QCOMPARE(rig.cache.available(), 10);
    }

    void cancelOfAWaitingSequenceEndsItNow() {
        Rig rig(10, limits(100));
        const SequenceId a = rig.scheduler.submit(spec(tokenRange(100, 20)), rig.now);
        rig.scheduler.cancel(a, rig.now);
        QCOMPARE(rig.scheduler.takeEnded().size(), std::size_t(1));
        QVERIFY(rig.scheduler.idle());
        QCOMPARE(rig.step(), std::string());
    }

    void anAbortedStepIsRepeatedWhole() {
        Rig rig(10, limits(12));
        const SequenceId a = rig.scheduler.submit(spec(tokenRange(100, 20), 2), rig.now);
        const SequenceId b = rig.scheduler.submit(spec(tokenRange(500, 3), 2, OwnerId(2)), rig.now);
        rig.model.runAborted(rig.scheduler.schedule(rig.now), 0);
        rig.scheduler.cancel(b, rig.now);
        rig.scheduler.abandon(rig.now);
        rig.scheduler.checkInvariants();
        QCOMPARE(rig.at(a).computed, std::int64_t(0));
        QVERIFY(rig.scheduler.find(b) == nullptr);
        QCOMPARE(rig.cache.lookup(tokenRange(100, 20)), std::int64_t(0)); // nothing of it was published
        QCOMPARE(rig.step(), std::string("1:0-12..."));
        QCOMPARE(rig.step(), std::string("1:12-20"));
        QCOMPARE(rig.at(a).tokens.back(), rig.model.nextToken(tokenRange(100, 20)));
    }

    void theEngineSaysWhenASequenceStops() {
        Rig rig(10, limits(100));
        rig.scheduler.submit(spec(tokenRange(100, 5), 50), rig.now);
        rig.model.run(rig.scheduler.schedule(rig.now));
        const DrawnToken last{42, true};
        rig.scheduler.complete(std::span(&last, 1), rig.now);
        const auto ended = rig.scheduler.takeEnded();
        QCOMPARE(ended[0].reason, EndReason::Stopped);
        QCOMPARE(ended[0].generatedTokens, std::int64_t(1));
    }

    void theLongestSequenceIsRespected() {
        SchedulerConfig config = limits(100);
        config.maxLength = 12;
        Rig rig(10, config);
        rig.scheduler.submit(spec(tokenRange(100, 10), 50), rig.now);
        rig.drain();
        auto ended = rig.scheduler.takeEnded();
        QCOMPARE(ended[0].reason, EndReason::MaxLength);
        QCOMPARE(ended[0].generatedTokens, std::int64_t(2));
        rig.scheduler.submit(spec(tokenRange(100, 12), 50), rig.now);
        ended = rig.scheduler.takeEnded();
        QCOMPARE(ended[0].reason, EndReason::TooLong);
        QCOMPARE(ended[0].neededTokens, std::int64_t(13));
        QCOMPARE(ended[0].availableTokens, std::int64_t(12));
    }

    void aPromptThatIsOnlyScoredMayFillTheWholeLength() {
        SchedulerConfig config = limits(100);
        config.maxLength = 12;
        Rig rig(2, config);
        SequenceSpec whole = spec(tokenRange(100, 12), 1);
        whole.scores = true;
        rig.scheduler.submit(whole, rig.now);
        rig.drain();
        QCOMPARE(rig.scheduler.takeEnded()[0].reason, EndReason::MaxTokens);
        whole.tokens = tokenRange(100, 13);
        rig.scheduler.submit(whole, rig.now);
        QCOMPARE(rig.scheduler.takeEnded()[0].reason, EndReason::TooLong);
    }

    void oneSequenceCanFailAlone() {
        Rig rig(10, limits(100));
        const SequenceId bad = rig.scheduler.submit(spec(tokenRange(100, 10), 5), rig.now);
        rig.scheduler.submit(spec(tokenRange(300, 10), 5), rig.now);
        QVERIFY(!rig.scheduler.schedule(rig.now).empty());
        rig.scheduler.abandon(rig.now);
        rig.scheduler.fail(bad, rig.now);
        rig.scheduler.fail(bad, rig.now); // and not twice
        const auto ended = rig.scheduler.takeEnded();
        QCOMPARE(ended.size(), std::size_t(1));
        QCOMPARE(ended[0].reason, EndReason::Failed);
        rig.scheduler.checkInvariants();
        rig.drain();
        QCOMPARE(rig.scheduler.takeEnded()[0].reason, EndReason::MaxTokens);
    }

    void timesAndIntervalsAreKept() {
        Rig rig(10, limits(4));
        rig.now = 100;
        const SequenceId a = rig.scheduler.submit(spec(tokenRange(100, 8), 5), rig.now);
        rig.now = 150;
        rig.step(); // schedules at 150, completes at 160
        rig.step(); // 170: first token
        rig.step(); // 180
        QCOMPARE(rig.at(a).times.arrival, Nanos(100));
        QCOMPARE(rig.at(a).times.firstScheduled, Nanos(150));
        QCOMPARE(rig.at(a).times.firstToken, Nanos(170));
        QCOMPARE(rig.at(a).intervals.mean(), Nanos(10));
        rig.now += 30;
        rig.step();
        QCOMPARE(rig.at(a).intervals.mean(), Nanos(25)); // 10 and 40
    }

    void theHitRateCoversTheLastThirtyTwoAdmissions() {
        HitRateWindow window;
        QCOMPARE(window.promptTokens(), std::int64_t(0));
        window.add(100, 100);
        for (int i = 0; i < 31; ++i)
            window.add(1, 10);
        QCOMPARE(window.reusedTokens(), std::int64_t(131));
        QCOMPARE(window.promptTokens(), std::int64_t(410));
        window.add(1, 10); // the first one leaves
        QCOMPARE(window.reusedTokens(), std::int64_t(32));
        QCOMPARE(window.promptTokens(), std::int64_t(320));
    }

    // ---- forks ----

    void samplesOfOnePromptForkFromTheLiveSequence() {
        Rig rig(20, limits(100));
        const Tokens prompt = tokenRange(100, 13);
        const SequenceId first = rig.scheduler.submit(spec(prompt, 6), rig.now);
        SequenceSpec fork = spec(prompt, 6, OwnerId(2));
        fork.forkOf = first;
        const SequenceId second = rig.scheduler.submit(fork, rig.now);
        QCOMPARE(rig.step(), std::string("1:0-13")); // the prompt is read once; the fork waits for it
        QCOMPARE(rig.step(), std::string("1:13-14 2:12-13"));
        QCOMPARE(rig.at(second).usage.reusedTokens, std::int64_t(12));
        QCOMPARE(idsOf(rig.at(first).table.blocks()).front(), idsOf(rig.at(second).table.blocks()).front());
        QCOMPARE(rig.cache.counters().copies, std::uint64_t(1));
        rig.drain();
        QCOMPARE(rig.scheduler.takeEnded().size(), std::size_t(2));
    }

    void aForkWaitingForItsSourceSaysSoAndOthersPass() {
        Rig rig(20, limits(8));
        const Tokens prompt = tokenRange(100, 20);
        const SequenceId first = rig.scheduler.submit(spec(prompt, 2), rig.now);
        SequenceSpec fork = spec(prompt, 2, OwnerId(2));
        fork.forkOf = first;
        const SequenceId second = rig.scheduler.submit(fork, rig.now);
        rig.step();
        QCOMPARE(rig.at(second).waiting.kind, WaitingKind::Source);
        rig.scheduler.submit(spec(tokenRange(900, 2), 2, OwnerId(3)), rig.now);
        rig.step();
        QCOMPARE(rig.step(), std::string("1:16-20 3:0-2"));
        rig.scheduler.cancel(first, rig.now); // the source is gone: the fork goes its own way
        rig.drain();
        QCOMPARE(rig.scheduler.takeEnded().size(), std::size_t(3));
    }

    void aRetainedTableServesForksUntilRoomIsNeeded() {
        Rig rig(6, limits(100));
        SequenceSpec source = spec(tokenRange(100, 12), 2);
        source.retain = true;
        const SequenceId a = rig.scheduler.submit(source, rig.now);
        rig.drain();
        QCOMPARE(rig.scheduler.retained(), std::size_t(1));
        QCOMPARE(rig.cache.available(), 4);
        SequenceSpec fork = spec(tokenRange(100, 12) + tokenRange(700, 3), 2, OwnerId(2));
        fork.forkOf = a;
        const SequenceId b = rig.scheduler.submit(fork, rig.now);
        QCOMPARE(rig.step(), std::string("2:12-15"));
        QCOMPARE(rig.at(b).usage.reusedTokens, std::int64_t(12)); // 8 in whole blocks, 4 by copying the tail
        rig.drain();
        rig.scheduler.submit(spec(tokenRange(900, 48), 1, OwnerId(3)), rig.now); // wants the whole pool
        QCOMPARE(rig.step(), std::string("3:0-48"));
        QCOMPARE(rig.scheduler.retained(), std::size_t(0));
    }

    void pinnedPromptsSurviveTheirSequence() {
        Rig rig(6, limits(100));
        SequenceSpec pinned = spec(tokenRange(100, 17), 2);
        pinned.pinPrompt = true;
        rig.scheduler.submit(pinned, rig.now);
        rig.drain();
        QCOMPARE(countOf(rig.cache, kv::BlockState::Pinned), 2u);
        rig.scheduler.submit(spec(tokenRange(900, 30), 2, OwnerId(2)), rig.now);
        rig.drain();
        QCOMPARE(rig.cache.lookup(tokenRange(100, 17)), std::int64_t(16));
        rig.scheduler.releasePins();
        QCOMPARE(rig.cache.available(), 6);
    }
};

QTEST_APPLESS_MAIN(TestScheduler)
#include "test_scheduler.moc"
