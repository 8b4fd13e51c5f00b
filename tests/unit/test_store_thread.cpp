// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTest>

#include <atomic>
#include <fstream>

#include "tests/support/fault_vfs.h"
#include "tests/support/store_harness.h"

using namespace kvscope;
using namespace kvscope::store;
using kvscope::test::kMillisecond;

namespace {

constexpr int kSqliteFull = 13;

struct Harness : test::StoreHarness {
    template <class Wanted> int count() {
        while (auto event = store->nextEvent())
            seen.push_back(*event);
        int n = 0;
        for (const StoreEvent& event : seen)
            n += std::holds_alternative<Wanted>(event);
        return n;
    }
    ConversationContent content(ConversationId chat) {
        store->loadConversation(chat);
        return wait<ContentEvent>().content;
    }
    void settle() {
        while (store->unsavedWrites() > 0)
            QTest::qSleep(1);
    }
};

} // namespace

class TestStoreThread : public QObject {
    Q_OBJECT
private slots:
    void opensListsAndAnswersInOrder() {
        Harness h;
        h.start();
        const auto opened = h.wait<OpenedEvent>();
        QVERIFY(opened.conversations.empty());
        QCOMPARE(opened.recovery.uncleanRuns, 0);
        std::vector<JobId> jobs;
        for (int i = 0; i < 200; ++i)
            jobs.push_back(h.store->createConversation({std::to_string(i), "", "", ""}));
        const JobId list = h.store->listConversations();
        const auto all = h.wait<ConversationsEvent>();
        QCOMPARE(all.job, list);
        QCOMPARE(all.conversations.size(), std::size_t(200)); // it was asked after all of them
        std::size_t next = 0;
        for (const StoreEvent& event : h.seen)
            if (const auto* made = std::get_if<ConversationCreatedEvent>(&event)) {
                QCOMPARE(made->job, jobs[next]);
                QCOMPARE(made->conversation.title, std::to_string(next));
                ++next;
            }
        QCOMPARE(next, std::size_t(200));
    }

    void userMessageIsOnTheDiskWhenItsEventComes() {
        Harness h;
        h.start();
        const auto chat = h.newChat();
        const auto turn = h.turn(chat, "hello");
        QCOMPARE(h.onDisk("SELECT text FROM message WHERE id = " + std::to_string(turn.user.id.value())),
                 std::string("hello"));
        QCOMPARE(h.onDisk("SELECT status FROM message WHERE id = " + std::to_string(turn.answer->id.value())),
                 std::string("generating"));
    }

    void slowCommitNeverBlocksTheCallerAndIsVisible() {
        std::atomic<bool> slow{false}; // outlives the store thread, which commits to the last
        Harness h;
        h.options.database.beforeCommit = [&] {
            while (slow)
                QTest::qSleep(1);
        };
        h.start();
        const auto chat = h.newChat();
        slow = true;
        const Nanos before = h.clock.now();
        NewTurn turn;
        turn.conversation = chat;
        turn.text = "saving...";
        const JobId job = h.store->addUserMessage(turn);
        for (int i = 0; i < 1000; ++i)
            h.store->saveDraft(chat, {std::string(1000, 'x'), {}});
        QVERIFY(h.clock.now() - before < 300 * kMillisecond);
        QTest::qSleep(30);
        QVERIFY(!h.store->nextEvent());
        QVERIFY(h.store->waitingFor(job) >= 30 * kMillisecond); // the window shows "Saving..."
        QCOMPARE(h.onDisk("SELECT count(*) FROM message"), std::string("0"));
        slow = false;
        QCOMPARE(h.wait<TurnCommittedEvent>().job, job);
        QCOMPARE(h.store->waitingFor(job), Nanos(0));
    }

    void progressCoalescesToTheLatestAndTheEndWins() {
        std::atomic<int> commits{0}; // outlives the store thread, which commits to the last
        Harness h;
        h.options.database.beforeCommit = [&] { ++commits; };
        h.options.progressInterval = 50 * kMillisecond;
        h.start();
        const auto chat = h.newChat();
        const auto answer = h.turn(chat, "q").answer->id;
        const int before = commits;
        const Nanos begin = h.clock.now();
        std::string text;
        while (h.clock.now() - begin < 300 * kMillisecond) {
            text += "word ";
            h.store->saveProgress({answer, text, "", {}});
            QTest::qSleep(1);
        }
        const auto passed = (h.clock.now() - begin) / kMillisecond;
        QVERIFY2(commits - before >= 2 && commits - before <= passed / 50 + 1, qPrintable(QString::number(commits)));
        h.settle(); // the newest state is saved without another call
        QCOMPARE(h.onDisk("SELECT text FROM message WHERE role = 'assistant'"), text);
        h.store->saveProgress({answer, "stale", "", {}});
        AnswerEnd end;
        end.answer = answer;
        end.text = "the whole answer";
        h.store->endAnswer(end);
        h.wait<DoneEvent>();
        h.settle();
        QTest::qSleep(60);
        QCOMPARE(h.onDisk("SELECT text FROM message WHERE role = 'assistant'"), std::string("the whole answer"));
        QCOMPARE(h.onDisk("SELECT status FROM message WHERE role = 'assistant'"), std::string("complete"));
    }

