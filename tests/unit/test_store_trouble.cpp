// SPDX-License-Identifier: GPL-3.0-or-later
//
// Databases that cannot be used, and what a window then offers: retry, another one, going on without saving; backups.
#include <QTest>

#include <csignal>
#include <fstream>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/fault_vfs.h"
#include "tests/support/store_harness.h"

using namespace kvscope;
using namespace kvscope::store;
using kvscope::test::kMillisecond;
namespace fs = std::filesystem;

namespace {

struct Harness : test::StoreHarness {
    StoreThread& start() {
        seen.clear();
        return StoreHarness::start();
    }
    void stop() { store.reset(); }
    std::vector<Conversation> list() {
        store->listConversations();
        return wait<ConversationsEvent>().conversations;
    }
};

std::string titles(const std::vector<Conversation>& list) {
    std::string all;
    for (const Conversation& c : list)
        all += c.title + (c.unsaved ? "!" : "") + ";";
    return all;
}

} // namespace

class TestStoreTrouble : public QObject {
    Q_OBJECT
private slots:
    void whyItCannotBeUsedIsTyped_data() {
        QTest::addColumn<QString>("kind");
        QTest::addColumn<int>("code");
        QTest::newRow("newer") << "newer" << int(ErrorCode::Newer);
        QTest::newRow("foreign") << "foreign" << int(ErrorCode::Unsupported);
        QTest::newRow("damaged") << "damaged" << int(ErrorCode::Corrupt);
        QTest::newRow("mode=ro") << "mode=ro" << int(ErrorCode::ReadOnly);
        QTest::newRow("immutable=1") << "immutable=1" << int(ErrorCode::ReadOnly);
        QTest::newRow("full") << "full" << int(ErrorCode::Full);
        QTest::newRow("failing") << "failing" << int(ErrorCode::Io);
        QTest::newRow("locked") << "locked" << int(ErrorCode::Busy);
    }
    void whyItCannotBeUsedIsTyped() {
        QFETCH(QString, kind);
        QFETCH(int, code);
        test::FaultVfs faults; // outlives the store thread
        Harness h;
        h.start();
        h.wait<OpenedEvent>();
        const auto chat = h.newChat("kept");
        h.turn(chat, "hello");
        h.stop();
        const std::string path = h.options.database.path;
        std::optional<SQLite::Database> other;
        if (kind == "newer") {
            SQLite::Database(path, SQLite::OPEN_READWRITE).exec("PRAGMA user_version = 99");
        } else if (kind == "foreign") {
            SQLite::Database(path, SQLite::OPEN_READWRITE).exec("PRAGMA application_id = 1");
        } else if (kind == "damaged") {
            std::ofstream(path, std::ios::binary) << std::string(8192, 'x');
        } else if (kind == "full" || kind == "failing") {
            h.options.database.vfs = faults.name();
            faults.writeResult = kind == "full" ? 13 : 778; // SQLITE_FULL, SQLITE_IOERR_WRITE
        } else if (kind == "locked") {
            h.options.busyLimit = 100 * kMillisecond;
            h.options.database.busyTimeoutMs = 10;
            other.emplace(path, SQLite::OPEN_READWRITE);
            other->exec("PRAGMA locking_mode = EXCLUSIVE");
            other->exec("BEGIN EXCLUSIVE");
        } else {
            h.options.database.parameters = kind.toStdString();
        }
        h.start();
        const auto trouble = h.wait<TroubleEvent>();
        QCOMPARE(int(trouble.error.code), code);
        QCOMPARE(trouble.path, path);
        QVERIFY(trouble.opening);
        QVERIFY2(trouble.error.message.find(path) != std::string::npos, trouble.error.message.c_str());

        // Going on without saving: everything works, what can be read is there, the file is not touched.
        const auto before = fs::last_write_time(path);
        h.store->continueInMemory();
        const auto opened = h.wait<OpenedEvent>();
        QVERIFY(opened.inMemory);
        const bool readable =
            code == int(ErrorCode::ReadOnly) || code == int(ErrorCode::Full) || code == int(ErrorCode::Io);
        QCOMPARE(titles(opened.conversations), std::string(readable ? "kept;" : ""));
        const auto mine = h.newChat("mine");
        const auto turn = h.turn(mine, "in memory");
        h.store->endAnswer({turn.answer->id, MessageStatus::Complete, "answer", "", "stop", "", {}, {}, {}});
        h.wait<DoneEvent>();
        QCOMPARE(titles(h.list()), std::string(readable ? "mine!;kept;" : "mine!;"));
        QVERIFY(fs::last_write_time(path) == before);
        other.reset();
        if (!readable) { // the ids never meet those of the file
            QVERIFY(mine.value() > 1'000'000'000);
            QVERIFY(turn.user.id.value() > 1'000'000'000);
        }
    }

    void whatWasWrittenInMemoryReachesTheFileWhenItCanBeWrittenAgain() {
        test::FaultVfs faults;
        Harness h;
        h.options.database.vfs = faults.name();
        h.start();
        h.wait<OpenedEvent>();
        const auto old = h.newChat("old");
        const auto untouched = h.newChat("untouched");
        const auto first = h.turn(old, "first");
        h.store->endAnswer({first.answer->id, MessageStatus::Complete, "a", "", "stop", "", {}, {}, {}});
        h.wait<DoneEvent>();
        faults.writeResult = 13;
        NewTurn waiting;
        waiting.conversation = old;
        waiting.parent = first.answer->id;
        waiting.text = "sent while the disk was full";
        const JobId job = h.store->addUserMessage(waiting);
        h.wait<TroubleEvent>();
        h.store->continueInMemory();
        const auto memory = h.wait<OpenedEvent>();
        QVERIFY(memory.inMemory && memory.sameChats);
        const auto committed = h.wait<TurnCommittedEvent>(); // what waited is done there
        QCOMPARE(committed.job, job);
        h.store->saveProgress({committed.answer->id, "half an ans", "", {}, {}});
        h.newChat("new");
        h.store->savePreset({PresetId(), "p", "prompt", "{}"});
        h.wait<PresetSavedEvent>();
        QCOMPARE(titles(h.list()), std::string("new!;old!;untouched;"));
        h.store->retry(); // still full
        QVERIFY(h.wait<TroubleEvent>().opening);
        faults.writeResult = 0;
        h.store->retry();
        const auto back = h.wait<OpenedEvent>();
        QVERIFY(!back.inMemory && back.sameChats);
        QCOMPARE(titles(back.conversations), std::string("new;old;untouched;"));
        // With the same ids: the answer that was running goes on.
        h.store->endAnswer(
            {committed.answer->id, MessageStatus::Complete, "half an answer", "", "stop", "", {}, {}, {}});
        h.wait<DoneEvent>();
        const std::string id = std::to_string(committed.answer->id.value());
        QCOMPARE(h.onDisk("SELECT text FROM message WHERE id = " + id), std::string("half an answer"));
        QCOMPARE(h.onDisk("SELECT text FROM message WHERE id = " + std::to_string(committed.user.id.value())),
                 waiting.text);
        QCOMPARE(h.onDisk("SELECT name FROM preset"), std::string("p"));
        QCOMPARE(h.onDisk("PRAGMA integrity_check"), std::string("ok"));
        QVERIFY(untouched.valid());
    }

    void presetsOfMemoryAreThoseOfTheFile() {
        test::FaultVfs faults;
        Harness h;
        h.options.database.vfs = faults.name();
        h.start();
        h.wait<OpenedEvent>();
        std::vector<PresetId> ids;
        for (const char* name : {"kept", "changed", "deleted"}) {
            h.store->savePreset({PresetId(), name, "prompt", "{}"});
            ids.push_back(h.wait<PresetSavedEvent>().preset);
        }
        faults.writeResult = 13;
        h.store->saveDraft(ConversationId(), {"x", {}});
        h.wait<TroubleEvent>();
        h.store->continueInMemory();
        h.wait<OpenedEvent>();
        h.store->savePreset({ids[1], "changed", "another prompt", "{}"});
        h.wait<PresetSavedEvent>();
        h.store->deletePreset(ids[2]);
        h.wait<DoneEvent>();
        h.store->savePreset({PresetId(), "made and deleted", "", "{}"});
        h.store->deletePreset(h.wait<PresetSavedEvent>().preset);
        h.wait<DoneEvent>();
        faults.writeResult = 0;
        h.store->retry();
        QVERIFY(!h.wait<OpenedEvent>().inMemory);
        h.store->listPresets();
        std::string all;
        for (const Preset& preset : h.wait<PresetsEvent>().presets)
            all += preset.name + ":" + preset.systemPrompt + ";";
        QCOMPARE(all, std::string("changed:another prompt;kept:prompt;"));
    }

    void presetsMadeWhileNothingCouldBeReadReplaceNone() {
        Harness h;
        h.start();
        h.wait<OpenedEvent>();
        h.store->savePreset({PresetId(), "of the file", "prompt", "{}"});
        h.wait<PresetSavedEvent>();
        h.stop();
        const std::string path = h.options.database.path;
        SQLite::Database(path, SQLite::OPEN_READWRITE).exec("PRAGMA user_version = 99");
        h.start();
        h.wait<TroubleEvent>();
        h.store->continueInMemory();
        h.wait<OpenedEvent>();
        h.store->savePreset({PresetId(), "of memory", "", "{}"}); // its id is that of the file's preset
        h.wait<PresetSavedEvent>();
        SQLite::Database(path, SQLite::OPEN_READWRITE).exec("PRAGMA user_version = " + std::to_string(schemaVersion()));
        h.store->retry();
        QVERIFY(!h.wait<OpenedEvent>().inMemory);
        QCOMPARE(h.onDisk("SELECT group_concat(name, ';') FROM (SELECT name FROM preset ORDER BY name)"),
                 std::string("of memory;of the file"));
    }

    void aFolderThatIsHeldIsATroubleLikeAnyOther() {
        Harness h;
        h.options.folder = h.dir.file("data");
        h.options.database.path = h.options.folder + "/kvscope.db";
        std::optional<DataFolder> other = std::move(*DataFolder::open(h.options.folder));
        h.start();
        const auto held = h.wait<TroubleEvent>(); // at once: no ten seconds of waiting
        QCOMPARE(int(held.error.code), int(ErrorCode::Busy));
        QVERIFY(held.opening);
        QVERIFY2(held.error.message.find(h.options.folder) != std::string::npos, held.error.message.c_str());
        h.store->continueInMemory();
        QVERIFY(h.wait<OpenedEvent>().inMemory);
        const auto chat = h.newChat("of memory");
        h.turn(chat, "hello");
        h.store->retry();
        QVERIFY(h.wait<TroubleEvent>().opening); // still held; the chats stay
        QVERIFY(!fs::exists(h.options.database.path));
        other.reset();
        h.store->retry();
        const auto opened = h.wait<OpenedEvent>();
        QVERIFY(!opened.inMemory);
        QCOMPARE(titles(opened.conversations), std::string("of memory;"));
        QCOMPARE(int(DataFolder::open(h.options.folder).error().code), int(ErrorCode::Busy)); // it is ours now
        h.stop();
        QVERIFY(DataFolder::open(h.options.folder));
    }

    void aFolderThatBecomesFreeIsTakenByItself() {
        Harness h;
        h.options.folder = h.dir.file("data");
        h.options.database.path = h.options.folder + "/kvscope.db";
        std::optional<DataFolder> other = std::move(*DataFolder::open(h.options.folder));
        h.start();
        h.wait<TroubleEvent>();
        other.reset();
        QVERIFY(!h.wait<OpenedEvent>().inMemory);
        h.wait<RecoveredEvent>();
    }

    void aFolderThatCannotBeMadeIsLeftForAnother() {
        Harness h;
        std::ofstream(h.dir.file("a-file")) << "in the way";
        h.options.folder = h.dir.file("a-file/below");
        h.options.database.path = h.options.folder + "/kvscope.db";
        h.start();
        QCOMPARE(int(h.wait<TroubleEvent>().error.code), int(ErrorCode::Io));
        fs::create_directory(h.dir.file("good"));
        const std::string path = h.dir.file("good/kvscope.db");
        h.store->openOther(path);
        QCOMPARE(h.wait<OpenedEvent>().path, path);
        h.turn(h.newChat("saved"), "hello");
        QCOMPARE(h.onDisk(path, "SELECT title FROM conversation"), std::string("saved"));
        QCOMPARE(int(DataFolder::open(h.dir.file("good")).error().code), int(ErrorCode::Busy));
    }

    void whatWaitsSurvivesACrash() {
        Harness h;
        h.start();
        h.wait<OpenedEvent>();
        const auto chat = h.newChat("chat");
        h.turn(chat, "running");
        h.store->saveDraft(chat, {"begun", {}});
        h.store->saveWaiting(chat, {"next", {{"a.txt", "file", 1}}});
        h.wait<DoneEvent>();
        // What a program that is killed now leaves, opened by the next one.
        const std::string copy = h.dir.file("copy.db");
        QVERIFY(Database::open({h.options.database.path, {}, {}, 250, {}, nullptr}).value()->backUpTo(copy));
        h.stop();
        QCOMPARE(h.onDisk(copy, "SELECT waiting FROM conversation"), std::string("next"));
        h.options.database.path = copy;
        h.start();
        const auto opened = h.wait<OpenedEvent>();
        QCOMPARE(opened.conversations.front().draft, std::string("next\n\nbegun"));
        QVERIFY(opened.conversations.front().waiting.isEmpty());
        QCOMPARE(opened.conversations.front().draftAttachments.size(), std::size_t(1));
    }

    void closingInMemoryTriesOnceMoreAndCountsWhatIsLost() {
        test::FaultVfs faults;
        Harness h;
        h.options.database.vfs = faults.name();
        faults.writeResult = 13;
        h.start();
        h.wait<TroubleEvent>();
        h.store->continueInMemory();
        h.wait<OpenedEvent>();
        h.newChat("a");
        h.newChat("b");
        QCOMPARE(h.store->close(1'000 * kMillisecond), 2);
        h.start();
        h.wait<TroubleEvent>();
        h.store->continueInMemory();
        h.wait<OpenedEvent>();
        h.newChat("c");
        faults.writeResult = 0;
        QCOMPARE(h.store->close(1'000 * kMillisecond), 0);
        QCOMPARE(h.onDisk("SELECT title FROM conversation"), std::string("c"));
    }

    void anotherDatabaseTakesUnsavedChatsAlong() {
        Harness h;
        h.start();
        h.wait<OpenedEvent>();
        h.newChat("stays");
        h.stop();
        SQLite::Database(h.options.database.path, SQLite::OPEN_READWRITE).exec("PRAGMA user_version = 99");
        h.start();
        h.wait<TroubleEvent>();
        const std::string other = h.dir.file("other.db");
        h.store->openOther(other);
        const auto opened = h.wait<OpenedEvent>();
        QCOMPARE(opened.path, other);
        QVERIFY(opened.conversations.empty());
        h.newChat("in the other");
        h.stop();

        h.start();
        h.wait<TroubleEvent>();
        h.store->continueInMemory();
        h.wait<OpenedEvent>();
        const auto mine = h.newChat("unsaved");
        h.turn(mine, "words");
        h.store->openOther(h.dir.file("no/folder/x.db")); // cannot be: memory goes on
        h.wait<TroubleEvent>();
        QCOMPARE(titles(h.list()), std::string("unsaved!;"));
        h.store->openOther(other);
        const auto moved = h.wait<OpenedEvent>();
        QCOMPARE(titles(moved.conversations), std::string("unsaved;in the other;"));
        QVERIFY(!moved.sameChats);
        QCOMPARE(h.onDisk(other, "SELECT text FROM message"), std::string("words"));
        h.stop();
        QCOMPARE(h.onDisk("SELECT count(*) FROM conversation"), std::string("1"));
    }

    void writesThatWaitNeverReachAnotherDatabasesChats() {
        test::FaultVfs faults;
        Harness h;
        h.options.database.vfs = faults.name();
        h.start();
        h.wait<OpenedEvent>();
        const auto chat = h.newChat("of the first");
        {
            Harness second;
            second.options.database.path = h.dir.file("second.db");
            second.start();
            second.wait<OpenedEvent>();
            second.newChat("of the second");
        }
        faults.writeResult = 13;
        NewTurn turn;
        turn.conversation = chat;
        turn.text = "for the first";
        h.store->addUserMessage(turn);
        h.wait<TroubleEvent>();
        faults.writeResult = 0;
        h.store->openOther(h.dir.file("second.db"));
        for (OpenedEvent opened = h.wait<OpenedEvent>(); opened.path != h.dir.file("second.db");)
            opened = h.wait<OpenedEvent>();
        QCOMPARE(h.onDisk(h.dir.file("second.db"),
                          "SELECT count(*) FROM message m JOIN conversation c ON c.id = m.conversation_id"
                          " WHERE c.title = 'of the second'"),
                 std::string("0"));
        h.stop();
        const std::string first = h.onDisk("SELECT count(*) FROM message");
        const std::string second = h.onDisk(h.dir.file("second.db"), "SELECT count(*) FROM message");
        QVERIFY(first == "2" || second == "2"); // the words are in one of them, with their own chat
    }

    void aFileSizeLimitIsAFullDisk() {
        test::TempDir dir;
        const std::string path = dir.file("kvscope.db");
        const pid_t child = fork();
        if (child == 0) { // limits and signals of a process of its own
            std::signal(SIGXFSZ, SIG_IGN);
            DatabaseOptions options;
            options.path = path;
            auto database = Database::open(options);
            if (!database)
                _exit(2);
            ConversationStore store(**database, systemWallClock());
            const auto chat = store.create({"kept", "", "", ""});
            rlimit limit{};
            getrlimit(RLIMIT_FSIZE, &limit);
            limit.rlim_cur = 1 << 20;
            setrlimit(RLIMIT_FSIZE, &limit);
            NewTurn turn;
            turn.conversation = chat->id;
            turn.text = std::string(3 << 20, 'x');
            const auto refused = store.addTurn(turn, RunId());
            if (refused || refused.error().code != ErrorCode::Full)
                _exit(3);
            limit.rlim_cur = limit.rlim_max;
            setrlimit(RLIMIT_FSIZE, &limit);
            _exit(store.addTurn(turn, RunId()) ? 0 : 4);
        }
        int status = 0;
        waitpid(child, &status, 0);
        QVERIFY(WIFEXITED(status));
        QCOMPARE(WEXITSTATUS(status), 0);
        SQLite::Database db(path, SQLite::OPEN_READONLY);
        QCOMPARE(db.execAndGet("SELECT count(*) FROM message").getInt(), 2);
        QCOMPARE(db.execAndGet("PRAGMA integrity_check").getString(), std::string("ok"));
    }

    void aBackupIsCompleteAndRestoringKeepsThePresent() {
        Harness h;
        h.start();
        h.wait<OpenedEvent>();
        const auto chat = h.newChat("then");
        h.turn(chat, "in the backup");
        const std::string backup = h.dir.file("a.bak");
        h.store->backUp(backup);
        h.wait<DoneEvent>();
        QVERIFY(!fs::exists(backup + ".part") && !fs::exists(backup + "-wal"));
        QCOMPARE(h.onDisk(backup, "SELECT text FROM message"), std::string("in the backup"));
        h.newChat("now");
        h.store->restoreBackup(backup);
        const auto restored = h.wait<RestoredEvent>();
        QCOMPARE(titles(h.list()), std::string("then;"));
        QCOMPARE(h.onDisk(restored.keptPath, "SELECT count(*) FROM conversation"), std::string("2"));
        h.newChat("after"); // it goes on from there
        h.stop();
        h.start();
        QCOMPARE(titles(h.wait<OpenedEvent>().conversations), std::string("after;then;"));
        // What is no backup changes nothing.
        std::ofstream(h.dir.file("junk.bak")) << std::string(9000, 'x');
        for (const char* name : {"junk.bak", "missing.bak", "kvscope.db"}) {
            h.store->restoreBackup(h.dir.file(name));
            QVERIFY(!h.wait<FailedEvent>().error.message.empty());
        }
        fs::copy_file(backup, h.dir.file("damaged.bak"));
        {
            std::fstream file(h.dir.file("damaged.bak"), std::ios::in | std::ios::out | std::ios::binary);
            for (int at = 4096; at < 200'000; at += 4096) {
                file.seekp(at);
                file << std::string(200, '\xEE');
            }
        }
        h.store->restoreBackup(h.dir.file("damaged.bak"));
        QCOMPARE(h.wait<FailedEvent>().error.code, ErrorCode::Corrupt);
        QCOMPARE(titles(h.list()), std::string("after;then;"));
    }

    void aBackupTakesThePlaceOfADamagedDatabase() {
        Harness h;
        h.start();
        h.wait<OpenedEvent>();
        h.newChat("saved in time");
        const std::string backup = h.dir.file("a.bak");
        h.store->backUp(backup);
        h.wait<DoneEvent>();
        h.stop();
        std::ofstream(h.options.database.path, std::ios::binary) << std::string(8192, 'x');
        h.start();
        QCOMPARE(h.wait<TroubleEvent>().error.code, ErrorCode::Corrupt);
        h.store->restoreBackup(backup);
        const auto restored = h.wait<RestoredEvent>();
        QCOMPARE(fs::file_size(restored.keptPath), std::uintmax_t(8192));
        QCOMPARE(titles(h.list()), std::string("saved in time;"));
    }

    void aBackupThatCannotBeWrittenSaysSo() {
        Harness h;
        h.start();
        h.wait<OpenedEvent>();
        for (const std::string& target : {h.dir.file("no/such/folder.bak"), h.options.database.path}) {
            h.store->backUp(target);
            QVERIFY(!h.wait<FailedEvent>().error.message.empty());
        }
        h.newChat("fine");
    }
};

QTEST_APPLESS_MAIN(TestStoreTrouble)
#include "test_store_trouble.moc"
