// SPDX-License-Identifier: GPL-3.0-or-later
//
// Random operations on a small cache whose sequences keep sinks and a window, next to simulated slot contents. After
// each operation: every invariant by recount, each table holds what its next token sees, and there its own history; it
// holds no more than the bound says; nothing that the window has touched can be found.
#include <QTest>
#include <memory>

#include "tests/support/kv_harness.h"
#include "tests/support/operations.h"

using namespace kvscope;
using namespace kvscope::kv;
using namespace kvscope::test;

namespace {

constexpr int kBlocks = 14;
constexpr int kBlockSize = 8;
constexpr int kOperationsPerRun = 500;
constexpr int kRuns = 60;
constexpr std::size_t kMostAtOnce = 11; ///< tokens of a step

/// What the runs together went through, so that a test that never passes a block cannot go unnoticed.
struct Seen {
    unsigned long long passed = 0, fellBack = 0, wentOn = 0, hits = 0, evictions = 0, longest = 0, pastWindow = 0;
};

class World {
public:
    World(const CacheConfig& config, Seen& seen)
        : m_seen(seen)
        , m_config(config)
        , m_cache(config)
        , m_slots(kBlocks * kBlockSize, 0) {}

    void apply(const Operation& o) {
        ++m_now;
        switch (o.kind % 8) {
        case 0:
            return admit(o);
        case 5:
            return forkOrTruncate(o);
        case 6:
            if (!m_tables.empty() && o.b % 3 == 0)
                m_tables.erase(m_tables.begin() + o.a % static_cast<int>(m_tables.size()));
            return;
        case 7:
            return pinOrUnpin(o);
        default:
            return append(o);
        }
    }

    void check() const {
        m_cache.checkInvariants();
        for (const Pair& pair : m_tables) {
            const auto blocks = pair.table.blocks();
            std::uint64_t history = kBegin;
            std::int64_t held = 0;
            for (std::size_t at = 0; at < pair.tokens.size(); ++at) {
                history = extend(history, pair.tokens[at]);
                const BlockId block = blocks[at / kBlockSize];
                if (!sees(pair.tokens.size(), at) && !block.valid())
                    continue;
                RC_ASSERT(block.valid());
                BlockId source = block;
                for (const BlockCopy& copy : m_cache.pendingCopies())
                    if (copy.to == source)
                        source = copy.from;
                RC_ASSERT(slotAt(source, at % kBlockSize) == history);
            }
            for (const BlockId block : blocks)
                held += block.valid() ? 1 : 0;
            RC_ASSERT(held == pair.table.heldBlocks());
            RC_ASSERT(held <= m_cache.sight().mostHeld(kMostAtOnce) + 1); // and the copy of a shared one
            // What is published was written before the window cut anything off.
            for (std::size_t i = 0; i < blocks.size(); ++i)
                if (blocks[i].valid() && m_cache.pool().facts(blocks[i]).findable)
                    RC_ASSERT(static_cast<std::int64_t>(i + 1) * kBlockSize <= m_config.sinks + m_config.sinkWindow);
        }
    }

    void drain() {
        m_tables.clear();
        m_pins.clear();
        m_cache.checkInvariants();
        RC_ASSERT(m_cache.available() == kBlocks);
        RC_ASSERT(m_cache.pendingCopies().empty());
        m_seen.evictions += m_cache.counters().totalEvictions();
    }

private:
    struct Pair {
        BlockTable table;
        Tokens tokens;
    };
    static constexpr std::uint64_t kBegin = 5;
    static std::uint64_t extend(std::uint64_t history, TokenId token) {
        return (history ^ static_cast<std::uint64_t>(token + 1)) * 0x9e3779b97f4a7c15ULL + 1;
    }
    std::uint64_t& slotAt(BlockId block, std::size_t slot) {
        return m_slots[static_cast<std::size_t>(block.value()) * kBlockSize + slot];
    }
    const std::uint64_t& slotAt(BlockId block, std::size_t slot) const {
        return m_slots[static_cast<std::size_t>(block.value()) * kBlockSize + slot];
    }
    /// Does the token at `position` see the one at `at`? The definition.
    bool sees(std::size_t position, std::size_t at) const {
        return static_cast<std::int64_t>(at) < m_config.sinks ||
               static_cast<std::int64_t>(at) > static_cast<std::int64_t>(position) - m_config.sinkWindow;
    }
    /// All that the token at `position`, and others of its block, see is in the table.
    bool complete(const Pair& pair, std::size_t position) const {
        const std::size_t first = position / kBlockSize * kBlockSize;
        for (std::size_t at = 0; at < position; ++at)
            if (sees(first, at) && !pair.table.blocks()[at / kBlockSize].valid())
                return false;
        return true;
    }

