// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/Transaction.h>

#include "engine/base/result.h"
#include "engine/store/schema.h"

namespace kvscope::store {

struct DatabaseOptions {
    std::string path; ///< of kvscope.db; created when it does not exist (its folder must)
    /// Parameters of an SQLite URI, "mode=ro" or "immutable=1": how tests make a file that cannot be written, for root
    /// too.
    std::string parameters;
    std::string vfs; ///< name of a registered SQLite VFS; "" = the system's. Tests put faults below the store with it
    int busyTimeoutMs = 250; ///< how long one statement waits for another program's lock before it fails with Busy
    /// Called before every commit, on the store's thread; tests delay commits with it.
    std::function<void()> beforeCommit;
    /// Shape to bring the file to. Tests pass longer lists to see how a migration behaves.
    const std::vector<Migration>* migrations = nullptr; ///< null = migrations()
};

/// A kept prepared statement in use; reset at the end, because a SELECT left half read would pin the write-ahead log.
class StatementUse {
public:
    explicit StatementUse(SQLite::Statement& statement) : m_statement(statement) {}
    ~StatementUse() { m_statement.tryReset(); }
    StatementUse(const StatementUse&) = delete;
    StatementUse& operator=(const StatementUse&) = delete;
    SQLite::Statement* operator->() const { return &m_statement; }
    SQLite::Statement& operator*() const { return m_statement; }

private:
    SQLite::Statement& m_statement;
};

/// The open SQLite database: WAL, synchronous=FULL, foreign keys on, at the newest schema version.
///
/// Thread: one at a time. Errors: every failure of SQLite becomes a Result by `guarded`; nothing throws out of it.
class Database {
public:
    /// Opens, checks, backs up (`kvscope.db.vN.bak`, two kept) and migrates.
    /// Errors: Newer, Unsupported (not a KVScope database), Corrupt, ReadOnly, Io (cannot be opened), Busy, Full.
    static Result<std::unique_ptr<Database>> open(DatabaseOptions options);
    /// A database in memory with all that can be read of the file (its path stays the file's, for sentences): for
    /// reading without touching the file, and for going on where it cannot be written.
    /// Errors: those of `open`; with `emptyIfUnreadable` an unreadable file gives an empty database, whose ids begin so
    /// high (at `firstId`) that they never meet those of the file.
    static Result<std::unique_ptr<Database>> openInMemory(DatabaseOptions options, bool emptyIfUnreadable = false,
                                                          std::int64_t firstId = 1);

    /// Runs `body` in one transaction (BEGIN IMMEDIATE), committed if it returns a value and rolled back otherwise.
    /// `body` returns a Result and may let SQLite::Exception escape.
    template <class Body> auto write(Body body) -> decltype(body()) {
        return guarded([&]() -> decltype(body()) {
            SQLite::Transaction transaction(m_db, SQLite::TransactionBehavior::IMMEDIATE);
            auto result = body();
            if (!result)
                return result;
            if (m_options.beforeCommit)
                m_options.beforeCommit();
            transaction.commit();
            return result;
        });
    }
    /// Runs `body` outside of a transaction of its own, exceptions become errors.
    template <class Body> auto read(Body body) -> decltype(body()) { return guarded(body); }

    /// A prepared statement, kept for the next time, without bindings. `sql` must be a string literal.
    StatementUse statement(const char* sql);
    std::int64_t lastInsertId() const { return m_db.getLastInsertRowid(); }
    SQLite::Database& handle() { return m_db; }
    const std::string& path() const { return m_options.path; }
    bool inMemory() const { return m_inMemory; }
    /// In memory, because nothing could be read of the file: its presets are none of this database's.
    bool beganEmpty() const { return m_beganEmpty; }

    /// In memory only: from now on temp.unsaved (empty until then) lists the conversations, and temp.unsaved_preset the
    /// presets, that are written; temp.removed_preset those that are deleted.
    Result<void> trackChanges();
    /// Whether every commit waits for the disk (as it does from the start). Going back to it waits for all before.
    Result<void> setSynchronous(bool full);
    /// A complete copy, looked through by integrity_check before it gets its name. Errors: Io, Full, Corrupt, ...
    Result<void> backUpTo(const std::string& target);
    /// Replaces everything by what `source` holds, after checking it: a KVScope database of this or an older version,
    /// sound. One transaction: whatever happens, the file holds the old or the new. Then open it anew.
    /// Errors: NotFound, Unsupported, Newer, Corrupt, and the storage's; nothing is changed then.
    Result<void> restoreFrom(const std::string& source);

private:
    explicit Database(DatabaseOptions options);
    struct InMemory {};
    Database(DatabaseOptions options, InMemory);
    void addFunctions();
    Result<void> copyFile();
    Result<void> prepare();
    Result<void> migrate(int from, int to);
    Result<void> backUp(int version);
    Error translate(const SQLite::Exception& exception) const;
    void forgetStatements() { m_statements.clear(); }

    template <class Body> auto guarded(Body body) -> decltype(body()) {
        try {
            return body();
        } catch (const SQLite::Exception& exception) {
            return tl::unexpected<Error>(translate(exception));
        }
    }

    DatabaseOptions m_options;
    SQLite::Database m_db;
    bool m_inMemory = false, m_beganEmpty = false;
    std::map<std::string_view, std::unique_ptr<SQLite::Statement>> m_statements;
};

/// "file:PATH?PARAMETERS" for SQLite, with what is special in it escaped.
std::string uriOf(const std::string& path, const std::string& parameters);

/// Looks a database file through without changing it: ours, not newer than this program, sound. Its version.
/// Errors: NotFound, Unsupported, Newer, Corrupt, Busy, Io.
Result<int> checkDatabaseFile(const std::string& path);

/// An Error for a result code of SQLite, naming the file. Busy, Full, Io, ReadOnly, Corrupt and OutOfMemory are
/// troubles of the storage (the same write may succeed later); the others are the request's own fault.
Error errorFromSqlite(int extendedCode, const std::string& detail, const std::string& path);
bool isStorageTrouble(ErrorCode code);

} // namespace kvscope::store
