// SPDX-License-Identifier: GPL-3.0-or-later
#include <QSignalSpy>
#include <QTest>

#include "tests/support/fake_chat_source.h"
#include "tests/support/fake_chat_store.h"
#include "ui/models/chat_controller.h"
#include "ui/models/chat_settings.h"

using namespace kvscope;
using namespace kvscope::ui;
using kvscope::test::FakeChatSource;
using kvscope::test::FakeChatStore;

namespace {

/// A controller with a loaded model over fakes.
struct Bench {
    FakeChatSource source;
    FakeChatStore store;
    ManualClock clock;
    qint64 wall = 1'773'327'600'000;
    ChatController chat{source, store, clock, [this] { return wall; }};

    Bench() {
        chat.setAutoTitles(false);
        chat.start();
        store.settleAll();
        chat.handleEvent(FakeChatSource::loaded());
    }
    /// Sends and commits; the request as the engine got it.
    const api::Request& ask(const QString& text) {
        if (!chat.send(text))
            qFatal("not sent");
        store.settleAll();
        return source.submitted.back();
    }
    void tick() {
        clock.advance(60'000'000);
        chat.tick();
    }
    const ChatMessage& last() const { return chat.messages()->at(chat.messages()->size() - 1); }
};

} // namespace

class TestChatController final : public QObject {
    Q_OBJECT

private slots:
    void committedBeforeSubmitted() {
        Bench b;
        QVERIFY(b.chat.send(QStringLiteral("Hello")));
        QCOMPARE(b.chat.messages()->size(), 2); // both rows are there at once
        QCOMPARE(b.source.submitted.size(), std::size_t(0));
        b.store.settle(); // the conversation exists
        QCOMPARE(b.source.submitted.size(), std::size_t(0));
        b.store.settle(); // the turn is committed
        QCOMPARE(b.store.turns.size(), std::size_t(1));
        QCOMPARE(b.source.submitted.size(), std::size_t(1));
        QCOMPARE(b.source.submitted[0].owner.value(), b.chat.current().conversation.id);
        QCOMPARE(b.chat.messages()->at(0).status, MessageStatus::Done);
        QCOMPARE(b.chat.current().conversation.title, QStringLiteral("Hello"));
        QCOMPARE(b.chat.conversations()->rowCount(), 2); // heading and chat
    }

    void slowCommitSaysSo() {
        Bench b;
        b.chat.send(QStringLiteral("Hello"));
        QCOMPARE(b.chat.messages()->at(0).status, MessageStatus::Committing);
        QTRY_COMPARE_WITH_TIMEOUT(b.chat.messages()->at(0).status, MessageStatus::Saving, 1000);
        QCOMPARE(b.source.submitted.size(), std::size_t(0));
        b.store.settleAll();
        QCOMPARE(b.chat.messages()->at(0).status, MessageStatus::Done);
    }

    void whatCannotBeSavedIsNotSent() {
        Bench b;
        QSignalSpy failed(&b.chat, &ChatController::sendFailed);
        b.chat.send(QStringLiteral("precious"));
        b.store.failNext({ErrorCode::Full, "The disk is full."});
        b.store.settleAll();
        QCOMPARE(failed.size(), 1);
        QCOMPARE(failed[0][0].value<Draft>().text, QStringLiteral("precious"));
        QCOMPARE(failed[0][1].toString(), QStringLiteral("The disk is full."));
        QCOMPARE(b.chat.messages()->size(), 0);
        QCOMPARE(b.source.submitted.size(), std::size_t(0));
        QVERIFY(b.chat.canSend());
    }

