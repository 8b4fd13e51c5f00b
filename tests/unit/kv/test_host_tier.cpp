// SPDX-License-Identifier: GPL-3.0-or-later
//
// The host tier below the pool: what goes down and comes back, by which estimate, and what is told of it.
#include <QTest>

#include "tests/support/fake_host.h"
#include "tests/support/kv_harness.h"

using namespace kvscope;
using namespace kvscope::kv;
using namespace kvscope::test;

namespace {

constexpr int kSize = 8;
const CostRates kMovingIsFree{1000, 1, 0.001, 0.001};
const CostRates kComputingIsFree{0.001, 0, 1000, 1000};

/// A pool with a tier, and the content that a step would write.
struct Tiered {
    Tiered(int blocks, int hostSlots, int window = 0, int tails = 0, std::unique_ptr<BlockHasher> hasher = nullptr,
           bool prefixCaching = true)
        : host(blocks, window > 0 ? blocks : 0, tails, hostSlots, kSize)
        , cache(config(blocks, hostSlots, window, tails, prefixCaching), std::move(hasher)) {
        host.watch(cache);
    }
    CacheConfig config(int blocks, int hostSlots, int window, int tails, bool prefixCaching) {
        CacheConfig c = cacheConfig(blocks, kSize);
        c.window = window;
        c.windowBlocks = window > 0 ? blocks : 0;
        c.tailSlots = tails;
        c.prefixCaching = prefixCaching;
        c.host = host.config(hostSlots);
        return c;
    }
    const HostCounters& counters() const { return cache.host()->counters(); }

    FakeHost host;
    KvCache cache;
};

AdmitResult admit(KvCache& cache, const Tokens& tokens, const SwappedTable* swapped = nullptr) {
    AdmitRequest request;
    request.tokens = tokens;
    request.owner = OwnerId(1);
    request.swapped = swapped;
    request.explain = swapped == nullptr;
    AdmitResult result = cache.admit(request, 0);
    cache.checkInvariants();
    return result;
}

} // namespace

class TestHostTier : public QObject {
    Q_OBJECT
private slots:
    void whatIsEvictedComesBack() {
        Tiered t(4, 8);
        t.cache.setCostRates(kMovingIsFree);
        const Tokens first = tokenRange(0, 3 * kSize + 1);
        compute(t.cache, first).table.release();
        compute(t.cache, tokenRange(500, 4 * kSize)).table.release(); // needs the whole pool
        QCOMPARE(t.counters().storedBlocks, std::uint64_t(3));
        QCOMPARE(t.cache.lookup(first), std::int64_t(0));
        QCOMPARE(t.cache.reusable(first), std::int64_t(3 * kSize));
        const AdmitResult again = admit(t.cache, first);
        QCOMPARE(again->reusedTokens, std::int64_t(3 * kSize));
        QCOMPARE(again->loadedBlocks, 3);
        QCOMPARE(again->cause.kind, MissKind::None);
        // It stays in the tier: evicted again, it is not stored again.
        QCOMPARE(t.counters().storedBlocks, std::uint64_t(3 + 4));
        QCOMPARE(t.cache.host()->used(), 7);
        QCOMPARE(t.counters().hitBlocks, std::uint64_t(3));
        QCOMPARE(t.counters().loadedBytes, std::uint64_t(3 * kSize * 8));
    }

    void computingIsChosenWhereItIsCheaperAndTold() {
        Tiered t(4, 8);
        t.cache.setCostRates(kComputingIsFree);
        const Tokens first = tokenRange(0, 3 * kSize + 1);
        compute(t.cache, first).table.release();
        compute(t.cache, tokenRange(500, 4 * kSize)).table.release();
        QCOMPARE(t.cache.reusable(first), std::int64_t(0));
        const AdmitResult again = admit(t.cache, first);
        QCOMPARE(again->reusedTokens, std::int64_t(0));
        QCOMPARE(again->cause.kind, MissKind::CheaperToCompute);
        QCOMPARE(t.counters().declinedBlocks, std::uint64_t(3));
        QCOMPARE(t.counters().loadedBlocks, std::uint64_t(0));
    }

    /// What is computed again has the name that it had: what hangs on it in the tier is found behind it.
    void contentKeepsItsGeneration() {
        Tiered t(4, 8);
        const Tokens first = tokenRange(0, 3 * kSize + 1);
        compute(t.cache, first).table.release();
        compute(t.cache, tokenRange(500, 4 * kSize)).table.release();
        t.cache.setCostRates(kComputingIsFree);
        compute(t.cache, tokenRange(0, kSize + 1)).table.release(); // the first block alone, computed again
        t.cache.setCostRates(kMovingIsFree);
        QCOMPARE(t.cache.lookup(first), std::int64_t(kSize));
        QCOMPARE(t.cache.reusable(first), std::int64_t(3 * kSize));
        QCOMPARE(admit(t.cache, first)->loadedBlocks, 2);
    }

