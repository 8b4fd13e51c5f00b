// SPDX-License-Identifier: GPL-3.0-or-later
//
// The parts of the cache one by one: drawn state, free list, key table, keys, owner numbers, eviction log, memory.
#include <QTest>
#include <map>
#include <random>

#include "engine/base/check.h"
#include "engine/kv/block_facts.h"
#include "engine/kv/block_key.h"
#include "engine/kv/eviction_log.h"
#include "engine/kv/free_list.h"
#include "engine/kv/key_table.h"
#include "engine/kv/owner_memory.h"
#include "engine/kv/owner_numbers.h"

using namespace kvscope;
using namespace kvscope::kv;

namespace {

BlockFacts facts(int references, int pins, bool sealed, bool findable) {
    BlockFacts facts;
    facts.references = references;
    facts.pins = pins;
    facts.sealed = sealed;
    facts.findable = findable;
    return facts;
}

std::vector<int> order(const FreeList& list) {
    std::vector<int> ids;
    for (BlockId block = list.front(); block.valid(); block = list.after(block))
        ids.push_back(block.value());
    return ids;
}

BlockKey keyNumber(std::uint64_t n) {
    return {n * 0x9e3779b97f4a7c15ULL, n};
}

KeyContext context() {
    KeyContext context;
    context.modelFingerprint = "0123";
    context.layoutVersion = 1;
    context.ropeHash = 2;
    context.salt = 3;
    return context;
}

} // namespace

class TestKvParts : public QObject {
    Q_OBJECT
private slots:
    void drawnStateIsTheFirstThatMatches_data() {
        QTest::addColumn<int>("references");
        QTest::addColumn<int>("pins");
        QTest::addColumn<bool>("sealed");
        QTest::addColumn<bool>("findable");
        QTest::addColumn<QString>("state");
        QTest::newRow("nothing in it") << 0 << 0 << false << false << "empty";
        QTest::newRow("sealed, but nothing leads to it") << 0 << 0 << true << false << "empty";
        QTest::newRow("findable") << 0 << 0 << true << true << "cached";
        QTest::newRow("being written") << 1 << 0 << false << false << "filling";
        QTest::newRow("being written, shared tail") << 2 << 0 << false << false << "filling";
        QTest::newRow("full, unpublished") << 1 << 0 << true << false << "active";
        QTest::newRow("full, published") << 1 << 0 << true << true << "active";
        QTest::newRow("two readers") << 2 << 0 << true << true << "shared";
        QTest::newRow("pin only") << 0 << 1 << true << true << "pinned";
        QTest::newRow("pinned wins over shared") << 3 << 1 << true << true << "pinned";
        QTest::newRow("filling wins over pinned") << 1 << 1 << false << false << "filling";
    }
    void drawnStateIsTheFirstThatMatches() {
        QFETCH(int, references);
        QFETCH(int, pins);
        QFETCH(bool, sealed);
        QFETCH(bool, findable);
        QFETCH(QString, state);
        BlockFacts block = facts(references, pins, sealed, findable);
        QCOMPARE(QString(blockStateName(drawnState(block))), state);
        block.reserved = true;
        QCOMPARE(drawnState(block), BlockState::Reserved);
        block.inTransfer = true;
        QCOMPARE(drawnState(block), BlockState::InTransfer);
    }

    void freeListKeepsOrderWhenTheMiddleLeaves() {
        FreeList list(6);
        for (int id : {3, 1, 4, 0, 5})
            list.insert(BlockId(id), 0);
        list.remove(BlockId(4));
        QCOMPARE(order(list), (std::vector<int>{3, 1, 0, 5}));
        list.remove(BlockId(3));
        list.remove(BlockId(5));
        QCOMPARE(order(list), (std::vector<int>{1, 0}));
        list.pushFront(BlockId(2));
        list.insert(BlockId(4), 0);
        QCOMPARE(order(list), (std::vector<int>{2, 1, 0, 4}));
        QCOMPARE(list.size(), 4);
        QVERIFY(!list.contains(BlockId(3)));
    }