    void sendingEmptiesTheDraftEvenOneThatStillWaits() {
        Harness h;
        h.options.progressInterval = 30 * kMillisecond;
        h.start();
        const auto chat = h.newChat();
        h.store->saveDraft(chat, {"hel", {}});
        h.settle();
        h.store->saveDraft(chat, {"hello", {}});
        h.turn(chat, "hello");
        h.settle();
        QTest::qSleep(40);
        QCOMPARE(h.onDisk("SELECT draft FROM conversation"), std::string());
        h.store->saveDraft(chat, {"next", {}});
        h.settle();
        QCOMPARE(h.content(chat).conversation.draft, std::string("next"));
    }

    void refusedRequestsFailAloneAndSayWhy() {
        Harness h;
        h.start();
        const auto chat = h.newChat();
        const JobId bad = h.store->renameConversation(ConversationId(99), "x");
        const JobId good = h.store->renameConversation(chat, "y");
        const auto failed = h.wait<FailedEvent>();
        QCOMPARE(failed.job, bad);
        QCOMPARE(failed.error.code, ErrorCode::NotFound);
        QCOMPARE(h.wait<DoneEvent>().job, good);
        QCOMPARE(h.count<TroubleEvent>(), 0);
    }

    void aFullDiskQueuesWritesAnswersReadsAndLosesNothing() {
        test::FaultVfs faults; // outlives the store thread
        Harness h;
        h.options.database.vfs = faults.name();
        h.start();
        const auto chat = h.newChat();
        const auto first = h.turn(chat, "before");
        faults.writeResult = kSqliteFull;
        NewTurn turn;
        turn.conversation = chat;
        turn.parent = first.answer->id;
        turn.text = "while full";
        const JobId stuck = h.store->addUserMessage(turn);
        const auto trouble = h.wait<TroubleEvent>();
        QCOMPARE(trouble.error.code, ErrorCode::Full);
        QVERIFY(trouble.error.message.find(h.options.database.path) != std::string::npos);
        QVERIFY(!trouble.opening);
        for (int i = 0; i < 50; ++i)
            h.store->saveProgress({first.answer->id, "progress " + std::to_string(i), "", {}});
        AnswerEnd end;
        end.answer = first.answer->id;
        end.text = "answered while full";
        const JobId ended = h.store->endAnswer(end);
        h.store->renameConversation(chat, "renamed while full");
        QCOMPARE(h.content(chat).messages.size(), std::size_t(2)); // reads go on, from what is committed
        QTest::qSleep(50);
        QCOMPARE(h.store->unsavedWrites(), 3);
        QCOMPARE(h.count<TroubleEvent>(), 1); // said once, however often it was tried
        QVERIFY(faults.refused > 3);
        faults.writeResult = 0;
        h.wait<RecoveredEvent>();
        QCOMPARE(h.wait<TurnCommittedEvent>().job, stuck);
        QCOMPARE(h.wait<DoneEvent>().job, ended);
        h.settle();
        const auto content = h.content(chat);
        QCOMPARE(content.conversation.title, std::string("renamed while full"));
        QCOMPARE(content.messages.size(), std::size_t(4));
        QCOMPARE(content.messages[1].text, std::string("answered while full"));
        QCOMPARE(content.messages[2].text, std::string("while full"));
        QCOMPARE(h.store->close(1000 * kMillisecond), 0);
        QCOMPARE(h.onDisk("PRAGMA integrity_check"), std::string("ok"));
    }

    void progressStuckOnAFullDiskIsNotResurrectedAfterTheEnd() {
        test::FaultVfs faults; // outlives the store thread
        Harness h;
        h.options.database.vfs = faults.name();
        h.start();
        const auto chat = h.newChat();
        const auto answer = h.turn(chat, "q").answer->id;
        faults.writeResult = kSqliteFull;
        h.store->saveProgress({answer, "half", "", {}});
        h.store->saveDraft(chat, {"stale draft", {}});
        h.wait<TroubleEvent>();
        AnswerEnd end;
        end.answer = answer;
        end.text = "whole";
        h.store->endAnswer(end);
        NewTurn turn;
        turn.conversation = chat;
        turn.parent = answer;
        turn.text = "next";
        h.store->addUserMessage(turn);
        faults.writeResult = 0;
        h.wait<TurnCommittedEvent>();
        h.settle();
        const auto content = h.content(chat);
        QCOMPARE(content.messages[1].text, std::string("whole"));
        QCOMPARE(content.conversation.draft, std::string());
    }

