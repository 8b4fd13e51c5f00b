// SPDX-License-Identifier: GPL-3.0-or-later
//
// Random requests, steps, aborted steps, cancels, forks, pins and budgets on a pool of ten blocks, with a model that
// notices every wrong or stale slot, under every eviction policy and both allocators. Each token must be the one that
// its sequence would have got alone; every request ends exactly once; blocks are conserved; it always comes to an end.
#include <QTest>
#include <map>
#include <set>

#include "engine/sched/scheduler.h"
#include "tests/support/kv_harness.h"
#include "tests/support/operations.h"
#include "tests/support/simulated_model.h"

using namespace kvscope;
using namespace kvscope::sched;
using namespace kvscope::test;

namespace {

constexpr int kBlocks = 10;
constexpr int kBlockSize = 8;
constexpr int kOperationsPerRun = 200;
constexpr int kRuns = 500; // 100,000 operations in the default run
constexpr TokenId kVocabulary = 4096;
constexpr int kMostBudget = 60;

/// What the runs together went through, so that a test that never preempts or forks cannot pass unnoticed.
struct Seen {
    unsigned long long ended = 0, preemptions = 0, copies = 0, hits = 0, aborted = 0, evictions = 0, maxPreemptions = 0,
                       refused = 0, windowEvictions = 0, passed = 0, swapsOut = 0, swapsIn = 0, rereads = 0, loaded = 0;
    std::set<EndReason> reasons;
};

class World {
public:
    World(const kv::CacheConfig& cache, SchedulerConfig config, Seen& seen, int hostSlots = 0)
        : m_seen(seen)
        , m_mostTokens(cache.window > 0 ? config.tokenBudget : 40) // the window group is made for steps of so many
        , m_tailSlots(cache.tailSlots)
        , m_host(kBlocks, cache.windowBlocks, cache.tailSlots, hostSlots, kBlockSize)
        , m_cache(withHost(cache, m_host, hostSlots))
        , m_scheduler(m_cache, config)
        , m_model(kBlocks, kBlockSize, kVocabulary, cache.tailSlots, cache.sinks, cache.sinkWindow, &m_host) {
        m_host.watch(m_cache);
    }

    void apply(const Operation& o) {
        switch (o.kind % 16) {
        case 0:
        case 1:
        case 2:
            return submit(o);
        case 3:
            return cancelAny(o);
        case 4:
            return m_scheduler.setTokenBudget(1 + o.a % m_mostTokens);
        case 5:
            if (o.a % 8 == 0)
                m_scheduler.releasePins();
            else if (m_cache.host() != nullptr)
                changeRates(o);
            return;
        case 6:
        case 7:
            return step(true, o);
        default:
            return step(false, o);
        }
    }

    /// No new requests: everything must end within a number of steps that only thrash could exceed.
    void drain() {
        const int longest = m_cache.sight().on() ? 3 * kBlocks * kBlockSize : kBlocks * kBlockSize;
        auto limit = static_cast<std::int64_t>(50 + m_histories.size() * 2 * static_cast<std::size_t>(longest + 60));
        while (!m_scheduler.idle()) {
            RC_ASSERT(limit-- > 0);
            step(false, {});
        }
        collect();
        RC_ASSERT(m_ended.size() == m_histories.size());
        m_scheduler.releasePins();
        for (const auto& [id, tokens] : m_histories)
            m_scheduler.dropRetained(id);
        m_scheduler.checkInvariants();
        RC_ASSERT(m_cache.available() == kBlocks);
        RC_ASSERT(m_cache.freeTailSlots() == m_tailSlots);
        m_seen.copies += m_cache.counters().copies;
        m_seen.evictions += m_cache.counters().totalEvictions();
        m_seen.windowEvictions += m_cache.window() != nullptr ? m_cache.window()->evictions() : 0;
        m_seen.preemptions += m_scheduler.counters().preemptions;
        m_seen.hits += m_scheduler.counters().prefixHitTokens;
        m_seen.refused += m_scheduler.counters().refused;
        RC_ASSERT(m_scheduler.counters().finished == m_ended.size());
        if (m_cache.host() == nullptr)
            return;
        RC_ASSERT(m_cache.host()->held() == 0);
        const SchedulerCounters& counters = m_scheduler.counters();
        RC_ASSERT(counters.swapsIn <= counters.swapsOut);
        RC_ASSERT(counters.swaps == counters.swapsIn);
        RC_ASSERT(m_preemptions.size() == counters.swaps + counters.rereads);
        m_seen.swapsOut += counters.swapsOut;
        m_seen.swapsIn += counters.swapsIn;
        m_seen.rereads += counters.rereads;
        m_seen.loaded += m_cache.host()->counters().hitBlocks;
    }

private:
    static kv::CacheConfig withHost(kv::CacheConfig cache, FakeHost& host, int hostSlots) {
        if (hostSlots > 0)
            cache.host = host.config(hostSlots);
        return cache;
    }

