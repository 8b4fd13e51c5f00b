// SPDX-License-Identifier: GPL-3.0-or-later
//
// The window group through the whole engine: what it takes, and that what it has lost is computed again, with the same
// answers to the last bit.
#include <QTest>

#include "tests/support/exactness.h"

using namespace kvscope;
using namespace kvscope::test;

namespace {

constexpr int kWindow = 16, kLocalLayers = 5; // of six

api::EngineConfig gemma() {
    return EngineHarness::config(std::string(KVSCOPE_TEST_DATA) + "/models/gemma3-q8_0.gguf");
}

/// One sequence at a time in steps of 16 tokens: a group of ceil(32 / 16) + 1 = 3 blocks.
api::EngineConfig tight() {
    api::EngineConfig config = gemma();
    config.maxSequences = 1;
    config.maxBatchedTokens = 16;
    return config;
}

api::Request greedy(std::int64_t id, api::Prompt prompt, std::int32_t count = 12) {
    api::Request request = EngineHarness::request(id, std::move(prompt), count);
    request.sampling.ignoreEos = true;
    request.sampling.logprobs = 3;
    return request;
}

std::vector<TokenId> joined(std::vector<TokenId> a, const std::vector<TokenId>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

} // namespace

class TestEngineWindows : public QObject {
    Q_OBJECT
private slots:
    void localLayersAreAGroupOfTheirOwn() {
        EngineHarness harness;
        harness.load(tight());
        const api::ModelInfo& info = harness.engine->model();
        QCOMPARE(info.windowLayers, kLocalLayers);
        QCOMPARE(info.window, kWindow);
        QCOMPARE(info.windowBlocks, 3);
        QCOMPARE(info.bytesPerWindowBlock, std::uint64_t(kLocalLayers * 2 * 64 * 2 * 16));
        QCOMPARE(info.bytesPerBlock, std::uint64_t(2 * 64 * 2 * 16));
        QCOMPARE(info.kvBytesPerToken, std::uint64_t(256));
        QCOMPARE(info.poolBytes(), info.bytesPerBlock * 256 + info.bytesPerWindowBlock * 3);

        api::EngineConfig few = gemma();
        few.numBlocks = 20; // the group is never larger than the pool
        harness.load(few);
        QCOMPARE(harness.engine->model().windowBlocks, 20);
        api::EngineConfig contiguous = gemma();
        contiguous.allocator = kv::AllocatorKind::Contiguous;
        contiguous.prefixCaching = false;
        harness.load(contiguous); // an extent holds all layers
        QCOMPARE(harness.engine->model().windowLayers, 0);
        QCOMPARE(harness.engine->model().bytesPerBlock, std::uint64_t(6 * 2 * 64 * 2 * 16));
    }

    /// A chat that goes on finds its whole history, although local layers keep the end of it only.
    void nextTurnsFindTheirHistory() {
        EngineHarness cached, plain;
        cached.load(tight());
        api::EngineConfig off = tight();
        off.prefixCaching = false;
        plain.load(off);
        std::vector<TokenId> history = exactnessPrompts(512, 90)[4];
        for (std::int64_t turn = 0; turn < 4; ++turn) {
            const api::Answer answer = cached.run(greedy(turn, api::TokenPrompt{history}));
            const std::string difference = firstDifference(plain.run(greedy(turn, api::TokenPrompt{history})), answer);
            QVERIFY2(difference.empty(), difference.c_str());
            if (turn > 0) // all but the last token drawn and the question, as far as it fills blocks
                QCOMPARE(answer.cache.reusedTokens, static_cast<std::int64_t>(history.size() - 9) / 16 * 16);
            history = joined(joined(history, answer.tokenIds), {1, 2, 3, 4, 5, 6, 7, 8});
        }
    }

    /// The beginnings of other prompts are not kept by so small a group: they are computed again.
    void whatTheGroupHasLostIsComputedAgain() {
        EngineHarness cached, roomy, plain;
        cached.load(tight());
        roomy.load(gemma());
        api::EngineConfig off = tight();
        off.prefixCaching = false;
        plain.load(off);
        const auto prompts = exactnessPrompts(512, 150);
        std::int64_t reused = 0, reusedWithRoom = 0;
        for (std::int64_t round = 0; round < 2; ++round)
            for (std::size_t i = 0; i < prompts.size(); ++i) {
                const std::int64_t id = round * 100 + static_cast<std::int64_t>(i);
                const api::Answer expected = plain.run(greedy(id, api::TokenPrompt{prompts[i]}, 6));
                for (EngineHarness* harness : {&cached, &roomy}) {
                    const api::Answer answer = harness->run(greedy(id, api::TokenPrompt{prompts[i]}, 6));
                    const std::string difference = firstDifference(expected, answer);
                    QVERIFY2(difference.empty(), difference.c_str());
                    (harness == &cached ? reused : reusedWithRoom) += answer.cache.reusedTokens;
                }
            }
        QVERIFY(reused > 0 && reused < reusedWithRoom);
    }

    void forksComputeWhatTheirWindowNeeds() {
        for (const bool roomy : {true, false})
            for (const int at : {70, 64, 40}) {
                EngineHarness harness;
                harness.load(roomy ? gemma() : tight());
                const auto prompt = exactnessPrompts(512, 60).back(); // 65 tokens
                api::Request first = greedy(1, api::TokenPrompt{prompt}, 30);
                first.keepForFork = true;
                const api::Answer one = harness.run(first);
                std::vector<TokenId> known = joined(prompt, one.tokenIds);
                known.resize(static_cast<std::size_t>(at));
                known.push_back(7);
                const api::Answer forked =
                    harness.run(greedy(2, api::ForkPrompt{RequestId(1), std::int64_t(at), api::TokenPrompt{{7}}}));
                if (roomy)
                    QCOMPARE(forked.cache.reusedTokens, std::int64_t(at / 16 * 16));
                EngineHarness fresh;
                fresh.load(gemma());
                const std::string difference = firstDifference(fresh.run(greedy(2, api::TokenPrompt{known})), forked);
                QVERIFY2(difference.empty(), difference.c_str());
            }
    }
};

QTEST_APPLESS_MAIN(TestEngineWindows)
#include "test_engine_windows.moc"
