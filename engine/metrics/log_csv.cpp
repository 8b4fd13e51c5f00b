// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/metrics/log_csv.h"

#include <algorithm>
#include <charconv>
#include <map>

#include <nlohmann/json.hpp>

#include "engine/base/json_nesting.h"
#include "engine/metrics/log_fields.h"
#include "engine/metrics/log_json.h"

namespace kvscope::metrics {

namespace {

using nlohmann::json;

// ---- cells as text ----

template <class T> std::enable_if_t<std::is_arithmetic_v<T>, std::string> toCell(T value) {
    char buffer[40];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, value);
    return std::string(buffer, end.ptr);
}
std::string toCell(bool value) {
    return value ? "true" : "false";
}
std::string toCell(const std::string& value) {
    return value;
}
std::string toCell(const JsonText& value) {
    return value.text;
}
std::string toCell(EventKind kind) {
    return eventKindName(kind);
}
template <class Tag, class Rep> std::string toCell(StrongId<Tag, Rep> id) {
    return id.valid() ? toCell(id.value()) : std::string();
}
template <class T> std::string toCell(const std::vector<T>& values) {
    return values.empty() ? std::string() : json(values).dump(-1, ' ', false, json::error_handler_t::replace);
}

template <class T> std::enable_if_t<std::is_arithmetic_v<T>, bool> fromCell(std::string_view cell, T& value) {
    const auto end = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    return end.ec == std::errc() && end.ptr == cell.data() + cell.size();
}
bool fromCell(std::string_view cell, bool& value) {
    value = cell == "true";
    return value || cell == "false";
}
bool fromCell(std::string_view cell, std::string& value) {
    value = cell;
    return true;
}
bool fromCell(std::string_view cell, JsonText& value) {
    value.text = cell;
    return json::accept(cell);
}
bool fromCell(std::string_view cell, EventKind& value) {
    for (int i = 0; i < kEventKindCount; ++i)
        if (cell == eventKindName(static_cast<EventKind>(i))) {
            value = static_cast<EventKind>(i);
            return true;
        }
    return false;
}
template <class Tag, class Rep> bool fromCell(std::string_view cell, StrongId<Tag, Rep>& id) {
    Rep value = -1;
    const bool good = fromCell(cell, value);
    id = StrongId<Tag, Rep>(value);
    return good;
}
template <class T> bool fromCell(std::string_view cell, std::vector<T>& values) {
    const json parsed = jsonNestsTooDeep(cell) ? json() : json::parse(cell, nullptr, false);
    if (!parsed.is_array())
        return false;
    try {
        values = parsed.get<std::vector<T>>();
    } catch (const json::exception&) {
        return false;
    }
    return true;
}

// ---- columns ----

template <class Record>
constexpr bool kTabular = !std::is_same_v<Record, BlockRecord> && !std::is_same_v<Record, SequencesRecord> &&
                          !std::is_same_v<Record, TextRecord>;

/// Names of all columns in the order in which they are written, and where each stands.
struct Columns {
    std::vector<std::string> names = {"type", "format", "version"};
    std::map<std::string, std::size_t, std::less<>> index;

    Columns() {
        const auto add = [this](const char* name, const auto&) {
            if (std::find(names.begin(), names.end(), name) == names.end())
                names.emplace_back(name);
        };
        visitFields(add, static_cast<const StepSample&>(StepSample()));
        visitFields(add, static_cast<const MemorySample&>(MemorySample()));
        visitFields(add, static_cast<const EventRecord&>(EventRecord()));
        visitFields(add, static_cast<const ReceiptRecord&>(ReceiptRecord()));
        visitFields(add, static_cast<const RequestRecord&>(RequestRecord()));
        visitFields(add, static_cast<const LogHeader&>(LogHeader()));
        for (std::size_t i = 0; i < names.size(); ++i)
            index[names[i]] = i;
    }
};

const Columns& columns() {
    static const Columns kColumns;
    return kColumns;
}

void appendCell(std::string& out, const std::string& cell) {
    if (cell.find_first_of(",\"\r\n") == std::string::npos) {
        out += cell;
        return;
    }
    out += '"';
    for (const char c : cell) {
        if (c == '"')
            out += '"';
        out += c;
    }
    out += '"';
}

void appendRow(std::string& out, const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
        if (i > 0)
            out += ',';
        appendCell(out, cells[i]);
    }
    out += '\n';
}

