// SPDX-License-Identifier: GPL-3.0-or-later
//
// Random operations on a pool of ten blocks with a host tier of a few slots below it, swaps included, with a mover that
// keeps what it is given. Whatever a table reads, from wherever it came, is the history of that very table; an
// admission never reuses more than naive sets of what lies in pool and tier allow, and nearly always as much.
#include <QTest>
#include <map>
#include <set>

#include "tests/support/fake_host.h"
#include "tests/support/kv_harness.h"
#include "tests/support/operations.h"

using namespace kvscope;
using namespace kvscope::kv;
using namespace kvscope::test;

namespace {

constexpr int kBlocks = 10;
constexpr int kBlockSize = 8;
constexpr int kWindowBlocks = 9;
constexpr int kTails = 6;
constexpr int kOperationsPerRun = 500;
constexpr int kRuns = 60;

struct Form {
    int hostSlots = 8;
    int window = 0;
    bool tails = false;
    bool prefixCaching = true;
    EvictionKind eviction = EvictionKind::Lru;
};

struct Seen {
    unsigned long long operations = 0, loaded = 0, swapsOut = 0, swapsIn = 0, partial = 0, hostEvictions = 0,
                       companions = 0, declined = 0, asNaive = 0, lessThanNaive = 0, refused = 0, copies = 0;
};

CacheConfig configOf(const Form& form, FakeHost& host) {
    CacheConfig config = cacheConfig(kBlocks, kBlockSize);
    config.prefixCaching = form.prefixCaching;
    config.eviction = form.eviction;
    config.attentionPerToken = 0.01;
    config.window = form.window;
    config.windowBlocks = form.window > 0 ? kWindowBlocks : 0;
    config.tailSlots = form.tails ? kTails : 0;
    config.host = host.config(form.hostSlots);
    return config;
}

/// Prompts with many common beginnings.
Tokens promptOf(const Operation& o) {
    Tokens tokens(static_cast<std::size_t>(1 + o.a % 44));
    for (std::size_t i = 0; i < tokens.size(); ++i)
        tokens[i] = static_cast<TokenId>(10 * (o.b % 4) + static_cast<int>(i % 5));
    if (o.c % 4 == 0)
        tokens[o.c % tokens.size()] = 99;
    return tokens;
}

class World {
public:
    World(const Form& form, std::unique_ptr<BlockHasher> hasher, Seen& seen)
        : m_form(form)
        , m_collides(hasher != nullptr)
        , m_seen(seen)
        , m_host(kBlocks, form.window > 0 ? kWindowBlocks : 0, form.tails ? kTails : 0, form.hostSlots, kBlockSize)
        , m_cache(configOf(form, m_host), std::move(hasher)) {
        m_host.watch(m_cache);
    }

    void apply(const Operation& o) {
        ++m_now;
        ++m_seen.operations;
        switch (o.kind % 10) {
        case 0:
        case 1:
        case 2:
            return admit(o);
        case 3:
        case 4:
            return append(o);
        case 5:
            return forkOrTruncate(o);
        case 6:
            return release(o);
        case 7:
            return swapOut(o);
        case 8:
            return swapIn(o);
        default:
            return changeRates(o);
        }
    }

    void check() {
        m_cache.checkInvariants();
        RC_ASSERT(m_cache.host()->used() <= m_form.hostSlots);
        for (Pair& pair : m_tables)
            checkContent(pair);
        for (std::int32_t slot = 0; slot < m_form.hostSlots; ++slot)
            if (m_cache.host()->findable(slot)) {
                const Tokens& history = m_histories.at(m_host.hostBlock(slot).back());
                const auto tokens = m_cache.host()->tokens(slot);
                RC_ASSERT(std::equal(tokens.begin(), tokens.end(), history.end() - kBlockSize));
            }
    }

    void drain() {
        m_tables.clear();
        RC_ASSERT(m_cache.available() == kBlocks);
        if (m_form.window > 0)
            RC_ASSERT(m_cache.window()->available() == kWindowBlocks);
        m_swapped.clear();
        m_cache.checkInvariants();
        RC_ASSERT(m_cache.host()->held() == 0);
        const HostCounters& counters = m_cache.host()->counters();
        m_seen.loaded += counters.hitBlocks;
        m_seen.hostEvictions += counters.evictions;
        m_seen.declined += counters.declinedBlocks;
        m_seen.refused += counters.refused;
        m_seen.copies += m_cache.counters().copies;
    }

private:
    struct Pair {
        BlockTable table;
        Tokens tokens;
    };
    struct Swapped {
        SwappedTable held;
        Tokens tokens;
    };

