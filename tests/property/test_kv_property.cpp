// SPDX-License-Identifier: GPL-3.0-or-later
//
// Random operations on a small cache, next to a naive oracle and to simulated slot contents. After each operation:
// every invariant by recount, the oracle's block ids and free list, and every table reads exactly its own history.
#include <QTest>
#include <memory>

#include "tests/support/kv_harness.h"
#include "tests/support/kv_oracle.h"
#include "tests/support/operations.h"

using namespace kvscope;
using namespace kvscope::kv;
using namespace kvscope::test;

namespace {

constexpr int kBlocks = 10;
constexpr int kBlockSize = 8;
constexpr int kOperationsPerRun = 1000;
constexpr int kRuns = 100; // 100,000 operations in the default run

/// Prompts with many common beginnings: one of three documents, cut, with at most one token changed.
Tokens promptOf(const Operation& o) {
    Tokens tokens(static_cast<std::size_t>(1 + o.a % 44));
    for (std::size_t i = 0; i < tokens.size(); ++i)
        tokens[i] = static_cast<TokenId>(o.b % 3 == 0 ? 1 : 10 * (o.b % 3) + static_cast<int>(i % 5));
    if (o.c % 4 == 0)
        tokens[o.c % tokens.size()] = 99;
    return tokens;
}

constexpr double kAttention = 0.01; // far more than any model, so that ten blocks show a difference

/// Of the cases with a window group: tables that compute never want more of it than there is (the scheduler's sizes see
/// to that, here the operation is left out), but it is smaller than the pool.
constexpr int kWindowBlocks = 7;

CacheConfig configOf(EvictionKind eviction, int window) {
    CacheConfig config = cacheConfig(kBlocks, kBlockSize);
    config.window = window;
    config.windowBlocks = window > 0 ? kWindowBlocks : 0;
    config.eviction = eviction;
    config.attentionPerToken = kAttention;
    return config;
}

class World {
public:
    World(EvictionKind eviction, std::unique_ptr<BlockHasher> hasher, int window)
        : m_window(window)
        , m_compareWithOracle(hasher == nullptr)
        , m_cache(configOf(eviction, window), std::move(hasher))
        , m_policy(makeEviction(eviction, {kBlockSize, kAttention}))
        , m_oracle(kBlocks, kBlockSize, *m_policy, window, window > 0 ? kWindowBlocks : 0)
        , m_slots(kBlocks * kBlockSize, 0)
        , m_windowSlots(kWindowBlocks * kBlockSize, 0) {}

    void apply(const Operation& o) {
        ++m_now;
        switch (o.kind % 8) {
        case 0:
        case 1:
            return admit(o);
        case 2:
        case 3:
        case 4:
            return append(o);
        case 5:
            return forkOrTruncate(o);
        case 6:
            return release(o);
        default:
            return pinOrUnpin(o);
        }
    }

    void check() const {
        m_cache.checkInvariants();
        for (const Pair& pair : m_tables)
            checkContent(pair);
        if (!m_compareWithOracle)
            return;
        RC_ASSERT(freeIds(m_cache) == Ids(m_oracle.freeList().begin(), m_oracle.freeList().end()));
        for (const Pair& pair : m_tables)
            RC_ASSERT(idsOf(pair.table.blocks()) == pair.oracle.blocks);
        if (m_window > 0) {
            RC_ASSERT(freeWindowIds() == m_oracle.freeCompanions());
            for (const Pair& pair : m_tables)
                RC_ASSERT(idsOf(pair.table.windowBlocks()) == pair.oracle.companions);
        }
        for (int block = 0; block < kBlocks; ++block)
            RC_ASSERT(m_cache.pool().facts(BlockId(block)).count() == m_oracle.references(block));
    }