    void theTierForgetsWhatWasUsedLongestAgo() {
        Tiered t(2, 2);
        t.cache.setCostRates(kMovingIsFree);
        for (const int first : {0, 100, 200}) // each pushes the one before it down
            compute(t.cache, tokenRange(first, 2 * kSize)).table.release();
        QCOMPARE(t.counters().evictions, std::uint64_t(2));
        QCOMPARE(t.cache.reusable(tokenRange(0, 2 * kSize + 1)), std::int64_t(0));
        QCOMPARE(t.cache.reusable(tokenRange(100, 2 * kSize + 1)), std::int64_t(2 * kSize));
        t.cache.checkInvariants();
    }

    void aSwappedTableComesBackWholeWithItsPartialBlock_data() {
        QTest::addColumn<bool>("prefixCaching");
        QTest::addColumn<int>("tails");
        QTest::addColumn<int>("window");
        for (const bool prefixCaching : {true, false})
            for (const int tails : {0, 2})
                for (const int window : {0, 10})
                    QTest::addRow("cache %d, tails %d, window %d", prefixCaching, tails, window)
                        << prefixCaching << tails << window;
    }
    void aSwappedTableComesBackWholeWithItsPartialBlock() {
        QFETCH(bool, prefixCaching);
        QFETCH(int, tails);
        QFETCH(int, window);
        FakeHost host(4, window > 0 ? 4 : 0, tails, 9, kSize);
        CacheConfig config = cacheConfig(4, kSize);
        config.prefixCaching = prefixCaching;
        config.tailSlots = tails;
        config.window = window;
        config.windowBlocks = window > 0 ? 4 : 0;
        config.host = host.config(9);
        KvCache cache(config);
        host.watch(cache);
        Tokens tokens = tokenRange(0, 2 * kSize + 3);
        BlockTable table = std::move(admit(cache, tokens)->table);
        cache.grow(table, static_cast<std::int64_t>(tokens.size()), 0).value();
        cache.advance(table, tokens, 0);
        const auto last = tails > 0 ? host.tail(table.tailSlot()) : host.block(table.blocks()[2]);
        std::iota(last.begin(), last.begin() + 3, 77u);
        SwappedTable swapped = cache.swapOut(table);
        QVERIFY(swapped);
        QCOMPARE(swapped.tokens(), std::int64_t(tokens.size()));
        QCOMPARE(cache.host()->held(), 3 + (tails > 0 ? FakeHost::kTailPieces : 0));
        table.release();
        std::fill(last.begin(), last.end(), FakeHost::kGarbage);
        admit(cache, tokenRange(500, 4 * kSize))->table.release(); // needs every block, writes none

        tokens.push_back(5);
        Admission back = std::move(admit(cache, tokens, &swapped).value());
        QCOMPARE(back.reusedTokens, std::int64_t(2 * kSize + 3));
        QCOMPARE(back.loadedBlocks, 3);
        const auto loaded = tails > 0 ? host.tail(back.table.tailSlot()) : host.block(back.table.blocks()[2]);
        QCOMPARE(loaded[0], std::uint64_t(77));
        QCOMPARE(loaded[2], std::uint64_t(79));
        swapped.release();
        QCOMPARE(cache.host()->held(), 0);
        QCOMPARE(cache.host()->used(), prefixCaching ? 2 : 0); // the partial block is nobody's any more
        cache.checkInvariants();
    }

    void whatIsStillThereIsNotLoaded() {
        Tiered t(6, 6);
        const Tokens tokens = tokenRange(0, 2 * kSize + 3);
        Computed c = compute(t.cache, tokens);
        SwappedTable swapped = t.cache.swapOut(c.table);
        c.table.release();
        const AdmitResult back = admit(t.cache, tokens + Tokens{5}, &swapped);
        QCOMPARE(back->reusedTokens, std::int64_t(2 * kSize + 3));
        QCOMPARE(back->loadedBlocks, 1); // the partial one
    }

    void whatIsHeldIsNotForgotten() {
        Tiered t(4, 3);
        t.cache.setCostRates(kMovingIsFree);
        const Tokens tokens = tokenRange(0, 2 * kSize + 3);
        Computed c = compute(t.cache, tokens);
        SwappedTable swapped = t.cache.swapOut(c.table);
        QVERIFY(swapped);
        Computed other = compute(t.cache, tokenRange(900, kSize));
        QVERIFY(!t.cache.estimateSwap(other.table).possible);
        QVERIFY(!t.cache.swapOut(other.table));
        c.table.release();
        other.table.release();
        compute(t.cache, tokenRange(500, 4 * kSize)).table.release(); // evicts all, and nothing of it finds a place
        QVERIFY(t.counters().refused > 0);
        QCOMPARE(admit(t.cache, tokens + Tokens{5}, &swapped)->reusedTokens, std::int64_t(2 * kSize + 3));
    }

