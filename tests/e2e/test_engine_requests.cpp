// SPDX-License-Identifier: GPL-3.0-or-later
//
// Requests through the whole engine: text as it streams, ends, cancellation, reuse and its reasons, forks, pins.
#include <QTest>
#include <numeric>

#include "kernels/testing/late_backend.h"
#include "kernels/testing/protected_backend.h"
#include "tests/support/engine_harness.h"
#include "tests/support/scripted_llama.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_llama.h"

using namespace kvscope;
using namespace kvscope::test;

namespace {

std::vector<TokenId> someTokens(std::size_t count, TokenId first = 1) {
    std::vector<TokenId> ids(count);
    for (std::size_t i = 0; i < count; ++i)
        ids[i] = static_cast<TokenId>((static_cast<std::size_t>(first) + i * 7) % 250);
    return ids;
}

std::string streamed(const EngineHarness& harness, RequestId id) {
    std::string text;
    for (const api::TokensEvent& event : harness.eventsOf<api::TokensEvent>(id))
        text += event.text;
    return text;
}

bool validUtf8(const std::string& text) {
    return QString::fromUtf8(text.data(), static_cast<int>(text.size())).toUtf8().toStdString() == text &&
           text.find("\xEF\xBF\xBD") == std::string::npos;
}

// Families, flags, astral and combining characters: several tokens a character, cut everywhere.
const std::string kAwkwardText = "\xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA7 "
                                 "\xF0\x9F\x8F\xB3\xEF\xB8\x8F\xE2\x80\x8D\xF0\x9F\x8C\x88 \xF0\xA0\xAE\xB7 "
                                 "\xE0\xB8\xA0\xE0\xB8\xB2\xE0\xB8\xA9\xE0\xB8\xB2 \xD8\xB9\xD8\xB1\xD8\xA8";

} // namespace

class TestEngineRequests : public QObject {
    Q_OBJECT
private slots:
    void initTestCase() {
        writeModel("tiny.gguf", tinyLlama());
        m_awkward = awkwardPieces(kAwkwardText);
        writeModel("awkward.gguf", scriptedLlama(m_awkward));
        writeModel("stops.gguf", scriptedLlama({"one ", "two S", "T", "OP th", "ree STO", "P four"}));
    }

    // ---- text

    void streamedTextIsWholeCharactersAtEveryCut() {
        EngineHarness harness;
        harness.load(EngineHarness::config(file("awkward.gguf")));
        const auto steps = static_cast<std::int32_t>(m_awkward.size());
        for (std::int32_t cut = 1; cut <= steps; ++cut) {
            const api::Answer answer = harness.run(EngineHarness::request(cut, api::TextPrompt{"Say it."}, cut));
            QCOMPARE(answer.tokenIds.size(), std::size_t(cut));
            QCOMPARE(answer.reason, api::FinishReason::Length);
            QVERIFY(kAwkwardText.rfind(answer.text, 0) == 0);
            QVERIFY(validUtf8(answer.text));
            QCOMPARE(streamed(harness, RequestId(cut)), answer.text);
            for (const api::TokensEvent& event : harness.eventsOf<api::TokensEvent>(RequestId(cut)))
                QVERIFY(validUtf8(event.text));
        }
        const api::Answer whole = harness.run(EngineHarness::request(1000, api::TextPrompt{"Say it."}, 400));
        QCOMPARE(whole.text, kAwkwardText);
        QCOMPARE(whole.reason, api::FinishReason::Stop);
        QCOMPARE(std::get<TokenId>(whole.stopReason), 257);
        QCOMPARE(whole.tokenIds.size(), m_awkward.size()); // without the end token
    }

    void goingOnFromEveryCutGivesTheUncutText() {
        EngineHarness harness;
        harness.load(EngineHarness::config(file("awkward.gguf")));
        const api::Answer whole = harness.run(EngineHarness::request(0, api::TextPrompt{"Say it."}, 400));
        for (std::int32_t cut = 1; cut < static_cast<std::int32_t>(m_awkward.size()); ++cut) {
            const api::Answer first = harness.run(EngineHarness::request(cut, api::TextPrompt{"Say it."}, cut));
            std::vector<TokenId> ids = first.promptTokenIds;
            ids.insert(ids.end(), first.tokenIds.begin(), first.tokenIds.end());
            const api::Answer rest = harness.run(EngineHarness::request(1000 + cut, api::TokenPrompt{ids}, 400));
            std::vector<TokenId> all = first.tokenIds;
            all.insert(all.end(), rest.tokenIds.begin(), rest.tokenIds.end());
            QCOMPARE(all, whole.tokenIds);
        }
    }

