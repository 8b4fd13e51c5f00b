// SPDX-License-Identifier: GPL-3.0-or-later
//
// Random runs of the scheduler, recorded as block logs and replayed: under the recorded options every admission and
// every eviction is the recorded one; under others the run still comes to its end.
#include <QTest>
#include <fstream>
#include <random>

#include "engine/api/block_log.h"
#include "kernels/backend.h"
#include "tests/support/kv_harness.h"
#include "tests/support/simulated_model.h"
#include "tests/support/temp_dir.h"

using namespace kvscope;
using namespace kvscope::api;
using namespace kvscope::test;

namespace {

template <class Value> void require(const Result<Value>& result) {
    if (!result)
        throw std::runtime_error(result.error().message);
}

/// One run of random requests, with cancels, aborted steps, forks, pins and changing budgets, written as a block log.
class RandomRun {
public:
    RandomRun(const std::string& path, unsigned seed) : m_random(seed) {
        kv::CacheConfig cache = cacheConfig(between(10, 24), 8);
        cache.eviction = static_cast<kv::EvictionKind>(seed % kv::kEvictionKindCount);
        cache.attentionPerToken = 0.01;
        if (seed % 5 == 4) {
            cache.allocator = kv::AllocatorKind::Contiguous;
            cache.prefixCaching = false;
        }
        sched::SchedulerConfig config;
        config.tokenBudget = between(4, 60);
        config.maxSequences = between(1, 6);
        if (seed % 5 == 3) {
            config.tokenBudget = 60; // the most that it becomes
            cache.window = between(1, 20);
            cache.windowBlocks = kernels::windowBlocksNeeded(cache.window, config.maxSequences, config.tokenBudget, 8);
        }
        config.maxLength = oneIn(3) ? 60 : 0;
        config.watermark = oneIn(2) ? 0.1 : 0.0;
        config.reserve = kv::ContiguousReserve::Request;
        config.policy = static_cast<sched::SchedulingPolicy>(seed / 4 % 3);
        config.longPrefillThreshold = oneIn(3) ? 12 : 0;
        m_hostSlots = cache.allocator == kv::AllocatorKind::Paged && seed % 2 == 0 ? between(2, 40) : 0;
        m_host = std::make_unique<FakeHost>(cache.numBlocks, cache.windowBlocks, 0, m_hostSlots, cache.blockSize);
        cache.host = m_host->config(m_hostSlots);
        m_cache = std::make_unique<kv::KvCache>(cache);
        m_host->watch(*m_cache);
        m_scheduler = std::make_unique<sched::Scheduler>(*m_cache, config);
        m_model = std::make_unique<SimulatedModel>(cache.numBlocks, cache.blockSize, 4096, 0, 0, 0, m_host.get());
        auto log = BlockLog::create(path, "test");
        require(log);
        m_log = std::move(*log);
        m_log->begin(*m_cache, *m_scheduler, traceOptions(cache, config), "model");
    }

    void run(int operations) {
        for (int i = 0; i < operations; ++i)
            operate();
        while (!m_scheduler->idle())
            step(false);
        hitTokens = m_scheduler->counters().prefixHitTokens;
        evictions = m_cache->counters().totalEvictions();
        preemptions = m_scheduler->counters().preemptions;
        swaps = m_scheduler->counters().swapsOut;
        loaded = m_hostSlots > 0 ? m_cache->host()->counters().hitBlocks : 0;
        m_scheduler.reset();
        require(m_log->finish());
    }

    std::uint64_t hitTokens = 0, evictions = 0, preemptions = 0, swaps = 0, loaded = 0;

private:
    int between(int low, int high) { return std::uniform_int_distribution<int>(low, high)(m_random); }
    bool oneIn(int n) { return between(1, n) == 1; }

    void operate() {
        m_now += between(1, 1000);
        switch (between(0, 11)) {
        case 0:
        case 1:
        case 2:
            return submit();
        case 3:
            if (oneIn(2))
                m_scheduler->cancel(SequenceId(between(1, m_submitted + 1)), m_now);
            return;
        case 4:
            return m_scheduler->setTokenBudget(between(1, 60));
        case 5:
            if (m_hostSlots > 0)
                changeRates();
            if (oneIn(5))
                m_scheduler->releasePins();
            if (oneIn(5))
                m_scheduler->dropRetained(SequenceId(between(1, m_submitted + 1)));
            if (oneIn(8))
                m_scheduler->fail(SequenceId(between(1, m_submitted + 1)), m_now);
            return;
        default:
            return step(oneIn(6));
        }
    }

