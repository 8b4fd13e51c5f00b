// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/export_commands.h"

#include <cstdio>
#include <memory>

#include "engine/metrics/log_file.h"
#include "engine/metrics/session_folder.h"
#include "engine/store/data_folder.h"

namespace kvscope::cli {

namespace {

using namespace kvscope::metrics;

constexpr int kProblemsShown = 10;

struct ExportOptions {
    std::string file;
    std::string dataDir;
    std::string session = "last";
    std::string format;
    std::string output;
    bool list = false;
    bool asJson = false;
};

/// The files that make up the session, in order of time.
std::vector<std::string> sourcesOf(const ExportOptions& options, const std::string& folder) {
    if (!options.file.empty())
        return {options.file};
    return valueOrThrow(findSession(folder, options.session)).segments;
}

LogFormat formatOf(const ExportOptions& options) {
    if (options.format == "csv")
        return LogFormat::Csv;
    if (options.format == "kvscope")
        return LogFormat::Kvscope;
    if (options.format == "jsonl")
        return LogFormat::JsonLines;
    return logFormatOf(options.output);
}

int listRecorded(const ExportOptions& options, const std::string& folder) {
    nlohmann::json all = nlohmann::json::array();
    for (const RecordedSession& session : listSessions(folder))
        all.push_back({{"session", session.id}, {"bytes", session.bytes}, {"segments", session.segments.size()}});
    if (options.asJson) {
        printJson(all);
        return 0;
    }
    for (const auto& session : all)
        std::printf("%s  %s bytes\n", session["session"].get<std::string>().c_str(), session["bytes"].dump().c_str());
    return 0;
}

/// Writes all sources as one log; the writer is made when the first header is known. Returns the number of damages.
class Exporter {
public:
    explicit Exporter(const ExportOptions& options) : m_options(options) {}

    std::uint64_t run(const std::vector<std::string>& sources) {
        for (const std::string& source : sources) {
            const auto scanned = scanLog(
                source, [this](const LogHeader& header) { begin(header); },
                [this](LogRecord&& record) { write(record); },
                [&](const LogProblem& problem) { complain(source, problem); });
            throwIfFailed(scanned);
            throwIfFailed(m_state);
        }
        throwIfFailed(m_writer->finish());
        if (m_problems > kProblemsShown)
            std::fprintf(stderr, "... and %llu more.\n", static_cast<unsigned long long>(m_problems - kProblemsShown));
        return m_problems;
    }
    std::uint64_t records() const { return m_records; }

private:
    void begin(const LogHeader& header) {
        if (m_writer)
            return; // a later segment of the same session
        auto writer = m_options.output.empty() ? LogWriter::onStream(stdout, formatOf(m_options), header)
                                               : LogWriter::create(m_options.output, formatOf(m_options), header);
        m_writer = valueOrThrow(std::move(writer));
    }
    void write(const LogRecord& record) {
        if (!m_state)
            return;
        m_state = m_writer->write(record);
        ++m_records;
    }
    static void throwIfFailed(const Result<void>& state) {
        if (!state)
            throw CommandError(state.error());
    }
    void complain(const std::string& source, const LogProblem& problem) {
        if (++m_problems <= kProblemsShown)
            std::fprintf(stderr, "%s: %s\n", source.c_str(), problem.message.c_str());
    }

    const ExportOptions& m_options;
    std::unique_ptr<LogWriter> m_writer;
    Result<void> m_state;
    std::uint64_t m_records = 0;
    std::uint64_t m_problems = 0;
};

int exportLog(const ExportOptions& options) {
    const std::string folder = store::DataFolder::unlocked(options.dataDir).sessionsPath();
    if (options.list)
        return listRecorded(options, folder);
    if (options.asJson && options.output.empty())
        throw UsageError("--json needs --output F: standard output carries the session itself.");
    Exporter exporter(options);
    const std::uint64_t problems = exporter.run(sourcesOf(options, folder));
    if (options.asJson)
        printJson({{"output", options.output}, {"records", exporter.records()}, {"problems", problems}});
    return problems == 0 ? 0 : 1;
}

} // namespace

Verb addExport(CLI::App& app) {
    auto options = std::make_shared<ExportOptions>();
    Verb verb;
    verb.app = app.add_subcommand("export", "Write chats, or what KVScope has recorded (export log), as files");
    verb.app->require_subcommand(0, 1);
    const std::function<int()> exportChats = addChatExport(*verb.app);
    CLI::App* log = verb.app->add_subcommand(
        "log", "Write a recorded session as JSON lines, CSV or .kvscope.\n"
               "Without FILE it is a session of the data folder, where the window records (no message text).\n"
               "CSV has a row for every sample, request, event and receipt; block maps and sequence tables stand in\n"
               "JSON lines and .kvscope only. Damaged lines are named on standard error and passed over; the rest is\n"
               "written, and the exit status is 1.");
    log->add_option("file", options->file, "A saved session (.jsonl, .csv or .kvscope) to convert");
    log->add_option("--data-dir", options->dataDir, "Data folder [$XDG_DATA_HOME/kvscope]");
    log->add_option("--session", options->session, "Which session of the data folder: its id, or last")
        ->capture_default_str();
    log->add_option("--format", options->format, "[by the ending of --output, else jsonl]")
        ->check(CLI::IsMember({"jsonl", "csv", "kvscope"}));
    log->add_option("--output", options->output, "File to write; it appears when it is complete [standard output]");
    log->add_flag("--list", options->list, "List the recorded sessions of the data folder instead, oldest first");
    log->add_flag("--json", options->asJson, "With --output or --list: a summary as JSON on standard output");
    verb.run = [=] { return log->parsed() ? exportLog(*options) : exportChats(); };
    return verb;
}

} // namespace kvscope::cli