    void anAnswerFromQueueToReceipt() {
        Bench b;
        const api::Request request = b.ask(QStringLiteral("Hi"));
        b.chat.handleEvent(api::QueuedEvent{request.id, 40, {{0, 37}}});
        b.chat.handleEvent(api::WaitingEvent{request.id, 12, 9, 0, 0, false, OwnerId()});
        QCOMPARE(b.last().status, MessageStatus::Waiting);
        b.chat.handleEvent(api::PrefillEvent{request.id, 32, 36, 40, 0.1});
        QCOMPARE(b.last().status, MessageStatus::Reading);
        b.clock.advance(210'000'000);
        b.chat.handleEvent(FakeChatSource::tokens(request.id, "Hel", {1}, 41));
        b.chat.handleEvent(FakeChatSource::tokens(request.id, "lo", {2}, 42));
        QCOMPARE(b.last().status, MessageStatus::Writing);
        QCOMPARE(b.last().text, QStringLiteral("Hello"));
        QCOMPARE(b.last().receipt->cache.reusedTokens, std::int64_t(32));
        QCOMPARE(b.last().receipt->ttftMs, 210.0);
        QCOMPARE(b.chat.context().length, std::int64_t(42)); // the engine's own length
        QCOMPARE(b.chat.context().cached, std::int64_t(32));
        QCOMPARE(b.chat.context().limit, std::int64_t(2048));
        QCOMPARE(b.chat.messages()->at(0).tokenRange.second, std::int64_t(37));
        QCOMPARE(b.last().tokenRange, (std::pair<std::int64_t, std::int64_t>(40, 42)));
        QCOMPARE(b.chat.rowsOfTokens(39, 2), std::vector<int>{1});
        b.chat.handleEvent(FakeChatSource::finished(request, "Hello", {1, 2}));
        b.store.settleAll();
        QCOMPARE(b.last().status, MessageStatus::Done);
        QVERIFY(b.chat.canSend());
        const ChatMessage stored = b.store.messages[b.chat.current().conversation.id].back();
        QCOMPARE(stored.text, QStringLiteral("Hello"));
        QCOMPARE(stored.tokens, (std::vector<TokenId>{1, 2}));
        QCOMPARE(stored.receipt->cache.newBlocks, 2);
        QCOMPARE(stored.settings.maxTokens, defaultChatSettings().maxTokens);

        const api::Request next = b.ask(QStringLiteral("More"));
        const auto& dialog = std::get<api::DialogPrompt>(next.prompt);
        QCOMPARE(dialog.messages.size(), std::size_t(3));
        QCOMPARE(dialog.messages[1].tokens, (std::vector<TokenId>{1, 2})); // never tokenized again
        QVERIFY(next.id != request.id);
        QCOMPARE(b.store.turns.back().parent, stored.id);
    }

    void changesReachTheViewAtMostTwentyTimesASecond() {
        Bench b;
        const api::Request request = b.ask(QStringLiteral("Hi"));
        b.tick();
        QSignalSpy changed(b.chat.messages(), &QAbstractItemModel::dataChanged);
        for (int frame = 0; frame < 60; ++frame) { // one second of frames, a token each
            b.clock.advance(16'666'667);
            b.chat.handleEvent(FakeChatSource::tokens(request.id, "x", {frame}, 41 + frame));
            b.chat.tick();
        }
        QVERIFY2(changed.size() <= 20 && changed.size() >= 12, qPrintable(QString::number(changed.size())));
    }

    void stopInEveryStage_data() {
        QTest::addColumn<int>("stage");
        QTest::newRow("before the commit") << 0;
        QTest::newRow("before the first event") << 1;
        QTest::newRow("while reading") << 2;
        QTest::newRow("while writing") << 3;
    }
    void stopInEveryStage() {
        QFETCH(int, stage);
        Bench b;
        b.chat.send(QStringLiteral("Hi"));
        if (stage == 0) {
            b.chat.stop();
            b.store.settleAll();
            QCOMPARE(b.source.submitted.size(), std::size_t(0)); // never reached the engine
            b.store.settleAll();
        } else {
            b.store.settleAll();
            const api::Request request = b.source.submitted.back();
            if (stage >= 2)
                b.chat.handleEvent(api::PrefillEvent{request.id, 0, 16, 40, 0.3});
            if (stage >= 3)
                b.chat.handleEvent(FakeChatSource::tokens(request.id, "He", {1}, 41));
            b.chat.stop();
            QCOMPARE(b.source.cancelled, std::vector<RequestId>{request.id});
            b.chat.handleEvent(FakeChatSource::finished(request, stage >= 3 ? "He" : "",
                                                        stage >= 3 ? std::vector<TokenId>{1} : std::vector<TokenId>{},
                                                        api::FinishReason::Cancelled));
            b.store.settleAll();
        }
        QCOMPARE(b.last().status, MessageStatus::Stopped);
        QVERIFY(b.chat.canSend());
        const auto& stored = b.store.messages[b.chat.current().conversation.id];
        QCOMPARE(stored.size(), std::size_t(2));
        QCOMPARE(stored[0].text, QStringLiteral("Hi")); // the question stays
        QCOMPARE(stored[1].status, MessageStatus::Stopped);
        QCOMPARE(stored[1].text, stage >= 3 ? QStringLiteral("He") : QString());
    }