    void stopInsideACharacterLeavesNoHalfCharacter() {
        EngineHarness harness;
        harness.load(EngineHarness::config(file("awkward.gguf")));
        for (std::int64_t after = 1; after < static_cast<std::int64_t>(m_awkward.size()); ++after) {
            harness.submit(EngineHarness::request(after, api::TextPrompt{"Say it."}, 400));
            while (static_cast<std::int64_t>(harness.eventsOf<api::TokensEvent>(RequestId(after)).size()) < after)
                harness.engine->step();
            harness.engine->cancel(RequestId(after));
            const api::Answer& answer = harness.answers.at(RequestId(after));
            QCOMPARE(answer.reason, api::FinishReason::Cancelled);
            QVERIFY(validUtf8(answer.text));
            QCOMPARE(streamed(harness, RequestId(after)), answer.text);
        }
    }

    void stopStringsAcrossTokensAreHeldBackAndCut_data() {
        QTest::addColumn<QStringList>("stops");
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("reason");
        QTest::newRow("across three tokens") << QStringList{"STOP"} << "one two "
                                             << "STOP";
        QTest::newRow("inside one token") << QStringList{"wo"} << "one t"
                                          << "wo";
        QTest::newRow("the earliest of two") << QStringList{"three", "OP"} << "one two ST"
                                             << "OP";
        QTest::newRow("begins alike, never comes") << QStringList{"STOPX"} << "one two STOP three STOP four"
                                                   << "";
        QTest::newRow("across a token border, later") << QStringList{"STOP f"} << "one two STOP three "
                                                      << "STOP f";
    }
    void stopStringsAcrossTokensAreHeldBackAndCut() {
        QFETCH(QStringList, stops);
        QFETCH(QString, text);
        QFETCH(QString, reason);
        EngineHarness harness;
        harness.load(EngineHarness::config(file("stops.gguf")));
        api::Request request = EngineHarness::request(1, api::TextPrompt{"Count:"}, 100);
        for (const QString& stop : stops)
            request.sampling.stop.push_back(stop.toStdString());
        const api::Answer answer = harness.run(std::move(request));
        QCOMPARE(answer.text, text.toStdString());
        QCOMPARE(streamed(harness, RequestId(1)), answer.text);
        QCOMPARE(answer.reason, api::FinishReason::Stop);
        if (reason.isEmpty())
            QVERIFY(std::holds_alternative<TokenId>(answer.stopReason));
        else
            QCOMPARE(std::get<std::string>(answer.stopReason), reason.toStdString());
    }

    void biasAndIgnoreEosReachTheSampler() {
        EngineHarness harness;
        harness.load(EngineHarness::config(file("stops.gguf")));
        api::Request biased = EngineHarness::request(1, api::TextPrompt{"Count:"}, 3);
        biased.sampling.logitBias = {{'x', 100.0}};
        QCOMPARE(harness.run(std::move(biased)).text, std::string("xxx"));
        api::Request endless = EngineHarness::request(2, api::TextPrompt{"Count:"}, 12);
        endless.sampling.ignoreEos = true;
        const api::Answer answer = harness.run(std::move(endless));
        QCOMPARE(answer.tokenIds.size(), std::size_t(12));
        QCOMPARE(answer.reason, api::FinishReason::Length);
    }

    // ---- ends

    void whatCanNeverFitEndsAtOnceWithTheNumbers() {
        EngineHarness harness;
        api::EngineConfig config = EngineHarness::config(file("tiny.gguf"));
        config.numBlocks = 4;
        harness.load(config);
        const api::Answer answer = harness.run(EngineHarness::request(1, api::TokenPrompt{someTokens(100)}));
        QCOMPARE(answer.reason, api::FinishReason::Error);
        QCOMPARE(answer.error->code, ErrorCode::TooLong);
        QVERIFY(answer.error->message.find("101 tokens") != std::string::npos);
        QVERIFY(answer.error->message.find("65 tokens") != std::string::npos);
    }

