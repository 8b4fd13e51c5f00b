// SPDX-License-Identifier: GPL-3.0-or-later
//
// The database as a file: migrations and their backups, files that must be refused, the lock of the data folder.
#include <QTest>

#include <fstream>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/store/conversation_store.h"
#include "engine/store/data_folder.h"
#include "tests/support/fault_vfs.h"
#include "tests/support/temp_dir.h"

using namespace kvscope;
using namespace kvscope::store;
using kvscope::test::TempDir;
namespace fs = std::filesystem;

namespace {

/// Schemas of imagined later programs: each adds a column.
std::vector<Migration> migrationsUpTo(int version) {
    static const char* kSteps[] = {"ALTER TABLE conversation ADD COLUMN later1 TEXT NOT NULL DEFAULT 'one'",
                                   "ALTER TABLE conversation ADD COLUMN later2 TEXT NOT NULL DEFAULT 'two'",
                                   "ALTER TABLE conversation ADD COLUMN later3 TEXT NOT NULL DEFAULT 'three'",
                                   "ALTER TABLE conversation ADD COLUMN later4 TEXT NOT NULL DEFAULT 'four'"};
    std::vector<Migration> steps = migrations();
    for (int to = schemaVersion() + 1; to <= version; ++to)
        steps.push_back({to, kSteps[to - schemaVersion() - 1]});
    return steps;
}

/// Name of the backup of a version, counted from the present one.
std::string backupOf(const std::string& path, int later) {
    return path + ".v" + std::to_string(schemaVersion() + later) + ".bak";
}

Result<std::unique_ptr<Database>> openAt(const std::string& path, const std::vector<Migration>* steps = nullptr,
                                         const std::string& vfs = {}) {
    DatabaseOptions options;
    options.path = path;
    options.migrations = steps;
    options.vfs = vfs;
    return Database::open(options);
}

void addChat(Database& database, const std::string& title) {
    ConversationStore store(database, systemWallClock());
    if (!store.create({title, "", "", ""}))
        qFatal("cannot create a chat");
}

std::vector<std::string> titles(Database& database) {
    ConversationStore store(database, systemWallClock());
    const auto list = store.list();
    std::vector<std::string> names;
    for (const Conversation& c : *list)
        names.push_back(c.title);
    return names;
}

std::int64_t number(Database& database, const std::string& sql) {
    return database.handle().execAndGet(sql).getInt64();
}

} // namespace

class TestStoreFiles : public QObject {
    Q_OBJECT
private slots:
    void aFreshDatabaseHasTheWholeSchemaAndTheSafeSettings() {
        TempDir dir;
        auto database = openAt(dir.file("kvscope.db"));
        QVERIFY(database);
        QCOMPARE(number(**database, "PRAGMA user_version"), std::int64_t(schemaVersion()));
        QCOMPARE(number(**database, "PRAGMA application_id"), std::int64_t(kApplicationId));
        QCOMPARE(number(**database, "PRAGMA synchronous"), std::int64_t(2)); // FULL
        QCOMPARE(number(**database, "PRAGMA foreign_keys"), std::int64_t(1));
        QCOMPARE((*database)->handle().execAndGet("PRAGMA journal_mode").getString(), std::string("wal"));
        for (const char* table : {"conversation", "message", "message_tokens", "receipt", "attachment", "preset",
                                  "model", "run", "load_estimate", "event", "draft_attachment", "note"})
            QVERIFY2(number(**database, std::string("SELECT count(*) FROM pragma_table_list WHERE name = '") + table +
                                            "' AND strict = 1") == 1,
                     table);
        QVERIFY(!fs::exists(dir.file("kvscope.db.v0.bak"))); // nothing to back up
    }

    void migrationKeepsEveryChatAndABackupOfTheOldFile() {
        TempDir dir;
        const std::string path = dir.file("kvscope.db");
        addChat(**openAt(path), "of today");
        const auto steps = migrationsUpTo(schemaVersion() + 1);
        auto database = openAt(path, &steps);
        QVERIFY(database);
        QCOMPARE(number(**database, "PRAGMA user_version"), std::int64_t(schemaVersion() + 1));
        QCOMPARE(titles(**database), std::vector<std::string>{"of today"});
        QCOMPARE((*database)->handle().execAndGet("SELECT later1 FROM conversation").getString(), std::string("one"));
        auto backup = openAt(backupOf(path, 0));
        QVERIFY(backup);
        QCOMPARE(number(**backup, "PRAGMA user_version"), std::int64_t(schemaVersion()));
        QCOMPARE(titles(**backup), std::vector<std::string>{"of today"});
    }

