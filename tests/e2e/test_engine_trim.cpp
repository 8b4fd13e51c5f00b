// SPDX-License-Identifier: GPL-3.0-or-later
//
// Chats that outgrow their window: the oldest turns are left out, everything that stays is found in the cache.
#include <QTest>

#include "tests/support/engine_harness.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_llama.h"

using namespace kvscope;
using namespace kvscope::test;

namespace {

constexpr int kBlock = 16;
const OwnerId kChat(7);

std::string sentence(int i, std::size_t length) {
    std::string text = "Turn " + std::to_string(i) + ": ";
    while (text.size() < length)
        text += static_cast<char>('a' + (text.size() * 7 + static_cast<std::size_t>(i) * 13) % 26);
    return text;
}

} // namespace

class TestEngineTrim : public QObject {
    Q_OBJECT

    TempDir m_dir;
    std::string m_model;
    std::int64_t m_next = 1;

    api::EngineConfig config(std::int64_t window = 1024) const {
        api::EngineConfig c = EngineHarness::config(m_model);
        c.windowPolicy = kv::WindowPolicy::Trim;
        c.window = window;
        return c;
    }

    struct Chat {
        std::vector<api::DialogMessage> messages{{"system", sentence(0, 150), {}}};
        api::Answer last;
        api::QueuedEvent queued;
    };

    void ask(EngineHarness& harness, Chat& chat, const std::string& text, int maxTokens = 48) {
        chat.messages.push_back({"user", text, {}});
        api::Request request = EngineHarness::request(m_next++, api::DialogPrompt{chat.messages, true}, maxTokens);
        request.owner = kChat;
        request.sampling.ignoreEos = true;
        const RequestId id = request.id;
        chat.last = harness.run(std::move(request));
        const auto queued = harness.eventsOf<api::QueuedEvent>(id);
        chat.queued = queued.empty() ? api::QueuedEvent() : queued.front();
        chat.messages.push_back({"assistant", chat.last.text, chat.last.tokenIds});
    }

private slots:
    void initTestCase() {
        TinyLlama size;
        size.context = 4096;
        m_model = m_dir.file("tiny.gguf");
        QVERIFY(tinyLlama(size).write(m_model));
    }

    void tenTurnsPastTheWindowComputeNothingTwiceButAtACut() {
        EngineHarness harness;
        harness.load(config());
        QCOMPARE(harness.engine->model().maxModelLen, std::int64_t(1024));
        Chat chat;
        int past = 0, cuts = 0;
        std::int32_t cutBefore = 0;
        for (int turn = 1; past < 10; ++turn) {
            const std::int64_t before =
                static_cast<std::int64_t>(chat.last.promptTokenIds.size() + chat.last.tokenIds.size());
            ask(harness, chat, sentence(turn, 60));
            const api::CacheReceipt& cache = chat.last.cache;
            QVERIFY2(!chat.last.error, chat.last.error ? chat.last.error->message.c_str() : "");
            QCOMPARE(chat.last.tokenIds.size(), std::size_t(48)); // the answer had its room
            QVERIFY(chat.last.promptTokenIds.size() + 48 <= 1024);
            QVERIFY(cache.cut == chat.queued.cut);
            if (cache.cut.messages > 0)
                ++past;
            const std::int64_t system = chat.queued.messageRanges[0].second;
            if (turn > 1) { // the system prompt's blocks are never computed again
                QVERIFY(cache.reusedTokens >= system / kBlock * kBlock);
            }
            if (cache.cut.messages != cutBefore) {
                ++cuts;
                QCOMPARE(cache.missReason, api::MissReason::WindowCut);
                QVERIFY(cache.cut.messages > cutBefore && cache.cut.messages % 2 == 0 && cache.cut.tokens > 0);
                QVERIFY(chat.last.promptTokenIds.size() + 48 <= 768); // a quarter is free beside the answer's room
            } else if (turn > 1) { // all of the turn before is found, as far as it fills blocks
                QVERIFY(cache.reusedTokens >= (before - 1) / kBlock * kBlock);
                QVERIFY(cache.missReason != api::MissReason::WindowCut);
            }
            cutBefore = cache.cut.messages;
            // Messages that are left out lie nowhere; the others follow one another.
            const auto& ranges = chat.queued.messageRanges;
            QCOMPARE(ranges.size(), chat.messages.size() - 1);
            for (std::size_t i = 1; i < ranges.size(); ++i) {
                const bool leftOut = i <= static_cast<std::size_t>(cache.cut.messages);
                QCOMPARE(ranges[i].first == ranges[i].second, leftOut);
                QVERIFY(ranges[i].first >= ranges[i - 1].second);
            }
        }
        QVERIFY2(cuts >= 2 && cuts <= 5, qPrintable(QString::number(cuts)));
    }

