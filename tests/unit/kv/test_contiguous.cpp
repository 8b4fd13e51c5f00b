// SPDX-License-Identifier: GPL-3.0-or-later
//
// The contiguous allocator: holes against a plain array, extents, reservations, and what a user is told of them.
#include <QTest>
#include <random>

#include "engine/base/check.h"
#include "tests/support/kv_harness.h"

using namespace kvscope;
using namespace kvscope::kv;
using namespace kvscope::test;

namespace {

CacheConfig contiguousConfig(int blocks) {
    CacheConfig config = cacheConfig(blocks);
    config.allocator = AllocatorKind::Contiguous;
    config.prefixCaching = false;
    return config;
}

AdmitResult admit(KvCache& cache, const Tokens& tokens, std::int64_t longest, const BlockTable* forkFrom = nullptr,
                  std::int64_t forkTokens = 0) {
    AdmitRequest request;
    request.tokens = tokens;
    request.owner = OwnerId(1);
    request.longest = longest;
    request.forkFrom = forkFrom;
    request.forkTokens = forkTokens;
    return cache.admit(request, 0);
}

BlockTable admitted(KvCache& cache, int tokens, std::int64_t longest) {
    Admission admission = std::move(admit(cache, tokenRange(100, tokens), longest).value());
    cache.checkInvariants();
    return std::move(admission.table);
}

std::vector<Extent> holesOf(const std::vector<bool>& used) {
    std::vector<Extent> holes;
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(used.size()); ++i) {
        if (used[static_cast<std::size_t>(i)])
            continue;
        if (holes.empty() || holes.back().first + holes.back().count != i)
            holes.push_back({i, 0});
        ++holes.back().count;
    }
    return holes;
}

} // namespace

class TestContiguous : public QObject {
    Q_OBJECT
private slots:
    void holesAgreeWithAPlainArray() {
        constexpr int kBlocks = 50;
        HoleList holes(kBlocks);
        std::vector<bool> used(kBlocks, false);
        std::mt19937 random(1);
        for (int i = 0; i < 20000; ++i) {
            const int block = static_cast<int>(random() % kBlocks);
            if (used[static_cast<std::size_t>(block)])
                holes.give(BlockId(block));
            else
                holes.take(BlockId(block));
            used[static_cast<std::size_t>(block)] = !used[static_cast<std::size_t>(block)];
            const std::vector<Extent> expected = holesOf(used);
            QVERIFY(holes.holes() == expected);
            QCOMPARE(holes.total(), static_cast<std::int32_t>(std::count(used.begin(), used.end(), false)));
            const auto wanted = static_cast<std::int32_t>(random() % 9 + 1);
            BlockId best;
            std::int32_t shortest = kBlocks + 1, largest = 0;
            for (const Extent& hole : expected) {
                largest = std::max(largest, hole.count);
                if (hole.count >= wanted && hole.count < shortest) {
                    shortest = hole.count;
                    best = BlockId(hole.first);
                }
            }
            QCOMPARE(holes.bestFit(wanted), best);
            QCOMPARE(holes.largest(), largest);
        }
    }

    void aBlockIsNeitherTakenNorGivenTwice() {
        HoleList holes(4);
        holes.take(BlockId(2));
        QVERIFY_THROWS_EXCEPTION(BrokenInvariant, holes.take(BlockId(2)));
        holes.give(BlockId(2));
        QVERIFY_THROWS_EXCEPTION(BrokenInvariant, holes.give(BlockId(2)));
    }

    void aRequestReservesTheLongestItMayBecome() {
        KvCache cache(contiguousConfig(10));
        BlockTable a = admitted(cache, 10, 30);
        QCOMPARE(idsOf(a.blocks()), (Ids{0, 1, 2, 3}));
        QCOMPARE(countOf(cache, BlockState::Reserved), 4u);
        QCOMPARE(cache.available(), 6);
        cache.advance(a, tokenRange(100, 10), 0);
        cache.checkInvariants();
        QCOMPARE(countOf(cache, BlockState::Active), 1u);
        QCOMPARE(countOf(cache, BlockState::Filling), 1u);
        QCOMPARE(countOf(cache, BlockState::Reserved), 2u);
        // Internal fragmentation is counted over the reserved extent: 10 of 32 slots are used.
        QCOMPARE(cache.pool().usedSlots(), std::uint64_t(10));
        QCOMPARE(cache.pool().referencedBlocks(), 4);
        for (int token = 10; token < 30; ++token)
            append(cache, a, Tokens{token});
        QCOMPARE(idsOf(a.blocks()), (Ids{0, 1, 2, 3}));
        const GrowResult beyond = cache.grow(a, 33, 0);
        QVERIFY(!beyond);
        a.release();
        cache.checkInvariants();
        QCOMPARE(countOf(cache, BlockState::Empty), 10u);
    }

    void whatIsLongerThanThePoolTakesAllOfIt() {
        KvCache cache(contiguousConfig(4));
        const BlockTable a = admitted(cache, 3, 1000);
        QCOMPARE(a.blocks().size(), std::size_t(4));
        QCOMPARE(cache.largestExtent(), 0);
    }

    void theSmallestHoleThatFitsIsTaken() {
        KvCache cache(contiguousConfig(12));
        BlockTable a = admitted(cache, 8, 32); // 0..3
        BlockTable b = admitted(cache, 8, 8);  // 4
        BlockTable c = admitted(cache, 8, 16); // 5 6
        BlockTable d = admitted(cache, 8, 8);  // 7
        a.release();
        c.release(); // holes: 0..3, 5 6, 8..11
        QCOMPARE(idsOf(admitted(cache, 5, 16).blocks()), (Ids{5, 6}));
        QCOMPARE(idsOf(admitted(cache, 5, 24).blocks()), (Ids{0, 1, 2}));
    }