    /// Everything given back: nothing is active, and what the oracle still knows is what can be found.
    void drain() {
        m_tables.clear();
        m_pins.clear();
        m_cache.checkInvariants();
        RC_ASSERT(m_cache.available() == kBlocks);
        RC_ASSERT(m_cache.pendingCopies().empty());
        if (m_window > 0)
            RC_ASSERT(m_cache.window()->available() == kWindowBlocks);
    }

    const CacheCounters& counters() const { return m_cache.counters(); }
    std::uint64_t windowEvictions() const { return m_window > 0 ? m_cache.window()->evictions() : 0; }
    unsigned long long shortened = 0; ///< hits that the window group made shorter

private:
    struct Pair {
        BlockTable table;
        Tokens tokens;
        KvOracle::Table oracle;
    };
    struct Pin {
        PinnedBlocks pins;
        std::vector<int> blocks;
    };

    void admit(const Operation& o) {
        const Tokens prompt = promptOf(o);
        AdmitRequest request;
        request.tokens = prompt;
        request.owner = OwnerId(o.b % 5);
        request.keepBack = o.c % 3;
        request.explain = o.c % 2 == 0;
        const KvOracle::Table* oracleFork = nullptr;
        if (o.kind % 8 == 1 && !m_tables.empty()) {
            const Pair& source = m_tables[o.c % m_tables.size()];
            const auto common = std::mismatch(
                prompt.begin(),
                prompt.begin() + static_cast<std::ptrdiff_t>(std::min(prompt.size(), source.tokens.size())),
                source.tokens.begin());
            request.forkFrom = &source.table;
            request.forkTokens = common.first - prompt.begin();
            oracleFork = &source.oracle;
        }
        AdmitResult result = m_cache.admit(request, m_now);
        Pair pair;
        if (m_compareWithOracle) {
            int reused = 0;
            m_oracleCached = m_oracle.cachedBlocks(prompt) * kBlockSize;
            auto expected =
                m_oracle.admit(prompt, request.keepBack, oracleFork, static_cast<int>(request.forkTokens), reused);
            RC_ASSERT(result.has_value() == expected.has_value());
            if (expected) {
                RC_ASSERT(result->reusedTokens == reused);
                pair.oracle = std::move(*expected);
            }
        }
        if (m_compareWithOracle && result && m_window > 0 && request.forkFrom == nullptr)
            shortened += result->reusedTokens < m_oracleCached ? 1 : 0;
        if (!result) {
            RC_ASSERT(result.error().needed > result.error().available);
            return;
        }
        pair.table = std::move(result->table);
        pair.tokens.assign(prompt.begin(), prompt.begin() + result->reusedTokens);
        m_tables.push_back(std::move(pair));
        if (o.c % 5 != 0 && growWindow(m_tables.back(), prompt.size())) // sometimes it is not computed for now
            compute(m_tables.back(),
                    Tokens(prompt.begin() + static_cast<std::ptrdiff_t>(m_tables.back().tokens.size()), prompt.end()));
    }

    void append(const Operation& o) {
        if (m_tables.empty())
            return;
        Pair& pair = m_tables[o.a % m_tables.size()];
        const auto count = static_cast<std::size_t>(1 + o.b % 11);
        const auto upTo = static_cast<std::int64_t>(pair.tokens.size() + count);
        if (lacksCompanions(pair, static_cast<std::size_t>(upTo)))
            return;
        const bool grown = m_cache.grow(pair.table, upTo, m_now).has_value();
        if (m_compareWithOracle)
            RC_ASSERT(grown == m_oracle.grow(pair.oracle, static_cast<int>(upTo)));
        if (!grown || o.c % 4 == 0) // the step is aborted: room is made, nothing advances, copies stay pending
            return;
        Tokens tokens(count);
        for (std::size_t i = 0; i < count; ++i)
            tokens[i] = static_cast<TokenId>((pair.tokens.size() + i) % 5 + (o.c % 2) * 10);
        compute(pair, tokens);
    }