    /// Where a template prints the system text inside of the first turn, it belongs to that turn only once.
    void theSystemTextInTheFirstTurnIsCountedOnce() {
        TinyLlama size;
        size.context = 4096;
        GgufWriter writer = tinyLlama(size);
        writer.text(
            "tokenizer.chat_template",
            "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{% set first = messages[0]['content'] + '\\n' %}"
            "{% set rest = messages[1:] %}{% else %}{% set first = '' %}{% set rest = messages %}{% endif %}"
            "{% for m in rest %}<{{ m['role'] }}>{% if loop.first %}{{ first }}{% endif %}{{ m['content'] }}"
            "{{ '\\n' }}{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}");
        const std::string path = m_dir.file("system-in-first.gguf");
        QVERIFY(writer.write(path));
        api::EngineConfig c = config();
        c.modelPath = path;
        EngineHarness harness;
        harness.load(c);
        Chat chat;
        chat.messages[0].content = sentence(0, 300);
        int cuts = 0;
        std::int32_t before = 0;
        for (int turn = 1; turn <= 30; ++turn) {
            ask(harness, chat, sentence(turn, 60));
            QVERIFY2(!chat.last.error, chat.last.error ? chat.last.error->message.c_str() : "");
            QCOMPARE(chat.last.tokenIds.size(), std::size_t(48)); // it had its room
            const std::int32_t cut = chat.last.cache.cut.messages;
            if (cut != before) {
                ++cuts;
                QVERIFY(chat.last.promptTokenIds.size() + 48 <=
                        768 + 8); // the headroom, but for how ends are tokenized
            }
            before = cut;
        }
        QVERIFY2(cuts >= 2 && cuts <= 10, qPrintable(QString::number(cuts)));
    }

    /// Another engine, as after a restart, cuts the same chat at the same place and answers with the same tokens.
    void theCutIsAFunctionOfTheChat() {
        EngineHarness first, second;
        first.load(config(512));
        second.load(config(512));
        Chat chat;
        for (int turn = 1; turn <= 14; ++turn)
            ask(first, chat, sentence(turn, 50), 24);
        Chat again = chat;
        again.messages.resize(chat.messages.size() - 2);
        const std::string text = chat.messages[chat.messages.size() - 2].content;
        ask(second, again, text, 24);
        QVERIFY(chat.last.cache.cut.messages > 0);
        QVERIFY(again.last.cache.cut == chat.last.cache.cut);
        QVERIFY(again.last.promptTokenIds == chat.last.promptTokenIds);
        QVERIFY(again.last.tokenIds == chat.last.tokenIds);
        // The same request again finds everything; no cut is to blame for the rest.
        Chat third = again;
        third.messages.resize(again.messages.size() - 2);
        ask(second, third, text, 24);
        QCOMPARE(third.last.cache.missReason, api::MissReason::None);
        QCOMPARE(third.last.cache.reusedTokens,
                 static_cast<std::int64_t>(third.last.promptTokenIds.size() - 1) / kBlock * kBlock);
    }