    void admit(const Operation& o) {
        if (m_tables.size() > 5)
            return;
        Tokens prompt(static_cast<std::size_t>(1 + o.a % 90));
        for (std::size_t i = 0; i < prompt.size(); ++i)
            prompt[i] = static_cast<TokenId>(10 * (o.b % 2) + static_cast<int>(i % 5));
        AdmitRequest request;
        const Pair* source = m_tables.empty() || o.c % 3 != 0 ? nullptr : &m_tables[o.b % m_tables.size()];
        if (source != nullptr && source->tokens.size() > 0) {
            prompt = source->tokens;
            prompt.resize(1 + o.a % prompt.size());
            request.forkFrom = &source->table;
            request.forkTokens = static_cast<std::int64_t>(prompt.size());
            prompt.push_back(77);
        }
        request.tokens = prompt;
        request.owner = OwnerId(o.b % 5);
        request.chunk = static_cast<std::int64_t>(1 + o.c % kMostAtOnce);
        request.explain = true;
        AdmitResult result = m_cache.admit(request, m_now);
        if (!result)
            return;
        m_seen.hits += static_cast<unsigned long long>(result->reusedTokens);
        m_seen.pastWindow += result->cause.kind == MissKind::PastWindow ? 1 : 0;
        RC_ASSERT(result->table.heldBlocks() <= m_cache.sight().mostHeld(kMostAtOnce));
        Pair pair{std::move(result->table), {}};
        pair.tokens.assign(prompt.begin(), prompt.begin() + result->reusedTokens);
        m_tables.push_back(std::move(pair));
        while (m_tables.back().tokens.size() < prompt.size()) {
            const std::size_t from = m_tables.back().tokens.size();
            const std::size_t count = std::min(prompt.size() - from, static_cast<std::size_t>(request.chunk));
            if (!compute(m_tables.back(), Tokens(prompt.begin() + static_cast<std::ptrdiff_t>(from),
                                                 prompt.begin() + static_cast<std::ptrdiff_t>(from + count))))
                return;
            check();
        }
    }

    void append(const Operation& o) {
        if (m_tables.empty())
            return;
        Pair& pair = m_tables[o.a % m_tables.size()];
        Tokens tokens(1 + o.b % kMostAtOnce);
        for (std::size_t i = 0; i < tokens.size(); ++i)
            tokens[i] = static_cast<TokenId>((pair.tokens.size() + i) % 5 + (o.c % 2) * 10);
        compute(pair, tokens);
    }

    /// One step of one sequence; false: there was no room.
    bool compute(Pair& pair, const Tokens& tokens) {
        if (!m_cache.grow(pair.table, static_cast<std::int64_t>(pair.tokens.size() + tokens.size()), m_now))
            return false;
        std::vector<std::uint64_t> read;
        for (const BlockCopy& copy : m_cache.pendingCopies())
            for (int slot = 0; slot < copy.slotCount; ++slot)
                read.push_back(slotAt(copy.from, static_cast<std::size_t>(slot)));
        auto next = read.begin();
        for (const BlockCopy& copy : m_cache.pendingCopies())
            for (int slot = 0; slot < copy.slotCount; ++slot)
                slotAt(copy.to, static_cast<std::size_t>(slot)) = *next++;
        m_cache.commitCopies();
        std::uint64_t history = kBegin;
        for (const TokenId token : pair.tokens)
            history = extend(history, token);
        for (const TokenId token : tokens) {
            history = extend(history, token);
            slotAt(pair.table.blocks()[pair.tokens.size() / kBlockSize], pair.tokens.size() % kBlockSize) = history;
            pair.tokens.push_back(token);
        }
        m_seen.longest = std::max<unsigned long long>(m_seen.longest, pair.tokens.size());
        const std::int32_t before = pair.table.heldBlocks();
        m_cache.advance(pair.table, tokens, m_now);
        m_seen.passed += static_cast<unsigned long long>(before - pair.table.heldBlocks());
        return true;
    }