template <class Record> std::vector<std::string> rowOf(const char* type, const Record& record) {
    std::vector<std::string> cells(columns().names.size());
    cells[0] = type;
    visitFields([&](const char* name, const auto& value) { cells[columns().index.find(name)->second] = toCell(value); },
                record);
    return cells;
}

/// Cells of one row, quotes resolved. None: a quote that nobody closes.
std::optional<std::vector<std::string>> splitRow(std::string_view line) {
    std::vector<std::string> cells(1);
    bool quoted = false;
    for (std::size_t i = 0; i < line.size(); ++i) {
        const char c = line[i];
        if (quoted && c == '"' && i + 1 < line.size() && line[i + 1] == '"')
            cells.back() += line[++i];
        else if (c == '"')
            quoted = !quoted;
        else if (c == ',' && !quoted)
            cells.emplace_back();
        else
            cells.back() += c;
    }
    if (quoted)
        return std::nullopt;
    return cells;
}

class RowReader {
public:
    RowReader(const std::vector<std::string>& names, const std::vector<std::string>& cells) {
        for (std::size_t i = 0; i < names.size() && i < cells.size(); ++i)
            m_cells.emplace(names[i], cells[i]);
    }
    std::string cell(const char* name) const {
        const auto found = m_cells.find(name);
        return found == m_cells.end() ? std::string() : found->second;
    }
    template <class T> void operator()(const char* name, T& value) {
        const auto found = m_cells.find(name);
        if (found == m_cells.end() || found->second.empty())
            return; // absent: the default
        if (!fromCell(found->second, value) && problem.empty())
            problem = std::string("column \"") + name + "\" has an impossible value";
    }
    std::string problem;

private:
    std::map<std::string, std::string, std::less<>> m_cells;
};

template <class Record> Result<std::optional<LogRecord>> recordOf(RowReader& row) {
    Record record;
    visitFields(row, record);
    if (!row.problem.empty())
        return fail(ErrorCode::Corrupt, row.problem);
    return LogRecord(std::move(record));
}

} // namespace

void appendCsvHeader(std::string& out, const LogHeader& header) {
    appendRow(out, columns().names);
    std::vector<std::string> cells = rowOf("session", header);
    cells[1] = kLogFormat;
    cells[2] = std::to_string(header.versionMajor) + "." + std::to_string(header.versionMinor);
    appendRow(out, cells);
}

void appendCsvRecord(std::string& out, const LogRecord& record) {
    std::visit(
        [&out](const auto& r) {
            using Record = std::decay_t<decltype(r)>;
            if constexpr (kTabular<Record>)
                appendRow(out, rowOf(recordTypeName<Record>(), r));
        },
        record);
}

Result<void> CsvReader::readColumns(std::string_view line) {
    auto cells = splitRow(line);
    if (!cells || cells->empty() || cells->front() != "type")
        return fail(ErrorCode::Corrupt, "This is not a KVScope session log: its first line does not name the columns.");
    m_columns = std::move(*cells);
    return {};
}

Result<LogHeader> CsvReader::readHeader(std::string_view line) const {
    const auto cells = splitRow(line);
    RowReader row(m_columns, cells.value_or(std::vector<std::string>()));
    if (row.cell("type") != "session" || row.cell("format") != kLogFormat)
        return fail(ErrorCode::Corrupt, "This is not a KVScope session log: its second line is not the session's.");
    LogHeader header;
    if (auto known = readVersion(row.cell("version"), header); !known)
        return tl::unexpected<Error>(known.error());
    visitFields(row, header);
    if (!row.problem.empty())
        return fail(ErrorCode::Corrupt, "The session's row is damaged: " + row.problem + ".");
    return header;
}

Result<std::optional<LogRecord>> CsvReader::readRecord(std::string_view line) const {
    const auto cells = splitRow(line);
    if (!cells || cells->size() < m_columns.size())
        return fail(ErrorCode::Corrupt, "not a complete row");
    RowReader row(m_columns, *cells);
    const std::string type = row.cell("type");
    if (type == "step")
        return recordOf<StepSample>(row);
    if (type == "memory")
        return recordOf<MemorySample>(row);
    if (type == "request")
        return recordOf<RequestRecord>(row);
    if (type == "event")
        return recordOf<EventRecord>(row);
    if (type == "receipt")
        return recordOf<ReceiptRecord>(row);
    return std::optional<LogRecord>();
}

bool CsvReader::endsInsideQuotes(std::string_view text) {
    return std::count(text.begin(), text.end(), '"') % 2 != 0;
}

} // namespace kvscope::metrics
