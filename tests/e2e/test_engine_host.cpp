// SPDX-License-Identifier: GPL-3.0-or-later
//
// The host tier in the whole engine: answers are the same to the last bit, whether a preempted sequence was swapped or
// read again, in every form of the cache; receipts, counters and events say what happened; memory is set aside before
// it is taken; a recorded run with a tier is replayed exactly.
#include <QTest>

#include "engine/api/block_log.h"
#include "tests/support/exactness.h"
#include "tests/support/slow_backend.h"
#include "tests/support/temp_dir.h"

using namespace kvscope;
using namespace kvscope::test;

namespace {

constexpr std::int64_t kTight = 21; ///< blocks: the longest request fits, two do not

/// One that cannot move anything.
class NoMoves final : public kernels::testing::ForwardingBackend {
public:
    using ForwardingBackend::ForwardingBackend;
    bool movesKv() const override { return false; }
};

api::EngineConfig configOf(const char* model, const char* form = "f16") {
    api::EngineConfig c = EngineHarness::config(std::string(KVSCOPE_TEST_DATA) + "/models/" + model + ".gguf");
    c.kvFormat = *kernels::kvFormatByName(form);
    return c;
}

api::EngineConfig tight(api::EngineConfig c, std::uint64_t hostBytes) {
    c.numBlocks = kTight;
    c.watermark = 0;
    c.hostCacheBytes = hostBytes;
    return c;
}

std::vector<api::Request> eightRequests() {
    return exactnessRequests(exactnessPrompts(320, 300), 20);
}

std::vector<api::Answer> runTogether(EngineHarness& harness, const std::vector<api::Request>& requests) {
    for (const api::Request& request : requests)
        harness.submit(request);
    harness.finish();
    std::vector<api::Answer> answers;
    for (const api::Request& request : requests)
        answers.push_back(harness.answers.at(request.id));
    return answers;
}

/// The sentence of a load that fails.
std::string refusal(const api::EngineConfig& config, EngineHarness& harness) {
    try {
        harness.load(config);
    } catch (const std::runtime_error& error) {
        return error.what();
    }
    return {};
}

bool names(const std::string& sentence, const char* word) {
    return sentence.find(word) != std::string::npos;
}

} // namespace

class TestEngineHost : public QObject {
    Q_OBJECT
private slots:
    void swappedOrReadAgainTheBitsAreTheSame_data() {
        QTest::addColumn<QByteArray>("model");
        QTest::addColumn<QByteArray>("form");
        for (const char* model : {"llama-q8_0", "gemma3-q8_0"})
            for (const char* form : {"f16", "int8", "k8v4"})
                QTest::addRow("%s %s", model, form) << QByteArray(model) << QByteArray(form);
    }
    void swappedOrReadAgainTheBitsAreTheSame() {
        QFETCH(QByteArray, model);
        QFETCH(QByteArray, form);
        const api::EngineConfig base = configOf(model.constData(), form.constData());
        const auto requests = eightRequests();
        EngineHarness roomy, swapping, reading;
        roomy.load(base);
        swapping.makeBackend = slowBackend(kSlowSteps);
        swapping.load(tight(base, kHostBytes));
        reading.makeBackend = slowBackend(kSlowMoves);
        reading.load(tight(base, kHostBytes));
        const auto expected = runTogether(roomy, requests), swapped = runTogether(swapping, requests),
                   readAgain = runTogether(reading, requests);
        for (std::size_t i = 0; i < requests.size(); ++i) {
            QCOMPARE(firstDifference(expected[i], swapped[i]), std::string());
            QCOMPARE(firstDifference(expected[i], readAgain[i]), std::string());
        }
        QVERIFY(swapping.engine->sample().totalSwapsIn > 0);
        const api::EngineStats stats = reading.engine->stats();
        QVERIFY(stats.rereads.count > 0 && stats.rereads.took > 0);
        QCOMPARE(stats.swaps.count, std::uint64_t(0));
    }

    /// Nothing is published then: a swap is all that keeps what was computed.
    void swapsWithoutAPrefixCache() {
        std::vector<std::vector<TokenId>> prompts;
        for (int i = 0; i < 4; ++i)
            prompts.emplace_back(60, 11 + i);
        const auto requests = exactnessRequests(prompts, 60);
        for (const char* form : {"f16", "k8v4"}) {
            api::EngineConfig config = configOf("llama-q8_0", form);
            config.prefixCaching = false;
            EngineHarness roomy, swapping;
            roomy.load(config);
            swapping.load(tight(config, kHostBytes));
            const auto expected = runTogether(roomy, requests), swapped = runTogether(swapping, requests);
            for (std::size_t i = 0; i < requests.size(); ++i)
                QCOMPARE(firstDifference(expected[i], swapped[i]), std::string());
            QVERIFY(swapping.engine->sample().totalSwapsIn > 0);
            std::int64_t readAgain = 0;
            for (const api::Answer& answer : swapped)
                readAgain += answer.cache.recomputedTokens;
            QVERIFY(readAgain == 0 || swapping.engine->stats().rereads.count > 0);
        }
    }