    void aShortLockIsWaitedForALongOneIsTold() {
        Harness h;
        h.options.database.busyTimeoutMs = 5;
        h.options.busyLimit = 250 * kMillisecond;
        h.start();
        const auto chat = h.newChat();
        SQLite::Database other(h.options.database.path, SQLite::OPEN_READWRITE);
        other.exec("BEGIN IMMEDIATE");
        h.store->renameConversation(chat, "short");
        QTest::qSleep(80);
        other.exec("COMMIT");
        h.wait<DoneEvent>();
        QCOMPARE(h.count<TroubleEvent>(), 0);

        other.exec("BEGIN IMMEDIATE");
        const Nanos locked = h.clock.now();
        h.store->renameConversation(chat, "long");
        const auto trouble = h.wait<TroubleEvent>();
        QVERIFY(h.clock.now() - locked >= 250 * kMillisecond);
        QCOMPARE(trouble.error.code, ErrorCode::Busy);
        QCOMPARE(trouble.waitingWrites, 1);
        other.exec("COMMIT");
        h.wait<RecoveredEvent>();
        h.wait<DoneEvent>();
        QCOMPARE(h.onDisk("SELECT title FROM conversation"), std::string("long"));
    }

    void anUnusableDatabaseIsToldAndWritesWaitUntilItIsMended() {
        Harness h;
        std::ofstream(h.options.database.path) << std::string(4096, 'x');
        h.start();
        const auto trouble = h.wait<TroubleEvent>();
        QVERIFY(trouble.opening);
        QCOMPARE(trouble.error.code, ErrorCode::Corrupt);
        h.store->createConversation({"kept in the queue", "", "", ""});
        QTest::qSleep(30);
        QCOMPARE(h.store->unsavedWrites(), 1);
        std::filesystem::remove(h.options.database.path);
        h.store->retry();
        h.wait<OpenedEvent>();
        QCOMPARE(h.wait<ConversationCreatedEvent>().conversation.title, std::string("kept in the queue"));
        QCOMPARE(h.count<RecoveredEvent>(), 1);
        QCOMPARE(h.count<TroubleEvent>(), 1);
    }

    void openingAnewDoesNotInterruptOurOwnAnswers() {
        test::FaultVfs faults; // outlives the store thread
        Harness h;
        h.options.database.vfs = faults.name();
        h.start();
        const auto chat = h.newChat();
        const auto answer = h.turn(chat, "q").answer->id;
        faults.writeResult = 10 | (3 << 8); // SQLITE_IOERR_WRITE
        h.store->saveProgress({answer, "half", "", {}});
        QCOMPARE(h.wait<TroubleEvent>().error.code, ErrorCode::Io);
        faults.writeResult = 0;
        h.store->retry();
        h.settle();
        QCOMPARE(int(h.content(chat).messages[1].status), int(MessageStatus::Generating));
        QCOMPARE(h.content(chat).messages[1].text, std::string("half"));
    }

    void closeSavesWhatWaitsAndCountsWhatItCannot() {
        test::FaultVfs faults; // outlives the store thread
        Harness h;
        h.options.database.vfs = faults.name();
        h.options.progressInterval = 3'600'000 * kMillisecond;
        h.start();
        const auto chat = h.newChat();
        h.store->saveDraft(chat, {"a", {}});
        h.settle();
        h.store->saveDraft(chat, {"saved at the end", {}});
        QCOMPARE(h.store->close(5000 * kMillisecond), 0);
        QCOMPARE(h.onDisk("SELECT draft FROM conversation"), std::string("saved at the end"));
        QCOMPARE(h.onDisk("SELECT clean_exit FROM run ORDER BY id DESC LIMIT 1"), std::string("1"));

        h.start();
        h.wait<OpenedEvent>();
        faults.writeResult = kSqliteFull;
        h.store->renameConversation(chat, "x");
        h.store->renameConversation(chat, "y");
        const Nanos before = h.clock.now();
        QCOMPARE(h.store->close(50 * kMillisecond), 2);
        QVERIFY(h.clock.now() - before < 3000 * kMillisecond);
        QVERIFY(h.count<TroubleEvent>() >= 1); // events can still be read
        faults.writeResult = 0;
        h.start();
        QCOMPARE(h.wait<OpenedEvent>().recovery.uncleanRuns, 1);
    }

    void chatsDeletedLongAgoGoAtTheNextStart() {
        WallMillis now = 1'000'000'000'000; // outlives the store thread
        Harness h;
        h.options.wallClock = [&] { return now; };
        h.start();
        const auto old = h.newChat("old"), recent = h.newChat("recent");
        h.store->deleteConversation(old);
        h.wait<DoneEvent>();
        h.store->close(1000 * kMillisecond);
        now += 20LL * 24 * 3600 * 1000;
        h.start();
        h.store->deleteConversation(recent);
        h.wait<DoneEvent>();
        h.store->close(1000 * kMillisecond);
        now += 20LL * 24 * 3600 * 1000;
        h.start();
        h.wait<OpenedEvent>();
        h.store->restoreConversation(old);
        h.wait<FailedEvent>();
        h.store->restoreConversation(recent);
        h.wait<DoneEvent>();
    }
};

QTEST_APPLESS_MAIN(TestStoreThread)
#include "test_store_thread.moc"