    /// One step of one sequence: all pending copies, then its tokens.
    void compute(Pair& pair, const Tokens& tokens) {
        std::vector<std::uint64_t> read;
        for (const BlockCopy& copy : m_cache.pendingCopies())
            for (int slot = 0; slot < copy.slotCount; ++slot)
                read.push_back(slotAt(copy.from, slot));
        auto next = read.begin();
        for (const BlockCopy& copy : m_cache.pendingCopies())
            for (int slot = 0; slot < copy.slotCount; ++slot)
                slotAt(copy.to, slot) = *next++;
        m_cache.commitCopies();
        const auto blocks = pair.table.blocks();
        std::uint64_t history = historyOf(pair.tokens);
        for (std::size_t i = 0; i < tokens.size(); ++i) {
            const std::size_t position = pair.tokens.size() + i;
            history = extend(history, tokens[i]);
            slotAt(blocks[position / kBlockSize], static_cast<int>(position % kBlockSize)) = history;
            if (m_window > 0)
                m_windowSlots[windowSlot(pair, position)] = history;
        }
        m_cache.advance(pair.table, tokens, m_now);
        pair.tokens.insert(pair.tokens.end(), tokens.begin(), tokens.end());
        if (m_compareWithOracle) {
            m_oracle.commitCopies();
            m_oracle.advance(pair.oracle, tokens);
        }
    }

    void forkOrTruncate(const Operation& o) {
        if (m_tables.empty())
            return;
        Pair& pair = m_tables[o.a % m_tables.size()];
        const std::size_t tokens = o.b % (pair.tokens.size() + 1);
        if (o.c % 2 == 0) {
            m_cache.truncate(pair.table, static_cast<std::int64_t>(tokens));
            RC_ASSERT(m_window > 0 || pair.table.tokens() == static_cast<std::int64_t>(tokens));
            pair.tokens.resize(static_cast<std::size_t>(pair.table.tokens()));
            if (m_compareWithOracle)
                m_oracle.truncate(pair.oracle, static_cast<int>(tokens));
            return;
        }
        if (m_tables.size() > 12)
            return;
        Pair forked;
        forked.table = m_cache.fork(pair.table, static_cast<std::int64_t>(tokens), OwnerId(o.c % 5), m_now);
        RC_ASSERT(m_window > 0 || forked.table.tokens() == static_cast<std::int64_t>(tokens));
        forked.tokens.assign(pair.tokens.begin(), pair.tokens.begin() + forked.table.tokens());
        if (m_compareWithOracle)
            forked.oracle = m_oracle.fork(pair.oracle, static_cast<int>(tokens));
        m_tables.push_back(std::move(forked));
    }

    void release(const Operation& o) {
        if (m_tables.empty())
            return;
        const auto at = m_tables.begin() + o.a % static_cast<int>(m_tables.size());
        if (m_compareWithOracle)
            m_oracle.release(at->oracle);
        m_tables.erase(at);
    }

    void pinOrUnpin(const Operation& o) {
        if (!m_pins.empty() && o.c % 2 == 0) {
            const auto at = m_pins.begin() + o.a % static_cast<int>(m_pins.size());
            if (m_compareWithOracle)
                for (auto block = at->blocks.rbegin(); block != at->blocks.rend(); ++block)
                    m_oracle.dropReference(*block);
            m_pins.erase(at);
            return;
        }
        if (m_tables.empty() || m_pins.size() > 3)
            return;
        const Pair& pair = m_tables[o.a % m_tables.size()];
        const auto full = static_cast<std::int32_t>(pair.tokens.size() / kBlockSize);
        Pin pin{m_cache.pin(pair.table, full), {}};
        if (m_compareWithOracle)
            for (const BlockId block : pin.pins.blocks()) {
                pin.blocks.push_back(block.value());
                m_oracle.addReference(block.value());
            }
        m_pins.push_back(std::move(pin));
    }

