// SPDX-License-Identifier: GPL-3.0-or-later
//
// Sequences that keep their first and their last tokens only, through the whole engine: the same bits however they are
// computed, in memory that does not grow with them.
#include <QTest>

#include "tests/support/exactness.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_llama.h"

using namespace kvscope;
using namespace kvscope::test;

namespace {

constexpr std::int64_t kSinks = 5, kWindow = 70;
constexpr int kContext = 900;
constexpr int kHeld = 1 + 5 + 1; ///< blocks of 16 that a sequence keeps: sinks, window, and the one being filled

} // namespace

class TestEngineSinks : public QObject {
    Q_OBJECT

    TempDir m_dir;
    std::string m_model;

    api::EngineConfig config(const char* format = "f16") const {
        api::EngineConfig c = EngineHarness::config(m_model);
        c.windowPolicy = kv::WindowPolicy::Sinks;
        c.sinks = kSinks;
        c.window = kWindow;
        c.kvFormat = *kernels::kvFormatByName(format);
        return c;
    }
    static api::Request greedy(std::int64_t id, std::vector<TokenId> prompt, std::int32_t count) {
        api::Request request = EngineHarness::request(id, api::TokenPrompt{std::move(prompt)}, count);
        request.sampling.ignoreEos = true;
        request.sampling.logprobs = 3;
        return request;
    }

private slots:
    void initTestCase() {
        TinyLlama size;
        size.context = kContext;
        m_model = m_dir.file("tiny.gguf");
        QVERIFY(tinyLlama(size).write(m_model));
    }

    void everyWayGivesTheSameBits_data() {
        QTest::addColumn<QString>("format");
        for (const char* format : {"f16", "k8v4", "int8"})
            QTest::newRow(format) << format;
    }
    void everyWayGivesTheSameBits() {
        QFETCH(QString, format);
        const api::EngineConfig base = config(format.toLatin1());
        const auto requests = exactnessRequests(exactnessPrompts(256, 280), 40);
        std::vector<Way> ways;
        for (Way& way : allWays(base, 3 * kHeld)) {
            const bool otherScales = base.kvFormat.quantized() && way.config.blockSize != 16;
            const bool refused = way.config.allocator != kv::AllocatorKind::Paged || way.config.hostCacheBytes > 0;
            if (!refused && !otherScales)
                ways.push_back(std::move(way));
        }
        QVERIFY(ways.size() > 8);
        const std::string difference = compareWays(ways, requests);
        QVERIFY2(difference.empty(), difference.c_str());
        // And the window does something: without it the answers are others.
        api::EngineConfig whole = base;
        whole.windowPolicy = kv::WindowPolicy::Stop;
        whole.window = 0;
        QVERIFY(!compareWays({ways.front(), {"everything", whole}}, requests).empty());
    }

    /// Until a token sees less than all, nothing is different.
    void shortSequencesAreThoseOfAModelWithoutAWindow() {
        api::EngineConfig whole = config();
        whole.windowPolicy = kv::WindowPolicy::Stop;
        whole.window = 0;
        std::vector<TokenId> prompt = exactnessPrompts(256, 40).back();
        EngineHarness with, without;
        with.load(config());
        without.load(whole);
        const auto room = static_cast<std::int32_t>(kSinks + kWindow - static_cast<std::int64_t>(prompt.size()));
        const api::Answer a = with.run(greedy(1, prompt, room + 20)), b = without.run(greedy(1, prompt, room + 20));
        for (int i = 0; i <= room; ++i)
            QVERIFY2(a.logprobs[static_cast<std::size_t>(i)].logprob == b.logprobs[static_cast<std::size_t>(i)].logprob,
                     qPrintable(QString::number(i)));
        QVERIFY(a.logprobs[static_cast<std::size_t>(room) + 1].logprob !=
                b.logprobs[static_cast<std::size_t>(room) + 1].logprob);
    }