    void twoChatsAnswerAtOnce() {
        Bench b;
        const api::Request first = b.ask(QStringLiteral("First"));
        const ConversationId a = b.chat.current().conversation.id;
        b.chat.newConversation();
        const api::Request second = b.ask(QStringLiteral("Second"));
        QVERIFY(first.owner != second.owner);
        // The first goes on unseen.
        b.chat.handleEvent(FakeChatSource::tokens(first.id, "one", {1}, 20));
        b.chat.handleEvent(FakeChatSource::tokens(second.id, "two", {2}, 30));
        QCOMPARE(b.last().text, QStringLiteral("two"));
        QCOMPARE(b.chat.context().length, std::int64_t(30));
        b.tick();
        const int row = b.chat.conversations()->rowOf(a);
        QVERIFY(b.chat.conversations()->index(row).data(ConversationListModel::RunningRole).toBool());
        b.chat.handleEvent(FakeChatSource::finished(first, "one more", {1, 3}));
        b.store.settleAll();
        b.chat.select(a);
        QCOMPARE(b.last().text, QStringLiteral("one more"));
        QCOMPARE(b.chat.context().length, std::int64_t(20));
        QVERIFY(!b.chat.conversations()
                     ->index(b.chat.conversations()->rowOf(a))
                     .data(ConversationListModel::RunningRole)
                     .toBool());
    }

    void partialTextIsSavedAboutOnceASecond() {
        Bench b;
        const api::Request request = b.ask(QStringLiteral("Hi"));
        b.chat.handleEvent(FakeChatSource::tokens(request.id, "par", {1}, 41));
        QTRY_COMPARE_WITH_TIMEOUT(b.store.pending(), std::size_t(1), 1500);
        b.store.settleAll();
        QCOMPARE(b.store.progressSaves, std::vector<QString>{QStringLiteral("par")});
        b.chat.savePartials(); // nothing new
        QCOMPARE(b.store.pending(), std::size_t(0));
    }

    void afterACrashTheAnswerIsInterrupted() {
        Bench b;
        Conversation c;
        c.id = 9;
        c.title = QStringLiteral("Before");
        c.updatedMs = b.wall;
        b.store.conversations[9] = c;
        ChatMessage user;
        user.id = 100;
        user.text = QStringLiteral("Tell me");
        ChatMessage half;
        half.id = 101;
        half.role = MessageRole::Assistant;
        half.status = MessageStatus::Interrupted;
        half.text = QStringLiteral("Once up");
        half.tokens = {1, 2, 3};
        b.store.messages[9] = {user, half};
        b.chat.start();
        b.store.settle(); // the list is here, and with it the chat that was used last
        QCOMPARE(b.chat.current().conversation.id, ConversationId(9));
        QVERIFY(!b.chat.canSend()); // its messages are not here yet
        b.store.settleAll();
        QVERIFY(b.chat.canSend());
        const QModelIndex row = b.chat.messages()->index(1);
        QCOMPARE(row.data(ChatModel::EndLineRole).toString(), QStringLiteral("Interrupted after 3 tokens"));
        // What was written is part of the next dialog.
        const auto dialog = std::get<api::DialogPrompt>(b.ask(QStringLiteral("And then?")).prompt);
        QCOMPARE(dialog.messages[1].content, std::string("Once up"));
        QCOMPARE(b.store.turns.back().parent, MessageId(101));
    }