    void freeListRefusesTheSameBlockTwice() {
        FreeList list(2);
        list.pushFront(BlockId(1));
        QVERIFY_THROWS_EXCEPTION(BrokenInvariant, list.pushFront(BlockId(1)));
        QVERIFY_THROWS_EXCEPTION(BrokenInvariant, list.remove(BlockId(0)));
    }

    void freeListRefusesWhatIsNoBlock() {
        FreeList list(2);
        QVERIFY_THROWS_EXCEPTION(BrokenInvariant, list.pushFront(BlockId()));
        QVERIFY_THROWS_EXCEPTION(BrokenInvariant, list.insert(BlockId(2), 0));
        QVERIFY_THROWS_EXCEPTION(BrokenInvariant, list.remove(BlockId()));
        QCOMPARE(list.size(), 0);
    }

    /// Few distinct homes, so that runs are long and wrap around: erasing by shifting back must keep all reachable.
    void keyTableAgreesWithAMapUnderHeavyProbing() {
        constexpr int kCapacity = 24;
        KeyTable table(kCapacity);
        std::map<std::uint64_t, int> oracle;
        std::mt19937 random(1);
        for (int i = 0; i < 40000; ++i) {
            const std::uint64_t n = random() % 48;
            const BlockKey key{n, 60 + n % 5};
            if (random() % 2 == 0 && (oracle.size() < kCapacity || oracle.count(n) != 0)) {
                const int value = static_cast<int>(random() % 1000);
                table.set(key, value);
                oracle[n] = value;
            } else {
                table.erase(key);
                oracle.erase(n);
            }
            QCOMPARE(table.size(), static_cast<std::int32_t>(oracle.size()));
            for (std::uint64_t k = 0; k < 48; ++k) {
                const auto expected = oracle.find(k);
                QCOMPARE(table.find({k, 60 + k % 5}),
                         expected == oracle.end() ? KeyTable::kNotFound : expected->second);
            }
        }
    }

    void keyTableRefusesMoreThanItsCapacity() {
        KeyTable table(2);
        table.set(keyNumber(1), 1);
        table.set(keyNumber(2), 2);
        table.set(keyNumber(2), 3);
        QVERIFY_THROWS_EXCEPTION(BrokenInvariant, table.set(keyNumber(3), 3));
    }

    void everyFieldOfTheContextChangesEveryKey() {
        const std::vector<TokenId> tokens{1, 2, 3, 4, 5, 6, 7, 8};
        const auto keyUnder = [&](const KeyContext& c, std::uint64_t adapter = 0) {
            const auto hasher = makeBlockHasher(c);
            return hasher->block(hasher->root(adapter), tokens);
        };
        const BlockKey key = keyUnder(context());
        QVERIFY(key == keyUnder(context()));
        KeyContext other = context();
        other.modelFingerprint = "0124";
        QVERIFY(!(key == keyUnder(other)));
        other = context();
        other.keyDtype = "bf16"; // the same row size as f16
        QVERIFY(!(key == keyUnder(other)));
        other = context();
        other.valueDtype = "bf16";
        QVERIFY(!(key == keyUnder(other)));
        other = context();
        other.layoutVersion = 2;
        QVERIFY(!(key == keyUnder(other)));
        other = context();
        other.ropeHash = 3;
        QVERIFY(!(key == keyUnder(other)));
        other = context();
        other.salt = 4;
        QVERIFY(!(key == keyUnder(other)));
        QVERIFY(!(key == keyUnder(context(), 1)));
    }