    void theLongestSequenceEndsWithLength() {
        EngineHarness harness;
        api::EngineConfig config = EngineHarness::config(file("tiny.gguf"));
        config.maxModelLen = 20;
        harness.load(config);
        api::Request request = EngineHarness::request(1, api::TokenPrompt{someTokens(10)}, 100);
        request.sampling.ignoreEos = true;
        const api::Answer answer = harness.run(std::move(request));
        QCOMPARE(answer.reason, api::FinishReason::Length);
        QCOMPARE(answer.tokenIds.size(), std::size_t(10));
    }

    void impossibleRequestsAreRefusedWithASentence() {
        EngineHarness harness;
        harness.load(EngineHarness::config(file("tiny.gguf")));
        QCOMPARE(harness.run(EngineHarness::request(1, api::TokenPrompt{{}})).error->code, ErrorCode::InvalidArgument);
        QCOMPARE(harness.run(EngineHarness::request(2, api::TokenPrompt{{288}})).error->code,
                 ErrorCode::InvalidArgument);
        api::Request hot = EngineHarness::request(3, api::TokenPrompt{{1}});
        hot.sampling.temperature = 7;
        QCOMPARE(harness.run(std::move(hot)).error->code, ErrorCode::InvalidArgument);
        QCOMPARE(harness.run(EngineHarness::request(4, api::ForkPrompt{RequestId(77), {}, api::TokenPrompt{{1}}}))
                     .error->code,
                 ErrorCode::NotFound);
    }

    void cancelDuringPrefillGivesAllBlocksBack() {
        EngineHarness harness;
        api::EngineConfig config = EngineHarness::config(file("tiny.gguf"));
        config.maxBatchedTokens = 8;
        harness.load(config);
        harness.submit(EngineHarness::request(1, api::TokenPrompt{someTokens(200)}));
        harness.engine->step();
        harness.engine->step();
        QVERIFY(harness.engine->sample().referencedBlocks > 0);
        harness.engine->cancel(RequestId(1));
        harness.engine->cancel(RequestId(1)); // twice is once
        QVERIFY(!harness.engine->hasWork());
        const api::Answer& answer = harness.answers.at(RequestId(1));
        QCOMPARE(answer.reason, api::FinishReason::Cancelled);
        QVERIFY(answer.tokenIds.empty());
        QCOMPARE(answer.cache.computedTokens, 16);
        QCOMPARE(answer.cache.blocksAvailableAfter, 256);
        QCOMPARE(harness.eventsOf<api::FinishedEvent>().size(), std::size_t(1));
    }

    // ---- reuse and its reasons

    void twoChatsThatShareExactly24Tokens_data() {
        QTest::addColumn<int>("blockSize");
        QTest::addColumn<int>("reused");
        QTest::newRow("16") << 16 << 16;
        QTest::newRow("32") << 32 << 0;
        QTest::newRow("64") << 64 << 0;
    }
    void twoChatsThatShareExactly24Tokens() {
        QFETCH(int, blockSize);
        QFETCH(int, reused);
        EngineHarness harness;
        api::EngineConfig config = EngineHarness::config(file("tiny.gguf"));
        config.blockSize = blockSize;
        harness.load(config);
        std::vector<TokenId> first = someTokens(24), second = someTokens(24);
        for (TokenId i = 0; i < 60; ++i) {
            first.push_back(i % 100);
            second.push_back(100 + i % 100);
        }
        QCOMPARE(harness.run(EngineHarness::request(1, api::TokenPrompt{first})).cache.missReason,
                 api::MissReason::ColdStart);
        const api::CacheReceipt receipt = harness.run(EngineHarness::request(2, api::TokenPrompt{second})).cache;
        QCOMPARE(receipt.reusedTokens, std::int64_t(reused));
        QCOMPARE(receipt.reusedTokens + receipt.computedTokens, receipt.promptTokens);
        QCOMPARE(receipt.missReason, api::MissReason::ShorterThanBlock);
        QCOMPARE(receipt.commonPrefix, std::int64_t(24));
        QCOMPARE(receipt.blockSize, blockSize);
    }