    void changeRates() {
        const auto rate = [this] { return between(1, 1000) / 7.0; };
        m_scheduler->setCostRates({rate(), rate() / 100, rate() / 10, rate() / 10});
    }

    void submit() {
        if (m_scheduler->waiting().size() > 6)
            return;
        sched::SequenceSpec spec;
        spec.owner = OwnerId(between(1, 5));
        spec.tokens = tokenRange(1000 * between(1, 4), between(1, 50));
        if (oneIn(3))
            spec.tokens.push_back(between(1, 9));
        spec.maxNewTokens = between(1, 25);
        spec.adapter = oneIn(10) ? 1 : 0;
        spec.retain = oneIn(5);
        spec.pinPrompt = oneIn(20);
        if (m_submitted > 0 && oneIn(4))
            spec.forkOf = SequenceId(between(1, m_submitted));
        m_scheduler->submit(std::move(spec), m_now);
        ++m_submitted;
    }

    void step(bool aborts) {
        m_now += 500;
        const sched::StepPlan& plan = m_scheduler->schedule(m_now);
        m_scheduler->takeEnded();
        if (plan.empty())
            return;
        if (oneIn(15))
            m_scheduler->cancel(plan.items.front().sequence, m_now);
        m_now += 300;
        if (aborts) {
            m_model->runAborted(plan, 0);
            m_scheduler->abandon(m_now);
        } else {
            std::vector<sched::DrawnToken> drawn;
            for (const TokenId token : m_model->run(plan))
                drawn.push_back({token, token % 19 == 0});
            m_scheduler->complete(drawn, m_now);
        }
        m_scheduler->takeEnded();
    }

    std::mt19937 m_random;
    std::unique_ptr<BlockLog> m_log;
    int m_hostSlots = 0;
    std::unique_ptr<FakeHost> m_host;
    std::unique_ptr<kv::KvCache> m_cache;
    std::unique_ptr<sched::Scheduler> m_scheduler;
    std::unique_ptr<SimulatedModel> m_model;
    int m_submitted = 0;
    Nanos m_now = 0;
};

} // namespace

class TestTraceReplay : public QObject {
    Q_OBJECT
private slots:
    void theRecordedOptionsGiveTheRecordedRun() {
        std::uint64_t evictions = 0, preemptions = 0, hits = 0, swaps = 0, loaded = 0;
        for (unsigned seed = 0; seed < 60; ++seed) {
            const std::string path = m_dir.file("run.jsonl");
            RandomRun run(path, seed);
            run.run(400);
            const auto recorded = readBlockTrace(path);
            QVERIFY2(recorded.has_value(), recorded ? "" : recorded.error().message.c_str());
            const BlockTrace replayed = replayTrace(*recorded, recorded->options);
            const std::string difference = traceDifference(*recorded, replayed);
            QVERIFY2(difference.empty(), ("run " + std::to_string(seed) + ": " + difference).c_str());
            QCOMPARE(replayed.steps.size(), recorded->steps.size());
            for (const BlockTrace& trace : {*recorded, replayed}) {
                const TraceTotals totals = totalsOf(trace);
                QCOMPARE(totals.hitTokens, run.hitTokens);
                QCOMPARE(totals.preemptions, run.preemptions);
                QCOMPARE(std::uint64_t(trace.evictions.size()), run.evictions);
                QCOMPARE(totals.swaps, run.swaps);
                QCOMPARE(totals.loadedBlocks, run.loaded);
                QCOMPARE(totals.peakBlocks, totalsOf(*recorded).peakBlocks);
            }
            evictions += run.evictions;
            preemptions += run.preemptions;
            hits += run.hitTokens;
            swaps += run.swaps;
            loaded += run.loaded;
        }
        qInfo("evictions %llu, preemptions %llu, hits %llu, swaps %llu, loaded %llu",
              static_cast<unsigned long long>(evictions), static_cast<unsigned long long>(preemptions),
              static_cast<unsigned long long>(hits), static_cast<unsigned long long>(swaps),
              static_cast<unsigned long long>(loaded));
        QVERIFY(evictions > 1000 && preemptions > 100 && hits > 5000 && swaps > 10 && loaded > 50);
    }

