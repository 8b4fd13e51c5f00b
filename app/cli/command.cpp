// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/command.h"

#include <charconv>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>

#include "app/cli/utf8.h"

namespace kvscope::cli {

std::string readTextFile(const std::string& path) {
    if (path == "-")
        return {std::istreambuf_iterator<char>(std::cin), {}};
    std::ifstream in(path, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(in), {}};
    if (!in.good() && !in.eof())
        throw CommandError("Cannot read '" + path + "'; check that the file exists and may be read.");
    return text;
}

std::vector<std::string> readLines(const std::string& path) {
    const std::string text = readTextFile(path);
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        std::size_t length = end - at;
        if (length > 0 && text[end - 1] == '\r')
            --length;
        lines.push_back(text.substr(at, length));
        at = end + 1;
    }
    return lines;
}

nlohmann::json readJsonFile(const std::string& path) {
    nlohmann::json value = nlohmann::json::parse(readTextFile(path), nullptr, false);
    if (value.is_discarded())
        throw CommandError("'" + path + "' is not valid JSON.");
    return value;
}

void putText(nlohmann::json& object, const std::string& bytes, const std::string& key) {
    std::string text = replaceInvalidUtf8(bytes);
    if (text != bytes)
        object[key + "_hex"] = hex(bytes);
    object[key] = std::move(text);
}

nlohmann::json errorJson(const Error& error) {
    return {{"code", errorCodeName(error.code)}, {"message", replaceInvalidUtf8(error.message)}};
}

void printJson(const nlohmann::json& value) {
    const std::string line = value.dump() + "\n";
    std::fwrite(line.data(), 1, line.size(), stdout);
    std::fflush(stdout);
}

std::vector<std::int32_t> parseIds(const std::string& list, const std::string& option) {
    std::vector<std::int32_t> ids;
    const char* at = list.data();
    const char* const end = at + list.size();
    while (at < end) {
        std::int32_t id = 0;
        const auto parsed = std::from_chars(at, end, id);
        const bool more = parsed.ptr < end;
        if (parsed.ec != std::errc() || id < 0 || (more && (*parsed.ptr != ',' || parsed.ptr + 1 == end)))
            throw UsageError(option + " takes numbers separated by commas, such as 1,2,3.");
        ids.push_back(id);
        at = parsed.ptr + (more ? 1 : 0);
    }
    if (ids.empty())
        throw UsageError(option + " takes numbers separated by commas, such as 1,2,3.");
    return ids;
}

} // namespace kvscope::cli
