// SPDX-License-Identifier: GPL-3.0-or-later
//
// The chat side over the real engine: what versions, branches and continued answers cost, and that their text is that
// of an answer that was never cut off.
#include <QSignalSpy>
#include <QTest>

#include "engine/base/thinking.h"
#include "tests/support/engine_chat.h"
#include "tests/support/scripted_llama.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_llama.h"

using namespace kvscope;
using namespace kvscope::ui;
using kvscope::test::EngineChat;

namespace {

const QString kLong = QStringLiteral("A question that is long enough to fill several blocks of sixteen tokens, so that "
                                     "something of it can be shared by all the chats that begin like this one.");

} // namespace

class TestChatEngine final : public QObject {
    Q_OBJECT

    test::TempDir m_dir;
    std::string m_model;

    std::string scripted(const std::string& name, const std::string& text, const char* chatTemplate = nullptr) {
        test::ScriptedShape shape;
        shape.context = 1024;
        if (chatTemplate)
            shape.chatTemplate = chatTemplate;
        const std::string path = m_dir.file(name + ".gguf");
        if (!test::scriptedLlama(test::awkwardPieces(text), shape).write(path))
            qFatal("the model cannot be written");
        return path;
    }

private slots:
    void initTestCase() { m_model = scripted("plain", "One two three four five six seven eight nine ten eleven."); }

    void everyForkSharesTheBlocksOfItsPrefix() {
        EngineChat c(m_model);
        c.ask(kLong);
        const std::int64_t whole = c.last().receipt->cache.promptTokens;
        QVERIFY(whole > 64);
        c.ask(kLong);
        const std::int64_t second = c.last().receipt->cache.promptTokens;
        const auto reusable = [](std::int64_t tokens) { return (tokens - 1) / 16 * 16; };

        c.chat.regenerate(3); // the same prompt again
        c.finish();
        QCOMPARE(c.last().receipt->cache.promptTokens, second);
        QCOMPARE(c.last().receipt->cache.reusedTokens, reusable(second));
        QCOMPARE(c.last().receipt->cache.missReason, api::MissReason::None);

        c.chat.editMessage(2, QStringLiteral("Something else"));
        c.finish();
        QVERIFY(c.last().receipt->cache.reusedTokens >= whole / 16 * 16); // the first turn and its answer
        const ConversationId first = c.chat.current().conversation.id;

        c.chat.branch(1);
        c.finish();
        QVERIFY(c.chat.current().conversation.id != first);
        c.chat.send(QStringLiteral("In the branch"));
        c.step();
        c.step();
        QVERIFY(c.last().receipt || c.last().progress.reused > 0);
        c.finish();
        QVERIFY(c.last().receipt->cache.reusedTokens >= whole / 16 * 16);

        c.chat.select(first);
        c.finish();
        c.chat.editMessage(1, QStringLiteral("My own words."));
        c.finish();
        c.ask(QStringLiteral("And now?"));
        QVERIFY(c.last().receipt->cache.reusedTokens >= (whole - 16) / 16 * 16); // up to the edited answer
        c.chat.deleteMessage(1);
        c.finish();
        c.ask(QStringLiteral("Without it?"));
        QVERIFY(c.last().receipt->cache.reusedTokens > 0);
        c.source.engine.step(); // invariants are on in this build
        QVERIFY(!c.source.engine.faulted());
    }