    void estimatesFollowTheRates() {
        Tiered t(8, 8, 0, 2);
        t.cache.setCostRates({100, 2, 3, 5});
        Computed c = compute(t.cache, tokenRange(0, 2 * kSize + 3));
        const SwapEstimate alone = t.cache.estimateSwap(c.table);
        const double bytes = 3.0 * kSize * 8 + static_cast<double>(t.cache.host()->config().tailBytes);
        QVERIFY(alone.possible);
        QCOMPARE(alone.blocks, 3);
        QCOMPARE(alone.storeNanos, 3 * bytes);
        QCOMPARE(alone.loadNanos, 5 * bytes);
        // Without a swap two blocks can be found again, in the tier if they are evicted; the rest is read.
        const double blocks = 2.0 * kSize * 8, rest = 100.0 * 3 + 2.0 * (19.0 * 18 - 16.0 * 15) / 2;
        QCOMPARE(alone.readNanos, 5 * blocks + rest);
        QCOMPARE(alone.demoteNanos, 3 * blocks);
        QCOMPARE(alone.lossNanos, 0.1 * (100.0 * 19 + 2.0 * 19 * 18 / 2 - alone.readNanos));
        QVERIFY(alone.swapNanos() > alone.withoutNanos()); // its tail is large
        t.cache.setCostRates({10000, 2, 3, 5});
        QVERIFY(t.cache.estimateSwap(c.table).swapNanos() < t.cache.estimateSwap(c.table).withoutNanos());
        t.cache.setCostRates({100, 2, 3, 50}); // what costs more to load than to read is read
        QCOMPARE(t.cache.estimateSwap(c.table).readNanos, 100.0 * 19 + 2.0 * 19 * 18 / 2);
        QCOMPARE(t.cache.estimateSwap(c.table).demoteNanos, 0.0);
        t.cache.setCostRates({100, 2, 3, 5});
        // Blocks that others read are expected to stay.
        Computed sharer = compute(t.cache, tokenRange(0, 2 * kSize + 1), OwnerId(2));
        QCOMPARE(t.cache.estimateSwap(c.table).readNanos, rest);
        QCOMPARE(t.cache.estimateSwap(c.table).demoteNanos, 0.0);
        QCOMPARE(t.cache.estimateSwap(c.table).storeNanos, 3 * bytes);
        // What the tier has is not stored again.
        const SwappedTable swapped = t.cache.swapOut(sharer.table);
        QCOMPARE(t.cache.estimateSwap(c.table).storeNanos, 3 * (bytes - 2.0 * kSize * 8));
    }

    void withoutAPrefixCacheNothingIsFoundAgain() {
        Tiered t(8, 8, 0, 0, {}, false);
        t.cache.setCostRates({100, 2, 3, 5});
        const Computed c = compute(t.cache, tokenRange(0, 2 * kSize));
        const SwapEstimate estimate = t.cache.estimateSwap(c.table);
        QCOMPARE(estimate.readNanos, 100.0 * 16 + 2.0 * 16 * 15 / 2);
        QCOMPARE(estimate.demoteNanos, 0.0);
        QCOMPARE(estimate.withoutNanos(), estimate.readNanos);
    }

    void collisionsInTheTierCostTimeNeverContent() {
        Tiered t(2, 4, 0, 0, std::make_unique<ParentBlindHasher>());
        t.cache.setCostRates(kMovingIsFree);
        const Tokens tail = tokenRange(50, kSize);
        compute(t.cache, tokenRange(0, kSize) + tail).table.release();
        compute(t.cache, tokenRange(100, kSize) + tail).table.release(); // another parent, the same key
        compute(t.cache, tokenRange(500, 2 * kSize)).table.release();
        QCOMPARE(t.cache.reusable(tokenRange(0, kSize) + tail + Tokens{1}), std::int64_t(kSize));
        QCOMPARE(t.cache.reusable(tokenRange(100, kSize) + tail + Tokens{1}), std::int64_t(2 * kSize));
    }

    /// A window group: the companions that the next token sees come back too, others are not missed.
    void companionsAreSwappedAndLoaded() {
        Tiered t(6, 8, kSize + 2);
        Tokens tokens = tokenRange(0, 3 * kSize + 2);
        BlockTable table = std::move(admit(t.cache, tokens)->table);
        t.cache.grow(table, static_cast<std::int64_t>(tokens.size()), 0).value();
        t.cache.advance(table, tokens, 0);
        for (const int i : {2, 3})
            t.host.windowBlock(table.windowBlocks()[static_cast<std::size_t>(i)])[0] = 1000u + static_cast<unsigned>(i);
        SwappedTable swapped = t.cache.swapOut(table);
        table.release();
        Tokens other = tokenRange(500, 6 * kSize);
        BlockTable pusher = std::move(admit(t.cache, other)->table);
        t.cache.grow(pusher, static_cast<std::int64_t>(other.size()), 0).value();
        pusher.release();
        tokens.push_back(5);
        Admission back = std::move(admit(t.cache, tokens, &swapped).value());
        QCOMPARE(back.reusedTokens, std::int64_t(3 * kSize + 2));
        QCOMPARE(t.host.windowBlock(back.table.windowBlocks()[2])[0], std::uint64_t(1002));
        QCOMPARE(t.host.windowBlock(back.table.windowBlocks()[3])[0], std::uint64_t(1003));
        QVERIFY(!back.table.windowBlocks()[0].valid());
    }
};

QTEST_APPLESS_MAIN(TestHostTier)
#include "test_host_tier.moc"
