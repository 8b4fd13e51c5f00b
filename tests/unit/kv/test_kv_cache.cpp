// SPDX-License-Identifier: GPL-3.0-or-later
//
// The cache on pools of about ten blocks: exact block ids, reference counts and the order of the free list.
#include <QTest>

#include "engine/base/check.h"
#include "tests/support/kv_harness.h"

using namespace kvscope;
using namespace kvscope::kv;
using namespace kvscope::test;

namespace {

constexpr Nanos kSecond = 1'000'000'000;

int refs(const KvCache& cache, int block) {
    return cache.pool().facts(BlockId(block)).references;
}

} // namespace

class TestKvCache : public QObject {
    Q_OBJECT
private slots:
    void blocksAreTakenInOrderAndFreedFromTheTail() {
        KvCache cache(cacheConfig(10));
        Computed a = compute(cache, tokenRange(100, 20)); // 2 full blocks and a half one
        QCOMPARE(idsOf(a.table.blocks()), (Ids{0, 1, 2}));
        QCOMPARE(a.table.tokens(), std::int64_t(20));
        QCOMPARE(freeIds(cache), (Ids{3, 4, 5, 6, 7, 8, 9}));
        QCOMPARE(countOf(cache, BlockState::Active), 2u);
        QCOMPARE(countOf(cache, BlockState::Filling), 1u);
        QCOMPARE(cache.pool().usedSlots(), std::uint64_t(20));

        a.table.release();
        // The partial tail is empty again and first; of the cached ones the later is evicted before the earlier.
        QCOMPARE(freeIds(cache), (Ids{2, 3, 4, 5, 6, 7, 8, 9, 1, 0}));
        QCOMPARE(countOf(cache, BlockState::Cached), 2u);
        QCOMPARE(cache.available(), 10);
        QCOMPARE(cache.pool().usedSlots(), std::uint64_t(0));
        cache.checkInvariants();
    }

    void aHitLeavesTheMiddleOfTheFreeListAndKeepsItsContent() {
        KvCache cache(cacheConfig(10));
        compute(cache, tokenRange(100, 24)).table.release(); // 0 1 2
        compute(cache, tokenRange(500, 16)).table.release(); // 3 4
        QCOMPARE(freeIds(cache), (Ids{5, 6, 7, 8, 9, 2, 1, 0, 4, 3}));

        Computed again = compute(cache, tokenRange(100, 24) + tokenRange(900, 4));
        QCOMPARE(again.reused, std::int64_t(24));
        QCOMPARE(idsOf(again.table.blocks()), (Ids{0, 1, 2, 5}));
        QCOMPARE(freeIds(cache), (Ids{6, 7, 8, 9, 4, 3}));
        again.table.release();
        QCOMPARE(freeIds(cache), (Ids{5, 6, 7, 8, 9, 4, 3, 2, 1, 0}));
        QCOMPARE(cache.lookup(tokenRange(100, 25)), std::int64_t(24));
    }