    /// U13: whichever way an answer is cut, its text after Continue is that of the uncut one.
    void continuedTextIsThatOfAnUncutAnswer_data() {
        QTest::addColumn<QString>("text");
        QTest::newRow("family") << QStringLiteral("See 👨‍👩‍👧‍👦 and 🏳️‍🌈, then 𠮷.");
        QTest::newRow("Thai and Arabic") << QStringLiteral("สวัสดีครับ ยินดีต้อนรับ مرحبا بالعالم");
        QTest::newRow("stop string") << QStringLiteral("Count: 1, 2, STO 3, 4");
    }
    void continuedTextIsThatOfAnUncutAnswer() {
        QFETCH(QString, text);
        EngineChat c(scripted("awkward", text.toStdString()));
        api::SamplingParams settings = c.chat.current().conversation.settings;
        settings.stop = {"STOP"};
        c.chat.setSettings(settings);
        c.ask(kLong);
        QCOMPARE(c.last().text, text);
        const std::vector<TokenId> ids = c.last().tokens;
        for (int cut = 1; cut <= std::min(12, int(ids.size())); ++cut) { // at every limit of tokens ...
            c.setMaxTokens(cut);
            c.chat.newConversation();
            c.ask(kLong);
            QCOMPARE(c.last().tokens.size(), std::size_t(cut));
            QVERIFY(!c.last().text.contains(QChar(0xFFFD)));
            int rounds = 0;
            while (c.chat.canContinue(1) && ++rounds < 60) {
                const std::int64_t had = c.last().tokens.size();
                const std::int64_t prompt = c.last().receipt->cache.promptTokens;
                const QString before = c.last().text;
                QVERIFY(c.chat.continueAnswer());
                c.finish();
                QVERIFY(c.last().text.startsWith(before));
                const api::CacheReceipt& cache = c.last().receipt->cache;
                QVERIFY(cache.promptTokens >= prompt);
                QVERIFY(cache.reusedTokens >= (cache.promptTokens - 1) / 16 * 16);
                QVERIFY(std::int64_t(c.last().tokens.size()) >= had);
            }
            QCOMPARE(c.last().text, text);
            QCOMPARE(c.last().tokens, ids);
            QCOMPARE(c.last().status, MessageStatus::Done);
        }
        for (std::size_t cut = 1; cut < ids.size(); cut += 3) { // ... and by Stop
            c.setMaxTokens(200);
            c.chat.newConversation();
            c.chat.send(kLong);
            c.step();
            c.stopAfter(cut);
            if (!c.chat.canContinue(1))
                break; // it was over
            QVERIFY(c.chat.continueAnswer());
            c.finish();
            QCOMPARE(c.last().text, text);
            QCOMPARE(c.last().tokens, ids);
        }
    }

    /// Random numbers and penalties go on where they were.
    void aSampledAnswerGoesOnAsIfItHadNotBeenCut() {
        const std::string path = m_dir.file("tiny.gguf");
        QVERIFY(test::tinyLlama().write(path));
        EngineChat c(path);
        api::SamplingParams warm;
        warm.temperature = 1.2;
        warm.presencePenalty = 0.7;
        warm.repeatPenalty = 1.3;
        warm.seed = 11;
        warm.ignoreEos = true;
        warm.maxTokens = 40;
        c.chat.setSettings(warm);
        c.ask(QStringLiteral("Go on"));
        const std::vector<TokenId> ids = c.last().tokens;
        const QString text = c.last().text;
        QCOMPARE(ids.size(), std::size_t(40));
        warm.maxTokens = 10;
        c.chat.setSettings(warm);
        c.chat.newConversation();
        c.ask(QStringLiteral("Go on"));
        for (int i = 0; i < 3; ++i) {
            QVERIFY(c.chat.continueAnswer());
            c.finish();
        }
        QCOMPARE(c.last().tokens, ids);
        QCOMPARE(c.last().text, text);
    }

