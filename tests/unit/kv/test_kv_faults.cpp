// SPDX-License-Identifier: GPL-3.0-or-later
//
// Faults that caches of this kind shipped with elsewhere, and the causes of a miss, each by name.
#include <QTest>

#include "engine/base/check.h"
#include "tests/support/kv_harness.h"

using namespace kvscope;
using namespace kvscope::kv;
using namespace kvscope::test;

namespace {

/// Evicts the beginning of a prefix before its end: what a sane policy never does.
class ParentsFirst final : public EvictionPolicy {
public:
    const char* name() const override { return "parents first"; }
    std::uint64_t rank(const EvictionFacts& block) const override { return static_cast<std::uint64_t>(block.index); }
};

/// Gives a cached block the rank of empty ones.
class OutOfLine final : public EvictionPolicy {
public:
    const char* name() const override { return "out of line"; }
    std::uint64_t rank(const EvictionFacts&) const override { return ~std::uint64_t(0); }
};

} // namespace

class TestKvFaults : public QObject {
    Q_OBJECT
private slots:
    void freeingTwiceCannotBeWritten() {
        static_assert(!std::is_copy_constructible_v<BlockTable> && !std::is_copy_assignable_v<BlockTable>);
        static_assert(!std::is_copy_constructible_v<PinnedBlocks>);
        KvCache cache(cacheConfig(4));
        Computed a = compute(cache, tokenRange(100, 17));
        BlockTable moved = std::move(a.table);
        a.table.release(); // an empty handle gives nothing back
        QCOMPARE(cache.available(), 1);
        moved.release();
        moved.release();
        QCOMPARE(cache.available(), 4);
        cache.checkInvariants();
    }

    void assigningAHandleReleasesWhatItHeld() {
        KvCache cache(cacheConfig(6));
        Computed a = compute(cache, tokenRange(100, 9));
        Computed b = compute(cache, tokenRange(200, 9));
        a.table = std::move(b.table);
        QCOMPARE(cache.available(), 4);
        QCOMPARE(idsOf(a.table.blocks()), (Ids{2, 3}));
        cache.checkInvariants();
    }

    /// A hit block was reset on reuse, and the index forgot it.
    void aHitBlockStaysFindableAfterItsSecondUse() {
        KvCache cache(cacheConfig(6));
        for (int turn = 0; turn < 4; ++turn) {
            Computed a = compute(cache, tokenRange(100, 17));
            QCOMPARE(a.reused, std::int64_t(turn == 0 ? 0 : 16));
            QCOMPARE(idsOf(a.table.blocks()).front(), 0);
        }
        QCOMPARE(cache.lookup(tokenRange(100, 17)), std::int64_t(16));
    }

    /// Evictable size counted shared blocks twice.
    void availableCountsASharedBlockOnce() {
        KvCache cache(cacheConfig(6));
        Computed a = compute(cache, tokenRange(100, 17));
        Computed b = compute(cache, tokenRange(100, 17));
        QCOMPARE(cache.available(), 2);
        a.table.release();
        QCOMPARE(cache.available(), 3);
        b.table.release();
        QCOMPARE(cache.available(), 6);
        QCOMPARE(countOf(cache, BlockState::Cached), 2u);
    }

    /// The estimate at admission disagreed with the later allocation: here they are one call, and its word holds.
    void whatAdmissionPromisedIsThere() {
        KvCache cache(cacheConfig(5));
        compute(cache, tokenRange(100, 24)).table.release(); // 3 cached
        const Tokens prompt = tokenRange(100, 8) + tokenRange(700, 25);
        AdmitRequest request;
        request.tokens = prompt;
        request.owner = OwnerId(1);
        Admission admission = std::move(cache.admit(request, 0).value()); // 1 hit + 4 new, two of them by eviction
        QCOMPARE(admission.newBlocks, 4);
        QCOMPARE(cache.available(), 0);
        cache.advance(admission.table, std::span(prompt).subspan(8), 0);
        QCOMPARE(admission.table.tokens(), std::int64_t(33));
        cache.checkInvariants();
    }

    /// The blocks that a request hits must not be evicted to make room for the same request.
    void aRequestNeverEvictsItsOwnHits() {
        KvCache cache(cacheConfig(3));
        compute(cache, tokenRange(100, 16)).table.release(); // 0 1 cached, 2 empty
        const Tokens prompt = tokenRange(100, 16) + tokenRange(700, 9);
        AdmitRequest request;
        request.tokens = prompt;
        request.owner = OwnerId(1);
        const AdmitResult refused = cache.admit(request, 0);
        QVERIFY(!refused);
        QCOMPARE(refused.error().needed, 4);
        QCOMPARE(cache.lookup(prompt), std::int64_t(16));
    }