    void beforeItIsSentTheCostNamesWhatIsLeftOut() {
        EngineHarness harness;
        harness.load(config(512));
        Chat chat;
        for (int turn = 1; turn <= 12; ++turn)
            ask(harness, chat, sentence(turn, 50), 24);
        chat.messages.push_back({"user", sentence(13, 50), {}});
        api::Request request = EngineHarness::request(900, api::DialogPrompt{chat.messages, true}, 24);
        harness.engine->measure(request);
        const auto cost = harness.eventsOf<api::MeasuredEvent>(RequestId(900));
        QCOMPARE(cost.size(), std::size_t(1));
        QVERIFY(cost[0].fits() && cost[0].cut.messages > 0);
        chat.messages.pop_back();
        ask(harness, chat, sentence(13, 50), 24);
        QVERIFY(chat.last.cache.cut == cost[0].cut);
        QCOMPARE(static_cast<std::int64_t>(chat.last.promptTokenIds.size()), cost[0].promptTokens);
        QCOMPARE(chat.last.cache.reusedTokens, cost[0].cachedTokens);
    }

    void aTurnThatDoesNotFitAloneIsRefusedWithNumbers() {
        EngineHarness harness;
        harness.load(config(512));
        Chat chat;
        ask(harness, chat, "Hello", 8);
        ask(harness, chat, sentence(2, 600), 8);
        QCOMPARE(chat.last.reason, api::FinishReason::Error);
        QCOMPARE(chat.last.error->code, ErrorCode::TooLong);
        QVERIFY2(chat.last.error->message.find("512") != std::string::npos, chat.last.error->message.c_str());
        QCOMPARE(chat.queued.cut.messages, 2); // all that could be left out was
    }

    void otherPromptsStopAtTheWindow() {
        EngineHarness harness;
        harness.load(config(128));
        const api::Answer tooLong = harness.run(EngineHarness::request(1, api::TextPrompt{sentence(1, 128)}));
        QCOMPARE(tooLong.error->code, ErrorCode::TooLong);
        api::Request request = EngineHarness::request(2, api::TextPrompt{sentence(1, 100)}, 400);
        request.sampling.ignoreEos = true;
        const api::Answer cut = harness.run(request);
        QCOMPARE(cut.reason, api::FinishReason::Length);
        QCOMPARE(cut.promptTokenIds.size() + cut.tokenIds.size(), std::size_t(128));
    }

    void withStopNothingIsLeftOut() {
        EngineHarness harness;
        api::EngineConfig stop = config(256);
        stop.windowPolicy = kv::WindowPolicy::Stop;
        harness.load(stop);
        Chat chat;
        for (int turn = 1; turn <= 3 && !chat.last.error; ++turn)
            ask(harness, chat, sentence(turn, 60), 16);
        QCOMPARE(chat.last.error->code, ErrorCode::TooLong);
        QCOMPARE(chat.queued.cut.messages, 0);
    }

    void aContinuedAnswerHasThePromptThatItWasBegunWith() {
        EngineHarness harness;
        harness.load(config(512));
        Chat chat;
        for (int turn = 1; turn <= 12; ++turn)
            ask(harness, chat, sentence(turn, 50), 24);
        QVERIFY(chat.last.cache.cut.messages > 0);
        api::DialogPrompt more{chat.messages, false, true};
        api::Request request = EngineHarness::request(m_next++, more, 8);
        request.owner = kChat;
        request.sampling.ignoreEos = true;
        const api::Answer answer = harness.run(request);
        QVERIFY(answer.promptTokenIds == chat.last.promptTokenIds);
        QCOMPARE(answer.tokenIds.size(), std::size_t(32));
    }

    void aWindowLargerThanTheModelsIsRefused() {
        EngineHarness harness;
        try {
            harness.load(config(5000));
            QFAIL("it was loaded");
        } catch (const std::runtime_error& error) {
            QVERIFY2(QString(error.what()).contains("--window 5000"), error.what());
        }
    }
};

QTEST_APPLESS_MAIN(TestEngineTrim)
#include "test_engine_trim.moc"