    void admit(const Operation& o) {
        if (!placeFree())
            return;
        const Tokens prompt = promptOf(o);
        AdmitRequest request;
        request.tokens = prompt;
        request.owner = OwnerId(o.b % 5);
        request.keepBack = o.c % 3;
        request.explain = o.c % 2 == 0;
        const auto expected = m_cache.reusable(prompt);
        const auto onDevice = m_cache.lookup(prompt);
        const auto naive = naiveBlocks(prompt) * kBlockSize;
        AdmitResult result = m_cache.admit(request, m_now);
        if (!result)
            return;
        RC_ASSERT(result->reusedTokens == expected);
        RC_ASSERT(m_form.window > 0 || result->loadedBlocks <= (expected - onDevice) / kBlockSize);
        RC_ASSERT(expected >= onDevice && expected <= naive);
        if (m_cache.costRates() == CostRates{} && m_form.window == 0)
            ++(expected == naive ? m_seen.asNaive : m_seen.lessThanNaive);
        Pair pair{std::move(result->table), Tokens(prompt.begin(), prompt.begin() + result->reusedTokens)};
        m_tables.push_back(std::move(pair));
        if (o.c % 5 != 0)
            grow(m_tables.back(),
                 Tokens(prompt.begin() + static_cast<std::ptrdiff_t>(m_tables.back().tokens.size()), prompt.end()));
    }

    void append(const Operation& o) {
        if (m_tables.empty())
            return;
        Pair& pair = m_tables[o.a % m_tables.size()];
        Tokens tokens(static_cast<std::size_t>(1 + o.b % 11));
        for (std::size_t i = 0; i < tokens.size(); ++i)
            tokens[i] = static_cast<TokenId>((pair.tokens.size() + i) % 5 + (o.c % 2) * 10);
        grow(pair, tokens, o.c % 4 == 0);
    }

    /// Room, then a step of one sequence in pieces that end at borders, as tails want it. `aborts`: room only.
    void grow(Pair& pair, Tokens tokens, bool aborts = false) {
        while (!tokens.empty()) {
            const std::size_t inside = pair.tokens.size() % kBlockSize;
            const auto count = std::min<std::size_t>(tokens.size(), inside == 0 ? kBlockSize : kBlockSize - inside);
            const std::size_t upTo = pair.tokens.size() + count;
            if (lacksCompanions(pair, upTo) ||
                !m_cache.grow(pair.table, static_cast<std::int64_t>(upTo), m_now).has_value() || aborts)
                return;
            compute(pair, {tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(count)});
            tokens.erase(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(count));
        }
    }

    void compute(Pair& pair, const Tokens& tokens) {
        for (const BlockCopy& copy : m_cache.pendingCopies())
            std::copy_n(m_host.block(copy.from).begin(), copy.slotCount, m_host.block(copy.to).begin());
        m_cache.commitCopies();
        const BlockId block = pair.table.blocks()[pair.tokens.size() / kBlockSize];
        const auto open = m_form.tails ? m_host.tail(pair.table.tailSlot()) : m_host.block(block);
        for (const TokenId token : tokens) {
            const std::size_t slot = pair.tokens.size() % kBlockSize;
            pair.tokens.push_back(token);
            open[slot] = fingerprint(pair.tokens);
            if (m_form.window > 0)
                m_host.windowBlock(pair.table.windowBlocks()[(pair.tokens.size() - 1) / kBlockSize])[slot] = open[slot];
        }
        if (m_form.tails && pair.tokens.size() % kBlockSize == 0)
            std::copy(open.begin(), open.end(), m_host.block(block).begin());
        m_cache.advance(pair.table, tokens, m_now);
    }

    void forkOrTruncate(const Operation& o) {
        if (m_tables.empty())
            return;
        Pair& pair = m_tables[o.a % m_tables.size()];
        const auto tokens = static_cast<std::int64_t>(o.b % (pair.tokens.size() + 1));
        if (o.c % 2 == 0) {
            m_cache.truncate(pair.table, tokens);
            pair.tokens.resize(static_cast<std::size_t>(pair.table.tokens()));
            return;
        }
        if (m_tables.size() >= 8 || (m_form.tails && m_tables.size() >= kTails))
            return;
        Pair forked{m_cache.fork(pair.table, tokens, OwnerId(o.c % 5), m_now), {}};
        forked.tokens.assign(pair.tokens.begin(), pair.tokens.begin() + forked.table.tokens());
        m_tables.push_back(std::move(forked));
    }

    void release(const Operation& o) {
        if (!m_tables.empty())
            m_tables.erase(m_tables.begin() + o.a % static_cast<int>(m_tables.size()));
    }