    void tablesWithTailsShareWholeBlocksOnly() {
        CacheConfig config = cacheConfig(10);
        config.tailSlots = 2;
        KvCache cache(config);
        Computed a = compute(cache, tokenRange(100, 20)); // 2 full blocks and a half one
        QVERIFY(a.table.tailSlot() >= 0);
        QCOMPARE(cache.freeTailSlots(), 1);
        {
            BlockTable fork = cache.fork(a.table, 20, OwnerId(2), 0);
            QCOMPARE(fork.tokens(), std::int64_t(16));
            QCOMPARE(idsOf(fork.blocks()), (Ids{0, 1}));
            QCOMPARE(fork.tailSlot(), -1); // it writes nothing yet
            QCOMPARE(*cache.grow(fork, 17, 0), 1);
            QVERIFY(fork.tailSlot() >= 0 && fork.tailSlot() != a.table.tailSlot());
            QVERIFY(cache.pendingCopies().empty());
            cache.checkInvariants();

            // No slot is left: backpressure, and nothing has changed.
            AdmitRequest request;
            const Tokens tokens = tokenRange(900, 5);
            request.tokens = tokens;
            const AdmitResult refused = cache.admit(request, 0);
            QVERIFY(!refused && refused.error().tailSlot);
            BlockTable third = cache.fork(a.table, 8, OwnerId(3), 0);
            const GrowResult stuck = cache.grow(third, 9, 0);
            QVERIFY(!stuck && stuck.error().tailSlot);
            cache.checkInvariants();
        }
        QCOMPARE(cache.freeTailSlots(), 1);
        AdmitRequest forked;
        const Tokens tokens = tokenRange(100, 20) + tokenRange(900, 3);
        forked.tokens = tokens;
        forked.forkFrom = &a.table;
        forked.forkTokens = 20;
        Admission admission = std::move(*cache.admit(forked, 0));
        QCOMPARE(admission.reusedTokens, std::int64_t(16));
        QVERIFY(cache.pendingCopies().empty());
        admission.table.release();

        cache.truncate(a.table, 18); // inside the block that is being filled
        QCOMPARE(a.table.tokens(), std::int64_t(18));
        QVERIFY(a.table.tailSlot() >= 0);
        cache.truncate(a.table, 13); // inside a sealed one: its f16 is gone
        QCOMPARE(a.table.tokens(), std::int64_t(8));
        QCOMPARE(a.table.tailSlot(), -1);
        QCOMPARE(cache.freeTailSlots(), 2);
        cache.checkInvariants();
    }

    void theLastTokenIsAlwaysComputed() {
        KvCache cache(cacheConfig(10));
        compute(cache, tokenRange(100, 16)).table.release();
        QCOMPARE(cache.lookup(tokenRange(100, 16)), std::int64_t(8));
        QCOMPARE(cache.lookup(tokenRange(100, 17)), std::int64_t(16));
        QCOMPARE(cache.lookup(tokenRange(100, 8)), std::int64_t(0));
        QCOMPARE(cache.lookup(tokenRange(100, 1)), std::int64_t(0));
        QCOMPARE(cache.lookup({}), std::int64_t(0));
        QCOMPARE(compute(cache, tokenRange(100, 16)).reused, std::int64_t(8));
    }

    void sharingCountsReferencesAndDrawsShared() {
        KvCache cache(cacheConfig(10));
        Computed a = compute(cache, tokenRange(100, 20), OwnerId(1));
        Computed b = compute(cache, tokenRange(100, 18), OwnerId(2));
        QCOMPARE(b.reused, std::int64_t(16));
        QCOMPARE(idsOf(b.table.blocks()), (Ids{0, 1, 3}));
        QCOMPARE(refs(cache, 0), 2);
        QCOMPARE(countOf(cache, BlockState::Shared), 2u);
        QCOMPARE(cache.sharedBlocks(b.table), 2);
        // Slots of shared blocks count once.
        QCOMPARE(cache.pool().usedSlots(), std::uint64_t(16 + 4 + 2));
        a.table.release();
        QCOMPARE(refs(cache, 0), 1);
        QCOMPARE(countOf(cache, BlockState::Shared), 0u);
        QCOMPARE(countOf(cache, BlockState::Active), 2u);
        cache.checkInvariants();
    }

    void onlyWhatTheStepHasWrittenCanBeFound() {
        KvCache cache(cacheConfig(10));
        const Tokens prompt = tokenRange(100, 17);
        AdmitRequest request;
        request.tokens = prompt;
        request.owner = OwnerId(1);
        Admission admission = std::move(cache.admit(request, 0).value());
        QCOMPARE(cache.lookup(prompt), std::int64_t(0)); // allocated, not computed
        cache.advance(admission.table, std::span(prompt).first(7), 0);
        QCOMPARE(cache.lookup(prompt), std::int64_t(0)); // half a block
        cache.advance(admission.table, std::span(prompt).subspan(7, 5), 0);
        QCOMPARE(cache.lookup(prompt), std::int64_t(8));
        cache.advance(admission.table, std::span(prompt).subspan(12), 0);
        QCOMPARE(cache.lookup(prompt), std::int64_t(16));
        cache.checkInvariants();
    }

