// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/cli/json_input.h"
#include "engine/base/result.h"

namespace kvscope::cli {

/// Wrong usage, or an option whose feature is not built: one sentence on stderr, exit 2.
class UsageError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// The work failed: one sentence on stderr, exit 1.
class CommandError : public std::runtime_error {
public:
    explicit CommandError(const Error& error) : std::runtime_error(error.message) {}
    using std::runtime_error::runtime_error;
};

/// The value, or a CommandError with its sentence.
template <class T> T valueOrThrow(Result<T> result) {
    if (!result)
        throw CommandError(result.error());
    return std::move(*result);
}

/// Refuses a minus sign: CLI11 would wrap -1 round to the largest unsigned number.
CLI::Validator notNegative();

/// One verb of kvscope-cli. `add...` functions (one small file per verb) add a subcommand with its options to `app` and
/// return what runs when it was chosen; `run` returns the exit status and may throw the two errors above.
struct Verb {
    CLI::App* app = nullptr;
    std::function<int()> run;
};

// app/cli/generate.cpp, logits.cpp, eval.cpp, inspect.cpp
Verb addGenerate(CLI::App& app);
Verb addLogits(CLI::App& app);
Verb addEval(CLI::App& app);
Verb addInspect(CLI::App& app);
// app/cli/bench.cpp
Verb addBench(CLI::App& app);
// app/cli/trace_commands.cpp
Verb addTrace(CLI::App& app);
// app/cli/text_commands.cpp
Verb addTokenize(CLI::App& app);
Verb addDetokenize(CLI::App& app);
Verb addRender(CLI::App& app);

/// The text of a file; CommandError with a sentence when it cannot be read. "-" is standard input.
std::string readTextFile(const std::string& path);
/// Its lines, without line ends; empty lines are kept (answers stand in input order).
std::vector<std::string> readLines(const std::string& path);
/// Json = nlohmann::json or ordered_json.
template <class Json> Json readJsonFile(const std::string& path) {
    const std::string text = readTextFile(path);
    Json value = parseJson<Json>(text);
    if (value.is_discarded())
        throw CommandError("'" + path + "' " + jsonFault(text));
    return value;
}

/// The object of template variables in a JSON file; CommandError when it is something else.
nlohmann::ordered_json readVariables(const std::string& path);

/// {"text": valid UTF-8 with U+FFFD for bad bytes, "text_hex": ... only when `bytes` was not valid UTF-8}
void putText(nlohmann::json& object, const std::string& bytes, const std::string& key = "text");
/// The sentence for a failed write to stdout, by errno.
std::string outputFailed();
/// {"code": ..., "message": ...}
nlohmann::json errorJson(const Error& error);
/// Writes one compact JSON line to stdout, without the characters beside '\n' that some programs take for a line's end.
/// CommandError when it cannot be written.
void printJson(const nlohmann::json& value);
/// "1,2,3" -> {1,2,3}; UsageError naming `option` otherwise.
std::vector<std::int32_t> parseIds(const std::string& list, const std::string& option);

} // namespace kvscope::cli