    /// A preemption: what is estimated possible works.
    void swapOut(const Operation& o) {
        if (m_tables.empty() || m_swapped.size() > 4)
            return;
        const auto at = m_tables.begin() + o.a % static_cast<int>(m_tables.size());
        if (at->table.tokens() == 0)
            return;
        const SwapEstimate estimate = m_cache.estimateSwap(at->table);
        if (estimate.possible) {
            SwappedTable held = m_cache.swapOut(at->table);
            RC_ASSERT(held.tokens() == at->table.tokens());
            m_seen.partial += held.tokens() % kBlockSize != 0 ? 1 : 0;
            ++m_seen.swapsOut;
            m_swapped.push_back({std::move(held), at->tokens});
        }
        m_tables.erase(at);
    }

    void swapIn(const Operation& o) {
        if (m_swapped.empty() || !placeFree())
            return;
        const auto at = m_swapped.begin() + o.a % static_cast<int>(m_swapped.size());
        if (o.b % 8 == 0) { // it was cancelled
            m_swapped.erase(at);
            return;
        }
        Tokens tokens = at->tokens;
        tokens.push_back(7);
        AdmitRequest request;
        request.tokens = tokens;
        request.owner = OwnerId(1);
        request.swapped = &at->held;
        if (o.c % 3 == 0 && !m_tables.empty()) {
            const Pair& source = m_tables[o.c % m_tables.size()];
            const auto length = static_cast<std::ptrdiff_t>(std::min(tokens.size(), source.tokens.size()));
            request.forkFrom = &source.table;
            request.forkTokens =
                std::mismatch(tokens.begin(), tokens.begin() + length, source.tokens.begin()).first - tokens.begin();
        }
        AdmitResult result = m_cache.admit(request, m_now);
        if (!result)
            return;
        RC_ASSERT(result->reusedTokens >= at->held.tokens());
        ++m_seen.swapsIn;
        tokens.resize(static_cast<std::size_t>(result->reusedTokens));
        m_tables.push_back({std::move(result->table), std::move(tokens)});
        m_swapped.erase(at);
    }

    /// Nothing known; moving for nothing; computing for nothing.
    void changeRates(const Operation& o) {
        static constexpr CostRates kRates[] = {{}, {100, 1, 0.001, 0.001}, {0.001, 0, 100, 100}};
        m_cache.setCostRates(kRates[o.a % 3]);
    }

    /// Leading blocks of a prompt whose whole prefix lies in the pool, findable, or in the tier.
    int naiveBlocks(const Tokens& prompt) {
        std::set<std::uint64_t> there;
        for (std::int32_t i = 0; i < kBlocks; ++i)
            if (m_cache.pool().facts(BlockId(i)).findable)
                there.insert(m_host.block(BlockId(i)).back());
        for (std::int32_t slot = 0; slot < m_form.hostSlots; ++slot)
            if (m_cache.host()->findable(slot))
                there.insert(m_host.hostBlock(slot).back());
        int blocks = 0;
        while ((blocks + 1) * kBlockSize < static_cast<int>(prompt.size()) &&
               there.count(fingerprint({prompt.begin(), prompt.begin() + (blocks + 1) * kBlockSize})) == 1)
            ++blocks;
        return blocks;
    }

    /// The scheduler's sizes see to it that a window finds room; here the operation is left out.
    bool placeFree() const {
        if (m_tables.size() >= 8 || (m_form.tails && m_tables.size() >= kTails))
            return false;
        return m_form.window == 0 || m_cache.window()->available() > (m_form.window + kBlockSize - 1) / kBlockSize;
    }
    bool lacksCompanions(const Pair& pair, std::size_t upTo) const {
        const auto have = pair.table.windowBlocks().size(), wanted = (upTo + kBlockSize - 1) / kBlockSize;
        return m_form.window > 0 && static_cast<int>(wanted - std::min(have, wanted)) > m_cache.window()->available();
    }

    void checkContent(Pair& pair) {
        RC_ASSERT(pair.table.tokens() == static_cast<std::int64_t>(pair.tokens.size()));
        for (std::size_t position = 0; position < pair.tokens.size(); ++position) {
            const std::uint64_t history =
                fingerprint({pair.tokens.begin(), pair.tokens.begin() + static_cast<std::ptrdiff_t>(position) + 1});
            const std::size_t index = position / kBlockSize, slot = position % kBlockSize;
            BlockId block = pair.table.blocks()[index];
            RC_ASSERT(m_cache.pool().tokens(block)[slot] == pair.tokens[position]);
            for (const BlockCopy& copy : m_cache.pendingCopies())
                if (copy.to == block)
                    block = copy.from;
            const bool open = m_form.tails && index == pair.tokens.size() / kBlockSize;
            RC_ASSERT((open ? m_host.tail(pair.table.tailSlot()) : m_host.block(block))[slot] == history);
            if (m_form.window > 0 && position + static_cast<std::size_t>(m_form.window) > pair.tokens.size()) {
                const BlockId companion = pair.table.windowBlocks()[index];
                RC_ASSERT(companion.valid());
                RC_ASSERT(m_host.windowBlock(companion)[slot] == history);
            }
        }
    }