    void admissionIsAllOrNothing() {
        KvCache cache(cacheConfig(4));
        Computed a = compute(cache, tokenRange(100, 17)); // 3 of 4 blocks
        const std::uint64_t epoch = cache.pool().epoch();
        const Tokens prompt = tokenRange(500, 9);
        AdmitRequest request;
        request.tokens = prompt;
        request.owner = OwnerId(2);
        const AdmitResult refused = cache.admit(request, 0);
        QVERIFY(!refused);
        QCOMPARE(refused.error().needed, 2);
        QCOMPARE(refused.error().available, 1);
        QCOMPARE(cache.pool().epoch(), epoch);
        const GrowResult tooMuch = cache.grow(a.table, 33, 0);
        QVERIFY(!tooMuch);
        QCOMPARE(tooMuch.error().needed, 2);
        QCOMPARE(cache.pool().epoch(), epoch);
        cache.checkInvariants();
    }

    void whatStaysBackCountsAsNeededAndCachedHitsAsTaken() {
        KvCache cache(cacheConfig(4));
        compute(cache, tokenRange(100, 16)).table.release();
        const Tokens prompt = tokenRange(100, 20); // 2 cached blocks and 1 new
        AdmitRequest request;
        request.tokens = prompt;
        request.owner = OwnerId(1);
        request.keepBack = 2;
        const AdmitResult refused = cache.admit(request, 0);
        QVERIFY(!refused);
        QCOMPARE(refused.error().needed, 5);
        QCOMPARE(refused.error().available, 4);
        request.keepBack = 1;
        const AdmitResult taken = cache.admit(request, 0);
        QVERIFY(taken.has_value());
        QCOMPARE(taken->newBlocks, 1);
        QCOMPARE(cache.available(), 1);
    }

    void theLeastRecentlyUsedGoesFirstAndLeavesTheIndex() {
        KvCache cache(cacheConfig(4));
        compute(cache, tokenRange(100, 8), OwnerId(1), 1 * kSecond).table.release();
        compute(cache, tokenRange(200, 8), OwnerId(2), 2 * kSecond).table.release();
        compute(cache, tokenRange(100, 9), OwnerId(1), 3 * kSecond).table.release(); // reads the first again
        QCOMPARE(freeIds(cache), (Ids{2, 3, 1, 0}));
        Computed big = compute(cache, tokenRange(300, 20), OwnerId(3), 4 * kSecond);
        QCOMPARE(idsOf(big.table.blocks()), (Ids{2, 3, 1}));
        QCOMPARE(cache.lookup(tokenRange(200, 9)), std::int64_t(0));
        QCOMPARE(cache.lookup(tokenRange(100, 9)), std::int64_t(8));
        QCOMPARE(cache.counters().totalEvictions(), std::uint64_t(1));
        QCOMPARE(cache.counters().evictions[static_cast<std::size_t>(EvictionReason::Admission)], std::uint64_t(1));
    }

    void pinnedBlocksAreNeverEvicted() {
        KvCache cache(cacheConfig(4));
        Computed system = compute(cache, tokenRange(100, 18));
        PinnedBlocks pins = cache.pin(system.table, 2);
        system.table.release();
        QCOMPARE(countOf(cache, BlockState::Pinned), 2u);
        QCOMPARE(cache.available(), 2);
        Computed other = compute(cache, tokenRange(500, 16));
        other.table.release();
        QCOMPARE(cache.lookup(tokenRange(100, 17)), std::int64_t(16));
        pins.release();
        QCOMPARE(cache.available(), 4);
        QCOMPARE(freeIds(cache), (Ids{3, 2, 1, 0}));
        cache.checkInvariants();
    }

    void anUnsealedBlockCannotBePinned() {
        KvCache cache(cacheConfig(4));
        Computed a = compute(cache, tokenRange(100, 12));
        QVERIFY_THROWS_EXCEPTION(BrokenInvariant, cache.pin(a.table, 2));
    }