    Ids freeWindowIds() const {
        Ids ids;
        const FreeList& list = m_cache.window()->freeList();
        for (BlockId block = list.front(); block.valid(); block = list.after(block))
            ids.push_back(block.value());
        return ids;
    }
    bool lacksCompanions(const Pair& pair, std::size_t upTo) const {
        const auto have = pair.table.windowBlocks().size(), wanted = (upTo + kBlockSize - 1) / kBlockSize;
        return m_window > 0 && static_cast<int>(wanted - std::min(have, wanted)) > m_cache.window()->available();
    }
    /// Room in the window group behind an admission; false: there is none.
    bool growWindow(Pair& pair, std::size_t upTo) {
        if (m_window == 0)
            return true;
        if (lacksCompanions(pair, upTo))
            return false;
        RC_ASSERT(m_cache.grow(pair.table, static_cast<std::int64_t>(upTo), m_now) == 0);
        if (m_compareWithOracle)
            RC_ASSERT(m_oracle.grow(pair.oracle, static_cast<int>(upTo)));
        return true;
    }
    std::size_t windowSlot(const Pair& pair, std::size_t position) const {
        const BlockId block = pair.table.windowBlocks()[position / kBlockSize];
        RC_ASSERT(block.valid());
        return static_cast<std::size_t>(block.value()) * kBlockSize + position % kBlockSize;
    }

    void checkContent(const Pair& pair) const {
        RC_ASSERT(pair.table.tokens() == static_cast<std::int64_t>(pair.tokens.size()));
        const auto blocks = pair.table.blocks();
        std::uint64_t history = historyOf({});
        for (std::size_t position = 0; position < pair.tokens.size(); ++position) {
            history = extend(history, pair.tokens[position]);
            BlockId block = blocks[position / kBlockSize];
            const auto slot = static_cast<int>(position % kBlockSize);
            RC_ASSERT(m_cache.pool().tokens(block)[static_cast<std::size_t>(slot)] == pair.tokens[position]);
            for (const BlockCopy& copy : m_cache.pendingCopies())
                if (copy.to == block) // not copied yet: its content is where the copy will read it
                    block = copy.from;
            RC_ASSERT(m_slots[static_cast<std::size_t>(block.value() * kBlockSize + slot)] == history);
            if (m_window > 0 && position + static_cast<std::size_t>(m_window) > pair.tokens.size())
                RC_ASSERT(m_windowSlots[windowSlot(pair, position)] == history); // the next token sees it
        }
    }

    static std::uint64_t extend(std::uint64_t history, TokenId token) {
        return (history ^ static_cast<std::uint64_t>(token + 1)) * 0x9e3779b97f4a7c15ULL + 1;
    }
    static std::uint64_t historyOf(const Tokens& tokens) {
        std::uint64_t history = 5;
        for (const TokenId token : tokens)
            history = extend(history, token);
        return history;
    }
    std::uint64_t& slotAt(BlockId block, int slot) {
        return m_slots[static_cast<std::size_t>(block.value() * kBlockSize + slot)];
    }

    int m_window; ///< 0 = there is no window group
    bool m_compareWithOracle;
    KvCache m_cache;
    std::unique_ptr<EvictionPolicy> m_policy;
    KvOracle m_oracle;
    std::vector<std::uint64_t> m_slots; ///< what was written to each slot: a fingerprint of the whole history
    std::vector<std::uint64_t> m_windowSlots;
    int m_oracleCached = 0; ///< tokens that the pool alone would have found
    std::vector<Pair> m_tables;
    std::vector<Pin> m_pins;
    Nanos m_now = 0;
};

/// What the runs together went through, so that a test that never evicts or copies cannot pass unnoticed.
struct Seen {
    unsigned long long operations = 0, evictions = 0, copies = 0, deduplicated = 0, collisions = 0;
    unsigned long long windowEvictions = 0, shortened = 0;
    void add(const CacheCounters& counters) {
        evictions += counters.totalEvictions();
        copies += counters.copies;
        deduplicated += counters.deduplicated;
        collisions += counters.collisions;
    }
};

template <class MakeHasher>
bool contentHolds(const char* sentence, int runs, Seen& seen, EvictionKind eviction, MakeHasher&& makeHasher,
                  int window = 0) {
    const bool held = holds(sentence, runs, [&] {
        const std::vector<Operation> list = *operations(kOperationsPerRun);
        World world(eviction, makeHasher(), window);
        for (const Operation& operation : list) {
            world.apply(operation);
            world.check();
            ++seen.operations;
        }
        seen.add(world.counters());
        seen.windowEvictions += world.windowEvictions();
        seen.shortened += world.shortened;
        world.drain();
    });
    qInfo("operations %llu, evictions %llu, copies %llu, deduplicated %llu, collisions %llu", seen.operations,
          seen.evictions, seen.copies, seen.deduplicated, seen.collisions);
    return held;
}

} // namespace