    void theNextTurnReusesPromptAndAnswer() {
        EngineHarness harness;
        harness.load(EngineHarness::config(file("awkward.gguf")));
        api::DialogPrompt dialog;
        dialog.messages = {{"user", "How many blocks does a long enough question need?", {}}};
        const api::Answer first = harness.run(EngineHarness::request(1, dialog, 100));
        QCOMPARE(first.reason, api::FinishReason::Stop);
        dialog.messages.push_back({"assistant", first.text, first.tokenIds});
        dialog.messages.push_back({"user", "And the next one?", {}});
        api::Request two = EngineHarness::request(2, dialog, 4);
        two.owner = OwnerId(1);
        const api::Answer second = harness.run(std::move(two));
        const auto before = static_cast<std::int64_t>(first.promptTokenIds.size() + first.tokenIds.size());
        QVERIFY(second.cache.reusedTokens > before - 16);
        QCOMPARE(second.cache.missReason, api::MissReason::None);
        const auto ranges = harness.eventsOf<api::QueuedEvent>(RequestId(2)).front().messageRanges;
        QCOMPARE(ranges.size(), std::size_t(3));
        QCOMPARE(ranges[0].first, std::int64_t(0));
        QCOMPARE(ranges[1].first, ranges[0].second);
    }

    void aChangedTurnIsNamed() {
        EngineHarness harness;
        harness.load(EngineHarness::config(file("awkward.gguf")));
        const std::string filler(20, 'w');
        api::DialogPrompt dialog;
        dialog.messages = {{"system", "Be brief. " + filler, {}},
                           {"user", "First question. " + filler, {}},
                           {"assistant", "First answer. " + filler, {}},
                           {"user", "Second question. " + filler, {}}};
        std::int64_t id = 0;
        const auto ask = [&] {
            api::Request request = EngineHarness::request(++id, dialog, 1);
            request.owner = OwnerId(1);
            const api::Answer answer = harness.run(std::move(request));
            [&] { QVERIFY2(!answer.error, answer.error->message.c_str()); }();
            return answer.cache;
        };
        QCOMPARE(ask().divergingTurn, -1);
        dialog.messages[2].content = "Another answer. " + filler;
        QCOMPARE(ask().divergingTurn, 1);
        dialog.messages[3].content = "Another question. " + filler;
        QCOMPARE(ask().divergingTurn, 2);
        dialog.messages[0].content = "Be long. " + filler;
        const api::CacheReceipt receipt = ask();
        QCOMPARE(receipt.missReason, api::MissReason::Diverged);
        QCOMPARE(receipt.divergingTurn, 0);
    }

    void aPrefixThatIsNotLongEnoughOrSwitchedOffSaysSo() {
        EngineHarness harness;
        api::EngineConfig config = EngineHarness::config(file("tiny.gguf"));
        config.prefixCaching = false;
        harness.load(config);
        harness.run(EngineHarness::request(1, api::TokenPrompt{someTokens(40)}));
        const api::CacheReceipt receipt =
            harness.run(EngineHarness::request(2, api::TokenPrompt{someTokens(40)})).cache;
        QCOMPARE(receipt.reusedTokens, 0);
        QCOMPARE(receipt.missReason, api::MissReason::Disabled);
    }

    void forksShareTheBlocksOfTheirSource() {
        EngineHarness harness;
        harness.load(EngineHarness::config(file("tiny.gguf")));
        api::Request source = EngineHarness::request(1, api::TokenPrompt{someTokens(37)}, 10);
        source.keepForFork = true;
        source.sampling.ignoreEos = true;
        const api::Answer first = harness.run(std::move(source));
        const api::Answer fork =
            harness.run(EngineHarness::request(2, api::ForkPrompt{RequestId(1), 40, api::TokenPrompt{{5, 6}}}, 4));
        std::vector<TokenId> expected = first.promptTokenIds;
        expected.insert(expected.end(), first.tokenIds.begin(), first.tokenIds.begin() + 3);
        expected.insert(expected.end(), {5, 6});
        QCOMPARE(fork.promptTokenIds, expected);
        QCOMPARE(fork.cache.reusedTokens, 40); // the shared tail is copied, not computed again
        QCOMPARE(harness.engine->sample().totalCopies, std::uint64_t(1));
        EngineHarness fresh;
        fresh.load(EngineHarness::config(file("tiny.gguf")));
        QCOMPARE(fresh.run(EngineHarness::request(1, api::TokenPrompt{expected}, 4)).tokenIds, fork.tokenIds);
    }

