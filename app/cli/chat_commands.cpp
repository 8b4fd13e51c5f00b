// SPDX-License-Identifier: GPL-3.0-or-later
//
// kvscope-cli export (of chats) and import.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "app/cli/export_commands.h"
#include "engine/store/chat_reader.h"
#include "engine/store/chat_writer.h"
#include "engine/store/conversation_store.h"
#include "engine/store/data_folder.h"
#include "engine/store/fold.h"

namespace kvscope::cli {

namespace {

using namespace kvscope::store;
namespace fs = std::filesystem;

constexpr std::size_t kSkippedShown = 20;

struct ChatOptions {
    std::string dataDir, database;
    std::vector<std::int64_t> chats;
    std::string format, output;
    std::vector<std::string> files;
    bool list = false;
    bool asJson = false;
};

void addPlace(CLI::App& app, ChatOptions& options) {
    auto* folder = app.add_option("--data-dir", options.dataDir, "Data folder [$XDG_DATA_HOME/kvscope]");
    app.add_option("--db", options.database, "The database itself [kvscope.db of the data folder]")->excludes(folder);
}

void check(const Result<void>& state) {
    if (!state)
        throw CommandError(state.error());
}

std::string databasePath(const ChatOptions& options) {
    return options.database.empty() ? DataFolder::unlocked(options.dataDir).databasePath() : options.database;
}

// ---- export ----

ChatFormat formatOf(const ChatOptions& options) {
    if (options.format == "markdown")
        return ChatFormat::Markdown;
    if (options.format == "html")
        return ChatFormat::Html;
    if (options.format == "jsonl")
        return ChatFormat::JsonLines;
    if (options.format == "json" || options.output.empty())
        return ChatFormat::Json;
    const auto byName = chatFormatOf(options.output);
    if (!byName)
        throw UsageError("The ending of '" + options.output +
                         "' names no format; add --format markdown, html, json or jsonl.");
    return *byName;
}

int listChats(const std::vector<Conversation>& all, bool asJson) {
    nlohmann::json rows = nlohmann::json::array();
    for (const Conversation& c : all) {
        nlohmann::json row{{"id", c.id.value()}, {"created", c.created}, {"updated", c.updated}};
        putText(row, c.title, "title");
        rows.push_back(std::move(row));
    }
    if (asJson) {
        printJson(rows);
        return 0;
    }
    for (const auto& row : rows)
        std::printf("%s  %s\n", row["id"].dump().c_str(), row["title"].get<std::string>().c_str());
    return 0;
}

/// Those that were asked for, the one that was used last at the end: importing them gives the same order again.
std::vector<Conversation> chosen(std::vector<Conversation> all, const ChatOptions& options, const std::string& path) {
    std::reverse(all.begin(), all.end());
    if (options.chats.empty())
        return all;
    std::vector<Conversation> some;
    for (const std::int64_t id : options.chats) {
        const auto found = std::find_if(all.begin(), all.end(), [&](const auto& c) { return c.id.value() == id; });
        if (found == all.end())
            throw CommandError("There is no chat " + std::to_string(id) + " in " + path + "; --list shows them.");
        some.push_back(*found);
    }
    return some;
}

int exportChats(const ChatOptions& options) {
    const std::string path = databasePath(options);
    if (options.asJson && options.output.empty() && !options.list)
        throw UsageError("--json needs --output F: standard output carries the chats themselves.");
    const ChatFormat format = formatOf(options);
    DatabaseOptions database;
    database.path = path;
    // A copy in memory: a running window is not disturbed, an older database not migrated.
    const auto opened = valueOrThrow(Database::openInMemory(database));
    ConversationStore store(*opened, systemWallClock());
    const std::vector<Conversation> all = valueOrThrow(store.list());
    if (options.list)
        return listChats(all, options.asJson);
    const std::vector<Conversation> wanted = chosen(all, options, path);
    const std::string title = wanted.size() == 1 ? wanted.front().title : "Chats";
    auto writer = options.output.empty() ? ChatWriter::onStream(stdout, format, title)
                                         : valueOrThrow(ChatWriter::create(options.output, format, title));
    for (const Conversation& conversation : wanted)
        check(writer->add(valueOrThrow(store.load(conversation.id))));
    check(writer->finish());
    if (options.asJson)
        printJson({{"output", options.output}, {"chats", writer->conversations()}, {"messages", writer->messages()}});
    return 0;
}

// ---- import ----

/// The lock of the folder that the database lies in, so that no window writes at the same time. A database that lies
/// somewhere else than in a data folder has no window.
std::optional<DataFolder> lockOf(const ChatOptions& options) {
    if (options.database.empty())
        return valueOrThrow(DataFolder::open(options.dataDir));
    const fs::path folder = fs::absolute(options.database).parent_path();
    std::error_code ignored;
    if (!fs::is_directory(folder, ignored))
        throw CommandError("There is no folder " + folder.string() + ".");
    if (!fs::exists(folder / "lock", ignored))
        return std::nullopt;
    return valueOrThrow(DataFolder::open(folder.string()));
}

struct ImportTotals {
    std::int64_t added = 0, alreadyThere = 0, messages = 0, skipped = 0;
    bool failed = false;
    nlohmann::json parts = nlohmann::json::array();
    std::vector<std::string> sentences;
};

void note(ImportTotals& totals, const std::string& file, const std::string& what, const std::string& why) {
    totals.parts.push_back({{"file", validUtf8(file)}, {"what", validUtf8(what)}, {"why", validUtf8(why)}});
    totals.sentences.push_back(what.empty() ? why : file + ", " + what + ": " + why);
}

void importFile(const std::string& file, ConversationStore& store, ImportTotals& totals) {
    std::optional<Error> storage; // what the database refuses ends the import; what a file holds does not
    const auto report = readChatFile(file, [&](ReadChat&& chat) -> Result<void> {
        const auto adopted = store.adopt(chat.content, chat.fingerprint);
        if (!adopted) {
            storage = adopted.error();
            return tl::unexpected<Error>(adopted.error());
        }
        (adopted->added ? totals.added : totals.alreadyThere) += 1;
        totals.messages += adopted->added ? static_cast<std::int64_t>(chat.content.messages.size()) : 0;
        return {};
    });
    if (storage)
        throw CommandError(*storage);
    if (!report) {
        totals.failed = true;
        ++totals.skipped;
        const std::string& why = report.error().message;
        note(totals, file, why.find(file) == std::string::npos ? "the file" : "", why);
        return;
    }
    totals.skipped += report->skippedCount;
    totals.failed |= report->skippedChats > 0;
    for (const SkippedPart& part : report->skipped)
        note(totals, file, part.what, part.why);
}

int importChats(const ChatOptions& options) {
    const auto lock = lockOf(options);
    DatabaseOptions database;
    database.path = databasePath(options);
    const auto opened = valueOrThrow(Database::open(database));
    ConversationStore store(*opened, systemWallClock());
    // One wait for the disk at the end instead of one for each chat; a kill in between costs nothing.
    check(opened->setSynchronous(false));
    ImportTotals totals;
    for (const std::string& file : options.files)
        importFile(file, store, totals);
    check(opened->setSynchronous(true));
    if (options.asJson) {
        printJson({{"added", totals.added},
                   {"already_there", totals.alreadyThere},
                   {"messages", totals.messages},
                   {"skipped_count", totals.skipped},
                   {"skipped", totals.parts}});
    } else {
        std::printf("%lld chats with %lld messages added, %lld were there already, %lld parts skipped.\n",
                    static_cast<long long>(totals.added), static_cast<long long>(totals.messages),
                    static_cast<long long>(totals.alreadyThere), static_cast<long long>(totals.skipped));
    }
    for (std::size_t i = 0; i < totals.sentences.size() && i < kSkippedShown; ++i)
        std::fprintf(stderr, "%s\n", totals.sentences[i].c_str());
    if (totals.skipped > static_cast<std::int64_t>(std::min(totals.sentences.size(), kSkippedShown)))
        std::fprintf(stderr, "... and %lld more.\n",
                     static_cast<long long>(totals.skipped) -
                         static_cast<long long>(std::min(totals.sentences.size(), kSkippedShown)));
    return totals.failed ? 1 : 0;
}

} // namespace

std::function<int()> addChatExport(CLI::App& app) {
    auto options = std::make_shared<ChatOptions>();
    addPlace(app, *options);
    app.add_option("--chat", options->chats, "Number of a chat, may be given several times; --list shows them [all]");
    app.add_option("--format", options->format, "[by the ending of --output, else json]")
        ->check(CLI::IsMember({"markdown", "html", "json", "jsonl"}));
    app.add_option("--output", options->output, "File to write; it appears when it is complete [standard output]");
    app.add_flag("--list", options->list, "List the chats instead, the last used first");
    app.add_flag("--json", options->asJson, "With --output or --list: a summary as JSON on standard output");
    app.footer("Markdown and HTML hold the shown path of each chat, JSON and JSON lines every version with tokens,\n"
               "settings and receipts. A window may be running meanwhile.");
    return [options] { return exportChats(*options); };
}

Verb addImport(CLI::App& app) {
    auto options = std::make_shared<ChatOptions>();
    Verb verb;
    verb.app = app.add_subcommand(
        "import",
        "Add chats from files of KVScope or other programs to the data folder.\n"
        "Read are KVScope's own JSON, OpenAI-style and ShareGPT JSON, JSON lines, and ChatGPT's data export.\n"
        "Importing the same again adds nothing. What cannot be read is named on standard error and skipped;\n"
        "the exit status is 1 when a whole chat was. The window must be closed; it has Import itself.");
    verb.app->add_option("files", options->files, "Files to read")->required();
    addPlace(*verb.app, *options);
    verb.app->add_flag("--json", options->asJson, "The outcome as JSON on standard output");
    verb.run = [options] { return importChats(*options); };
    return verb;
}

} // namespace kvscope::cli