class TestKvProperty : public QObject {
    Q_OBJECT
private slots:
    void theCacheAgreesWithANaiveOne_data() {
        QTest::addColumn<int>("eviction");
        for (int i = 0; i < kEvictionKindCount; ++i)
            QTest::newRow(evictionKindName(static_cast<EvictionKind>(i))) << i;
    }
    void theCacheAgreesWithANaiveOne() {
        QFETCH(int, eviction);
        const int runs = kRuns * (qEnvironmentVariableIntValue("KVSCOPE_LONG") != 0 ? 5 : 1) / (eviction == 0 ? 1 : 3);
        Seen seen;
        QVERIFY(contentHolds("cache = oracle, and tables read their own history", runs, seen,
                             static_cast<EvictionKind>(eviction), [] { return std::unique_ptr<BlockHasher>(); }));
        QVERIFY(seen.operations >= 33000);
        QVERIFY(seen.evictions > 1000 && seen.copies > 500 && seen.deduplicated > 250);
        QVERIFY(seen.collisions == 0);
    }

    /// Two groups: the oracle's ids and order in both, and every table finds its own history in its last window.
    void theWindowGroupAgreesWithANaiveOne_data() {
        QTest::addColumn<int>("window");
        for (const int window : {1, 8, 13, 20})
            QTest::addRow("window %d", window) << window;
    }
    void theWindowGroupAgreesWithANaiveOne() {
        QFETCH(int, window);
        const int runs = kRuns / 10 * (qEnvironmentVariableIntValue("KVSCOPE_LONG") != 0 ? 10 : 1);
        Seen seen;
        QVERIFY(contentHolds(
            "both groups = oracle, and tables read their own history", runs, seen, EvictionKind::Lru,
            [] { return std::unique_ptr<BlockHasher>(); }, window));
        qInfo("evictions from the window group %llu, hits made shorter %llu", seen.windowEvictions, seen.shortened);
        QVERIFY(seen.operations >= 10000 && seen.evictions > 100 && seen.copies == 0);
        QVERIFY(seen.windowEvictions > 100 && (window == 1 || seen.shortened > 2));
        Seen colliding;
        QVERIFY(contentHolds(
            "tables read their own history although all keys are equal", runs, colliding, EvictionKind::Lru,
            [] { return std::make_unique<CollidingHasher>(); }, window));
    }

    void contentIsNeverMixedUpWhenAllKeysCollide() {
        Seen seen;
        QVERIFY(contentHolds("tables read their own history although all keys are equal", kRuns / 4, seen,
                             EvictionKind::Lru, [] { return std::make_unique<CollidingHasher>(); }));
        QVERIFY(seen.collisions > 40);
    }

    void contentIsNeverMixedUpWhenParentsCollide() {
        Seen seen;
        QVERIFY(contentHolds("tables read their own history although keys ignore the parent", kRuns / 4, seen,
                             EvictionKind::Cost, [] { return std::make_unique<ParentBlindHasher>(); }));
        QVERIFY(seen.collisions > 40);
    }
};

QTEST_APPLESS_MAIN(TestKvProperty)
#include "test_kv_property.moc"
