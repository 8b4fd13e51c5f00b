// SPDX-License-Identifier: GPL-3.0-or-later
//
// The window group of the cache: what it keeps, what goes first, and how far a prefix counts then.
#include <QTest>

#include "tests/support/kv_harness.h"

using namespace kvscope;
using namespace kvscope::kv;
using namespace kvscope::test;

namespace {

constexpr int kWindow = 16; // two blocks of 8

CacheConfig windowConfig(int blocks, int windowBlocks) {
    CacheConfig config = cacheConfig(blocks);
    config.window = kWindow;
    config.windowBlocks = windowBlocks;
    return config;
}

/// Admits and computes in steps of 8 tokens, as the scheduler would.
Computed computeInSteps(KvCache& cache, const Tokens& tokens, OwnerId owner = OwnerId(1), Nanos now = 0) {
    AdmitRequest request;
    request.tokens = tokens;
    request.owner = owner;
    request.explain = true;
    Admission admission = std::move(cache.admit(request, now).value());
    BlockTable& table = admission.table;
    while (table.tokens() < static_cast<std::int64_t>(tokens.size())) {
        const auto from = static_cast<std::size_t>(table.tokens());
        const std::size_t count = std::min<std::size_t>(8, tokens.size() - from);
        cache.grow(table, static_cast<std::int64_t>(from + count), now).value();
        cache.advance(table, std::span(tokens).subspan(from, count), now);
        cache.checkInvariants();
    }
    return {std::move(admission.table), admission.reusedTokens, admission.cause};
}

} // namespace

class TestWindowGroup : public QObject {
    Q_OBJECT
private slots:
    void aTableHoldsWhatItsNextTokenSees() {
        KvCache cache(windowConfig(20, 8));
        Computed a = computeInSteps(cache, tokenRange(100, 40));
        // The token at 40 sees 25..39: blocks 3 and 4 of its table. The others are cached, not gone.
        QCOMPARE(idsOf(a.table.windowBlocks()), (Ids{-1, -1, -1, 3, 4}));
        QCOMPARE(cache.window()->available(), 6);
        QCOMPARE(cache.window()->cached(), 3);
        QCOMPARE(cache.window()->numBlocks(), 8);
        append(cache, a.table, tokenRange(140, 1));
        QCOMPARE(idsOf(a.table.windowBlocks()), (Ids{-1, -1, -1, 3, 4, 5})); // 26..40
        a.table.release();
        QCOMPARE(cache.window()->available(), 8);
        QCOMPARE(cache.window()->cached(), 5); // the half filled block is empty again in both groups
        QVERIFY(!cache.window()->companion(BlockId(5)).valid());
        cache.checkInvariants();
    }

    void whatAWindowHasPassedGoesFirst() {
        KvCache cache(windowConfig(20, 8));
        computeInSteps(cache, tokenRange(100, 40)).table.release(); // companions 0..4, of these 0..2 passed
        Computed b = computeInSteps(cache, tokenRange(500, 48));    // takes the three empty ones, then those
        QVERIFY(!cache.window()->companion(BlockId(0)).valid());
        QVERIFY(!cache.window()->companion(BlockId(1)).valid());
        QVERIFY(!cache.window()->companion(BlockId(2)).valid());
        QVERIFY(cache.window()->companion(BlockId(3)).valid());
        QVERIFY(cache.window()->companion(BlockId(4)).valid());
        QCOMPARE(cache.window()->evictions(), std::uint64_t(3));
        QCOMPARE(cache.counters().totalEvictions(), std::uint64_t(0)); // the pool has room
    }

    void aPrefixCountsAsFarAsItsLastWindowIsThere() {
        KvCache cache(windowConfig(20, 8));
        const Tokens history = tokenRange(100, 40);
        computeInSteps(cache, history).table.release();
        QCOMPARE(cache.lookup(history + tokenRange(900, 1)), std::int64_t(40));
        computeInSteps(cache, tokenRange(500, 48)).table.release(); // blocks 0..2 lose their companions
        // Its end still holds, and so does the beginning of length 0; what ends in between does not.
        QCOMPARE(cache.lookup(history + tokenRange(900, 1)), std::int64_t(40));
        QCOMPARE(cache.lookup(tokenRange(100, 32) + tokenRange(900, 1)), std::int64_t(0));
        Computed again = computeInSteps(cache, history + tokenRange(900, 9));
        QCOMPARE(again.reused, std::int64_t(40));
        QCOMPARE(idsOf(again.table.blocks()).front(), 0);
    }

