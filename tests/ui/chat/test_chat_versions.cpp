// SPDX-License-Identifier: GPL-3.0-or-later
//
// Versions of messages, branches, answers that were cut off, and the message that waits.
#include <QSignalSpy>
#include <QTest>

#include "tests/support/fake_chat_source.h"
#include "tests/support/fake_chat_store.h"
#include "ui/models/chat_controller.h"
#include "ui/models/chat_settings.h"
#include "ui/models/chat_words.h"

using namespace kvscope;
using namespace kvscope::ui;
using kvscope::test::FakeChatSource;
using kvscope::test::FakeChatStore;

namespace {

struct Bench {
    FakeChatSource source;
    FakeChatStore store;
    ManualClock clock;
    ChatController chat{source, store, clock, [] { return qint64(1'773'327'600'000); }};

    Bench() {
        chat.setAutoTitles(false);
        chat.start();
        store.settleAll();
        chat.handleEvent(FakeChatSource::loaded());
    }
    void answer(const std::string& text, std::vector<TokenId> ids = {1, 2},
                api::FinishReason reason = api::FinishReason::Stop) {
        store.settleAll();
        chat.handleEvent(FakeChatSource::finished(source.submitted.back(), text, std::move(ids), reason));
        store.settleAll();
    }
    void turn(const QString& question, const std::string& text) {
        if (!chat.send(question))
            qFatal("not sent");
        answer(text);
    }
    QString shown() const {
        QStringList texts;
        for (int row = 0; row < chat.messages()->size(); ++row) {
            const ChatMessage& m = chat.messages()->at(row);
            texts << (m.versions > 1 ? QStringLiteral("%1 %2/%3").arg(m.text).arg(m.version).arg(m.versions) : m.text);
        }
        return texts.join(QStringLiteral(" | "));
    }
    /// The messages that the engine was given last: "role:content".
    QString dialog() const {
        QStringList texts;
        for (const api::DialogMessage& m : std::get<api::DialogPrompt>(source.submitted.back().prompt).messages)
            texts << QString::fromStdString(m.role.substr(0, 1) + ":" + m.content);
        return texts.join(QStringLiteral(" | "));
    }
    ConversationId id() const { return chat.current().conversation.id; }
    /// As after a restart: everything from the store.
    QString shownAfterReload() {
        ChatController other{source, store, clock, [] { return qint64(1'773'327'600'000); }};
        other.start();
        store.settleAll();
        other.select(id());
        store.settleAll();
        QStringList texts;
        for (int row = 0; row < other.messages()->size(); ++row) {
            const ChatMessage& m = other.messages()->at(row);
            texts << (m.versions > 1 ? QStringLiteral("%1 %2/%3").arg(m.text).arg(m.version).arg(m.versions) : m.text);
        }
        return texts.join(QStringLiteral(" | "));
    }
};

} // namespace

class TestChatVersions final : public QObject {
    Q_OBJECT

private slots:
    void anotherAnswerKeepsTheFirst() {
        Bench b;
        b.turn("Hi", "one");
        b.turn("More", "two");
        QVERIFY(b.chat.regenerate(1));
        QCOMPARE(b.shown(), QStringLiteral("Hi |  2/2"));
        b.answer("other");
        QCOMPARE(b.dialog(), QStringLiteral("u:Hi"));
        QCOMPARE(b.shown(), QStringLiteral("Hi | other 2/2"));
        QVERIFY(b.chat.showVersion(1, 1)); // and with it what was said after it
        b.store.settleAll();
        QCOMPARE(b.shown(), QStringLiteral("Hi | one 1/2 | More | two"));
        b.store.settleAll();
        QCOMPARE(b.shownAfterReload(), b.shown());
        QVERIFY(b.chat.showVersion(1, 2));
        b.store.settleAll();
        b.turn("And?", "three");
        QCOMPARE(b.dialog(), QStringLiteral("u:Hi | a:other | u:And?"));
        QCOMPARE(b.shownAfterReload(), QStringLiteral("Hi | other 2/2 | And? | three"));
        QVERIFY(!b.chat.showVersion(1, 3));
        QVERIFY(!b.chat.regenerate(9));
    }