    /// Computing costs far more than moving; nothing; about the same. Moving costs what it takes FakeHost.
    void changeRates(const Operation& o) {
        static constexpr kv::CostRates kRates[] = {{100000, 1000, 1, 1}, {0.001, 0, 1, 1}, {8, 0.125, 1, 1}};
        m_scheduler.setCostRates(kRates[o.b % 3]);
    }

    Tokens promptOf(const Operation& o) const {
        Tokens tokens;
        if (o.c % 3 == 0 && !m_histories.empty()) { // continue what somebody said, up to somewhere
            auto source = m_histories.begin();
            std::advance(source, o.a % m_histories.size());
            tokens = source->second;
            tokens.resize(1 + o.b % tokens.size());
            if (tokens.size() > 60)
                tokens.resize(60);
            tokens.push_back(o.b);
            return tokens;
        }
        tokens = tokenRange(1000 * (o.b % 3), 1 + o.a % 40);
        if (o.a % 37 == 0)
            tokens = tokenRange(7, kBlocks * kBlockSize + o.b % 3 - 1); // about as long as the pool
        if (m_cache.sight().on() && o.a % 7 == 0)
            tokens = tokenRange(7, 2 * kBlocks * kBlockSize); // what its sequences may outgrow
        return tokens;
    }

    void submit(const Operation& o) {
        if (m_scheduler.waiting().size() > 8)
            return;
        SequenceSpec spec;
        spec.request = RequestId(static_cast<std::int64_t>(m_histories.size()));
        spec.owner = OwnerId(o.b % 6);
        spec.tokens = promptOf(o);
        spec.maxNewTokens = 1 + o.c % 30;
        spec.retain = o.c % 7 == 0;
        spec.pinPrompt = o.c % 31 == 0;
        spec.adapter = o.c % 13 == 0 ? 1 : 0;
        if (o.kind % 16 == 2 && !m_histories.empty()) { // n samples, branches: fork from somebody, live or not
            auto source = m_histories.begin();
            std::advance(source, m_histories.size() - 1 - o.a % std::min<std::size_t>(m_histories.size(), 6));
            spec.forkOf = source->first;
            spec.tokens = source->second;
            spec.tokens.resize(1 + o.b % spec.tokens.size());
            spec.tokens.resize(std::min<std::size_t>(spec.tokens.size(), 60));
        }
        Tokens history = spec.tokens;
        const SequenceId id = m_scheduler.submit(std::move(spec), ++m_now);
        RC_ASSERT(m_histories.emplace(id, std::move(history)).second);
        m_scheduler.checkInvariants();
    }

    void cancelAny(const Operation& o) {
        if (m_histories.empty() || o.b % 4 != 0)
            return;
        auto victim = m_histories.begin();
        std::advance(victim, o.a % m_histories.size());
        m_scheduler.cancel(victim->first, ++m_now);
        m_scheduler.cancel(victim->first, m_now);
        RC_ASSERT(m_scheduler.find(victim->first) == nullptr);
    }

    void step(bool aborts, const Operation& o) {
        const std::size_t endedBefore = m_ended.size();
        const bool idleBefore = m_scheduler.idle();
        const StepPlan& plan = m_scheduler.schedule(++m_now);
        m_scheduler.checkInvariants();
        collect();
        // With anything to do, every step computes a token or ends somebody.
        RC_ASSERT(idleBefore || !plan.empty() || m_ended.size() > endedBefore);
        if (plan.empty())
            return;
        RC_ASSERT(plan.tokens <= m_scheduler.tokenBudget());
        for (const Sequence* sequence : m_scheduler.running()) {
            const std::int64_t held = sequence->table.heldBlocks();
            RC_ASSERT(!m_cache.sight().on() || held <= m_cache.sight().mostHeld(kMostBudget));
            m_seen.passed += sequence->table.blocks().size() - static_cast<std::size_t>(held);
        }
        if (o.c % 32 == 1)
            m_scheduler.cancel(plan.items[o.a % plan.items.size()].sequence, m_now);
        if (aborts) {
            ++m_seen.aborted;
            m_model.runAborted(plan, o.b % 3);
            m_scheduler.abandon(++m_now);
        } else {
            complete(plan);
        }
        m_scheduler.checkInvariants();
        collect();
    }

