// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTest>
#include <numeric>

#include "engine/metrics/block_map_builder.h"
#include "tests/support/kv_harness.h"

using namespace kvscope;
using namespace kvscope::kv;
using namespace kvscope::test;

namespace {

constexpr Nanos kSecond = 1'000'000'000;

OwnerId ownerOf(const metrics::BlockMapSnapshot& map, int block) {
    const std::uint16_t number = map.cells[static_cast<std::size_t>(block)].owner;
    return number == 0 ? OwnerId() : map.owners[number - 1U];
}

} // namespace

class TestBlockMapBuilder : public QObject {
    Q_OBJECT
private slots:
    void cellsAreWhatThePoolSays() {
        KvCache cache(cacheConfig(6));
        const Nanos origin = 100 * kSecond;
        Computed a = compute(cache, tokenRange(100, 20), OwnerId(41), origin + 2 * kSecond);
        Computed b = compute(cache, tokenRange(100, 17), OwnerId(42), origin + 3 * kSecond);
        compute(cache, tokenRange(900, 8), OwnerId(43), origin + 4 * kSecond).table.release();

        metrics::BlockMapSnapshot map;
        metrics::buildBlockMap(cache.pool(), origin + 5 * kSecond, origin, map);
        QCOMPARE(map.epoch, cache.pool().epoch());
        QCOMPARE(map.blockSize, 8);
        QCOMPARE(map.cells.size(), std::size_t(6));
        QCOMPARE(map.cells[0].state, BlockState::Shared);
        QCOMPARE(map.cells[0].references, std::uint16_t(2));
        QCOMPARE(map.cells[0].lastRead, std::uint16_t(12)); // 3 s in quarters
        QCOMPARE(ownerOf(map, 0), OwnerId(42));
        QCOMPARE(map.cells[2].state, BlockState::Filling);
        QCOMPARE(map.cells[2].fill, std::uint8_t(4));
        QCOMPARE(ownerOf(map, 2), OwnerId(41));
        QCOMPARE(map.cells[4].state, BlockState::Cached);
        QCOMPARE(ownerOf(map, 4), OwnerId(43));
        QCOMPARE(map.cells[5].state, BlockState::Empty);
        QCOMPARE(map.cells[5].owner, std::uint16_t(0));
        QCOMPARE(map.cells[5].lastRead, std::uint16_t(0));

        StateCounts counts{};
        for (const auto& cell : map.cells)
            ++counts[static_cast<std::size_t>(cell.state)];
        QVERIFY(counts == cache.pool().counts());
    }

    void theAgeWrapsAfterFourAndAHalfHours() {
        KvCache cache(cacheConfig(2));
        const Nanos wrap = 65536 * (kSecond / 4);
        Computed a = compute(cache, tokenRange(100, 3), OwnerId(1), wrap + kSecond);
        metrics::BlockMapSnapshot map;
        metrics::buildBlockMap(cache.pool(), wrap + kSecond, 0, map);
        QCOMPARE(map.cells[0].lastRead, std::uint16_t(4));
    }

    void memoryIsReused() {
        KvCache cache(cacheConfig(64));
        metrics::BlockMapSnapshot map;
        metrics::buildBlockMap(cache.pool(), 0, 0, map);
        const auto* before = map.cells.data();
        Computed a = compute(cache, tokenRange(100, 30), OwnerId(1));
        metrics::buildBlockMap(cache.pool(), 1, 0, map);
        QCOMPARE(map.cells.data(), before);
        QCOMPARE(map.cells[0].state, BlockState::Active);
    }
};

QTEST_APPLESS_MAIN(TestBlockMapBuilder)
#include "test_block_map_builder.moc"