    /// Enough is free, but nowhere in one piece: what paging does away with.
    void aScatteredPoolRefusesAlthoughEnoughIsFree() {
        KvCache cache(contiguousConfig(8));
        std::vector<BlockTable> tables;
        for (int i = 0; i < 8; ++i)
            tables.push_back(admitted(cache, 8, 8));
        for (const std::size_t i : {0u, 2u, 4u, 6u})
            tables[i].release();
        QCOMPARE(cache.available(), 4);
        QCOMPARE(cache.largestExtent(), 1); // external fragmentation: 1 - 1 / 4
        const AdmitResult refused = admit(cache, tokenRange(1, 9), 16);
        QVERIFY(!refused);
        QCOMPARE(refused.error().needed, 2);
        QCOMPARE(refused.error().available, 1);
        QVERIFY(refused.error().fragmented);
        const AdmitResult tooMuch = admit(cache, tokenRange(1, 9), 40);
        QVERIFY(!tooMuch.error().fragmented); // there is not enough at all
        cache.checkInvariants();
    }

    void aForkCopiesAllThatItShares() {
        KvCache cache(contiguousConfig(10));
        BlockTable a = admitted(cache, 20, 24);
        cache.advance(a, tokenRange(100, 20), 0);
        Admission b = std::move(admit(cache, tokenRange(100, 19) + Tokens{5, 6}, 32, &a, 19).value());
        QCOMPARE(b.reusedTokens, std::int64_t(19));
        QCOMPARE(idsOf(b.table.blocks()), (Ids{3, 4, 5, 6}));
        QCOMPARE(cache.pendingCopies().size(), std::size_t(3));
        QCOMPARE(cache.pendingCopies()[2].from, BlockId(2));
        QCOMPARE(cache.pendingCopies()[2].to, BlockId(5));
        QCOMPARE(cache.pendingCopies()[2].slotCount, 3);
        cache.checkInvariants();
        a.release(); // before the copies were made: its blocks wait for them
        QCOMPARE(cache.available(), 3);
        cache.checkInvariants();
        cache.commitCopies();
        QCOMPARE(cache.available(), 6);
        cache.advance(b.table, Tokens{5, 6}, 0);
        cache.checkInvariants();
        QCOMPARE(cache.pool().tokens(BlockId(5))[3], 5);
        QCOMPARE(cache.pool().tokens(BlockId(3))[7], 107);
    }

    /// The source writes on in place in the very step that copies its tail.
    void aSourceWritesOnWhileItIsCopied() {
        KvCache cache(contiguousConfig(10));
        BlockTable a = admitted(cache, 12, 24);
        cache.advance(a, tokenRange(100, 12), 0);
        const Admission b = std::move(admit(cache, tokenRange(100, 13), 24, &a, 12).value());
        QCOMPARE(cache.grow(a, 13, 0).value(), 0);
        cache.commitCopies();
        cache.advance(a, Tokens{7}, 0);
        cache.checkInvariants();
        QCOMPARE(cache.pendingCopies().size(), std::size_t(0));
    }

    void truncatingKeepsTheExtent() {
        KvCache cache(contiguousConfig(10));
        BlockTable a = admitted(cache, 24, 40);
        cache.advance(a, tokenRange(100, 24), 0);
        cache.truncate(a, 11);
        cache.checkInvariants();
        QCOMPARE(countOf(cache, BlockState::Active), 1u);
        QCOMPARE(countOf(cache, BlockState::Filling), 1u);
        QCOMPARE(countOf(cache, BlockState::Reserved), 3u);
        append(cache, a, tokenRange(500, 20));
        QCOMPARE(a.tokens(), std::int64_t(31));
        QCOMPARE(cache.pool().tokens(BlockId(1))[3], 500);
        cache.truncate(a, 0);
        QCOMPARE(countOf(cache, BlockState::Reserved), 5u);
        cache.checkInvariants();
    }

    void nothingIsFoundPinnedOrEvicted() {
        KvCache cache(contiguousConfig(6));
        BlockTable a = admitted(cache, 17, 17);
        cache.advance(a, tokenRange(100, 17), 0);
        const PinnedBlocks pins = cache.pin(a, 2);
        QVERIFY(pins.blocks().empty());
        a.release();
        QCOMPARE(cache.available(), 6);
        QCOMPARE(cache.lookup(tokenRange(100, 17)), std::int64_t(0));
        QCOMPARE(cache.counters().totalEvictions(), std::uint64_t(0));
    }

    void aPrefixCacheInExtentsIsABrokenInvariant() {
        CacheConfig config = contiguousConfig(4);
        config.prefixCaching = true;
        QVERIFY_THROWS_EXCEPTION(BrokenInvariant, KvCache{config});
    }

    void namesAndKindsAgree() {
        for (const auto kind : {AllocatorKind::Paged, AllocatorKind::Contiguous})
            QCOMPARE(allocatorOf(allocatorName(kind)), std::optional(kind));
        for (const auto reserve : {ContiguousReserve::Model, ContiguousReserve::Request})
            QCOMPARE(contiguousReserveOf(contiguousReserveName(reserve)), std::optional(reserve));
        QVERIFY(!allocatorOf("") && !contiguousReserveOf("half"));
    }
};

QTEST_APPLESS_MAIN(TestContiguous)
#include "test_contiguous.moc"
