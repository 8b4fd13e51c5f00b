// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/output_guard.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "app/cli/command.h"
#include "engine/model/shard_names.h"

namespace kvscope::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 6> kOutputs = {"--stats", "--log-blocks",  "--csv",
                                                      "--html",  "--token-times", "--output"};

struct NamedFile {
    std::string option, path;
    bool written = false;
};

/// Values that could be paths; one that is none leads to no file.
std::vector<NamedFile> filesOf(const CLI::App& verb) {
    constexpr std::int64_t kMostShards = 1000;
    std::vector<NamedFile> files;
    for (const CLI::Option* option : verb.get_options()) {
        const std::string name = option->get_name();
        const bool written = std::find(kOutputs.begin(), kOutputs.end(), name) != kOutputs.end();
        for (const std::string& value : option->results()) {
            files.push_back({name, value, written});
            const auto shard = written ? std::nullopt : model::ShardName::parse(value);
            for (std::int64_t i = 1; shard && i <= std::min(shard->count, kMostShards); ++i)
                if (i != shard->number)
                    files.push_back({name, shard->pathOf(i), false});
        }
    }
    return files;
}

/// The same file, or two names of one that is not there yet. Pipes and devices may be shared.
bool sameFile(const std::string& a, const std::string& b) {
    std::error_code failed;
    if (fs::exists(a, failed))
        return fs::is_regular_file(a, failed) && fs::equivalent(a, b, failed) && !failed;
    const fs::path first = fs::weakly_canonical(a, failed);
    return !failed && first == fs::weakly_canonical(b, failed) && !failed;
}

} // namespace

void refuseOverwriting(const CLI::App& verb) {
    const std::vector<NamedFile> files = filesOf(verb);
    for (const NamedFile& output : files)
        for (const NamedFile& other : files)
            if (output.written && other.option != output.option && sameFile(output.path, other.path))
                throw UsageError(output.option + " would overwrite '" + other.path + "', the file of " + other.option +
                                 "; give it another name.");
}

} // namespace kvscope::cli
