// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/metrics/log_json.h"

#include <charconv>
#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

#include "engine/base/json_nesting.h"
#include "engine/metrics/log_fields.h"

namespace kvscope::metrics {

namespace {

using nlohmann::json;

constexpr std::size_t kRunFields = 7; ///< first, count, state, fill, owner, references, last_read

template <class Number> void appendNumber(std::string& out, Number value) {
    if constexpr (std::is_floating_point_v<Number>)
        if (!std::isfinite(value)) {
            out += "null"; // JSON has no infinity
            return;
        }
    char buffer[40];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, value);
    out.append(buffer, end.ptr);
}

void appendString(std::string& out, const std::string& text) {
    out += json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

/// Writes `"name":value` for each field, separated by commas.
class JsonWriter {
public:
    explicit JsonWriter(std::string& out) : m_out(out) {}

    template <class T> void operator()(const char* name, const T& value) {
        if (m_first)
            m_first = false;
        else
            m_out += ',';
        m_out += '"';
        m_out += name;
        m_out += "\":";
        write(value);
    }
    void leaveFirstComma() { m_first = false; }

private:
    template <class T> std::enable_if_t<std::is_arithmetic_v<T>> write(T value) { appendNumber(m_out, value); }
    void write(bool value) { m_out += value ? "true" : "false"; }
    void write(const std::string& value) { appendString(m_out, value); }
    void write(const JsonText& value) { m_out += value.text.empty() ? "{}" : value.text; }
    void write(EventKind value) {
        m_out += '"';
        m_out += eventKindName(value);
        m_out += '"';
    }
    template <class Tag, class Rep> void write(StrongId<Tag, Rep> id) { appendNumber(m_out, id.value()); }
    template <class A, class B> void write(const std::pair<A, B>& pair) {
        m_out += '[';
        write(pair.first);
        m_out += ',';
        write(pair.second);
        m_out += ']';
    }
    void write(const CellRun& run) {
        const std::uint32_t fields[kRunFields] = {
            run.first,        run.count,      static_cast<std::uint32_t>(run.cell.state),
            run.cell.fill,    run.cell.owner, run.cell.references,
            run.cell.lastRead};
        char separator = '[';
        for (const std::uint32_t field : fields) {
            m_out += separator;
            appendNumber(m_out, field);
            separator = ',';
        }
        m_out += ']';
    }
    void write(const SequenceEntry& row) {
        m_out += '{';
        visitFields(JsonWriter(m_out), row);
        m_out += '}';
    }
    template <class T> void write(const std::vector<T>& values) {
        m_out += '[';
        bool first = true;
        for (const T& value : values) {
            if (!first)
                m_out += ',';
            first = false;
            write(value);
        }
        m_out += ']';
    }

    std::string& m_out;
    bool m_first = true;
};

/// Reads each field that the object has; remembers the first one that has another type or does not fit.
class JsonReader {
public:
    explicit JsonReader(const json& object) : m_object(object) {}

    template <class T> void operator()(const char* name, T& value) {
        const auto found = m_object.find(name);
        if (found == m_object.end() || found->is_null())
            return;
        if (!read(*found, value) && m_problem.empty())
            m_problem = std::string("field \"") + name + "\" has an impossible value";
    }
    const std::string& problem() const { return m_problem; }

private:
    template <class T> static std::enable_if_t<std::is_integral_v<T>, bool> read(const json& in, T& value) {
        if (in.is_number_unsigned()) {
            const auto wide = in.get<std::uint64_t>();
            if (wide > static_cast<std::uint64_t>(std::numeric_limits<T>::max()))
                return false;
            value = static_cast<T>(wide);
            return true;
        }
        if (!in.is_number_integer())
            return false;
        const auto wide = in.get<std::int64_t>(); // negative: the positive ones are unsigned
        if (std::is_unsigned_v<T> || wide < static_cast<std::int64_t>(std::numeric_limits<T>::min()))
            return false;
        value = static_cast<T>(wide);
        return true;
    }
    static bool read(const json& in, double& value) {
        if (!in.is_number())
            return false;
        value = in.get<double>();
        return true;
    }
    static bool read(const json& in, bool& value) {
        if (!in.is_boolean())
            return false;
        value = in.get<bool>();
        return true;
    }
    static bool read(const json& in, std::string& value) {
        if (!in.is_string())
            return false;
        value = in.get<std::string>();
        return true;
    }
    static bool read(const json& in, JsonText& value) {
        value.text = in.dump(-1, ' ', false, json::error_handler_t::replace);
        return in.is_object();
    }
    static bool read(const json& in, EventKind& value) {
        for (int i = 0; i < kEventKindCount; ++i)
            if (in.is_string() && in.get_ref<const std::string&>() == eventKindName(static_cast<EventKind>(i))) {
                value = static_cast<EventKind>(i);
                return true;
            }
        return false;
    }
    template <class Tag, class Rep> static bool read(const json& in, StrongId<Tag, Rep>& id) {
        Rep value = -1;
        const bool good = read(in, value);
        id = StrongId<Tag, Rep>(value);
        return good;
    }
    template <class A, class B> static bool read(const json& in, std::pair<A, B>& pair) {
        return in.is_array() && in.size() == 2 && read(in[0], pair.first) && read(in[1], pair.second);
    }
    static bool read(const json& in, CellRun& run) {
        if (!in.is_array() || in.size() < kRunFields)
            return false;
        std::uint8_t state = 0;
        if (!read(in[0], run.first) || !read(in[1], run.count) || !read(in[2], state) || !read(in[3], run.cell.fill) ||
            !read(in[4], run.cell.owner) || !read(in[5], run.cell.references) || !read(in[6], run.cell.lastRead))
            return false;
        run.cell.state = static_cast<kv::BlockState>(state);
        return state < kv::kBlockStateCount;
    }
    static bool read(const json& in, SequenceEntry& row) {
        if (!in.is_object())
            return false;
        JsonReader reader(in);
        visitFields(reader, row);
        return reader.problem().empty();
    }
    template <class T> static bool read(const json& in, std::vector<T>& values) {
        if (!in.is_array())
            return false;
        values.clear();
        values.reserve(in.size());
        for (const json& element : in) {
            T value{};
            if (!read(element, value))
                return false;
            values.push_back(std::move(value));
        }
        return true;
    }

    const json& m_object;
    std::string m_problem;
};

/// An event has many fields of which few say anything: what equals its default is left out.
class EventWriter {
public:
    explicit EventWriter(JsonWriter& writer) : m_writer(writer) {}
    template <class T> void operator()(const char* name, const T& value) {
        if constexpr (std::is_same_v<T, EventKind>)
            m_writer(name, value);
        else if (!(value == T{}))
            m_writer(name, value);
    }

private:
    JsonWriter& m_writer;
};

template <class Record> Result<std::optional<LogRecord>> readRecord(const json& object) {
    Record record;
    JsonReader reader(object);
    visitFields(reader, record);
    if (!reader.problem().empty())
        return fail(ErrorCode::Corrupt, reader.problem());
    return LogRecord(std::move(record));
}

} // namespace

void appendJsonHeader(std::string& out, const LogHeader& header) {
    out += "{\"format\":\"";
    out += kLogFormat;
    out += "\",\"version\":\"";
    appendNumber(out, header.versionMajor);
    out += '.';
    appendNumber(out, header.versionMinor);
    out += '"';
    JsonWriter writer(out);
    writer.leaveFirstComma();
    visitFields(writer, header);
    out += "}\n";
}

void appendJsonRecord(std::string& out, const LogRecord& record) {
    std::visit(
        [&out](const auto& r) {
            using Record = std::decay_t<decltype(r)>;
            out += "{\"type\":\"";
            out += recordTypeName<Record>();
            out += '"';
            JsonWriter writer(out);
            writer.leaveFirstComma();
            if constexpr (std::is_same_v<Record, EventRecord>)
                visitFields(EventWriter(writer), r);
            else
                visitFields(writer, r);
            out += "}\n";
        },
        record);
}

Result<void> readVersion(std::string_view version, LogHeader& header) {
    const char* const end = version.data() + version.size();
    const auto major = std::from_chars(version.data(), end, header.versionMajor);
    if (major.ec != std::errc() || major.ptr == end || *major.ptr != '.')
        return fail(ErrorCode::Corrupt, "\"" + std::string(version) + "\" is not a version of a session log");
    if (header.versionMajor > kLogVersionMajor)
        return fail(ErrorCode::Unsupported, "The session log has version " + std::string(version) +
                                                ", this program reads versions up to " +
                                                std::to_string(kLogVersionMajor) + ".x; use a newer KVScope.");
    const auto minor = std::from_chars(major.ptr + 1, end, header.versionMinor);
    if (minor.ec != std::errc() || header.versionMajor < 1 || header.versionMinor < 0)
        return fail(ErrorCode::Corrupt, "\"" + std::string(version) + "\" is not a version of a session log");
    return {};
}

namespace {
/// Discarded when it is not valid JSON, or nested too deep to be handled.
json parsed(std::string_view line) {
    return jsonNestsTooDeep(line) ? json(json::value_t::discarded) : json::parse(line, nullptr, false);
}
} // namespace

Result<LogHeader> parseJsonHeader(std::string_view line) {
    const json object = parsed(line);
    if (!object.is_object() || object.value("format", json()) != json(kLogFormat))
        return fail(ErrorCode::Corrupt, "This is not a KVScope session log: its first line is not a header.");
    LogHeader header;
    const json version = object.value("version", json());
    if (auto known = readVersion(version.is_string() ? version.get<std::string>() : version.dump(), header); !known)
        return tl::unexpected<Error>(known.error());
    JsonReader reader(object);
    visitFields(reader, header);
    if (!reader.problem().empty())
        return fail(ErrorCode::Corrupt, "The header of the session log is damaged: " + reader.problem() + ".");
    return header;
}

Result<std::optional<LogRecord>> parseJsonRecord(std::string_view line) {
    const json object = parsed(line);
    if (object.is_discarded())
        return fail(ErrorCode::Corrupt, "not complete JSON");
    const json type = object.is_object() ? object.value("type", json()) : json();
    if (!type.is_string())
        return fail(ErrorCode::Corrupt, "not a record of a session log");
    const std::string& name = type.get_ref<const std::string&>();
    if (name == "step")
        return readRecord<StepSample>(object);
    if (name == "memory")
        return readRecord<MemorySample>(object);
    if (name == "request")
        return readRecord<RequestRecord>(object);
    if (name == "event")
        return readRecord<EventRecord>(object);
    if (name == "receipt")
        return readRecord<ReceiptRecord>(object);
    if (name == "block")
        return readRecord<BlockRecord>(object);
    if (name == "sequences")
        return readRecord<SequencesRecord>(object);
    if (name == "text")
        return readRecord<TextRecord>(object);
    return std::optional<LogRecord>();
}

} // namespace kvscope::metrics