    void aHitThatTheWindowGroupLostIsAnEviction() {
        KvCache cache(windowConfig(20, 5));
        const Tokens history = tokenRange(100, 40);
        computeInSteps(cache, history).table.release();
        Computed other = computeInSteps(cache, tokenRange(500, 32));
        Computed third = computeInSteps(cache, tokenRange(700, 24)); // together they hold the whole group
        QVERIFY(!cache.window()->companion(BlockId(4)).valid());
        other.table.release();
        third.table.release();
        Computed again = computeInSteps(cache, history + tokenRange(900, 4));
        QCOMPARE(again.reused, std::int64_t(0));
        QCOMPARE(again.cause.kind, MissKind::Evicted);
        // What is computed again meets the blocks that the pool still has, and gives them companions.
        QCOMPARE(cache.counters().deduplicated, std::uint64_t(5));
        QCOMPARE(idsOf(again.table.blocks()).front(), 0);
    }

    void twoTablesShareACompanion() {
        KvCache cache(windowConfig(20, 12));
        const Tokens tokens = tokenRange(100, 24);
        Computed a = computeInSteps(cache, tokens + tokenRange(900, 1));
        Computed b = computeInSteps(cache, tokens + tokenRange(800, 1));
        QCOMPARE(b.reused, std::int64_t(24));
        QCOMPARE(b.table.windowBlocks()[1], a.table.windowBlocks()[1]);
        QCOMPARE(cache.window()->references(a.table.windowBlocks()[2]), 2);
        a.table.release();
        cache.checkInvariants();
        QCOMPARE(cache.window()->references(b.table.windowBlocks()[2]), 1);
    }

    void forksAndCutsGoBackToWhereTheWindowIsThere() {
        KvCache cache(windowConfig(30, 4)); // as many as one table needs: what it passes is soon gone
        Computed a = computeInSteps(cache, tokenRange(100, 64));
        QCOMPARE(cache.fork(a.table, 64, OwnerId(2), 0).tokens(), std::int64_t(64));
        QCOMPARE(cache.fork(a.table, 60, OwnerId(2), 0).tokens(), std::int64_t(56)); // whole blocks; 4 are still there
        QCOMPARE(cache.fork(a.table, 40, OwnerId(2), 0).tokens(), std::int64_t(0));
        cache.checkInvariants();
        cache.truncate(a.table, 61);
        QCOMPARE(a.table.tokens(), std::int64_t(56));
        cache.checkInvariants();
        append(cache, a.table, tokenRange(300, 8));
        cache.truncate(a.table, 30);
        QCOMPARE(a.table.tokens(), std::int64_t(0));
        cache.checkInvariants();
    }

    void aTableThatRestsHoldsNothingAndCanBeForked() {
        KvCache cache(windowConfig(20, 8));
        Computed a = computeInSteps(cache, tokenRange(100, 36));
        cache.rest(a.table);
        cache.checkInvariants();
        QCOMPARE(cache.window()->available(), 8);
        AdmitRequest request;
        const Tokens tokens = tokenRange(100, 36) + tokenRange(900, 3);
        request.tokens = tokens;
        request.forkFrom = &a.table;
        request.forkTokens = 36;
        const Admission forked = std::move(cache.admit(request, 0).value());
        QCOMPARE(forked.reusedTokens, std::int64_t(32)); // with a window group only whole blocks are shared
        QVERIFY(cache.pendingCopies().empty());
        cache.checkInvariants();
    }

    void whatThePoolEvictsIsForgottenInBothGroups() {
        KvCache cache(windowConfig(6, 6));
        computeInSteps(cache, tokenRange(100, 24)).table.release();
        QCOMPARE(cache.window()->cached(), 3);
        Computed b = computeInSteps(cache, tokenRange(500, 48)); // the whole pool
        QCOMPARE(cache.counters().totalEvictions(), std::uint64_t(3));
        QCOMPARE(cache.window()->cached(), 4); // of its own
        cache.checkInvariants();
    }

    void theGroupIsNeverLargerThanThePool() {
        const KvCache cache(windowConfig(6, 1000));
        QCOMPARE(cache.window()->numBlocks(), 6);
        QVERIFY(KvCache(cacheConfig(6)).window() == nullptr);
    }
};

QTEST_APPLESS_MAIN(TestWindowGroup)
#include "test_window_group.moc"