    void anEditedQuestionIsAnsweredAnew() {
        Bench b;
        b.turn("Hi", "one");
        b.turn("More", "two");
        QVERIFY(b.chat.editMessage(2, "Less"));
        QCOMPARE(b.shown(), QStringLiteral("Hi | one | Less 2/2 | "));
        b.answer("three");
        QCOMPARE(b.dialog(), QStringLiteral("u:Hi | a:one | u:Less"));
        QVERIFY(b.chat.editMessage(0, "Hello")); // the first one has siblings too
        b.answer("four");
        QCOMPARE(b.dialog(), QStringLiteral("u:Hello"));
        QCOMPARE(b.shown(), QStringLiteral("Hello 2/2 | four"));
        b.chat.showVersion(0, 1);
        b.store.settleAll();
        QCOMPARE(b.shown(), QStringLiteral("Hi 1/2 | one | Less 2/2 | three"));
        const std::size_t requests = b.source.submitted.size();
        QVERIFY(b.chat.editMessage(0, "Hi")); // the same text changes nothing
        QCOMPARE(b.source.submitted.size(), requests);
        QVERIFY(!b.chat.editMessage(0, "  "));
    }

    void anEditedAnswerIsTakenAsItStands() {
        Bench b;
        b.turn("Hi", "one");
        b.turn("More", "two");
        const std::size_t requests = b.source.submitted.size();
        QVERIFY(b.chat.editMessage(1, "uno"));
        QVERIFY(!b.chat.canSend()); // until it is on the disk
        b.store.settleAll();
        QCOMPARE(b.source.submitted.size(), requests);
        QCOMPARE(b.shown(), QStringLiteral("Hi | uno 2/2"));
        b.turn("And?", "three");
        QCOMPARE(b.dialog(), QStringLiteral("u:Hi | a:uno | u:And?"));
        QVERIFY(std::get<api::DialogPrompt>(b.source.submitted.back().prompt).messages[1].tokens.empty());
        QCOMPARE(b.shownAfterReload(), b.shown());
    }

    void whatCannotBeSavedChangesNothing() {
        Bench b;
        b.turn("Hi", "one");
        b.turn("More", "two");
        QSignalSpy failed(&b.chat, &ChatController::sendFailed);
        QSignalSpy trouble(&b.chat, &ChatController::storeFailed);
        const QString before = b.shown();
        const std::size_t requests = b.source.submitted.size();
        b.store.failNext({ErrorCode::Full, "The disk is full."});
        QVERIFY(b.chat.editMessage(0, "Hello"));
        b.store.settleAll();
        QCOMPARE(failed.size(), 1);
        QCOMPARE(b.shown(), before);
        b.store.failNext({ErrorCode::Full, "The disk is full."});
        QVERIFY(b.chat.regenerate(1));
        b.store.settleAll();
        QCOMPARE(b.shown(), before);
        b.store.failNext({ErrorCode::Full, "The disk is full."});
        QVERIFY(b.chat.editMessage(1, "uno"));
        b.store.settleAll();
        QCOMPARE(b.shown(), before);
        b.store.failNext({ErrorCode::Full, "The disk is full."});
        QVERIFY(b.chat.deleteMessage(1));
        b.store.settleAll();
        QCOMPARE(b.shown(), before);
        QCOMPARE(trouble.size(), 3);
        QCOMPARE(b.source.submitted.size(), requests);
        QVERIFY(b.chat.canSend());
    }