    void pinnedPromptsStay() {
        EngineHarness harness;
        api::EngineConfig config = EngineHarness::config(file("tiny.gguf"));
        config.numBlocks = 8;
        harness.load(config);
        api::Request pinned = EngineHarness::request(1, api::TokenPrompt{someTokens(40)}, 2);
        pinned.pinPrompt = true;
        harness.run(std::move(pinned));
        for (int i = 0; i < 5; ++i) // each needs all other blocks
            harness.run(EngineHarness::request(10 + i, api::TokenPrompt{someTokens(80, 100 + 3 * i)}, 2));
        QVERIFY(harness.engine->sample().totalEvictions > 0);
        QCOMPARE(harness.run(EngineHarness::request(2, api::TokenPrompt{someTokens(40)}, 2)).cache.reusedTokens, 32);
        QCOMPARE(harness.engine->sample().blocksByState[static_cast<std::size_t>(kv::BlockState::Pinned)], 2u);
    }

    void preemptedAnswersAreWholeAndSaySo() {
        EngineHarness harness;
        api::EngineConfig config = EngineHarness::config(file("tiny.gguf"));
        config.numBlocks = 6;
        config.watermark = 0;
        harness.load(config);
        for (int i = 0; i < 3; ++i) {
            api::Request request = EngineHarness::request(i, api::TokenPrompt{someTokens(28, i)}, 30);
            request.sampling.ignoreEos = true;
            harness.submit(std::move(request));
        }
        harness.finish();
        int preempted = 0;
        for (int i = 0; i < 3; ++i) {
            const api::Answer& answer = harness.answers.at(RequestId(i));
            QCOMPARE(answer.tokenIds.size(), std::size_t(30));
            QCOMPARE(answer.cache.reusedTokens + answer.cache.computedTokens, 28);
            preempted += answer.cache.preemptions;
            if (answer.cache.preemptions > 0) {
                const auto waits = harness.eventsOf<api::WaitingEvent>(RequestId(i));
                QVERIFY(std::any_of(waits.begin(), waits.end(), [](const auto& w) { return w.preempted; }));
            }
        }
        QVERIFY(preempted > 0);
        const metrics::StepSample last = harness.engine->sample();
        QCOMPARE(last.referencedBlocks, 0u);
        QCOMPARE(std::accumulate(last.blocksByState.begin(), last.blocksByState.end(), 0u), 6u);
    }

    // ---- other backends

    void chatsRunOnBackendsThatForbidAndThatDelay() {
        const auto chat = [this](EngineHarness& harness) {
            api::EngineConfig config = EngineHarness::config(file("tiny.gguf"));
            config.numBlocks = 12;
            config.maxBatchedTokens = 16;
            harness.load(config);
            std::vector<std::vector<TokenId>> out;
            for (int i = 0; i < 4; ++i) {
                api::Request request = EngineHarness::request(i, api::TokenPrompt{someTokens(30, i / 2)}, 24);
                request.sampling.temperature = i % 2;
                request.sampling.ignoreEos = true;
                harness.submit(std::move(request));
            }
            harness.finish();
            for (const auto& [id, answer] : harness.answers)
                out.push_back(answer.tokenIds);
            return out;
        };
        EngineHarness plain, guarded, late;
        guarded.makeBackend = [](const api::EngineConfig& config) {
            return kernels::testing::ProtectedBackend::make({config.threads, config.isa});
        };
        late.makeBackend = [](const api::EngineConfig& config) {
            auto inner = kernels::makeCpuBackend({config.threads, config.isa});
            std::unique_ptr<kernels::Backend> outer =
                std::make_unique<kernels::testing::LateBackend>(std::move(*inner.value));
            return kernels::BackendResult<std::unique_ptr<kernels::Backend>>{std::move(outer), {}};
        };
        const auto expected = chat(plain);
        QCOMPARE(expected.size(), std::size_t(4));
        QCOMPARE(chat(guarded), expected);
        QCOMPARE(chat(late), expected);
    }

private:
    void writeModel(const std::string& name, const GgufWriter& writer) { QVERIFY(writer.write(file(name))); }
    std::string file(const std::string& name) const { return m_dir.file(name); }

    TempDir m_dir;
    std::vector<std::string> m_awkward;
};

QTEST_APPLESS_MAIN(TestEngineRequests)
#include "test_engine_requests.moc"
