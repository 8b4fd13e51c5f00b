// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/store/database.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <vector>

#include <SQLiteCpp/Exception.h>
#include <sqlite3.h>

#include "engine/store/fold.h"

namespace kvscope::store {

namespace fs = std::filesystem;

namespace {

const int kOpenFlags = SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE | SQLite::OPEN_URI;
constexpr int kBackupsKept = 2;

int pragmaInt(SQLite::Database& db, const char* pragma) {
    return db.execAndGet(pragma).getInt();
}

std::string openName(const DatabaseOptions& options) {
    if (!options.parameters.empty())
        return uriOf(options.path, options.parameters);
    return options.path.starts_with("file:") ? "./" + options.path : options.path;
}

std::string backupPath(const std::string& path, int version) {
    return path + ".v" + std::to_string(version) + ".bak";
}

/// Keeps the backups of the newest versions only: each is as large as all chats together.
void removeOldBackups(const std::string& path, int newestVersion) {
    int kept = 0;
    for (int version = newestVersion; version >= 0; --version) {
        std::error_code ignored;
        const std::string file = backupPath(path, version);
        if (fs::exists(file, ignored) && ++kept > kBackupsKept)
            fs::remove(file, ignored);
    }
}

Result<void> checkKind(const std::string& path, bool hasTables, int application, int version, int newest) {
    if (hasTables && application != kApplicationId)
        return fail(ErrorCode::Unsupported, path + " is a database of another program; choose another one.");
    if (version > newest)
        return fail(ErrorCode::Newer, "The database " + path + " has version " + std::to_string(version) +
                                          ", this program knows versions up to " + std::to_string(newest) +
                                          "; use a newer KVScope.");
    return {};
}

} // namespace

std::string uriOf(const std::string& path, const std::string& parameters) {
    std::string uri = "file:";
    for (const char c : path) {
        char escaped[4] = {c, '\0'};
        if (c == '?' || c == '#' || c == '%')
            std::snprintf(escaped, sizeof escaped, "%%%02X", static_cast<unsigned>(c));
        uri += escaped;
    }
    return uri + "?" + parameters;
}

bool isStorageTrouble(ErrorCode code) {
    return code == ErrorCode::Busy || code == ErrorCode::Full || code == ErrorCode::Io || code == ErrorCode::Corrupt ||
           code == ErrorCode::ReadOnly || code == ErrorCode::OutOfMemory;
}

Error errorFromSqlite(int extendedCode, const std::string& detail, const std::string& path) {
    switch (extendedCode & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return {ErrorCode::Busy,
                "Another program holds the database " + path + " locked; close it, saving goes on by itself then."};
    case SQLITE_FULL:
        return {ErrorCode::Full,
                "The disk that holds " + path + " is full; free some space, saving goes on by itself then."};
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return {ErrorCode::Corrupt, "The database " + path + " is damaged (" + detail +
                                        "); restore a backup beside it (kvscope.db.vN.bak) or move it away."};
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return {ErrorCode::ReadOnly, "The database " + path + " is read-only; make the file and its folder writable."};
    case SQLITE_CANTOPEN:
        return {ErrorCode::Io,
                "The database " + path + " cannot be opened; check that its folder exists and is writable."};
    case SQLITE_IOERR:
        return {ErrorCode::Io, "Reading or writing " + path + " failed (" + detail + "); check the disk."};
    case SQLITE_NOMEM:
        return {ErrorCode::OutOfMemory, "There is no memory left to work on the database " + path + "."};
    case SQLITE_CONSTRAINT:
        return {ErrorCode::InvalidArgument, "The database " + path + " refuses this: " + detail + "."};
    default:
        return {ErrorCode::Internal, "The database " + path + " answered: " + detail + "."};
    }
}

Error Database::translate(const SQLite::Exception& exception) const {
    int code = exception.getExtendedErrorCode();
    // A limit of file size or a quota is met as an I/O error: what helps is what helps against a full disk.
    const int system = sqlite3_system_errno(m_db.getHandle());
    if ((code & 0xff) == SQLITE_IOERR && (system == EFBIG || system == EDQUOT || system == ENOSPC))
        code = SQLITE_FULL;
    return errorFromSqlite(code, exception.what(), m_options.path);
}

Database::Database(DatabaseOptions options)
    : m_options(std::move(options))
    , m_db(openName(m_options), kOpenFlags, m_options.busyTimeoutMs, m_options.vfs) {
    addFunctions();
}

/// kvscope_searched(name, content), which migrations fold the text of attachments with.
void Database::addFunctions() {
    const auto searched = [](sqlite3_context* context, int, sqlite3_value** values) {
        const auto bytesOf = [](sqlite3_value* value) {
            const auto* data = static_cast<const char*>(sqlite3_value_blob(value)); // before its size is asked for
            return std::string_view(data ? data : "", static_cast<std::size_t>(sqlite3_value_bytes(value)));
        };
        const std::string text = searchedText(bytesOf(values[0]), bytesOf(values[1]));
        sqlite3_result_text64(context, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
    };
    const int code =
        sqlite3_create_function_v2(m_db.getHandle(), "kvscope_searched", 2, SQLITE_UTF8 | SQLITE_DETERMINISTIC, nullptr,
                                   searched, nullptr, nullptr, nullptr);
    if (code != SQLITE_OK)
        throw SQLite::Exception(m_db.getHandle(), code);
}

Result<std::unique_ptr<Database>> Database::open(DatabaseOptions options) {
    const std::string path = options.path;
    try {
        std::unique_ptr<Database> database(new Database(std::move(options)));
        if (auto prepared = database->prepare(); !prepared)
            return tl::unexpected<Error>(prepared.error());
        return database;
    } catch (const SQLite::Exception& exception) {
        return tl::unexpected<Error>(errorFromSqlite(exception.getExtendedErrorCode(), exception.what(), path));
    }
}

Result<void> Database::prepare() {
    const std::vector<Migration>& steps = m_options.migrations ? *m_options.migrations : migrations();
    const int newest = steps.back().to;
    const int version = pragmaInt(m_db, "PRAGMA user_version");
    const int application = pragmaInt(m_db, "PRAGMA application_id");
    const bool hasTables = m_db.execAndGet("SELECT count(*) FROM sqlite_schema").getInt() > 0;

    if (auto ours = checkKind(m_options.path, hasTables, application, version, newest); !ours)
        return ours;
    if (m_inMemory) {
        m_db.exec("PRAGMA foreign_keys = ON");
        return version < newest ? migrate(version, newest) : Result<void>();
    }
    if (sqlite3_db_readonly(m_db.getHandle(), "main") == 1)
        return tl::unexpected<Error>(errorFromSqlite(SQLITE_READONLY, "", m_options.path));

    if (m_db.execAndGet("PRAGMA journal_mode = WAL").getString() != "wal")
        return fail(ErrorCode::Io, "The file system of " + m_options.path +
                                       " does not support SQLite's write-ahead log; choose another data folder.");
    m_db.exec("PRAGMA synchronous = FULL");
    m_db.exec("PRAGMA foreign_keys = ON");
    if (version < newest)
        return migrate(version, newest);
    return {};
}

Result<void> Database::migrate(int from, int to) {
    const std::vector<Migration>& steps = m_options.migrations ? *m_options.migrations : migrations();
    if (from > 0)
        if (auto saved = backUp(from); !saved)
            return saved;
    for (const Migration& step : steps) {
        if (step.to <= from || step.to > to)
            continue;
        // Version and shape change in one commit: a program killed in between finds the old database, whole.
        auto done = write([&]() -> Result<void> {
            m_db.exec(step.sql);
            m_db.exec("PRAGMA user_version = " + std::to_string(step.to));
            m_db.exec("PRAGMA application_id = " + std::to_string(kApplicationId));
            return {};
        });
        if (!done)
            return done;
    }
    return {};
}

Result<void> Database::backUp(int version) {
    const std::string target = backupPath(m_options.path, version);
    if (m_inMemory)
        return {};
    if (auto saved = backUpTo(target); !saved)
        return saved;
    removeOldBackups(m_options.path, version);
    return {};
}

StatementUse Database::statement(const char* sql) {
    auto& slot = m_statements[sql];
    if (slot)
        slot->clearBindings();
    else
        slot = std::make_unique<SQLite::Statement>(m_db, sql);
    return StatementUse(*slot);
}

} // namespace kvscope::store