    void fieldsCannotRunIntoEachOther() {
        KeyContext a = context();
        KeyContext b = context();
        a.keyDtype = "f16";
        a.valueDtype = "f1616";
        b.keyDtype = "f16f16";
        b.valueDtype = "16";
        QVERIFY(!(makeBlockHasher(a)->root(0) == makeBlockHasher(b)->root(0)));
        const auto hasher = makeBlockHasher(context());
        const std::vector<TokenId> tokens{1, 2, 3, 4};
        const BlockKey first = hasher->block(hasher->root(0), std::span(tokens).first(2));
        QVERIFY(!(hasher->block(first, std::span(tokens).subspan(2)) == hasher->block(hasher->root(0), tokens)));
    }

    void withoutAGivenSaltTheRootIsUnpredictable() {
        KeyContext unsalted = context();
        unsalted.salt.reset();
        QVERIFY(!(makeBlockHasher(unsalted)->root(0) == makeBlockHasher(unsalted)->root(0)));
    }

    void keysPrintAsThirtyTwoDigits() {
        QCOMPARE(BlockKey({0x0123456789abcdefULL, 0xfULL}).hex(), std::string("0123456789abcdef000000000000000f"));
    }

    void ownerNumbersAreReusedOnlyWhenNoBlockCarriesThem() {
        OwnerNumbers numbers;
        const auto a = numbers.acquire(OwnerId(100));
        const auto b = numbers.acquire(OwnerId(200));
        QCOMPARE(numbers.acquire(OwnerId(100)), a);
        numbers.release(a);
        QCOMPARE(numbers.ownerOf(a), OwnerId(100));
        numbers.release(a);
        QVERIFY(!numbers.ownerOf(a).valid());
        QCOMPARE(numbers.acquire(OwnerId(300)), a);
        QCOMPARE(numbers.ownerOf(b), OwnerId(200));
        QCOMPARE(numbers.acquire(OwnerId()), std::uint16_t(0));
    }

    void moreOwnersThanNumbersAreNobody() {
        OwnerNumbers numbers;
        for (int i = 0; i < 65535; ++i)
            QVERIFY(numbers.acquire(OwnerId(i)) != 0);
        QCOMPARE(numbers.acquire(OwnerId(70000)), std::uint16_t(0));
        numbers.release(5);
        QCOMPARE(numbers.acquire(OwnerId(70000)), std::uint16_t(5));
    }

    void evictionLogForgetsTheOldestAndKeepsTheNewestOfAKey() {
        EvictionLog log(3);
        const auto evicted = [](std::uint64_t key, Nanos time) {
            Eviction eviction;
            eviction.key = keyNumber(key);
            eviction.owner = OwnerId(1);
            eviction.by = OwnerId(2);
            eviction.time = time;
            eviction.reason = EvictionReason::Growth;
            return eviction;
        };
        log.record(evicted(1, 10));
        log.record(evicted(2, 20));
        log.record(evicted(1, 30)); // again: the entry of time 10 is stale now
        log.record(evicted(3, 40)); // overwrites the stale entry, which must not take the newer one along
        QCOMPARE(log.find(keyNumber(1))->time, Nanos(30));
        log.record(evicted(4, 50)); // overwrites key 2
        QVERIFY(log.find(keyNumber(2)) == nullptr);
        log.record(evicted(5, 60)); // overwrites key 1
        QVERIFY(log.find(keyNumber(1)) == nullptr);
        QCOMPARE(log.find(keyNumber(5))->by, OwnerId(2));
    }

    void memoryForgetsTheOwnerThatWasQuietLongest() {
        OwnerMemory memory(2);
        memory.renew(OwnerId(1)).tokens = {1};
        memory.renew(OwnerId(2)).tokens = {2};
        memory.renew(OwnerId(1)).tokens = {11};
        memory.renew(OwnerId(3)).tokens = {3};
        QVERIFY(memory.find(OwnerId(2)) == nullptr);
        QCOMPARE(memory.find(OwnerId(1))->tokens, (std::vector<TokenId>{11}));
        QCOMPARE(memory.find(OwnerId(3))->tokens, (std::vector<TokenId>{3}));
    }
};

QTEST_APPLESS_MAIN(TestKvParts)
#include "test_kv_parts.moc"