    // U9: a model that thinks.
    void thoughts_data() {
        QTest::addColumn<QString>("written"); ///< by the model
        QTest::addColumn<bool>("opened");     ///< by the template
        QTest::addColumn<int>("maxTokens");
        QTest::addColumn<QString>("thinking");
        QTest::addColumn<QString>("answer");
        QTest::addColumn<bool>("open");
        QTest::newRow("the template began it")
            << QStringLiteral("Let me see.\n</think>\n\nForty-two.") << true << 200 << QStringLiteral("Let me see.")
            << QStringLiteral("Forty-two.") << false;
        QTest::newRow("the limit came first")
            << QStringLiteral("Let me see, and see, and look at it once more before I say what I think.") << true << 12
            << QString() << QString() << true;
        QTest::newRow("the tag in a code fence")
            << QStringLiteral("Here:\n```xml\n<think>\n</think>\n```\nDone.") << false << 200 << QString()
            << QStringLiteral("Here:\n```xml\n<think>\n</think>\n```\nDone.") << false;
        QTest::newRow("the model began it") << QStringLiteral("<think>\nHm.\n</think>\nYes.") << false << 200
                                            << QStringLiteral("Hm.") << QStringLiteral("Yes.") << false;
    }
    void thoughts() {
        QFETCH(QString, written);
        QFETCH(bool, opened);
        QFETCH(int, maxTokens);
        QFETCH(bool, open);
        const char* const kOpens =
            "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}"
            "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n<think>\n' }}"
            "{% endif %}";
        EngineChat c(scripted("thinks", written.toStdString(), opened ? kOpens : nullptr));
        c.setMaxTokens(maxTokens);
        c.chat.setAutoTitles(true);
        c.ask(kLong);
        QCOMPARE(c.last().thinkingOpen, open);
        QVERIFY(!isRunning(c.last().status)); // nothing spins on
        if (open) {
            QVERIFY(written.startsWith(c.last().thinking) && !c.last().thinking.isEmpty());
            QVERIFY(
                c.rows().index(1).data(ChatModel::EndLineRole).toString().contains(QStringLiteral("while thinking")));
            while (c.chat.canContinue(1)) {
                QVERIFY(c.chat.continueAnswer());
                c.finish();
                const api::CacheReceipt& cache = c.last().receipt->cache;
                QVERIFY(cache.reusedTokens >= (cache.promptTokens - 1) / 16 * 16);
            }
            QCOMPARE(c.last().thinking, written);
            return;
        }
        QTEST(c.last().thinking, "thinking");
        QTEST(c.last().text, "answer");
        QVERIFY(!c.chat.current().conversation.title.contains(QStringLiteral("think")));
        const std::int64_t length = c.chat.context().length;
        c.ask(QStringLiteral("More"));
        // This template shows the model its thoughts again: all of it comes from the cache.
        QVERIFY(c.last().receipt->cache.reusedTokens >= length / 16 * 16 - 16);
        QVERIFY(c.last().receipt->cache.missReason != api::MissReason::Diverged);
    }

    void stoppedWhileThinkingWithContinue() {
        const QString written =
            QStringLiteral("<think>\nFirst this, then that, then a third thing.\n</think>\nSo: yes.");
        EngineChat c(scripted("stops", written.toStdString()));
        c.chat.send(kLong);
        c.step();
        c.stopAfter(9);
        QCOMPARE(c.last().status, MessageStatus::Stopped);
        QVERIFY(c.last().thinkingOpen && c.last().text.isEmpty());
        QVERIFY(c.chat.continueAnswer());
        c.finish();
        QCOMPARE(c.last().thinking, QStringLiteral("First this, then that, then a third thing."));
        QCOMPARE(c.last().text, QStringLiteral("So: yes."));
    }

    void aTitleIsASuffixOfTheChat() {
        EngineChat c(scripted("title", "A good title for it"));
        c.chat.setAutoTitles(true);
        c.ask(kLong);
        QCOMPARE(c.chat.current().conversation.title, QStringLiteral("A good title for it"));
        QCOMPARE(c.source.submitted.size(), std::size_t(2));
        QVERIFY(c.source.submitted[1].background && c.source.submitted[1].owner == OwnerId(kTitleOwner));
        const auto& asked = std::get<api::DialogPrompt>(c.source.submitted[1].prompt).messages;
        QCOMPARE(asked[0].content, kLong.toStdString());
        const std::int64_t length = c.chat.context().length;
        c.ask(QStringLiteral("More"));
        // The chat's own cache is as if the title had never been asked for.
        QVERIFY(c.last().receipt->cache.reusedTokens >= length / 16 * 16 - 16);
        QCOMPARE(c.last().receipt->cache.missReason, api::MissReason::None);
        QCOMPARE(c.source.submitted.size(), std::size_t(3)); // only after the first answer
        c.chat.newConversation();
        c.chat.setAutoTitles(false);
        c.ask(QStringLiteral("Off"));
        QCOMPARE(c.chat.current().conversation.title, QStringLiteral("Off"));
    }