    void backupHoldsWhatWasOnlyInTheWriteAheadLog() {
        TempDir dir;
        const std::string path = dir.file("kvscope.db");
        auto writer = openAt(path);
        number(**writer, "PRAGMA wal_autocheckpoint = 0");
        addChat(**writer, "only in the log");
        fs::copy_file(path, dir.file("b.db")); // as after a crash: the file, its log, and nobody who closes them
        fs::copy_file(path + "-wal", dir.file("b.db-wal"));
        const auto steps = migrationsUpTo(schemaVersion() + 1);
        QVERIFY(openAt(dir.file("b.db"), &steps));
        QCOMPARE(titles(**openAt(backupOf(dir.file("b.db"), 0))), std::vector<std::string>{"only in the log"});
    }

    void twoBackupsAreKept() {
        TempDir dir;
        const std::string path = dir.file("kvscope.db");
        addChat(**openAt(path), "old");
        for (int later = 1; later <= 4; ++later) {
            const auto steps = migrationsUpTo(schemaVersion() + later);
            QVERIFY(openAt(path, &steps));
        }
        QVERIFY(!fs::exists(backupOf(path, 0)));
        QVERIFY(!fs::exists(backupOf(path, 1)));
        QVERIFY(fs::exists(backupOf(path, 2)));
        QVERIFY(fs::exists(backupOf(path, 3)));
    }

    void aMigrationThatFailsLeavesTheOldDatabase() {
        TempDir dir;
        const std::string path = dir.file("kvscope.db");
        addChat(**openAt(path), "safe");
        const int next = schemaVersion() + 1;
        auto steps = migrationsUpTo(next);
        steps.push_back(
            {next + 1, "ALTER TABLE conversation ADD COLUMN half TEXT; ALTER TABLE nothing ADD COLUMN x TEXT"});
        QVERIFY(!openAt(path, &steps));
        auto database = openAt(path, &(steps = migrationsUpTo(next)));
        QVERIFY(database);
        QCOMPARE(number(**database, "PRAGMA user_version"), std::int64_t(next)); // the step before stands
        QCOMPARE(number(**database, "SELECT count(*) FROM pragma_table_info('conversation') WHERE name = 'half'"),
                 std::int64_t(0));
        QCOMPARE(titles(**database), std::vector<std::string>{"safe"});
    }

    void aFullDiskAtAnyWriteOfAMigrationLosesNothing() {
        TempDir dir;
        const std::string original = dir.file("original.db");
        addChat(**openAt(original), "safe");
        int failures = 0;
        for (int writes = 0;; ++writes) {
            const std::string path = dir.file("a" + std::to_string(writes) + ".db");
            fs::copy_file(original, path);
            const auto steps = migrationsUpTo(schemaVersion() + 2);
            test::FaultVfs faults;
            faults.writesLeft = writes;
            faults.writeResult = 13; // SQLITE_FULL
            const bool opened = openAt(path, &steps, faults.name()).has_value();
            faults.writeResult = 0;
            failures += opened ? 0 : 1;
            const auto again = openAt(path, &steps, faults.name());
            QVERIFY2(again, again ? "" : again.error().message.c_str());
            QCOMPARE(titles(**again), std::vector<std::string>{"safe"});
            QCOMPARE((*again)->handle().execAndGet("PRAGMA integrity_check").getString(), std::string("ok"));
            if (opened && faults.refused == 0)
                break; // every write of a migration has been the failing one
        }
        QVERIFY(failures >= 5);
    }

    void aNewerDatabaseIsRefusedWithBothVersionsAndNotTouched() {
        TempDir dir;
        const std::string path = dir.file("kvscope.db");
        const int future = schemaVersion() + 3;
        const auto steps = migrationsUpTo(future);
        addChat(**openAt(path, &steps), "future");
        const auto before = fs::last_write_time(path);
        const auto database = openAt(path);
        QVERIFY(!database);
        QCOMPARE(database.error().code, ErrorCode::Newer);
        QVERIFY(database.error().message.find("version " + std::to_string(future)) != std::string::npos);
        QVERIFY(database.error().message.find("up to " + std::to_string(schemaVersion())) != std::string::npos);
        QVERIFY(fs::last_write_time(path) == before);
    }