    void countersReceiptsAndEventsAgree() {
        EngineHarness harness;
        harness.makeBackend = slowBackend(kSlowSteps);
        harness.load(tight(configOf("llama-q8_0"), kHostBytes));
        const auto answers = runTogether(harness, eightRequests());
        const metrics::StepSample s = harness.engine->sample();
        const api::EngineStats stats = harness.engine->stats();
        std::uint64_t swapped = 0, loaded = 0, preemptions = 0;
        for (const api::Answer& answer : answers) {
            swapped += static_cast<std::uint64_t>(answer.cache.swappedBlocks);
            loaded += static_cast<std::uint64_t>(answer.cache.loadedBlocks);
            preemptions += static_cast<std::uint64_t>(answer.cache.preemptions);
        }
        QVERIFY((s.presence & metrics::kHasHostTier) != 0);
        QVERIFY(s.totalSwapsOut > 0);
        QCOMPARE(s.totalSwappedBlocks, swapped);
        QCOMPARE(s.totalHostHitBlocks, loaded);
        QCOMPARE(s.totalPreemptions, preemptions);
        QCOMPARE(s.totalSwapsIn, s.totalSwapsOut); // nobody was cancelled
        QCOMPARE(s.hostHeldBlocks, 0u);
        QVERIFY(s.hostUsedBlocks > 0 && s.hostUsedBlocks <= s.hostBlocks);
        QVERIFY(s.hostBytes > 0 && s.hostBytes <= kHostBytes);
        QCOMPARE(s.hostBytes, harness.engine->model().hostBytes);
        QCOMPARE(s.totalStoredBytes % s.bytesPerBlock, std::uint64_t(0));
        QVERIFY(s.totalStore > 0 && s.totalLoad > 0);
        const auto events = harness.eventsOf<api::PreemptionEvent>();
        QCOMPARE(events.size(), std::size_t(stats.swaps.count + stats.rereads.count));
        QVERIFY(!events.empty());
        for (const api::PreemptionEvent& event : events)
            QVERIFY(event.tokens > 0 && event.restored <= event.tokens && (!event.swapped || event.blocks > 0) &&
                    (event.restored == 0 || event.tookMs > 0));
    }

    void withoutATierNothingIsSaidOfOne() {
        EngineHarness harness;
        harness.load(tight(configOf("llama-q8_0"), 0));
        runTogether(harness, eightRequests());
        QVERIFY((harness.engine->sample().presence & metrics::kHasHostTier) == 0);
        QVERIFY(harness.eventsOf<api::PreemptionEvent>().empty());
        QCOMPARE(harness.engine->model().hostBlocks, 0);
    }

    /// A chat that was pushed out of the pool comes back from the tier, or, where that is slower, is told to be there.
    void aPrefixComesBackFromTheTierOrTheReceiptSaysWhyNot_data() {
        QTest::addColumn<QByteArray>("model");
        QTest::addColumn<QByteArray>("form");
        QTest::addColumn<bool>("slow");
        for (const char* model : {"llama-q8_0", "gemma3-q8_0"}) // the second with companions that are still needed
            for (const char* form : {"f16", "k8v4"})
                for (const bool slow : {false, true})
                    QTest::addRow("%s, %s%s", model, form, slow ? ", slow" : "")
                        << QByteArray(model) << QByteArray(form) << slow;
    }
    void aPrefixComesBackFromTheTierOrTheReceiptSaysWhyNot() {
        QFETCH(QByteArray, model);
        QFETCH(QByteArray, form);
        QFETCH(bool, slow);
        const auto prompt = exactnessPrompts(320, 300).back();
        EngineHarness harness;
        if (slow)
            harness.makeBackend = slowBackend(kSlowMoves);
        harness.load(tight(configOf(model.constData(), form.constData()), kHostBytes));
        const auto request = [&](std::int64_t id, const std::vector<TokenId>& tokens) {
            api::Request r = EngineHarness::request(id, api::TokenPrompt{tokens}, 4);
            r.sampling.logprobs = 3;
            r.sampling.ignoreEos = true;
            return r;
        };
        const api::Answer first = harness.run(request(1, prompt));
        harness.run(request(2, std::vector<TokenId>(300, 9)));
        const api::Answer again = harness.run(request(3, prompt));
        QCOMPARE(firstDifference(first, again), std::string());
        if (slow) {
            QCOMPARE(again.cache.missReason, api::MissReason::CheaperToCompute);
            QCOMPARE(again.cache.loadedBlocks, 0);
            QVERIFY(harness.engine->stats().hostDeclinedBlocks > 0);
        } else {
            QVERIFY(again.cache.loadedBlocks > 0);
            QCOMPARE(again.cache.reusedTokens, std::int64_t((prompt.size() - 1) / 16 * 16));
            QCOMPARE(again.cache.missReason, api::MissReason::None);
        }
    }