    void complete(const StepPlan& plan) {
        const std::vector<TokenId> tokens = m_model.run(plan);
        std::vector<DrawnToken> drawn;
        for (const StepItem& item : plan.items) {
            Tokens& history = m_histories.at(item.sequence);
            RC_ASSERT(item.to <= static_cast<std::int64_t>(history.size()));
            RC_ASSERT(std::equal(item.tokens.begin(), item.tokens.end(), history.begin() + item.from));
            if (!item.samples)
                continue;
            const TokenId token = tokens[drawn.size()];
            RC_ASSERT(token == m_model.nextToken(history));
            drawn.push_back({token, token % 23 == 0});
            if (!m_scheduler.find(item.sequence)->cancelled)
                history.push_back(token);
        }
        m_scheduler.complete(drawn, ++m_now);
    }

    void collect() {
        for (const Preemption& preemption : m_scheduler.takePreemptions()) {
            RC_ASSERT(preemption.took >= 0);
            RC_ASSERT(preemption.restored >= 0);
            RC_ASSERT(preemption.restored <= preemption.tokens);
            if (preemption.swaps && preemption.estimatedRead > 0) // the rates were known
                RC_ASSERT(preemption.expected == preemption.took);
            m_preemptions.push_back(preemption);
        }
        for (const EndedSequence& ended : m_scheduler.takeEnded()) {
            RC_ASSERT(m_ended.insert(ended.id).second);
            const auto& history = m_histories.at(ended.id);
            RC_ASSERT(ended.promptTokens + ended.generatedTokens == static_cast<std::int64_t>(history.size()));
            RC_ASSERT(ended.usage.swappedBlocks == 0 || m_cache.host() != nullptr);
            const bool read = ended.generatedTokens > 0;
            RC_ASSERT(!read || ended.usage.reusedTokens + ended.usage.computedTokens == ended.promptTokens);
            m_seen.maxPreemptions =
                std::max(m_seen.maxPreemptions, static_cast<unsigned long long>(ended.usage.preemptions));
            m_seen.reasons.insert(ended.reason);
            ++m_seen.ended;
        }
    }

    Seen& m_seen;
    std::int32_t m_mostTokens;
    std::int32_t m_tailSlots;
    FakeHost m_host;
    kv::KvCache m_cache;
    Scheduler m_scheduler;
    SimulatedModel m_model;
    std::map<SequenceId, Tokens> m_histories; ///< prompt and everything drawn
    std::set<SequenceId> m_ended;
    std::vector<Preemption> m_preemptions; ///< that are over
    Nanos m_now = 0;
};

} // namespace

class TestSchedulerProperty : public QObject {
    Q_OBJECT
private slots:
    void everyAnswerIsThatOfASoloRunAndEverythingEnds() {
        Seen seen;
        runAll(kRuns, seen, [] {
            kv::CacheConfig cache = cacheConfig(kBlocks, kBlockSize);
            cache.eviction = static_cast<kv::EvictionKind>(*rc::gen::inRange(0, kv::kEvictionKindCount));
            cache.attentionPerToken = 0.01;
            return cache;
        });
        QVERIFY(seen.preemptions > 300 && seen.copies > 150 && seen.evictions > 1000 && seen.hits > 1000);
        QVERIFY(seen.aborted > 1000 && seen.ended > 3000);
        allReasonsSeen(seen);
    }

    void theSameInExtents() {
        Seen seen;
        runAll(kRuns / 2, seen, [] {
            kv::CacheConfig cache = cacheConfig(kBlocks, kBlockSize);
            cache.allocator = kv::AllocatorKind::Contiguous;
            cache.prefixCaching = false;
            return cache;
        });
        QVERIFY(seen.preemptions == 0 && seen.evictions == 0); // an extent holds all that a sequence can need
        QVERIFY(seen.copies > 30 && seen.hits > 200 && seen.refused > 20);
        QVERIFY(seen.aborted > 500 && seen.ended > 1500);
        allReasonsSeen(seen);
    }

    /// The group is just as large as its formula says, and never short (the cache would throw).
    void theSameWithAWindowGroup() {
        Seen seen;
        runAll(kRuns / 2, seen, [] {
            kv::CacheConfig cache = cacheConfig(kBlocks, kBlockSize);
            cache.window = *rc::gen::inRange(1, 24);
            return cache;
        });
        QVERIFY(seen.windowEvictions > 300 && seen.preemptions > 20 && seen.hits > 300 && seen.copies == 0);
        QVERIFY(seen.aborted > 500 && seen.ended > 1500);
        allReasonsSeen(seen);
    }

