// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the cache knows of an owner after its sequence ended.
#include <QTest>

#include "tests/support/kv_harness.h"

using namespace kvscope;
using namespace kvscope::kv;
using namespace kvscope::test;

class TestKvOwners : public QObject {
    Q_OBJECT
private slots:
    void anOwnersBlocksAreKnownLiveAndAfterTheEnd() {
        KvCache cache(cacheConfig(4));
        Computed a = compute(cache, tokenRange(100, 20), OwnerId(1));
        OwnerBlocks live = cache.ownerBlocks(OwnerId(1));
        QVERIFY(live.live);
        QCOMPARE(live.tokens, std::int64_t(20));
        QCOMPARE(idsOf(live.blocks), (Ids{0, 1, 2}));
        a.table.release();
        OwnerBlocks ended = cache.ownerBlocks(OwnerId(1));
        QVERIFY(!ended.live);
        QCOMPARE(ended.tokens, std::int64_t(20));
        QCOMPARE(idsOf(ended.blocks), (Ids{0, 1, -1})); // the partial tail is nowhere any more
        // Two empty blocks and the cached block 1 are taken; the same id with new content is not the owner's.
        Computed b = compute(cache, tokenRange(500, 24), OwnerId(2));
        QCOMPARE(idsOf(b.table.blocks()), (Ids{2, 3, 1}));
        QCOMPARE(idsOf(cache.ownerBlocks(OwnerId(1)).blocks), (Ids{0, -1, -1}));
        QVERIFY(cache.ownerBlocks(OwnerId(77)).blocks.empty());
    }

    void idleOwnersSayWhatTheirNextTurnCanFind() {
        KvCache cache(cacheConfig(7));
        Computed a = compute(cache, tokenRange(100, 20), OwnerId(1)); // two full blocks and a tail
        Computed b = compute(cache, tokenRange(500, 16), OwnerId(2));
        std::vector<IdleOwner> idle;
        cache.idleOwners(8, idle);
        QVERIFY(idle.empty());
        a.table.release();
        b.table.release();
        cache.idleOwners(8, idle);
        QCOMPARE(idle.size(), std::size_t(2));
        QCOMPARE(idle[0].owner, OwnerId(2)); // the latest first
        QCOMPARE(idle[1].owner, OwnerId(1));
        QCOMPARE(idle[1].tokens, std::int64_t(20));
        QCOMPARE(idle[1].blocks, 2);
        QCOMPARE(idle[1].stillThere, 2);
        QCOMPARE(std::int64_t(idle[1].stillThere) * cache.blockSize(), cache.lookup(tokenRange(100, 20)));
        cache.idleOwners(1, idle);
        QCOMPARE(idle.size(), std::size_t(1));
        QCOMPARE(idle[0].owner, OwnerId(2));

        // The last block of chat 1 goes first; who runs is not idle.
        Computed c = compute(cache, tokenRange(900, 32), OwnerId(3));
        cache.idleOwners(8, idle);
        QCOMPARE(idle.size(), std::size_t(2));
        QCOMPARE(idle[1].owner, OwnerId(1));
        QCOMPARE(idle[1].stillThere, 1);
        QCOMPARE(std::int64_t(idle[1].stillThere) * cache.blockSize(), cache.lookup(tokenRange(100, 20)));
        QCOMPARE(idle[0].stillThere, 2);
    }
};

QTEST_APPLESS_MAIN(TestKvOwners)
#include "test_kv_owners.moc"
