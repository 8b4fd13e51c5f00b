// SPDX-License-Identifier: GPL-3.0-or-later
//
// Database, second part: whole copies of it, into files and memory and back.
#include <array>
#include <filesystem>

#include <fcntl.h>
#include <unistd.h>

#include <SQLiteCpp/Backup.h>
#include <SQLiteCpp/Exception.h>
#include <sqlite3.h>

#include "engine/store/database.h"

namespace kvscope::store {

namespace fs = std::filesystem;

namespace {

constexpr int kCopyBusyTimeoutMs = 2000;
const int kReadFlags = SQLite::OPEN_READONLY | SQLite::OPEN_URI;

Result<void> copyAll(SQLite::Database& to, SQLite::Database& from, const std::string& path) {
    SQLite::Backup backup(to, from);
    int code = SQLITE_OK;
    for (int tries = 0; tries < 20; ++tries) {
        code = backup.executeStep(-1);
        if (code != SQLITE_BUSY && code != SQLITE_LOCKED)
            break;
        sqlite3_sleep(100); // the backup API does not call the busy handler for every lock
    }
    if (code != SQLITE_DONE)
        return tl::unexpected<Error>(errorFromSqlite(code, sqlite3_errstr(code), path));
    return {};
}

Result<void> checkSound(SQLite::Database& db, const std::string& path) {
    const std::string answer = db.execAndGet("PRAGMA integrity_check(1)").getString();
    if (answer != "ok")
        return fail(ErrorCode::Corrupt, "The database " + path + " is damaged (" + answer + ").");
    return {};
}

/// Its bytes and its name are on the disk when this returns.
bool syncFile(const std::string& path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    const bool synced = ::fsync(file) == 0;
    ::close(file);
    return synced;
}

std::string folderOf(const std::string& path) {
    const std::string folder = fs::path(path).parent_path().string();
    return folder.empty() ? "." : folder;
}

/// A leftover of an earlier attempt and SQLite's files beside it.
void removeDatabase(const std::string& path) {
    std::error_code ignored;
    for (const char* end : {"", "-journal", "-wal", "-shm"})
        fs::remove(path + end, ignored);
}

} // namespace

Result<int> checkDatabaseFile(const std::string& path) {
    std::error_code error;
    if (!fs::is_regular_file(path, error))
        return fail(ErrorCode::NotFound, "There is no file " + path + ".");
    try {
        SQLite::Database db(path, kReadFlags & ~SQLite::OPEN_URI, kCopyBusyTimeoutMs);
        const int version = db.execAndGet("PRAGMA user_version").getInt();
        if (db.execAndGet("PRAGMA application_id").getInt() != kApplicationId)
            return fail(ErrorCode::Unsupported, path + " is not a database of KVScope.");
        if (version > schemaVersion())
            return fail(ErrorCode::Newer, path + " has version " + std::to_string(version) +
                                              ", this program knows versions up to " + std::to_string(schemaVersion()) +
                                              "; use a newer KVScope.");
        if (auto sound = checkSound(db, path); !sound)
            return tl::unexpected<Error>(sound.error());
        return version;
    } catch (const SQLite::Exception& exception) {
        return tl::unexpected<Error>(errorFromSqlite(exception.getExtendedErrorCode(), exception.what(), path));
    }
}

Result<void> Database::setSynchronous(bool full) {
    return guarded([&]() -> Result<void> {
        m_db.exec(full ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL");
        if (full)
            m_db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
        return {};
    });
}

Result<void> Database::backUpTo(const std::string& target) {
    std::error_code error;
    if (fs::equivalent(target, m_options.path, error))
        return fail(ErrorCode::InvalidArgument, "The backup would replace the database itself; choose another name.");
    const std::string partial = target + ".part";
    removeDatabase(partial);
    Result<void> written;
    try {
        SQLite::Database copy(partial, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE, kCopyBusyTimeoutMs);
        written = copyAll(copy, m_db, partial);
        if (written) {
            copy.exec("PRAGMA journal_mode = DELETE"); // one file, without a log beside it
            written = checkSound(copy, partial);
        }
    } catch (const SQLite::Exception& exception) {
        written = tl::unexpected<Error>(errorFromSqlite(exception.getExtendedErrorCode(), exception.what(), partial));
    }
    if (!written) {
        removeDatabase(partial);
        return written;
    }
    if (syncFile(partial))
        fs::rename(partial, target, error); // a backup is complete or absent
    else
        error = std::make_error_code(std::errc::io_error);
    if (error) {
        removeDatabase(partial);
        return fail(ErrorCode::Io, "The backup " + target + " could not be written (" + error.message() +
                                       "); the database is as it was. Choose a folder that can be written.");
    }
    syncFile(folderOf(target));
    return {};
}

Result<void> Database::restoreFrom(const std::string& source) {
    std::error_code error;
    if (fs::equivalent(source, m_options.path, error))
        return fail(ErrorCode::InvalidArgument, "This is the database itself; choose a backup of it.");
    if (auto checked = checkDatabaseFile(source); !checked)
        return tl::unexpected<Error>(checked.error());
    forgetStatements();
    return guarded([&]() -> Result<void> {
        SQLite::Database from(source, SQLite::OPEN_READONLY, kCopyBusyTimeoutMs);
        return copyAll(m_db, from, m_options.path);
    });
}

// ---- in memory ----

Database::Database(DatabaseOptions options, InMemory)
    : m_options(std::move(options))
    , m_db(":memory:", SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE)
    , m_inMemory(true) {
    addFunctions();
}

Result<void> Database::copyFile() {
    return guarded([&]() -> Result<void> {
        std::error_code error;
        if (!fs::is_regular_file(m_options.path, error))
            return fail(ErrorCode::NotFound, "There is no file " + m_options.path + ".");
        // A log without anything in it is as good as none. A folder that takes no writes has no place for the shared
        // memory that reading beside a writer needs: then nobody else can write either.
        const bool hasLog =
            fs::exists(m_options.path + "-wal", error) && fs::file_size(m_options.path + "-wal", error) > 0;
        for (const char* mode : {"mode=ro", "immutable=1"}) {
            try {
                SQLite::Database file(uriOf(m_options.path, mode), kReadFlags, kCopyBusyTimeoutMs);
                file.exec("SELECT count(*) FROM sqlite_schema"); // opens it in fact
                return copyAll(m_db, file, m_options.path);
            } catch (const SQLite::Exception& exception) {
                const int code = exception.getErrorCode();
                const bool noRoom = code == SQLITE_CANTOPEN || code == SQLITE_READONLY;
                if (!noRoom || hasLog || std::string_view(mode) == "immutable=1")
                    throw;
            }
        }
        return {};
    });
}

Result<std::unique_ptr<Database>> Database::openInMemory(DatabaseOptions options, bool emptyIfUnreadable,
                                                         std::int64_t firstId) {
    const std::string path = options.path;
    try {
        std::unique_ptr<Database> database(new Database(options, InMemory{}));
        const auto addTables = [&] {
            database->m_db.exec("CREATE TEMP TABLE unsaved(conversation_id INTEGER PRIMARY KEY);"
                                "CREATE TEMP TABLE unsaved_preset(preset_id INTEGER PRIMARY KEY);"
                                "CREATE TEMP TABLE removed_preset(preset_id INTEGER PRIMARY KEY)");
        };
        auto ready = database->copyFile();
        if (ready)
            ready = database->prepare();
        if (!ready && !emptyIfUnreadable)
            return tl::unexpected<Error>(ready.error());
        if (ready) {
            addTables();
            return database;
        }
        database.reset(new Database(std::move(options), InMemory{}));
        database->m_beganEmpty = true;
        if (ready = database->prepare(); !ready)
            return tl::unexpected<Error>(ready.error());
        addTables();
        for (const char* table : {"conversation", "message"})
            database->m_db.exec("INSERT INTO sqlite_sequence(name, seq) VALUES('" + std::string(table) + "', " +
                                std::to_string(firstId) + ")");
        return database;
    } catch (const SQLite::Exception& exception) {
        return tl::unexpected<Error>(errorFromSqlite(exception.getExtendedErrorCode(), exception.what(), path));
    }
}

Result<void> Database::trackChanges() {
    return guarded([&]() -> Result<void> {
        // Tokens, receipts and attachments are written together with their message.
        for (const auto& [table, event, id] :
             {std::array{"conversation", "INSERT", "new.id"}, std::array{"conversation", "UPDATE", "new.id"},
              std::array{"message", "INSERT", "new.conversation_id"},
              std::array{"message", "UPDATE", "new.conversation_id"},
              std::array{"message", "DELETE", "old.conversation_id"}})
            m_db.exec(std::string("CREATE TEMP TRIGGER IF NOT EXISTS unsaved_") + table + "_" + event + " AFTER " +
                      event + " ON main." + table + " BEGIN INSERT OR IGNORE INTO unsaved VALUES (" + id + "); END");
        for (const char* event : {"INSERT", "UPDATE"})
            m_db.exec(std::string("CREATE TEMP TRIGGER IF NOT EXISTS unsaved_preset_") + event + " AFTER " + event +
                      " ON main.preset BEGIN INSERT OR IGNORE INTO unsaved_preset VALUES (new.id); END");
        m_db.exec("CREATE TEMP TRIGGER IF NOT EXISTS removed_preset AFTER DELETE ON main.preset"
                  " BEGIN INSERT OR IGNORE INTO removed_preset VALUES (old.id); END");
        return {};
    });
}

} // namespace kvscope::store