    void anotherModelReadsTheTextAndNotTheIds() {
        const std::string other = scripted("other", "Uno dos tres cuatro cinco seis siete.");
        const auto given = [](EngineChat& c, std::size_t message) {
            return std::get<api::DialogPrompt>(c.source.submitted.back().prompt).messages[message];
        };
        EngineChat c(m_model);
        const ChatMessage first = c.ask(QStringLiteral("Hi"));
        QVERIFY(!first.tokens.empty());
        const auto use = [&](const std::string& model) {
            c.config.modelPath = model;
            c.source.load(c.config);
            c.drain();
            QVERIFY(c.chat.canSend());
        };
        use(other);
        const ChatMessage second = c.ask(QStringLiteral("More"));
        QCOMPARE(QString::fromStdString(given(c, 1).content), first.text);
        QVERIFY(given(c, 1).tokens.empty()); // they are of the other's tokenizer
        QCOMPARE(second.model, QString::fromStdString(other));
        QVERIFY2(second.text.startsWith(QStringLiteral("Uno")), qPrintable(second.text));
        QCOMPARE(second.receipt->cache.reusedTokens, std::int64_t(0));
        use(m_model);
        const ChatMessage third = c.ask(QStringLiteral("And again"));
        QCOMPARE(given(c, 1).tokens, first.tokens); // its own are read as they were drawn
        QVERIFY(given(c, 3).tokens.empty());
        QVERIFY2(third.text.startsWith(QStringLiteral("One")), qPrintable(third.text));
        QCOMPARE(c.rows().at(1).model, QString::fromStdString(m_model));
        QCOMPARE(c.rows().at(3).model, QString::fromStdString(other));
    }

    void whatDoesNotFitIsNotSent() {
        EngineChat c(m_model, 64, 256);
        QSignalSpy asked(&c.chat, &ChatController::overLong);
        const QString text = QString(600, QLatin1Char('x')); // a token each
        QVERIFY(c.chat.send(text));
        QVERIFY(!c.chat.canSend() && c.chat.answering()); // it is being counted
        c.finish();
        QCOMPARE(asked.size(), 1);
        QCOMPARE(c.rows().size(), 0); // nothing was sent, nothing stored
        QVERIFY(c.store.turns.empty());
        const OverLong* choice = c.chat.tooLong();
        QVERIFY(choice);
        QVERIFY(choice->needed > 600 && choice->needed < 700);
        QCOMPARE(choice->limit, std::int64_t(256));
        QCOMPARE(choice->shortenBy(), choice->needed - 256);
        QVERIFY(choice->larger);
        QCOMPARE(choice->larger->maxModelLen, std::int64_t(1024));
        QVERIFY(choice->larger->poolBytes > 0);
        // Shortened by what it said, it fits; by one less, it does not.
        const auto shortened = int(choice->shortenBy());
        QCOMPARE(c.chat.takeTooLong().message.text, text);
        QVERIFY(c.chat.send(text.mid(shortened - 1)));
        c.finish();
        QVERIFY(c.chat.tooLong());
        QCOMPARE(c.chat.tooLong()->shortenBy(), std::int64_t(1));
        c.chat.takeTooLong();
        QVERIFY(c.chat.send(text.mid(shortened)));
        c.finish();
        QCOMPARE(c.rows().size(), 2);
        QVERIFY(c.last().error.isEmpty());
    }