    void aForkSharesEverythingAndTheFirstWriteCopiesTheTailOnly() {
        KvCache cache(cacheConfig(10));
        Computed a = compute(cache, tokenRange(100, 20), OwnerId(1)); // 0 1 2(4)
        BlockTable b = cache.fork(a.table, 20, OwnerId(2), 0);
        QCOMPARE(idsOf(b.blocks()), (Ids{0, 1, 2}));
        QCOMPARE(refs(cache, 2), 2);
        cache.checkInvariants();

        QCOMPARE(cache.grow(b, 21, 0).value(), 1);
        QCOMPARE(idsOf(b.blocks()), (Ids{0, 1, 3}));
        QCOMPARE(cache.pendingCopies().size(), std::size_t(1));
        QCOMPARE(cache.pendingCopies()[0].from, BlockId(2));
        QCOMPARE(cache.pendingCopies()[0].to, BlockId(3));
        QCOMPARE(cache.pendingCopies()[0].slotCount, 4);
        cache.checkInvariants();
        cache.commitCopies();
        QCOMPARE(refs(cache, 2), 1);
        cache.advance(b, Tokens{7}, 0);
        cache.checkInvariants();

        // The original is the only reader of its tail now and writes in place.
        append(cache, a.table, Tokens{8});
        QCOMPARE(idsOf(a.table.blocks()), (Ids{0, 1, 2}));
        QCOMPARE(cache.pool().tokens(BlockId(2))[4], 8);
        QCOMPARE(cache.pool().tokens(BlockId(3))[4], 7);
        QCOMPARE(cache.counters().copies, std::uint64_t(1));
    }

    void aForkInsideASealedBlockCopiesItsBeginning() {
        KvCache cache(cacheConfig(10));
        Computed a = compute(cache, tokenRange(100, 16), OwnerId(1));
        BlockTable b = cache.fork(a.table, 13, OwnerId(2), 0);
        a.table.release();
        QCOMPARE(refs(cache, 1), 1); // b alone reads it, yet it is published: writing into it would change it
        append(cache, b, Tokens{7, 8, 9});
        QCOMPARE(idsOf(b.blocks()), (Ids{0, 2}));
        QCOMPARE(cache.lookup(tokenRange(100, 17)), std::int64_t(16)); // the original survived
        QCOMPARE(cache.lookup(tokenRange(100, 13) + Tokens{7, 8, 9, 10}), std::int64_t(16));
    }

    void anAbortedStepRepeatsItsCopiesFromAnUntouchedSource() {
        KvCache cache(cacheConfig(6));
        Computed a = compute(cache, tokenRange(100, 12), OwnerId(1)); // 0 1(4)
        BlockTable b = cache.fork(a.table, 12, OwnerId(2), 0);
        cache.grow(b, 13, 0).value(); // copy 1 -> 2, then the step is aborted
        a.table.release();            // the source has no table any more
        QCOMPARE(refs(cache, 1), 1);  // but nobody may take it
        cache.checkInvariants();
        QCOMPARE(cache.grow(b, 13, 0).value(), 0); // nothing more is needed for the second try
        QCOMPARE(cache.pendingCopies().size(), std::size_t(1));
        cache.commitCopies();
        QCOMPARE(refs(cache, 1), 0);
        cache.advance(b, Tokens{7}, 0);
        cache.checkInvariants();
    }

    void aCopyThatNobodyWantsAnyMoreIsForgotten() {
        KvCache cache(cacheConfig(6));
        Computed a = compute(cache, tokenRange(100, 12), OwnerId(1));
        BlockTable b = cache.fork(a.table, 12, OwnerId(2), 0);
        cache.grow(b, 13, 0).value();
        b.release();
        QVERIFY(cache.pendingCopies().empty());
        QCOMPARE(refs(cache, 1), 1);
        cache.checkInvariants();
    }

    void aCopyOfATailThatIsStillToBeCopiedReadsTheOriginal() {
        KvCache cache(cacheConfig(8));
        Computed a = compute(cache, tokenRange(100, 13), OwnerId(1)); // 0 1(5)
        BlockTable b = cache.fork(a.table, 13, OwnerId(2), 0);
        cache.grow(b, 14, 0).value(); // pending 1 -> 2, aborted
        BlockTable c = cache.fork(b, 11, OwnerId(3), 0);
        cache.grow(c, 12, 0).value();
        QCOMPARE(cache.pendingCopies().size(), std::size_t(2));
        QCOMPARE(cache.pendingCopies()[1].from, BlockId(1));
        QCOMPARE(cache.pendingCopies()[1].to, BlockId(3));
        QCOMPARE(cache.pendingCopies()[1].slotCount, 3);
        cache.checkInvariants();
        b.release();
        QCOMPARE(cache.pendingCopies().size(), std::size_t(1));
        cache.commitCopies();
        cache.advance(c, Tokens{9}, 0);
        cache.checkInvariants();
    }