    void errorsAreNotText() {
        Bench b;
        const api::Request request = b.ask(QStringLiteral("Hi"));
        api::FinishedEvent event = FakeChatSource::finished(request, "", {}, api::FinishReason::Error);
        event.answer.error = Error{ErrorCode::TooLong, "Needs 5,120 tokens, the window holds 4,096."};
        b.chat.handleEvent(event);
        QCOMPARE(b.last().status, MessageStatus::Failed);
        QVERIFY(b.last().text.isEmpty());
        QCOMPARE(b.last().error, QStringLiteral("Needs 5,120 tokens, the window holds 4,096."));
    }

    void nothingIsSentWithoutAModel() {
        Bench b;
        b.chat.handleEvent(api::UnloadedEvent{});
        QVERIFY(!b.chat.canSend());
        QVERIFY(!b.chat.send(QStringLiteral("Hi")));
        b.chat.handleEvent(FakeChatSource::loaded());
        QVERIFY(!b.chat.send(QStringLiteral(" \n ")));
        QVERIFY(b.chat.send(QStringLiteral("Hi")));
        QVERIFY(!b.chat.send(QStringLiteral("Again"))); // one at a time in one chat
    }

    void deletingAndTakingItBack() {
        Bench b;
        const api::Request request = b.ask(QStringLiteral("Hi"));
        const ConversationId id = b.chat.current().conversation.id;
        QSignalSpy removed(&b.chat, &ChatController::removed);
        b.chat.remove(id);
        QCOMPARE(removed.size(), 1);
        QCOMPARE(b.source.cancelled, std::vector<RequestId>{request.id});
        QCOMPARE(b.chat.conversations()->rowCount(), 0);
        QVERIFY(b.chat.current().conversation.id != id);
        b.chat.handleEvent(FakeChatSource::finished(request, "", {}, api::FinishReason::Cancelled));
        b.store.settleAll();
        QCOMPARE(b.chat.conversations()->rowCount(), 0); // its end does not bring it back
        b.chat.undoRemove();
        b.store.settleAll();
        QCOMPARE(b.chat.current().conversation.id, id);
        QCOMPARE(b.chat.messages()->size(), 2);
    }

    void settingsAndPromptBelongToTheChat() {
        Bench b;
        api::SamplingParams warm = defaultChatSettings();
        warm.temperature = 1.5;
        b.chat.setSettings(warm);
        b.chat.setSystemPrompt(QStringLiteral("Be brief."));
        const api::Request request = b.ask(QStringLiteral("Hi"));
        QCOMPARE(request.sampling.temperature, 1.5);
        QCOMPARE(std::get<api::DialogPrompt>(request.prompt).messages[0].content, std::string("Be brief."));
        const ConversationId id = b.chat.current().conversation.id;
        QCOMPARE(b.store.conversations[id].systemPrompt, QStringLiteral("Be brief."));
        b.chat.handleEvent(FakeChatSource::finished(request, "ok", {1}));
        warm.temperature = 0.2;
        b.chat.setSettings(warm);
        b.store.settleAll();
        QCOMPARE(b.store.conversations[id].settings.temperature, 0.2);
        QCOMPARE(b.store.messages[id][1].settings.temperature, 1.5); // made with what it was made with
    }

    void memoryStaysFlatOverManyChats() {
        Bench b;
        for (int i = 0; i < 40; ++i) {
            b.chat.newConversation();
            const api::Request request = b.ask(QString::number(i));
            b.chat.handleEvent(FakeChatSource::finished(request, "ok", {1}));
            b.store.settleAll();
        }
        QCoreApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
        // The first chats were forgotten and are read again when asked for.
        b.chat.select(b.store.conversations.begin()->first);
        QVERIFY(!b.chat.current().loaded);
        b.store.settleAll();
        QCOMPARE(b.chat.messages()->size(), 2);
    }
};

QTEST_GUILESS_MAIN(TestChatController)
#include "test_chat_controller.moc"