    void stoppedWhileItIsCounted() {
        EngineChat c(m_model, 64, 256);
        QSignalSpy back(&c.chat, &ChatController::sendFailed);
        c.chat.send(QString(250, QLatin1Char('x')));
        c.chat.stop();
        c.finish();
        QCOMPARE(back.size(), 1);
        QCOMPARE(back[0][0].value<Draft>().text.size(), 250);
        QCOMPARE(c.rows().size(), 0);
        QVERIFY(c.chat.canSend());
    }

    void aLargerWindowTakesIt() {
        EngineChat c(m_model, 20, 256);
        QSignalSpy asked(&c.chat, &ChatController::overLong);
        QSignalSpy reload(&c.chat, &ChatController::reloadWanted);
        const QString text = QString(600, QLatin1Char('x'));
        c.chat.send(text);
        c.finish();
        QVERIFY(c.chat.tooLong() && c.chat.tooLong()->larger);
        QCOMPARE(c.chat.tooLong()->larger->numBlocks, std::int64_t(1024 / 16)); // the pool was the limit as well
        QVERIFY(c.chat.enlargeAndSend());
        QCOMPARE(reload.size(), 1);
        c.config.maxModelLen = reload[0][0].toLongLong();
        c.config.numBlocks = reload[0][1].toLongLong();
        c.source.load(c.config);
        c.finish();
        QVERIFY(!c.chat.tooLong());
        QCOMPARE(c.rows().size(), 2);
        QCOMPARE(c.rows().at(0).text, text);
        QCOMPARE(c.last().status, MessageStatus::Done);
    }

    void beyondTheModelsContextNothingHelps() {
        EngineChat c(m_model);
        QSignalSpy asked(&c.chat, &ChatController::overLong);
        c.chat.send(QString(3000, QLatin1Char('x')));
        c.finish();
        QVERIFY(c.chat.tooLong() && !c.chat.tooLong()->larger);
        QVERIFY(c.chat.tooLong()->whyNotLarger.contains(QStringLiteral("1,024")));
        QVERIFY(!c.chat.enlargeAndSend());
    }

    void figuresForTheComposer() {
        EngineChat c(m_model);
        std::int64_t tokens = -1;
        c.chat.countTokens(QStringLiteral("abcde"), [&](std::int64_t n) { tokens = n; });
        c.drain();
        QCOMPARE(tokens, std::int64_t(5));
        c.ask(kLong);
        std::optional<api::MeasuredEvent> seen;
        c.chat.predict(QStringLiteral("And now?"), [&](const api::MeasuredEvent& e) { seen = e; });
        c.drain();
        QVERIFY(seen);
        c.ask(QStringLiteral("And now?"));
        const api::CacheReceipt& cache = c.last().receipt->cache;
        QCOMPARE(seen->promptTokens, cache.promptTokens);
        QCOMPARE(seen->cachedTokens, cache.reusedTokens);
    }

    void aTitleTakesNothingFromAnybody() {
        std::uint64_t evictions[2], cached[2];
        for (const bool titles : {false, true}) {
            EngineChat c(m_model, 18); // a pool in which the chat leaves no room for a title
            c.chat.setAutoTitles(titles);
            c.ask(kLong);
            const auto sample = c.source.engine.sample();
            evictions[titles] = sample.totalEvictions;
            cached[titles] = sample.blocksByState[std::size_t(kv::BlockState::Cached)];
            QCOMPARE(c.source.submitted.size(), std::size_t(titles ? 2 : 1));
            QVERIFY(c.chat.current().conversation.title.startsWith(QStringLiteral("A question that"))); // first words
        }
        QCOMPARE(evictions[1], evictions[0]);
        QCOMPARE(cached[1], cached[0]);
    }
};

QTEST_GUILESS_MAIN(TestChatEngine)
#include "test_chat_engine.moc"