    void memoryIsSetAsideBeforeItIsTaken() {
        const api::EngineConfig base = configOf("llama-q8_0");
        EngineHarness harness;
        harness.available = std::uint64_t(64) << 20;
        api::EngineConfig config = base;
        config.hostCacheBytes = std::uint64_t(1) << 40;
        QVERIFY(names(refusal(config, harness), "--host-cache-bytes"));
        harness.load(base);
        config.numBlocks = (std::int64_t(16) << 20) / static_cast<std::int64_t>(harness.engine->model().bytesPerBlock);
        config.hostCacheBytes = std::uint64_t(56) << 20; // there is room for it, but not for the pool too
        QVERIFY(names(refusal(config, harness), "does not fit"));
        config.numBlocks = base.numBlocks;
        config.hostCacheBytes = 1;
        QVERIFY(names(refusal(config, harness), "--host-cache-bytes must hold one block"));
        // The default pool is a share of what the tier leaves.
        config = base;
        config.numBlocks = 0;
        config.memoryUtilization = 0.5;
        harness.load(config);
        const std::uint64_t before = harness.engine->model().poolBytes();
        config.hostCacheBytes = std::uint64_t(32) << 20;
        harness.load(config);
        QVERIFY(harness.engine->model().poolBytes() < before - (std::uint64_t(15) << 20));
    }

    void whatCannotHaveATierSaysSo() {
        EngineHarness harness;
        api::EngineConfig config = configOf("llama-q8_0");
        config.hostCacheBytes = kHostBytes;
        harness.makeBackend = [](const api::EngineConfig&) {
            auto made = kernels::makeCpuBackend({});
            made.value = std::make_unique<NoMoves>(std::move(*made.value));
            return made;
        };
        QVERIFY(names(refusal(config, harness), "--host-cache-bytes is not supported by this backend"));
        harness.makeBackend = {};
        config.allocator = kv::AllocatorKind::Contiguous;
        QVERIFY(names(refusal(config, harness), "--host-cache-bytes needs --allocator paged"));
    }

    void cancelledWhileItWaitsItsSlotsAreFree() {
        EngineHarness harness;
        harness.makeBackend = slowBackend(kSlowSteps);
        harness.load(tight(configOf("llama-q8_0"), kHostBytes));
        for (const api::Request& request : eightRequests())
            harness.submit(request);
        while (harness.engine->sample().hostHeldBlocks == 0 && harness.engine->hasWork())
            harness.engine->step();
        QVERIFY(harness.engine->sample().hostHeldBlocks > 0);
        for (int i = 0; i < 8; ++i)
            harness.engine->cancel(RequestId(i));
        QVERIFY(!harness.engine->hasWork());
        QCOMPARE(harness.engine->sample().hostHeldBlocks, 0u);
    }

    void aRecordedRunIsReplayedExactly_data() {
        QTest::addColumn<QByteArray>("model");
        QTest::addColumn<QByteArray>("form");
        QTest::newRow("f16") << QByteArray("llama-q8_0") << QByteArray("f16");
        QTest::newRow("k8v4") << QByteArray("llama-q8_0") << QByteArray("k8v4");
        QTest::newRow("windows") << QByteArray("gemma3-q8_0") << QByteArray("f16");
    }
    void aRecordedRunIsReplayedExactly() {
        QFETCH(QByteArray, model);
        QFETCH(QByteArray, form);
        TempDir dir;
        const std::string path = dir.file("blocks.jsonl");
        auto log = api::BlockLog::create(path, "test");
        QVERIFY(log.has_value());
        EngineHarness harness;
        api::Engine engine({harness.clock, harness, nullptr, nullptr, slowBackend(kSlowSteps), {}, log->get()});
        QVERIFY(engine.load(tight(configOf(model.constData(), form.constData()), kHostBytes)).has_value());
        for (const api::Request& request : eightRequests())
            engine.submit(request, harness.clock.now());
        while (engine.hasWork())
            engine.step();
        const metrics::StepSample s = engine.sample();
        engine.unload();
        QVERIFY((*log)->finish().has_value());
        const auto recorded = api::readBlockTrace(path);
        QVERIFY2(recorded.has_value(), recorded ? "" : recorded.error().message.c_str());
        const api::BlockTrace replayed = api::replayTrace(*recorded, recorded->options);
        QCOMPARE(api::traceDifference(*recorded, replayed), std::string());
        QCOMPARE(api::totalsOf(replayed).swaps, s.totalSwapsOut);
        QCOMPARE(api::totalsOf(replayed).loadedBlocks, s.totalHostHitBlocks);
        QVERIFY(s.totalSwapsOut > 0);
        api::TraceOptions without = recorded->options;
        without.hostSlots = 0;
        QCOMPARE(api::totalsOf(api::replayTrace(*recorded, without)).swaps, std::uint64_t(0));
    }
};

QTEST_APPLESS_MAIN(TestEngineHost)
#include "test_engine_host.moc"