    void filesThatAreNotOursAreRefused() {
        TempDir dir;
        const std::string foreign = dir.file("foreign.db");
        SQLite::Database(foreign, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE).exec("CREATE TABLE t(x)");
        QCOMPARE(openAt(foreign).error().code, ErrorCode::Unsupported);
        const std::string garbage = dir.file("garbage.db");
        std::ofstream(garbage) << std::string(8192, 'x');
        QCOMPARE(openAt(garbage).error().code, ErrorCode::Corrupt);
        QCOMPARE(openAt(dir.file("no/such/folder.db")).error().code, ErrorCode::Io);
        QCOMPARE(openAt(dir.path()).error().code, ErrorCode::Io); // a folder
        const std::string empty = dir.file("empty.db");
        std::ofstream(empty).close();
        QVERIFY(openAt(empty)); // what a crash right after creating it leaves
    }

    void aDamagedDatabaseIsAnErrorWithItsPathAndNeverACrash() {
        TempDir dir;
        const std::string path = dir.file("kvscope.db");
        {
            auto database = openAt(path);
            for (int i = 0; i < 200; ++i)
                addChat(**database, "chat " + std::to_string(i) + std::string(500, 'x'));
        }
        std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
        file.seekg(0, std::ios::end);
        const auto size = static_cast<std::int64_t>(file.tellg());
        for (std::int64_t at = 4096; at < size; at += 4096) { // every page but the first
            file.seekp(at);
            file << std::string(64, '\xFF');
        }
        file.close();
        auto database = openAt(path);
        Error error;
        if (database) {
            ConversationStore store(**database, systemWallClock());
            const auto list = store.list();
            QVERIFY(!list);
            error = list.error();
        } else {
            error = database.error();
        }
        QCOMPARE(error.code, ErrorCode::Corrupt);
        QVERIFY(error.message.find(path) != std::string::npos);
    }

    void dataFolderIsPrivateAndHeldByOne() {
        TempDir dir;
        const std::string path = dir.file("data");
        auto first = DataFolder::open(path);
        QVERIFY(first);
        struct stat info {};
        QCOMPARE(stat(path.c_str(), &info), 0);
        QCOMPARE(int(info.st_mode & 0777), 0700);
        const auto second = DataFolder::open(path);
        QVERIFY(!second);
        QCOMPARE(second.error().code, ErrorCode::Busy);
        QVERIFY(second.error().message.find("process " + std::to_string(getpid())) != std::string::npos);
        {
            const DataFolder moved = std::move(*first);
            QVERIFY(!DataFolder::open(path));
        }
        QVERIFY(DataFolder::open(path));
        std::ofstream(dir.file("a-file")) << "in the way";
        QCOMPARE(DataFolder::open(dir.file("a-file")).error().code, ErrorCode::Io);
        QCOMPARE(DataFolder::open(dir.file("a-file/below")).error().code, ErrorCode::Io);
    }

    void lockGoesAwayWithAProcessThatIsKilled() {
        TempDir dir;
        int ready[2];
        QCOMPARE(pipe(ready), 0);
        const pid_t child = fork();
        if (child == 0) {
            const auto held = DataFolder::open(dir.path());
            const char good = held ? '1' : '0';
            (void)!write(ready[1], &good, 1);
            pause();
            _exit(0);
        }
        char held = 0;
        QCOMPARE(read(ready[0], &held, 1), ssize_t(1));
        QCOMPARE(held, '1');
        QVERIFY(!DataFolder::open(dir.path()));
        kill(child, SIGKILL);
        waitpid(child, nullptr, 0);
        QVERIFY(DataFolder::open(dir.path()));
        close(ready[0]);
        close(ready[1]);
    }

    void defaultFolderFollowsTheEnvironment() {
        const QByteArray data = qgetenv("XDG_DATA_HOME"), home = qgetenv("HOME");
        qputenv("XDG_DATA_HOME", "/data");
        QCOMPARE(DataFolder::defaultPath(), std::string("/data/kvscope"));
        qputenv("XDG_DATA_HOME", "relative"); // the specification says to ignore it
        qputenv("HOME", "/home/u");
        QCOMPARE(DataFolder::defaultPath(), std::string("/home/u/.local/share/kvscope"));
        qunsetenv("XDG_DATA_HOME");
        QCOMPARE(DataFolder::defaultPath(), std::string("/home/u/.local/share/kvscope"));
        data.isNull() ? qunsetenv("XDG_DATA_HOME") : qputenv("XDG_DATA_HOME", data);
        qputenv("HOME", home);
    }
};

QTEST_APPLESS_MAIN(TestStoreFiles)
#include "test_store_files.moc"
