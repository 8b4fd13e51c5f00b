// SPDX-License-Identifier: GPL-3.0-or-later
//
// The chat side over the real database: what is kept over a restart, another database, files of conversations. And the
// program where its data folder is not to be had.
#include <QAbstractButton>
#include <QSignalSpy>
#include <QTest>
#include <fstream>
#include <optional>

#include "app/desktop/desktop.h"
#include "app/desktop/store_bridge.h"
#include "tests/support/fake_chat_source.h"
#include "tests/support/temp_dir.h"
#include "ui/chat/chat_panel.h"
#include "ui/chat/composer.h"
#include "ui/models/attachment.h"
#include "ui/models/chat_controller.h"
#include "ui/models/chat_words.h"

using namespace kvscope;
using namespace kvscope::ui;
using kvscope::desktop::StoreBridge;
using kvscope::test::FakeChatSource;

namespace {

const Attachment kFile{QStringLiteral("a.txt"), QStringLiteral("needle in the file\n```\n"), 7};

std::string contents(const QString& path) {
    std::ifstream file(path.toStdString(), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// One run of the program without window and engine.
struct Run {
    FakeChatSource source;
    MonotonicClock clock;
    store::StoreThread thread;
    StoreBridge bridge;
    ChatController chat{source, bridge, clock, [] { return qint64(1'773'327'600'000); }};

    explicit Run(const std::string& database) : thread(clock, optionsOf(database)), bridge(thread) {
        bridge.setTokenizer("tiny");
        chat.setAutoTitles(false);
        QObject::connect(&bridge, &StoreBridge::reopened, &chat,
                         [this](const QString&, bool, bool sameChats) { sameChats ? chat.start() : chat.reread(); });
        chat.start();
        chat.handleEvent(FakeChatSource::loaded());
        settle();
    }
    static store::StoreOptions optionsOf(const std::string& database) {
        store::StoreOptions options;
        options.database.path = database;
        options.programVersion = "test";
        options.progressInterval = 0;
        return options;
    }
    void settle() {
        do {
            bridge.drain();
            QCoreApplication::processEvents();
            QTest::qSleep(1);
        } while (bridge.waiting());
    }
    api::Request ask(const Draft& message) {
        if (!chat.send(message))
            qFatal("not sent");
        settle();
        return source.submitted.back();
    }
    void answer(const std::string& text) {
        chat.handleEvent(FakeChatSource::finished(source.submitted.back(), text, {1, 2}));
        settle();
    }
    const ChatMessage& row(int at) { return chat.messages()->at(at); }
    QStringList titles() {
        QStringList all;
        for (const ConversationId id : chat.conversations()->ids())
            all << chat.conversations()->find(id)->title;
        return all;
    }
    ChatStore::ExportReport save(ChatStore::ExportFormat format, const QString& path) {
        std::optional<Result<ChatStore::ExportReport>> report;
        bridge.exportChats({}, format, path, [&](Result<ChatStore::ExportReport> r) { report = std::move(r); });
        waitFor(report);
        return report && *report ? **report : ChatStore::ExportReport{};
    }
    Result<ChatStore::ImportReport> import(const QString& path) {
        std::optional<Result<ChatStore::ImportReport>> report;
        bridge.importChats(path, [&](Result<ChatStore::ImportReport> r) { report = std::move(r); });
        waitFor(report);
        return report ? *report : fail(ErrorCode::Internal, "no answer");
    }
    template <class Answer> void waitFor(const std::optional<Answer>& answer) {
        for (int i = 0; i < 60'000 && !answer; ++i)
            settle();
    }
};

} // namespace

class TestStoreBridge final : public QObject {
    Q_OBJECT

private slots:
    void whatWasSaidOfAnAnswerIsKeptOverARestart() {
        test::TempDir dir;
        const std::string path = dir.file("kvscope.db");
        ChatMessage before;
        std::string dialog;
        {
            Run run(path);
            run.ask({QStringLiteral("Chat B"), {}});
            const OwnerId evictor(run.chat.current().conversation.id);
            run.answer("x");
            run.chat.newConversation();
            const api::Request request =
                run.ask({QStringLiteral("Read"), {kFile, {QString(), QStringLiteral("p"), 0}}});
            api::QueuedEvent queued;
            queued.id = request.id;
            queued.promptTokens = 40;
            queued.messageRanges = {{0, 37}};
            queued.adaptations = {api::DialogAdaptation::SystemInFirstMessage, api::DialogAdaptation::MessagesJoined};
            run.chat.handleEvent(queued);
            auto finished = FakeChatSource::finished(request, "<think>so</think>yes", {1, 2});
            finished.answer.endedBy = "<|im_end|>";
            finished.answer.stopReason = TokenId(9);
            finished.answer.cache.missReason = api::MissReason::Evicted;
            finished.answer.cache.evictedBy = evictor;
            finished.answer.cache.evictedAgo = 240'000'000'000;
            finished.answer.cache.divergingToken = 12;
            finished.answer.cache.divergingTurn = 1;
            run.chat.handleEvent(finished);
            run.settle();
            before = run.row(1);
            dialog = std::get<api::DialogPrompt>(run.source.submitted.back().prompt).messages[0].content;
            QVERIFY(!words::endLine(before).isEmpty());
        }
        Run run(path);
        const ChatMessage after = run.row(1);
        QCOMPARE(words::endLine(after), words::endLine(before));
        QCOMPARE(words::endedByLine(after), QStringLiteral("Ended by <|im_end|>"));
        QCOMPARE(words::receiptCause(*after.receipt), words::receiptCause(*before.receipt));
        QVERIFY(words::receiptCause(*after.receipt).contains(QStringLiteral("Chat B")));
        QCOMPARE(after.receipt->evictedAgoMs, std::int64_t(240'000));
        QCOMPARE(after.receipt->cache.divergingTurn, 1);
        QCOMPARE(after.endToken, TokenId(9));
        QCOMPARE(run.row(0).attachments, (std::vector<Attachment>{kFile, {QString(), QStringLiteral("p"), 0}}));
        QCOMPARE(run.row(0).text, QStringLiteral("Read"));
        QCOMPARE(run.chat.shownPrompt().messages[0].content, dialog);
    }

    void aMessageThatWaitedIsTheDraftOfTheNextRun() {
        test::TempDir dir;
        const std::string path = dir.file("kvscope.db");
        {
            Run run(path);
            run.ask({QStringLiteral("one"), {}});
            QVERIFY(run.chat.queueMessage(Draft{QStringLiteral("next"), {kFile}}));
            run.settle();
        } // as after a crash: the answer was being written, nobody took the message back
        Run run(path);
        QCOMPARE(run.row(1).status, MessageStatus::Interrupted);
        QCOMPARE(run.chat.current().conversation.draft, QStringLiteral("next"));
        QCOMPARE(run.chat.current().conversation.draftAttachments, std::vector<Attachment>{kFile});
    }

    void chatsGoThroughAFileAndBack() {
        test::TempDir dir;
        const QString first = QString::fromStdString(dir.file("a.json")),
                      second = QString::fromStdString(dir.file("b.json"));
        Run a(dir.file("a.db")), b(dir.file("b.db"));
        for (int i = 0; i < 60; ++i) { // more than one piece of an import
            a.chat.newConversation();
            a.ask({QStringLiteral("question %1").arg(i),
                   i % 2 == 0 ? std::vector<Attachment>{kFile} : std::vector<Attachment>{}});
            a.answer("answer");
        }
        const auto saved = a.save(ChatStore::ExportFormat::Json, first);
        QCOMPARE(saved.conversations, 60);
        QCOMPARE(saved.messages, std::int64_t(120));
        const auto taken = b.import(first);
        QVERIFY(taken);
        QCOMPARE(taken->added.size(), std::size_t(60));
        QCOMPARE(taken->messages, std::int64_t(120));
        QCOMPARE(taken->skippedCount, std::int64_t(0));
        b.save(ChatStore::ExportFormat::Json, second);
        QVERIFY(contents(second) == contents(first));
        const auto again = b.import(first);
        QVERIFY(again && again->added.empty());
        QCOMPARE(again->alreadyThere, 60);
        b.chat.reloadList();
        b.settle();
        QCOMPARE(b.titles().size(), 60);
        for (const auto& [format, name] : {std::pair(ChatStore::ExportFormat::Markdown, "a.md"),
                                           std::pair(ChatStore::ExportFormat::Html, "a.html")}) {
            const QString path = QString::fromStdString(dir.file(name));
            QCOMPARE(a.save(format, path).conversations, 60);
            QVERIFY(contents(path).find("needle in the file") != std::string::npos);
        }
        // What fails says so, and leaves nothing behind.
        QCOMPARE(a.save(ChatStore::ExportFormat::Json, QString::fromStdString(dir.file("none/a.json"))).conversations,
                 0);
        QVERIFY(!b.import(QString::fromStdString(dir.file("none.json"))));
        std::ofstream(dir.file("half.json")) << contents(first).substr(0, contents(first).size() / 2);
        const auto half = b.import(QString::fromStdString(dir.file("half.json")));
        QVERIFY(half && half->added.empty() && half->alreadyThere > 0 && half->skippedCount > 0);
    }

    void theTextOfAnAttachmentIsFound() {
        test::TempDir dir;
        Run run(dir.file("kvscope.db"));
        run.ask({QStringLiteral("Read"), {{QStringLiteral("x"), QStringLiteral("hay"), 0}, kFile}});
        run.answer("yes");
        std::optional<Result<ChatStore::SearchResult>> found;
        run.bridge.search(QStringLiteral("NEEDLE"), 500,
                          [&](Result<ChatStore::SearchResult> r) { found = std::move(r); });
        run.waitFor(found);
        QVERIFY(found && *found);
        const ChatStore::SearchResult& result = **found;
        QCOMPARE(result.hits.size(), std::size_t(1));
        QCOMPARE(result.hits[0].message, run.row(0).id);
        QCOMPARE(result.hits[0].attachment, 1);
        QCOMPARE(result.hits[0].count, 1);
        QCOMPARE(result.hits[0].snippet.mid(result.hits[0].snippetAt, result.hits[0].snippetLength),
                 QStringLiteral("needle"));
    }

    void aDeletedMessageComesBackWithAllThatItHad() {
        test::TempDir dir;
        Run run(dir.file("kvscope.db"));
        run.ask({QStringLiteral("Read"), {kFile}});
        run.answer("yes");
        const MessageId id = run.row(0).id;
        QVERIFY(run.chat.deleteMessage(0));
        run.settle();
        QCOMPARE(run.chat.messages()->size(), 1);
        QVERIFY(run.chat.undoDeleteMessage());
        run.settle();
        QCOMPARE(run.chat.messages()->size(), 2);
        QCOMPARE(run.row(0).id, id);
        QCOMPARE(run.row(0).attachments, std::vector<Attachment>{kFile});
        QCOMPARE(run.row(1).parent, id);
        QVERIFY(!run.chat.undoDeleteMessage());
    }

    void anotherDatabaseShowsNothingOfTheFirst() {
        test::TempDir dir;
        const std::string a = dir.file("a.db"), b = dir.file("b.db");
        {
            Run other(b);
            other.ask({QStringLiteral("of b"), {}});
            other.answer("answer of b");
        }
        Run run(a);
        run.ask({QStringLiteral("of a"), {}});
        run.answer("answer of a");
        const api::Request running = run.ask({QStringLiteral("still running"), {}});
        QSignalSpy reopened(&run.bridge, &StoreBridge::reopened);
        run.bridge.openOther(QString::fromStdString(b));
        for (int i = 0; i < 60'000 && reopened.isEmpty(); ++i)
            run.settle();
        run.settle();
        QCOMPARE(run.titles(), QStringList{QStringLiteral("of b")});
        QCOMPARE(run.row(0).text, QStringLiteral("of b"));
        QCOMPARE(run.source.cancelled, std::vector<RequestId>{running.id}); // nobody waits for it any more
        run.chat.handleEvent(FakeChatSource::finished(running, "of a, too late", {1}));
        run.settle();
        QCOMPARE(run.chat.messages()->size(), 2);
        QCOMPARE(run.row(1).text, QStringLiteral("answer of b")); // the ids are the same, the chats are not
        QVERIFY(run.chat.canSend());
        run.ask({QStringLiteral("more for b"), {}});
        run.answer("yes");
        run.bridge.openOther(QString::fromStdString(a));
        for (int i = 0; i < 60'000 && reopened.size() < 2; ++i)
            run.settle();
        run.settle();
        QCOMPARE(run.titles(), QStringList{QStringLiteral("of a")});
        QCOMPARE(run.chat.messages()->size(), 4);
        QCOMPARE(run.row(3).status, MessageStatus::Interrupted);
    }

    void aFolderThatIsNotToBeHadIsABanner() {
        test::TempDir dir;
        std::ofstream(dir.file("a-file")) << "in the way";
        const auto folder = store::DataFolder::unlocked(dir.file("a-file/below"));
        desktop::Desktop program(folder, dir.file("models"), {});
        program.start();
        QSignalSpy opened(&program, &desktop::Desktop::storeOpened);
        MessageBox* banner = nullptr;
        const auto find = [&] {
            banner = nullptr;
            for (MessageBox* box : program.window().findChildren<MessageBox*>())
                if (box->isVisible() && box->sentence().contains(QStringLiteral("a-file/below")))
                    banner = box;
            return banner;
        };
        QTRY_VERIFY_WITH_TIMEOUT(find(), 60'000);
        const auto button = [&](const QString& words) -> QAbstractButton* {
            for (QAbstractButton* one : banner->findChildren<QAbstractButton*>())
                if (one->text().contains(words, Qt::CaseInsensitive))
                    return one;
            return nullptr;
        };
        QVERIFY(button(QStringLiteral("Retry")));
        QVERIFY(button(QStringLiteral("another")));
        QVERIFY(button(QStringLiteral("without saving")));
        button(QStringLiteral("without saving"))->click(); // chats run in memory
        QTRY_VERIFY_WITH_TIMEOUT(!find(), 60'000);
        QCOMPARE(opened.size(), 0);
        QVERIFY(program.window().isVisible());
    }
};

QTEST_MAIN(TestStoreBridge)
#include "test_store_bridge.moc"
