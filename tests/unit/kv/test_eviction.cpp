// SPDX-License-Identifier: GPL-3.0-or-later
//
// Who goes when blocks run out: the ordered free list against a sorted one, the arithmetic of fading against floating
// point, and each policy by what a user can expect of it.
#include <QTest>
#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "engine/base/check.h"
#include "tests/support/kv_harness.h"

using namespace kvscope;
using namespace kvscope::kv;
using namespace kvscope::test;

namespace {

CacheConfig configOf(EvictionKind eviction, int blocks, double attentionPerToken = 0) {
    CacheConfig config = cacheConfig(blocks);
    config.eviction = eviction;
    config.attentionPerToken = attentionPerToken;
    return config;
}

/// Computes a prompt and gives it back.
void touch(KvCache& cache, const Tokens& tokens, Nanos now = 0) {
    compute(cache, tokens, OwnerId(1), now).table.release();
}

/// Prompts of one full block that nobody asks for again, until the pool was turned over `times` times.
void flood(KvCache& cache, double times, int& next) {
    const auto goal = cache.counters().totalEvictions() + static_cast<std::uint64_t>(times * cache.numBlocks());
    while (cache.counters().totalEvictions() < goal)
        touch(cache, tokenRange(100'000 + 100 * next++, 8));
}

std::vector<int> order(const FreeList& list) {
    std::vector<int> ids;
    for (BlockId block = list.front(); block.valid(); block = list.after(block))
        ids.push_back(block.value());
    return ids;
}

/// A list that is sorted anew for every question.
class SortedList {
public:
    void pushFront(int block) { m_empty.insert(m_empty.begin(), block); }
    void insert(int block, std::uint64_t rank) { m_cached.push_back({rank, m_came++, block}); }
    void remove(int block) {
        std::erase(m_empty, block);
        std::erase_if(m_cached, [&](const Entry& e) { return e.block == block; });
    }
    std::vector<int> order() {
        std::sort(m_cached.begin(), m_cached.end(),
                  [](const Entry& a, const Entry& b) { return std::tie(a.rank, a.came) < std::tie(b.rank, b.came); });
        std::vector<int> ids = m_empty;
        for (const Entry& entry : m_cached)
            ids.push_back(entry.block);
        return ids;
    }

private:
    struct Entry {
        std::uint64_t rank;
        int came;
        int block;
    };
    std::vector<int> m_empty;
    std::vector<Entry> m_cached;
    int m_came = 0;
};

} // namespace

class TestEviction : public QObject {
    Q_OBJECT
private slots:
    void rankSetFindsTheLargestNotAbove() {
        RankSet set;
        std::set<int> oracle;
        std::mt19937 random(1);
        for (int i = 0; i < 60000; ++i) {
            // Dense places, sparse ones, and both ends.
            const int spread = random() % 3 == 0 ? 200 : RankSet::kSize;
            const int n =
                static_cast<int>(random() % 2 == 0 ? random() % spread : RankSet::kSize - 1 - random() % spread);
            if (random() % 3 != 0) {
                set.insert(n);
                oracle.insert(n);
            } else if (!oracle.empty()) {
                const int known = *(oracle.lower_bound(n) == oracle.end() ? oracle.begin() : oracle.lower_bound(n));
                set.erase(known);
                oracle.erase(known);
            }
            const int asked = static_cast<int>(random() % RankSet::kSize);
            for (const int question : {asked, n, 0, RankSet::kSize - 1}) {
                const auto above = oracle.upper_bound(question);
                QCOMPARE(set.floor(question), above == oracle.begin() ? RankSet::kNone : *std::prev(above));
                QCOMPARE(set.contains(question), oracle.count(question) != 0);
            }
        }
    }

    /// Ranks that rise for ever, as those of fading fame do: they pass the end of the span several times.
    void freeListKeepsTheOrderOfRanks() {
        constexpr int kBlocks = 40;
        FreeList list(kBlocks);
        SortedList oracle;
        std::mt19937 random(2);
        std::uint64_t base = 0;
        std::set<int> inside;
        for (int i = 0; i < 40000; ++i) {
            base += random() % 30;
            const int block = static_cast<int>(random() % kBlocks);
            // Whoever is far behind leaves, as the lowest are evicted first.
            while (list.size() > 0 && list.isCached(list.front()) && list.rank(list.front()) + 1000 < base) {
                oracle.remove(list.front().value());
                inside.erase(list.front().value());
                list.remove(list.front());
            }
            if (inside.erase(block) != 0) {
                list.remove(BlockId(block));
                oracle.remove(block);
            } else if (random() % 5 == 0) {
                list.pushFront(BlockId(block));
                oracle.pushFront(block);
                inside.insert(block);
            } else {
                const std::uint64_t rank = base + random() % (random() % 2 == 0 ? 5 : FreeList::kRankSpan - 31'100);
                list.insert(BlockId(block), rank);
                oracle.insert(block, rank);
                inside.insert(block);
            }
            list.checkMarks();
            QCOMPARE(order(list), oracle.order());
            if (list.size() > 30 || base % 7 == 0) { // the highest leave too, so that the span is never exceeded
                for (const int id : order(list)) {
                    list.remove(BlockId(id));
                    oracle.remove(id);
                }
                inside.clear();
            }
        }
        QVERIFY(base > 2 * FreeList::kRankSpan);
    }

    void ranksTooFarApartAreABrokenInvariant() {
        FreeList list(3);
        list.insert(BlockId(0), 7);
        list.insert(BlockId(1), 6 + FreeList::kRankSpan);
        QVERIFY_THROWS_EXCEPTION(BrokenInvariant, list.insert(BlockId(2), 7 + FreeList::kRankSpan));
    }

    void octavesAreTheLogarithm() {
        std::mt19937_64 random(3);
        for (int i = 0; i < 200000; ++i) {
            const std::uint64_t value = (random() >> (random() % 63)) + 1;
            const double exact = 64 * std::log2(static_cast<double>(value));
            QVERIFY2(octaves(value) <= exact + 1e-6 && octaves(value) + 1.001 > exact,
                     qPrintable(QString::number(value)));
        }
        for (int power = 0; power < 63; ++power)
            QCOMPARE(octaves(std::uint64_t(1) << power), std::uint32_t(64 * power));
    }

    void fameHalvesWithEveryHalfLifeAndNeverWrapsRound() {
        std::mt19937 random(4);
        ReuseFacts facts = ReuseFacts::fresh(0);
        double fame = 1;
        std::uint32_t now = 0;
        for (int i = 0; i < 20000; ++i) {
            const auto ticks = static_cast<std::uint32_t>(random() % (random() % 10 == 0 ? 300 : 4));
            now += ticks;
            fame *= std::exp2(-static_cast<double>(ticks) / TurnoverClock::kTicksPerHalfLife);
            if (random() % 4 == 0) {
                facts.rest(now);
                fame = std::max(fame, 1.0);
            } else {
                facts.use(now);
                fame += 1;
            }
            QVERIFY2(std::abs(facts.fame / 65536.0 - fame) < 0.001 * fame, qPrintable(QString::number(i)));
        }
        for (int i = 0; i < 70000; ++i)
            facts.use(now);
        QCOMPARE(facts.fame, std::numeric_limits<std::uint32_t>::max());
        facts.fade(now + 64 * 40);
        QCOMPARE(facts.fame, 0u);
    }

    void aFollowerInheritsWhatItCanExpect() {
        ReuseFacts conversation = ReuseFacts::fresh(0); // continued three times by the same one
        for (int i = 0; i < 3; ++i)
            conversation.use(0);
        ReuseFacts next = ReuseFacts::fresh(0);
        inherit(next, conversation, 0);
        QCOMPARE(next.expected, 4 * kOneUse);
        QCOMPARE(next.fame, kOneUse);                   // it was itself used once
        ReuseFacts systemPrompt = ReuseFacts::fresh(0); // continued by four, each in its own way
        for (int i = 0; i < 3; ++i)
            systemPrompt.use(0);
        for (int i = 0; i < 4; ++i) {
            next = ReuseFacts::fresh(0);
            inherit(next, systemPrompt, 0);
        }
        QCOMPARE(next.expected, kOneUse);
    }

    void namesAndKindsAgree() {
        for (int i = 0; i < kEvictionKindCount; ++i) {
            const auto kind = static_cast<EvictionKind>(i);
            QCOMPARE(evictionKindOf(evictionKindName(kind)), std::optional(kind));
            QCOMPARE(QString(makeEviction(kind)->name()), QString(evictionKindName(kind)));
        }
        QVERIFY(!evictionKindOf("fifo"));
    }

    // ---- what each policy promises ----

    void whoGoesFirst_data() {
        QTest::addColumn<int>("eviction");
        QTest::addColumn<Ids>("order");
        // Blocks 0 1 2: a prompt of three blocks, asked for three times. Then 3: a prompt of one block, once.
        // Then 4 5: the prompt 0 with another end, once. Nothing else is in the pool.
        QTest::newRow("lru: the longest unused, ends before beginnings") << 0 << Ids{2, 1, 3, 5, 4, 0};
        QTest::newRow("lfu: the least often used") << 1 << Ids{3, 5, 4, 2, 1, 0};
        QTest::newRow("position: the latest places") << 2 << Ids{2, 5, 1, 4, 3, 0};
        QTest::newRow("cost: a one-time prompt before a branch of something famous") << 3 << Ids{3, 5, 4, 2, 1, 0};
    }
    void whoGoesFirst() {
        QFETCH(int, eviction);
        QFETCH(Ids, order);
        KvCache cache(configOf(static_cast<EvictionKind>(eviction), 6));
        for (int i = 0; i < 3; ++i)
            touch(cache, tokenRange(100, 25));
        touch(cache, tokenRange(500, 8));
        touch(cache, tokenRange(100, 8) + tokenRange(900, 16));
        Ids cached = freeIds(cache);
        std::erase_if(cached, [&](int block) { return cache.pool().state(BlockId(block)) == BlockState::Empty; });
        QCOMPARE(cached, order);
    }

    void beginningsOutliveTheirContinuationsUnderEveryPolicy_data() { everyPolicy(); }
    void beginningsOutliveTheirContinuationsUnderEveryPolicy() {
        QFETCH(int, eviction);
        KvCache cache(configOf(static_cast<EvictionKind>(eviction), 12, 0.1));
        touch(cache, tokenRange(100, 49));
        for (int i = 0; i < 5; ++i)
            touch(cache, tokenRange(100, 17));
        touch(cache, tokenRange(100, 8) + tokenRange(700, 9));
        std::set<std::uint64_t> gone;
        for (int block : freeIds(cache)) {
            if (cache.pool().state(BlockId(block)) == BlockState::Empty)
                continue;
            const BlockIdentity& identity = cache.pool().identity(BlockId(block));
            QVERIFY(gone.count(identity.parentGeneration) == 0);
            gone.insert(identity.generation);
        }
    }

    void pinnedBlocksStayUnderEveryPolicy_data() { everyPolicy(); }
    void pinnedBlocksStayUnderEveryPolicy() {
        QFETCH(int, eviction);
        KvCache cache(configOf(static_cast<EvictionKind>(eviction), 6));
        Computed system = compute(cache, tokenRange(100, 17));
        const PinnedBlocks pins = cache.pin(system.table, 2);
        system.table.release();
        int next = 0;
        flood(cache, 20, next);
        QCOMPARE(cache.lookup(tokenRange(100, 17)), std::int64_t(16));
        QCOMPARE(countOf(cache, BlockState::Pinned), 2u);
    }

    /// What many asked for survives a flood that least recently used would not.
    void fameSurvivesAFloodAndThenFades_data() {
        QTest::addColumn<int>("eviction");
        QTest::newRow("lfu") << int(EvictionKind::Lfu);
        QTest::newRow("cost") << int(EvictionKind::Cost);
    }
    void fameSurvivesAFloodAndThenFades() {
        QFETCH(int, eviction);
        KvCache cache(configOf(static_cast<EvictionKind>(eviction), 10));
        for (int i = 0; i < 8; ++i) // worth 8 = three half-lives = six turnovers more than something new
            touch(cache, tokenRange(100, 17));
        int next = 0;
        flood(cache, 5, next);
        QCOMPARE(cache.lookup(tokenRange(100, 17)), std::int64_t(16));
        flood(cache, 3, next);
        QCOMPARE(cache.lookup(tokenRange(100, 17)), std::int64_t(0));
    }

    /// The newest turn of a long conversation was computed once, like a prompt that nobody continued; only `cost` sees
    /// that its conversation always went on.
    void costKeepsTheNewestTurnOfALivelyConversation() {
        for (const EvictionKind kind : {EvictionKind::Lfu, EvictionKind::Cost}) {
            KvCache cache(configOf(kind, 10));
            for (int turn = 1; turn <= 4; ++turn)
                touch(cache, tokenRange(100, 8 * turn + 1));
            int next = 0;
            flood(cache, 1.5, next);
            QCOMPARE(cache.lookup(tokenRange(100, 33)), std::int64_t(kind == EvictionKind::Cost ? 32 : 24));
        }
    }

    /// Late tokens attend to more, so they cost more to compute again.
    void costKeepsWhatIsDearToCompute() {
        KvCache cache(configOf(EvictionKind::Cost, 6, 1.0));
        touch(cache, tokenRange(100, 25)); // 0 1 2
        touch(cache, tokenRange(500, 8));  // 3: later, and cheap
        QCOMPARE(freeIds(cache), (Ids{4, 5, 3, 2, 1, 0}));
        KvCache flat(configOf(EvictionKind::Cost, 6, 0.0));
        touch(flat, tokenRange(100, 25));
        touch(flat, tokenRange(500, 8));
        QCOMPARE(freeIds(flat), (Ids{4, 5, 2, 1, 0, 3}));
    }

    void anEvictionIsRecordedWithReasonAgeAndUse() {
        KvCache cache(cacheConfig(3));
        touch(cache, tokenRange(100, 17), 1000);
        touch(cache, tokenRange(100, 17), 3000);
        touch(cache, tokenRange(500, 16), 7000); // the empty block and the end of the first prompt
        QCOMPARE(cache.counters().totalEvictions(), std::uint64_t(1));
        QCOMPARE(cache.counters().evictedAge, Nanos(4000));
        const Computed again = compute(cache, tokenRange(100, 17), OwnerId(1), 8000);
        QCOMPARE(again.cause.kind, MissKind::Evicted);
        QCOMPARE(again.cause.evictedAge, Nanos(4000));
    }

private:
    static void everyPolicy() {
        QTest::addColumn<int>("eviction");
        for (int i = 0; i < kEvictionKindCount; ++i)
            QTest::newRow(evictionKindName(static_cast<EvictionKind>(i))) << i;
    }
};

QTEST_APPLESS_MAIN(TestEviction)
#include "test_eviction.moc"