    void aBranchIsAChatOfItsOwn() {
        Bench b;
        b.turn("Hi", "one");
        b.turn("More", "two");
        b.chat.rename(b.id(), "Talk");
        const ConversationId first = b.id();
        QVERIFY(b.chat.branch(1));
        b.store.settleAll();
        QVERIFY(b.id() != first);
        QCOMPARE(b.chat.current().conversation.title, QStringLiteral("Talk (branch)"));
        QCOMPARE(b.shown(), QStringLiteral("Hi | one"));
        b.turn("Other", "three");
        QCOMPARE(b.dialog(), QStringLiteral("u:Hi | a:one | u:Other"));
        const auto& dialog = std::get<api::DialogPrompt>(b.source.submitted.back().prompt);
        QCOMPARE(dialog.messages[1].tokens, (std::vector<TokenId>{1, 2})); // its blocks are found by its ids
        b.chat.select(first);
        b.store.settleAll();
        QCOMPARE(b.shown(), QStringLiteral("Hi | one | More | two"));
        QCOMPARE(words::branchTitle(QStringLiteral("Talk (branch)")), QStringLiteral("Talk (branch 2)"));
        QCOMPARE(words::branchTitle(QStringLiteral("Talk (branch 2)")), QStringLiteral("Talk (branch 3)"));
    }

    void aMessageInTheMiddleIsDeleted() {
        Bench b;
        b.turn("Hi", "one");
        b.turn("More", "two");
        QVERIFY(b.chat.deleteMessage(1));
        b.store.settleAll();
        QCOMPARE(b.shown(), QStringLiteral("Hi | More | two"));
        QCOMPARE(b.shownAfterReload(), b.shown());
        b.turn("And?", "three");
        QCOMPARE(b.dialog(), QStringLiteral("u:Hi | u:More | a:two | u:And?")); // the engine adapts, if it must
        QVERIFY(b.chat.deleteMessage(0));
        b.store.settleAll();
        QCOMPARE(b.shown(), QStringLiteral("More | two | And? | three"));
        while (b.chat.messages()->size() > 0) {
            QVERIFY(b.chat.deleteMessage(b.chat.messages()->size() - 1));
            b.store.settleAll();
        }
        QCOMPARE(b.shownAfterReload(), QString());
        b.turn("New", "start");
        QCOMPARE(b.shownAfterReload(), QStringLiteral("New | start"));
    }

    void deletingOneOfSeveralShowsAnother() {
        Bench b;
        b.turn("Hi", "one");
        b.chat.regenerate(1);
        b.answer("two");
        b.chat.regenerate(1);
        b.answer("three");
        QCOMPARE(b.shown(), QStringLiteral("Hi | three 3/3"));
        QVERIFY(b.chat.deleteMessage(1));
        b.store.settleAll();
        QCOMPARE(b.shown(), QStringLiteral("Hi | two 2/2"));
        QCOMPARE(b.shownAfterReload(), b.shown());
        QVERIFY(b.chat.deleteMessage(0)); // both answers begin the chat now
        b.store.settleAll();
        QCOMPARE(b.shown(), QStringLiteral("two 2/2"));
        QVERIFY(b.chat.showVersion(0, 1));
        b.store.settleAll();
        QCOMPARE(b.shown(), QStringLiteral("one 1/2"));
        QVERIFY(!b.chat.regenerate(0)); // there is no question any more
    }

    void continueWritesOnFromAllTokens() {
        Bench b;
        b.chat.send("Hi");
        b.answer("Once up", {1, 2, 3}, api::FinishReason::Cancelled);
        QVERIFY(b.chat.canContinue(1));
        QVERIFY(!b.chat.canContinue(0));
        const MessageId id = b.chat.messages()->at(1).id;
        QVERIFY(b.chat.continueAnswer());
        b.store.settleAll();
        QCOMPARE(b.store.reopened, std::vector<MessageId>{id});
        const api::Request request = b.source.submitted.back();
        const auto& dialog = std::get<api::DialogPrompt>(request.prompt);
        QVERIFY(dialog.continueLast && !dialog.addGenerationPrompt);
        QCOMPARE(dialog.messages.back().tokens, (std::vector<TokenId>{1, 2, 3}));
        b.chat.handleEvent(api::QueuedEvent{request.id, 43, {{0, 40}, {40, 43}}, {}, false, {1, 2, 3}, "Once up"});
        b.chat.handleEvent(FakeChatSource::tokens(request.id, "on a", {4}, 44));
        QCOMPARE(b.chat.messages()->at(1).text, QStringLiteral("Once upon a"));
        QCOMPARE(b.chat.messages()->at(1).tokens, (std::vector<TokenId>{1, 2, 3, 4}));
        QCOMPARE(b.chat.messages()->at(1).tokenRange, (std::pair<std::int64_t, std::int64_t>(40, 44)));
        b.answer("Once upon a time", {1, 2, 3, 4, 5});
        QCOMPARE(b.shown(), QStringLiteral("Hi | Once upon a time"));
        QCOMPARE(b.chat.messages()->at(1).id, id); // the same message
        QVERIFY(!b.chat.canContinue(1));
        QVERIFY(!b.chat.continueAnswer());
    }

