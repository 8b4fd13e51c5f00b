// SPDX-License-Identifier: GPL-3.0-or-later
//
// A session log as one table for spreadsheets: a header line, a row of type "session", then one row a record, with a
// column for every field of every record type. Block maps, sequence tables and texts do not fit a table and are left
// to JSONL and .kvscope.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/metrics/log_records.h"

namespace kvscope::metrics {

/// Appends the line of column names and the session's row.
void appendCsvHeader(std::string& out, const LogHeader& header);
/// Appends a row; nothing for record types that a table cannot hold.
void appendCsvRecord(std::string& out, const LogRecord& record);

/// Reads such tables; columns may stand in any order, unknown ones are ignored.
class CsvReader {
public:
    /// The line of column names. Error Corrupt when it is not one of a session log.
    Result<void> readColumns(std::string_view line);
    /// The row of type "session".
    Result<LogHeader> readHeader(std::string_view line) const;
    /// None: a row of an unknown type.
    Result<std::optional<LogRecord>> readRecord(std::string_view line) const;
    /// Whether `text` ends inside a quoted cell, so that the next line belongs to it.
    static bool endsInsideQuotes(std::string_view text);

private:
    std::vector<std::string> m_columns;
};

} // namespace kvscope::metrics