    /// The cut or the fork goes on where it was asked for, if all is there, else at the end of the sinks.
    void forkOrTruncate(const Operation& o) {
        if (m_tables.empty())
            return;
        Pair& pair = m_tables[o.a % m_tables.size()];
        const std::size_t asked = pair.tokens.size() - o.b % std::min<std::size_t>(pair.tokens.size() + 1, 30);
        const auto sinkEnd = static_cast<std::size_t>(m_cache.sight().sinkBlocks()) * kBlockSize;
        const bool whole = complete(pair, asked);
        std::size_t expected = whole ? asked : std::min(asked, sinkEnd);
        ++(whole ? m_seen.wentOn : m_seen.fellBack);
        if (o.c % 2 == 0) {
            const std::size_t inBlock = expected % kBlockSize;
            if (inBlock != 0 && expected / kBlockSize < pair.tokens.size() / kBlockSize)
                if (m_cache.pool().facts(pair.table.blocks()[expected / kBlockSize]).sealed)
                    expected -= m_config.tailSlots > 0 ? inBlock : 0;
            m_cache.truncate(pair.table, static_cast<std::int64_t>(asked));
            pair.tokens.resize(expected);
            RC_ASSERT(pair.table.tokens() == static_cast<std::int64_t>(expected));
            return;
        }
        if (m_tables.size() > 5)
            return;
        expected -= m_config.tailSlots > 0 ? expected % kBlockSize : 0;
        Pair forked{m_cache.fork(pair.table, static_cast<std::int64_t>(asked), OwnerId(o.c % 5), m_now), {}};
        RC_ASSERT(forked.table.tokens() == static_cast<std::int64_t>(expected));
        forked.tokens.assign(pair.tokens.begin(), pair.tokens.begin() + static_cast<std::ptrdiff_t>(expected));
        m_tables.push_back(std::move(forked));
    }

    void pinOrUnpin(const Operation& o) {
        if (!m_pins.empty() && o.c % 2 == 0) {
            m_pins.erase(m_pins.begin() + o.a % static_cast<int>(m_pins.size()));
            return;
        }
        if (m_tables.empty() || m_pins.size() > 1)
            return;
        const Pair& pair = m_tables[o.a % m_tables.size()];
        m_pins.push_back(m_cache.pin(pair.table, static_cast<std::int32_t>(pair.tokens.size() / kBlockSize)));
        for (const BlockId block : m_pins.back().blocks())
            RC_ASSERT(block.valid());
    }

    Seen& m_seen;
    CacheConfig m_config;
    KvCache m_cache;
    std::vector<std::uint64_t> m_slots; ///< what was written to each slot: a fingerprint of the whole history
    std::vector<Pair> m_tables;
    std::vector<PinnedBlocks> m_pins;
    Nanos m_now = 0;
};

} // namespace

class TestSinkProperty : public QObject {
    Q_OBJECT
private slots:
    void tablesHoldWhatTheirNextTokenSees() {
        Seen seen;
        const int runs = kRuns * (qEnvironmentVariableIntValue("KVSCOPE_LONG") != 0 ? 20 : 1);
        QVERIFY(holds("tables with holes", runs, [&] {
            CacheConfig config = cacheConfig(kBlocks, kBlockSize);
            config.sinks = *rc::gen::inRange<std::int64_t>(0, 20);
            config.sinkWindow = *rc::gen::inRange<std::int64_t>(2, 40);
            config.tailSlots = *rc::gen::element(0, 8);
            config.eviction = static_cast<EvictionKind>(*rc::gen::inRange(0, kEvictionKindCount));
            World world(config, seen);
            for (const Operation& operation : *operations(kOperationsPerRun)) {
                world.apply(operation);
                world.check();
            }
            world.drain();
        }));
        qInfo("passed %llu, fell back %llu, went on %llu, hit tokens %llu, evictions %llu, longest %llu, past the "
              "window %llu",
              seen.passed, seen.fellBack, seen.wentOn, seen.hits, seen.evictions, seen.longest, seen.pastWindow);
        QVERIFY(seen.passed > 2000 && seen.fellBack > 200 && seen.wentOn > 200 && seen.hits > 500);
        QVERIFY(seen.evictions > 100 && seen.pastWindow > 50);
        QVERIFY(seen.longest > kBlocks * kBlockSize + kBlocks * kBlockSize / 2); // more than the pool holds
    }
};

QTEST_APPLESS_MAIN(TestSinkProperty)
#include "test_sink_property.moc"