    void admissionForksWhereThatSavesMoreThanTheIndex() {
        KvCache cache(cacheConfig(10));
        Computed a = compute(cache, tokenRange(100, 13), OwnerId(1)); // 0 1(5)
        const Tokens prompt = tokenRange(100, 13) + Tokens{1, 2};
        AdmitRequest request;
        request.tokens = prompt;
        request.owner = OwnerId(2);
        request.forkFrom = &a.table;
        request.forkTokens = 13;
        Admission forked = std::move(cache.admit(request, 0).value());
        QCOMPARE(forked.reusedTokens, std::int64_t(13)); // 8 by the index
        QCOMPARE(forked.newBlocks, 1);
        QCOMPARE(idsOf(forked.table.blocks()), (Ids{0, 2}));
        QCOMPARE(cache.pendingCopies()[0].slotCount, 5);
        cache.commitCopies();
        cache.advance(forked.table, Tokens{1, 2}, 0);
        cache.checkInvariants();
    }

    void truncatingGivesBlocksBackAndKeepsPublishedContent() {
        KvCache cache(cacheConfig(10));
        Computed a = compute(cache, tokenRange(100, 29)); // 0 1 2 3(5)
        cache.truncate(a.table, 27);                      // inside the unsealed tail
        QCOMPARE(cache.pool().facts(BlockId(3)).fill, std::uint8_t(3));
        cache.truncate(a.table, 20); // inside the sealed block 2
        QCOMPARE(idsOf(a.table.blocks()), (Ids{0, 1, 2}));
        QCOMPARE(cache.pool().facts(BlockId(2)).fill, std::uint8_t(8));
        cache.checkInvariants();
        append(cache, a.table, Tokens{1, 2, 3, 4, 5});
        QCOMPARE(idsOf(a.table.blocks()), (Ids{0, 1, 3, 4}));
        QCOMPARE(cache.lookup(tokenRange(100, 25)), std::int64_t(24));
        QCOMPARE(cache.lookup(tokenRange(100, 20) + Tokens{1, 2, 3, 4, 5}), std::int64_t(24));
        cache.truncate(a.table, 16);
        QCOMPARE(idsOf(a.table.blocks()), (Ids{0, 1}));
        cache.truncate(a.table, 0);
        QCOMPARE(a.table.blocks().size(), std::size_t(0));
        QCOMPARE(cache.available(), 10);
        cache.checkInvariants();
    }

    void equalBlocksComputedTogetherBecomeOne() {
        KvCache cache(cacheConfig(10));
        const Tokens prompt = tokenRange(100, 18);
        AdmitRequest request;
        request.tokens = prompt;
        request.owner = OwnerId(1);
        Admission a = std::move(cache.admit(request, 0).value()); // 0 1 2
        request.owner = OwnerId(2);
        Admission b = std::move(cache.admit(request, 0).value()); // 3 4 5: nothing is published yet
        cache.advance(a.table, prompt, 0);
        cache.advance(b.table, prompt, 0);
        QCOMPARE(idsOf(a.table.blocks()), (Ids{0, 1, 2}));
        QCOMPARE(idsOf(b.table.blocks()), (Ids{0, 1, 5}));
        QCOMPARE(refs(cache, 1), 2);
        QCOMPARE(cache.counters().deduplicated, std::uint64_t(2));
        QCOMPARE(freeIds(cache), (Ids{4, 3, 6, 7, 8, 9}));
        cache.checkInvariants();
    }