    void whatCannotBeContinuedKeepsWhatItHas() {
        Bench b;
        b.chat.send("Hi");
        b.answer("Once up", {1, 2, 3}, api::FinishReason::Length);
        QVERIFY(b.chat.continueAnswer());
        b.store.settleAll();
        api::FinishedEvent refused =
            FakeChatSource::finished(b.source.submitted.back(), "", {}, api::FinishReason::Error);
        refused.answer.error = Error{ErrorCode::TooLong, "No room."};
        b.chat.handleEvent(refused);
        QCOMPARE(b.shown(), QStringLiteral("Hi | Once up"));
        QCOMPARE(b.chat.messages()->at(1).tokens, (std::vector<TokenId>{1, 2, 3}));
        QCOMPARE(b.chat.messages()->at(1).error, QStringLiteral("No room."));
        QVERIFY(b.chat.canContinue(1));
        b.store.settleAll();
        b.store.failNext({ErrorCode::Full, "The disk is full."});
        QVERIFY(b.chat.continueAnswer());
        b.store.settleAll();
        QCOMPARE(b.shown(), QStringLiteral("Hi | Once up"));
        QCOMPARE(b.chat.messages()->at(1).status, MessageStatus::Failed);
    }

    void discardRemovesIt() {
        Bench b;
        b.turn("Hi", "one");
        QVERIFY(!b.chat.discardAnswer()); // it is whole
        b.chat.regenerate(1);
        b.answer("tw", {7}, api::FinishReason::Cancelled);
        QVERIFY(b.chat.discardAnswer());
        b.store.settleAll();
        QCOMPARE(b.shown(), QStringLiteral("Hi | one"));
        b.chat.send("More");
        b.answer("", {}, api::FinishReason::Cancelled); // before the first token
        QVERIFY(!b.chat.canContinue(3));
        QVERIFY(b.chat.discardAnswer());
        b.store.settleAll();
        QCOMPARE(b.shown(), QStringLiteral("Hi | one | More"));
        QVERIFY(b.chat.regenerate(2)); // the question can still be answered
        b.answer("two");
        QCOMPARE(b.shownAfterReload(), QStringLiteral("Hi | one | More | two"));
    }

    void nothingChangesUnderARunningAnswer() {
        Bench b;
        b.turn("Hi", "one");
        b.chat.send("More");
        b.store.settleAll();
        QVERIFY(!b.chat.canChange());
        QVERIFY(!b.chat.regenerate(1));
        QVERIFY(!b.chat.editMessage(0, "x"));
        QVERIFY(!b.chat.editMessage(1, "x"));
        QVERIFY(!b.chat.deleteMessage(0));
        QVERIFY(!b.chat.branch(0));
        QVERIFY(!b.chat.continueAnswer());
        QVERIFY(!b.chat.discardAnswer());
        QCOMPARE(b.shown(), QStringLiteral("Hi | one | More | "));
    }