    /// 800 tokens of prompt and an answer to the end of the context, in a pool of 320 slots, then of 112.
    void promptsLongerThanThePoolAreRead() {
        std::vector<TokenId> prompt = exactnessPrompts(256, 795).back();
        EngineHarness roomy;
        roomy.load(config());
        const api::Answer expected = roomy.run(greedy(1, prompt, 1000));
        QCOMPARE(expected.reason, api::FinishReason::Length);
        QCOMPARE(expected.promptTokenIds.size() + expected.tokenIds.size(), std::size_t(kContext));
        for (const int blocks : {20, kHeld}) {
            api::EngineConfig tight = config();
            tight.numBlocks = blocks;
            EngineHarness harness;
            harness.load(tight);
            api::Request request = greedy(1, prompt, 1000);
            harness.engine->measure(request);
            const auto cost = harness.eventsOf<api::MeasuredEvent>(RequestId(1));
            QVERIFY(cost.size() == 1 && cost[0].fits() && cost[0].limit == kContext);
            const api::Answer answer = harness.run(std::move(request));
            const std::string difference = firstDifference(expected, answer);
            QVERIFY2(difference.empty(), difference.c_str());
            QVERIFY(answer.cache.blocksPeak <= blocks);
            QCOMPARE(answer.cache.blocksAvailableAfter, blocks);
        }
        // Less than one sequence keeps: what fits is answered, the rest is refused with numbers.
        api::EngineConfig less = config();
        less.numBlocks = kHeld - 1;
        EngineHarness harness;
        harness.load(less);
        const api::Answer refused = harness.run(greedy(2, prompt, 10));
        QCOMPARE(refused.error->code, ErrorCode::TooLong);
        QVERIFY2(refused.error->message.find("97") != std::string::npos, refused.error->message.c_str());
    }

    void aSequenceTakesNoMoreThanItsSinksAndWindow() {
        api::EngineConfig small = config();
        small.maxBatchedTokens = 16;
        EngineHarness harness;
        harness.load(small);
        const api::Answer answer = harness.run(greedy(1, exactnessPrompts(256, 600).back(), 200));
        QVERIFY2(answer.cache.blocksPeak <= kHeld + 1, qPrintable(QString::number(answer.cache.blocksPeak)));
        QCOMPARE(answer.tokenIds.size(), std::size_t(200));
    }

    /// Only what lies before the first cut can be found; the receipt says why no more.
    void whatTheWindowHasTouchedIsNotShared() {
        EngineHarness harness, plain;
        harness.load(config());
        api::EngineConfig off = config();
        off.prefixCaching = false;
        plain.load(off);
        const auto prompt = exactnessPrompts(256, 300).back();
        harness.run(greedy(1, prompt, 8));
        const api::Answer again = harness.run(greedy(2, prompt, 8));
        QCOMPARE(again.cache.reusedTokens, (kSinks + kWindow) / 16 * 16);
        QCOMPARE(again.cache.missReason, api::MissReason::PastWindow);
        const std::string difference = firstDifference(plain.run(greedy(1, prompt, 8)), again);
        QVERIFY2(difference.empty(), difference.c_str());
    }

    void forksGoOnWhereTheirSourceIsOrFromItsSinks() {
        for (const char* format : {"f16", "k8v4"})
            for (const int at : {330, 323, 200, 60}) {
                EngineHarness harness, plain;
                harness.load(config(format));
                plain.load(config(format));
                const auto prompt = exactnessPrompts(256, 295).back(); // 300 tokens
                api::Request first = greedy(1, prompt, 30);
                first.keepForFork = true;
                const api::Answer one = harness.run(first);
                std::vector<TokenId> known = prompt;
                known.insert(known.end(), one.tokenIds.begin(), one.tokenIds.end());
                known.resize(static_cast<std::size_t>(at));
                api::Request fork = greedy(2, {}, 20);
                fork.prompt = api::ForkPrompt{RequestId(1), at, api::TokenPrompt{{1, 2, 3}}};
                const api::Answer forked = harness.run(fork);
                known.insert(known.end(), {1, 2, 3});
                const std::string difference = firstDifference(plain.run(greedy(2, known, 20)), forked);
                QVERIFY2(difference.empty(), difference.c_str());
                if (at == 330) // the last one that was drawn is not computed
                    QVERIFY(forked.cache.reusedTokens >= 320);
            }
    }

    void pinnedPromptsGiveBackWhatTheWindowPasses() {
        EngineHarness harness;
        harness.load(config());
        api::Request request = greedy(1, exactnessPrompts(256, 300).back(), 10);
        request.pinPrompt = true;
        const api::Answer answer = harness.run(request);
        QVERIFY(!answer.error);
        QCOMPARE(answer.cache.blocksAvailableAfter, 256 - 1); // the block of the sinks
    }

    void layersWithWindowsOfTheirOwnAreRefusedByName() {
        api::EngineConfig gemma = config();
        gemma.modelPath = std::string(KVSCOPE_TEST_DATA) + "/models/gemma3-q8_0.gguf";
        EngineHarness harness;
        try {
            harness.load(gemma);
            QFAIL("it was loaded");
        } catch (const std::runtime_error& error) {
            QVERIFY2(QString(error.what()).startsWith("--window-policy sinks"), error.what());
        }
    }
};

QTEST_APPLESS_MAIN(TestEngineSinks)
#include "test_engine_sinks.moc"