    void adaptersDoNotShareBlocks() {
        KvCache cache(cacheConfig(10));
        compute(cache, tokenRange(100, 17), OwnerId(1), 0, 1).table.release();
        QCOMPARE(cache.lookup(tokenRange(100, 17), 1), std::int64_t(16));
        QCOMPARE(cache.lookup(tokenRange(100, 17), 2), std::int64_t(0));
        QCOMPARE(cache.lookup(tokenRange(100, 17)), std::int64_t(0));
    }

    void withoutPrefixCachingFullBlocksAreActiveAndThenEmpty() {
        CacheConfig config = cacheConfig(10);
        config.prefixCaching = false;
        KvCache cache(config);
        Computed a = compute(cache, tokenRange(100, 17));
        QCOMPARE(countOf(cache, BlockState::Active), 2u);
        QCOMPARE(a.cause.kind, MissKind::Disabled);
        a.table.release();
        QCOMPARE(countOf(cache, BlockState::Empty), 10u);
        QCOMPARE(compute(cache, tokenRange(100, 17)).reused, std::int64_t(0));
    }

    void detailNamesTokensOwnersAndKey() {
        KvCache cache(cacheConfig(10));
        Computed a = compute(cache, tokenRange(100, 20), OwnerId(1), 3 * kSecond);
        Computed b = compute(cache, tokenRange(100, 18), OwnerId(2), 5 * kSecond);
        const BlockDetail shared = cache.detail(BlockId(1));
        QCOMPARE(shared.state, BlockState::Shared);
        QCOMPARE(shared.owners, (std::vector<OwnerId>{OwnerId(1), OwnerId(2)}));
        QCOMPARE(shared.tokens, tokenRange(108, 8));
        QCOMPARE(shared.facts.firstPosition, 8);
        QCOMPARE(shared.facts.lastRead, 5 * kSecond);
        QVERIFY(shared.hasKey);
        const BlockDetail tail = cache.detail(BlockId(2));
        QCOMPARE(tail.state, BlockState::Filling);
        QCOMPARE(tail.tokens, tokenRange(116, 4));
        QVERIFY(!tail.hasKey);
        a.table.release();
        b.table.release();
        QCOMPARE(cache.detail(BlockId(1)).owners, (std::vector<OwnerId>{OwnerId(2)})); // the last that used it
        QVERIFY(cache.detail(BlockId(9)).owners.empty());
    }

    void blocksAreNeverListedTwiceInOneTable() {
        // The same tokens again and again: keys differ by their parents, so each position has a block of its own.
        KvCache cache(cacheConfig(10));
        const Tokens same(33, 5);
        Computed a = compute(cache, same);
        QCOMPARE(idsOf(a.table.blocks()), (Ids{0, 1, 2, 3, 4}));
        Computed b = compute(cache, same);
        QCOMPARE(b.reused, std::int64_t(32));
        QCOMPARE(idsOf(b.table.blocks()), (Ids{0, 1, 2, 3, 5}));
    }

    void theEpochMovesExactlyWithChanges() {
        KvCache cache(cacheConfig(10));
        std::uint64_t epoch = cache.pool().epoch();
        cache.lookup(tokenRange(1, 20));
        cache.ownerBlocks(OwnerId(1));
        QCOMPARE(cache.pool().epoch(), epoch);
        Computed a = compute(cache, tokenRange(100, 9));
        QVERIFY(cache.pool().epoch() > epoch);
        epoch = cache.pool().epoch();
        a.table.release();
        QVERIFY(cache.pool().epoch() > epoch);
    }

    void writingBeyondTheRoomIsABrokenInvariant() {
        KvCache cache(cacheConfig(4));
        Computed a = compute(cache, tokenRange(100, 8));
        QVERIFY_THROWS_EXCEPTION(BrokenInvariant, cache.advance(a.table, Tokens{1}, 0));
    }

    void writingIntoASharedTailWithoutACopyIsABrokenInvariant() {
        KvCache cache(cacheConfig(4));
        Computed a = compute(cache, tokenRange(100, 5));
        BlockTable b = cache.fork(a.table, 5, OwnerId(2), 0);
        QVERIFY_THROWS_EXCEPTION(BrokenInvariant, cache.advance(b, Tokens{1}, 0));
    }
};

QTEST_APPLESS_MAIN(TestKvCache)
#include "test_kv_cache.moc"