    /// A collision serves another prompt's K/V: with one key for everything, content must still never be mixed up.
    void aCollisionCostsTimeNeverContent() {
        KvCache cache(cacheConfig(8), std::make_unique<CollidingHasher>());
        Computed a = compute(cache, tokenRange(100, 17));
        QCOMPARE(cache.counters().collisions, std::uint64_t(1)); // its own second block
        Computed b = compute(cache, tokenRange(500, 17));
        QCOMPARE(b.reused, std::int64_t(0));
        QVERIFY(b.table.blocks()[0] != a.table.blocks()[0]);
        QCOMPARE(cache.lookup(tokenRange(100, 17)), std::int64_t(8)); // the first one in keeps the key
        a.table.release();
        b.table.release();
        Computed c =
            compute(cache, tokenRange(900, 9)); // nobody reads the old one any more: the new content takes over
        QCOMPARE(cache.lookup(tokenRange(900, 9)), std::int64_t(8));
        QCOMPARE(cache.lookup(tokenRange(100, 17)), std::int64_t(0));
        QCOMPARE(cache.counters().evictions[static_cast<std::size_t>(EvictionReason::Replaced)], std::uint64_t(1));
    }

    /// Equal tokens behind unequal beginnings: comparing the block's own tokens is not enough.
    void aCollisionOfTheParentIsNoticed() {
        KvCache cache(cacheConfig(8), std::make_unique<ParentBlindHasher>());
        const Tokens tail = tokenRange(900, 8);
        Computed a = compute(cache, tokenRange(100, 8) + tail + Tokens{1});
        Computed b = compute(cache, tokenRange(500, 8) + tail + Tokens{1});
        QCOMPARE(b.reused, std::int64_t(0));
        QCOMPARE(cache.lookup(tokenRange(500, 8) + tail + Tokens{1}), std::int64_t(8));
        QCOMPARE(cache.lookup(tokenRange(100, 8) + tail + Tokens{1}), std::int64_t(16));
        QVERIFY(a.table.blocks()[1] != b.table.blocks()[1]);
    }

    /// Adapters, too, are compared and not only hashed.
    void aCollisionOfAdaptersIsNoticed() {
        KvCache cache(cacheConfig(8), std::make_unique<ParentBlindHasher>());
        Computed a = compute(cache, tokenRange(100, 9), OwnerId(1), 0, 1);
        QCOMPARE(cache.lookup(tokenRange(100, 9), 1), std::int64_t(8));
        QCOMPARE(cache.lookup(tokenRange(100, 9), 2), std::int64_t(0));
    }

    /// A parent that was evicted and computed again is another block: what hung on the old one is not found by it, and
    /// gives its key to the newly computed one.
    void childrenOfAnEvictedParentAreReplacedNotMixedUp() {
        KvCache cache(cacheConfig(5), nullptr, std::make_unique<ParentsFirst>());
        compute(cache, tokenRange(100, 17)).table.release(); // 0 1, and under this policy 0 goes first
        QCOMPARE(freeIds(cache), (Ids{2, 3, 4, 0, 1}));
        compute(cache, tokenRange(500, 25)).table.release();
        QCOMPARE(cache.lookup(tokenRange(100, 17)), std::int64_t(0)); // 1 is still there, but leads from nowhere
        QVERIFY(cache.detail(BlockId(1)).hasKey);
        Computed again = compute(cache, tokenRange(100, 17));
        QCOMPARE(again.reused, std::int64_t(0));
        QCOMPARE(cache.lookup(tokenRange(100, 17)), std::int64_t(16));
    }

    /// "Unfinished store visible to readers": until a block is sealed, another request computes for itself.
    void aBlockBeingWrittenIsNoHit() {
        KvCache cache(cacheConfig(8));
        const Tokens prompt = tokenRange(100, 17);
        AdmitRequest request;
        request.tokens = prompt;
        request.owner = OwnerId(1);
        Admission a = std::move(cache.admit(request, 0).value());
        cache.advance(a.table, std::span(prompt).first(8), 0);
        Computed b = compute(cache, prompt, OwnerId(2));
        QCOMPARE(b.reused, std::int64_t(8)); // only the sealed one
        QVERIFY(b.table.blocks()[1] != a.table.blocks()[1]);
    }