    /// Sequences outgrow the pool, and none of them holds more than its sinks, its window and a chunk.
    void theSameWithSinks() {
        Seen seen;
        runAll(kRuns / 2, seen, [] {
            kv::CacheConfig cache = cacheConfig(kBlocks, kBlockSize);
            cache.sinks = *rc::gen::inRange(0, 12);
            cache.sinkWindow = *rc::gen::inRange(2, 30);
            return cache;
        });
        QVERIFY(seen.passed > 10000 && seen.preemptions > 30 && seen.hits > 300);
        QVERIFY(seen.aborted > 500 && seen.ended > 1500);
        for (const EndReason reason :
             {EndReason::Stopped, EndReason::MaxTokens, EndReason::MaxLength, EndReason::TooLong, EndReason::Cancelled})
            QVERIFY2(seen.reasons.count(reason) == 1, endReasonName(reason));
    }

    /// Swapped or read again, by rates that change all the time: the same answers.
    void theSameWithAHostTier() {
        Seen seen;
        runAll(
            kRuns / 2, seen,
            [] {
                kv::CacheConfig cache = cacheConfig(kBlocks, kBlockSize);
                cache.eviction = static_cast<kv::EvictionKind>(*rc::gen::inRange(0, kv::kEvictionKindCount));
                cache.attentionPerToken = 0.01;
                cache.prefixCaching = *rc::gen::inRange(0, 4) != 0;
                cache.window = *rc::gen::element(0, 0, 5, 20);
                return cache;
            },
            true);
        qInfo("swaps out %llu, in %llu, read again %llu, blocks loaded %llu", seen.swapsOut, seen.swapsIn, seen.rereads,
              seen.loaded);
        QVERIFY(seen.swapsOut > 30 && seen.swapsIn > 30 && seen.rereads > 20 && seen.loaded > 100);
        QVERIFY(seen.aborted > 500 && seen.ended > 1500);
        allReasonsSeen(seen);
    }

private:
    static void allReasonsSeen(const Seen& seen) {
        for (const EndReason reason : {EndReason::Stopped, EndReason::MaxTokens, EndReason::MaxLength,
                                       EndReason::PoolFull, EndReason::TooLong, EndReason::Cancelled})
            QVERIFY2(seen.reasons.count(reason) == 1, endReasonName(reason));
    }

    template <class MakeConfig>
    static void runAll(int runs, Seen& seen, MakeConfig&& makeConfig, bool withHost = false) {
        QVERIFY(holds("answers = solo runs, blocks conserved, every request ends once", runs, [&] {
            SchedulerConfig config;
            config.tokenBudget = *rc::gen::inRange(1, kMostBudget);
            config.maxSequences = *rc::gen::inRange(1, 7);
            config.watermark = *rc::gen::element(0.0, 0.01, 0.2);
            config.maxLength = *rc::gen::element(0, 0, 45);
            config.policy =
                *rc::gen::element(SchedulingPolicy::Fcfs, SchedulingPolicy::ShortFirst, SchedulingPolicy::PrefixFirst);
            config.longPrefillThreshold = *rc::gen::element(0, 4, 16);
            config.maxLongPartialPrefills = *rc::gen::inRange(1, 3);
            config.reserve = *rc::gen::element(kv::ContiguousReserve::Request, kv::ContiguousReserve::Request,
                                               kv::ContiguousReserve::Model);
            kv::CacheConfig cache = makeConfig();
            if (cache.window > 0) {
                config.tokenBudget = *rc::gen::inRange(1, 20);
                const int places = cache.window + config.tokenBudget;
                cache.windowBlocks = config.maxSequences * ((places + kBlockSize - 1) / kBlockSize + 1);
            }
            // Blocks that keep their form; a tail slot for each that runs; fewer, so that some have to wait for one.
            cache.tailSlots = *rc::gen::element(0, 0, config.maxSequences, std::max(1, config.maxSequences - 2));
            const std::vector<Operation> list = *operations(kOperationsPerRun);
            World world(cache, config, seen, withHost ? *rc::gen::inRange(1, 60) : 0);
            for (const Operation& operation : list)
                world.apply(operation);
            world.drain();
        }));
        qInfo("ended %llu, preemptions %llu (at most %llu each), copies %llu, evictions %llu, hit tokens %llu, aborted "
              "%llu, refused %llu, from the window group %llu",
              seen.ended, seen.preemptions, seen.maxPreemptions, seen.copies, seen.evictions, seen.hits, seen.aborted,
              seen.refused, seen.windowEvictions);
    }
};

QTEST_APPLESS_MAIN(TestSchedulerProperty)
#include "test_scheduler_property.moc"