    std::uint64_t fingerprint(const Tokens& tokens) {
        std::uint64_t history = 5;
        for (const TokenId token : tokens)
            history = (history ^ static_cast<std::uint64_t>(token + 1)) * 0x9e3779b97f4a7c15ULL + 1;
        m_histories.emplace(history, tokens);
        return history;
    }

    Form m_form;
    bool m_collides;
    Seen& m_seen;
    std::map<std::uint64_t, Tokens> m_histories; ///< by fingerprint
    FakeHost m_host;
    KvCache m_cache;
    std::vector<Pair> m_tables;
    std::vector<Swapped> m_swapped;
    Nanos m_now = 0;
};

template <class MakeForm, class MakeHasher>
bool contentHolds(int runs, Seen& seen, MakeForm&& makeForm, MakeHasher&& makeHasher) {
    const bool held = holds("tables read their own history, wherever it came from", runs, [&] {
        const Form form = makeForm();
        const std::vector<Operation> list = *operations(kOperationsPerRun);
        World world(form, makeHasher(), seen);
        for (const Operation& operation : list) {
            world.apply(operation);
            world.check();
        }
        world.drain();
    });
    qInfo("operations %llu, blocks loaded %llu, swaps out %llu (%llu inside a block), in %llu, evicted from the tier "
          "%llu, declined %llu, refused %llu, copies %llu, as much as naive %llu, less %llu",
          seen.operations, seen.loaded, seen.swapsOut, seen.partial, seen.swapsIn, seen.hostEvictions, seen.declined,
          seen.refused, seen.copies, seen.asNaive, seen.lessThanNaive);
    return held;
}

int runs(int part) {
    return kRuns / part * (qEnvironmentVariableIntValue("KVSCOPE_LONG") != 0 ? 20 : 1);
}

Form anyForm() {
    Form form;
    form.hostSlots = *rc::gen::inRange(1, 24);
    form.eviction = static_cast<EvictionKind>(*rc::gen::inRange(0, kEvictionKindCount));
    form.prefixCaching = *rc::gen::inRange(0, 4) != 0;
    return form;
}

const auto kRealKeys = [] { return std::unique_ptr<BlockHasher>(); };

} // namespace

class TestHostProperty : public QObject {
    Q_OBJECT
private slots:
    void whatIsFoundIsWhatWasComputed() {
        Seen seen;
        QVERIFY(contentHolds(runs(1), seen, anyForm, kRealKeys));
        QVERIFY(seen.operations >= 30000 && seen.loaded > 500 && seen.swapsOut > 200 && seen.swapsIn > 100);
        QVERIFY(seen.partial > 100 && seen.hostEvictions > 500 && seen.declined > 10 && seen.copies > 50);
        QVERIFY(seen.asNaive > 20 * seen.lessThanNaive);
    }

    void withTails() {
        Seen seen;
        QVERIFY(contentHolds(
            runs(2), seen,
            [] {
                Form form = anyForm();
                form.tails = true;
                return form;
            },
            kRealKeys));
        QVERIFY(seen.loaded > 200 && seen.swapsIn > 50 && seen.partial > 50);
    }

    void withAWindowGroup() {
        Seen seen;
        QVERIFY(contentHolds(
            runs(2), seen,
            [] {
                Form form = anyForm();
                form.window = *rc::gen::inRange(1, 24);
                form.tails = *rc::gen::arbitrary<bool>();
                return form;
            },
            kRealKeys));
        QVERIFY(seen.loaded > 100 && seen.swapsIn > 50 && seen.partial > 50);
    }

    void contentIsNeverMixedUpWhenKeysCollide() {
        Seen all, parents;
        QVERIFY(contentHolds(runs(4), all, anyForm, [] { return std::make_unique<CollidingHasher>(); }));
        QVERIFY(contentHolds(runs(4), parents, anyForm, [] { return std::make_unique<ParentBlindHasher>(); }));
        QVERIFY(all.swapsIn > 20 && parents.loaded > 20);
    }
};

QTEST_APPLESS_MAIN(TestHostProperty)
#include "test_host_property.moc"