    // ---- why a prefix was not reused ----

    void twoChatsThatShareTwentyFourTokens_data() {
        QTest::addColumn<int>("blockSize");
        QTest::addColumn<int>("reused");
        QTest::addColumn<int>("commonPrefix");
        QTest::newRow("8") << 8 << 24 << 0;
        QTest::newRow("16") << 16 << 16 << 24;
        QTest::newRow("32") << 32 << 0 << 24;
        QTest::newRow("64") << 64 << 0 << 24;
    }
    void twoChatsThatShareTwentyFourTokens() {
        QFETCH(int, blockSize);
        QFETCH(int, reused);
        QFETCH(int, commonPrefix);
        KvCache cache(cacheConfig(24, blockSize));
        const Tokens shared = tokenRange(100, 24);
        compute(cache, shared + tokenRange(500, 60), OwnerId(1)).table.release();
        const Computed b = compute(cache, shared + tokenRange(900, 60), OwnerId(2));
        QCOMPARE(b.reused, std::int64_t(reused));
        QCOMPARE(b.cause.commonPrefix, std::int64_t(commonPrefix));
        QCOMPARE(b.cause.kind, commonPrefix > 0 ? MissKind::ShorterThanBlock : MissKind::None);
    }

    void aPromptLikeNoOtherIsAColdStart() {
        KvCache cache(cacheConfig(10));
        compute(cache, tokenRange(100, 20), OwnerId(1)).table.release();
        QCOMPARE(compute(cache, tokenRange(500, 20), OwnerId(2)).cause.kind, MissKind::ColdStart);
    }

    void aFollowUpThatReusesAllItCanHasNoCause() {
        KvCache cache(cacheConfig(10));
        compute(cache, tokenRange(100, 20), OwnerId(1)).table.release();
        const Computed next = compute(cache, tokenRange(100, 40), OwnerId(1));
        QCOMPARE(next.reused, std::int64_t(16));
        QCOMPARE(next.cause.kind, MissKind::None);
    }

    void anEditNamesTheFirstTokenThatDiffers() {
        KvCache cache(cacheConfig(10));
        compute(cache, tokenRange(100, 30), OwnerId(1)).table.release();
        Tokens edited = tokenRange(100, 30);
        edited[11] = 7;
        const Computed next = compute(cache, edited, OwnerId(1));
        QCOMPARE(next.reused, std::int64_t(8));
        QCOMPARE(next.cause.kind, MissKind::Diverged);
        QCOMPARE(next.cause.divergingToken, std::int64_t(11));
    }

    void whatSomebodyElseNeededIsEvictedByName() {
        KvCache cache(cacheConfig(4));
        compute(cache, tokenRange(100, 17), OwnerId(1), 10).table.release(); // 0 1
        compute(cache, tokenRange(500, 25), OwnerId(2), 20).table.release(); // takes 2 3 1 0
        const Computed again = compute(cache, tokenRange(100, 20), OwnerId(1), 30);
        QCOMPARE(again.reused, std::int64_t(0));
        QCOMPARE(again.cause.kind, MissKind::Evicted);
        QCOMPARE(again.cause.evictedBy, OwnerId(2));
        QCOMPARE(again.cause.evictedAt, Nanos(20));
    }

    /// Destructors cannot throw; the engine must hear of it all the same.
    void aBrokenInvariantInADestructorIsToldByTheNextCall() {
        KvCache cache(cacheConfig(4), nullptr, std::make_unique<OutOfLine>());
        { Computed a = compute(cache, tokenRange(100, 9)); }
        AdmitRequest request;
        const Tokens prompt{1};
        request.tokens = prompt;
        QVERIFY_THROWS_EXCEPTION(BrokenInvariant, cache.admit(request, 0));
        QVERIFY_THROWS_EXCEPTION(BrokenInvariant, cache.checkInvariants());
    }

    void aTableOfAnotherCacheIsRefused() {
        KvCache cache(cacheConfig(4));
        KvCache other(cacheConfig(4));
        Computed a = compute(cache, tokenRange(100, 9));
        QVERIFY_THROWS_EXCEPTION(BrokenInvariant, other.grow(a.table, 20, 0));
        BlockTable none;
        QVERIFY_THROWS_EXCEPTION(BrokenInvariant, cache.grow(none, 20, 0));
    }
};

QTEST_APPLESS_MAIN(TestKvFaults)
#include "test_kv_faults.moc"