    void otherOptionsComeToTheirEnd() {
        for (unsigned seed = 0; seed < 12; ++seed) {
            const std::string path = m_dir.file("other.jsonl");
            RandomRun run(path, seed);
            run.run(300);
            const BlockTrace recorded = readBlockTrace(path).value();
            for (int eviction = 0; eviction < kv::kEvictionKindCount; ++eviction)
                for (const int blocks : {8, 100}) {
                    TraceOptions options = recorded.options;
                    options.eviction = static_cast<kv::EvictionKind>(eviction);
                    options.numBlocks = blocks;
                    options.blockSize = blocks == 8 ? 16 : 8;
                    const TraceTotals totals = totalsOf(replayTrace(recorded, options));
                    QCOMPARE(totals.requests, totalsOf(recorded).requests);
                    if (blocks == 100)
                        QCOMPARE(totals.preemptions, std::uint64_t(0));
                }
            TraceOptions contiguous = recorded.options;
            contiguous.allocator = kv::AllocatorKind::Contiguous;
            const TraceTotals totals = totalsOf(replayTrace(recorded, contiguous));
            QCOMPARE(totals.requests, totalsOf(recorded).requests);
        }
    }

    void aLogThatIsNoneIsRefusedInASentence_data() {
        QTest::addColumn<QByteArray>("text");
        QTest::addColumn<QString>("named");
        const QByteArray header =
            R"({"format":"kvscope-blocks","version":"1.0","options":{"allocator":"paged","contiguous_reserve":"model",)"
            R"("block_size":8,"num_blocks":10,"prefix_caching":true,"eviction":"lru","attention_per_token":0,)"
            R"("max_num_seqs":4,"max_model_len":0,"watermark":0,"scheduling_policy":"fcfs",)"
            R"("long_prefill_token_threshold":0,"max_long_partial_prefills":1,"token_budget":8}})";
        QTest::newRow("empty") << QByteArray() << "empty";
        QTest::newRow("text") << QByteArray("hello\n") << "line 1";
        QTest::newRow("another log") << QByteArray("{\"format\":\"kvscope-log\"}\n") << "begin like one";
        QTest::newRow("newer") << QByteArray(header).replace("1.0", "2.0") << "format 2.0";
        QTest::newRow("policy") << QByteArray(header).replace("lru", "fifo") << "eviction";
        QTest::newRow("block size") << QByteArray(header).replace("\"block_size\":8", "\"block_size\":99")
                                    << "block_size";
        QTest::newRow("no tokens") << header + "\n{\"type\":\"submit\",\"at\":0,\"id\":1,\"owner\":1,\"time\":0,"
                                               "\"max_tokens\":1,\"tokens\":[]}\n{}\n"
                                   << "no tokens";
        QTest::newRow("unknown sequence") << header + "\n{\"type\":\"fail\",\"at\":0,\"id\":1}\n{}\n"
                                          << "line 2";
        QTest::newRow("missing field") << header + "\n{\"type\":\"budget\",\"at\":0}\n{}\n"
                                       << "line 2";
        QTest::newRow("deep") << header + "\n" + QByteArray(100000, '[') + "\n{}\n"
                              << "line 2";
    }
    void aLogThatIsNoneIsRefusedInASentence() {
        QFETCH(QByteArray, text);
        QFETCH(QString, named);
        const std::string path = m_dir.file("bad.jsonl");
        std::ofstream(path, std::ios::binary) << text.toStdString();
        const auto trace = readBlockTrace(path);
        QVERIFY(!trace);
        QVERIFY2(QString::fromStdString(trace.error().message).contains(named), trace.error().message.c_str());
    }

    void whatIsUnknownIsPassedOverAndACutLastLineToo() {
        const std::string path = m_dir.file("cut.jsonl");
        RandomRun(path, 3).run(50);
        const BlockTrace whole = readBlockTrace(path).value();
        std::ofstream(path, std::ios::app) << "{\"type\":\"from the future\"}\n{\"type\":\"ste";
        const BlockTrace cut = readBlockTrace(path).value();
        QCOMPARE(cut.steps.size(), whole.steps.size());
        QVERIFY(traceDifference(whole, cut).empty());
        BlockTrace changed = whole;
        changed.admissions.pop_back();
        QVERIFY(traceDifference(whole, changed).find("not there") != std::string::npos);
    }

private:
    TempDir m_dir;
};

QTEST_APPLESS_MAIN(TestTraceReplay)
#include "test_trace_replay.moc"