    void aThoughtIsKeptApart() {
        Bench b;
        b.chat.send("Hi");
        b.store.settleAll();
        const api::Request request = b.source.submitted.back();
        b.chat.handleEvent(FakeChatSource::tokens(request.id, "<thi", {1}, 41));
        QCOMPARE(b.shown(), QStringLiteral("Hi | "));
        b.chat.handleEvent(FakeChatSource::tokens(request.id, "nk>\nhm", {2}, 42));
        const auto answer = [&]() -> const ChatMessage& { return b.chat.messages()->at(1); };
        QVERIFY(answer().thinkingOpen);
        QCOMPARE(answer().thinking, QStringLiteral("hm"));
        b.clock.advance(2'000'000'000);
        b.chat.handleEvent(FakeChatSource::tokens(request.id, "</think>\n\nYes", {3}, 43));
        QVERIFY(!answer().thinkingOpen);
        QCOMPARE(answer().text, QStringLiteral("Yes"));
        QCOMPARE(answer().thinkingTokens, 3);
        QCOMPARE(answer().thinkingSeconds, 2.0);
        b.chat.handleEvent(FakeChatSource::tokens(request.id, ".", {4}, 44));
        QCOMPARE(answer().text, QStringLiteral("Yes."));
        b.answer("<think>\nhm</think>\n\nYes.", {1, 2, 3, 4});
        QCOMPARE(answer().text, QStringLiteral("Yes."));
        QCOMPARE(b.store.messages[b.id()].back().thinking, QStringLiteral("hm"));
        QCOMPARE(b.store.messages[b.id()].back().text, QStringLiteral("Yes."));
        b.chat.send("More");
        b.store.settleAll();
        QCOMPARE(std::get<api::DialogPrompt>(b.source.submitted.back().prompt).messages[1].thinking, std::string("hm"));
    }

    void stoppedWhileThinking() {
        Bench b;
        b.chat.send("Hi");
        b.store.settleAll();
        const api::Request request = b.source.submitted.back();
        b.chat.handleEvent(api::QueuedEvent{request.id, 40, {{0, 37}}, {}, true, {}, {}});
        b.chat.handleEvent(FakeChatSource::tokens(request.id, "hm", {1, 2}, 42));
        b.answer("hm so", {1, 2, 3}, api::FinishReason::Length);
        const ChatMessage& m = b.chat.messages()->at(1);
        QCOMPARE(m.thinking, QStringLiteral("hm so"));
        QVERIFY(m.thinkingOpen && m.text.isEmpty());
        QVERIFY2(words::endLine(m).contains(QStringLiteral("while thinking")), qPrintable(words::endLine(m)));
        QVERIFY(b.chat.canContinue(1));
    }

    void oneMessageWaits() {
        Bench b;
        QVERIFY(!b.chat.queueMessage("x")); // nothing to wait for
        b.chat.send("Hi");
        b.store.settleAll();
        QVERIFY(b.chat.queueMessage("firts"));
        QCOMPARE(b.chat.takeQueued().text, QStringLiteral("firts")); // to edit it
        QVERIFY(b.chat.queueMessage("first"));
        QVERIFY(b.chat.queueMessage("second")); // replaces it
        b.answer("one");
        QVERIFY(b.chat.queued().isEmpty());
        QCOMPARE(b.dialog(), QStringLiteral("u:Hi | a:one | u:second"));
        b.chat.queueMessage("third");
        b.chat.newConversation(); // it is sent although its chat is not shown
        b.answer("two");
        QCOMPARE(b.dialog(), QStringLiteral("u:Hi | a:one | u:second | a:two | u:third"));
    }

    void aMessageThatWaitsForAFailureComesBack() {
        Bench b;
        QSignalSpy failed(&b.chat, &ChatController::sendFailed);
        b.chat.send("Hi");
        b.store.settleAll();
        b.chat.queueMessage("second");
        b.answer("", {}, api::FinishReason::Error);
        QCOMPARE(failed.size(), 1);
        QCOMPARE(failed[0][0].value<Draft>().text, QStringLiteral("second"));
        QCOMPARE(b.source.submitted.size(), std::size_t(1));
    }
};

QTEST_GUILESS_MAIN(TestChatVersions)
#include "test_chat_versions.moc"
