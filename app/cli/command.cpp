// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/command.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string_view>
#include <system_error>

#include "engine/model/unicode.h"

namespace kvscope::cli {

namespace {

/// Characters that end a line for Unicode, though not in JSON lines. They can stand in strings only.
struct Separator {
    std::string_view character, escaped;
};
constexpr Separator kSeparators[] = {{"\xC2\x85", "\\u0085"}, {"\xE2\x80\xA8", "\\u2028"}, {"\xE2\x80\xA9", "\\u2029"}};

constexpr std::size_t kReadBytes = 1 << 16;
constexpr std::size_t kMostTextBytes = std::size_t(256) << 20; // devices such as /dev/zero never end

/// Lower-case hexadecimal digits of the bytes.
std::string hex(std::string_view bytes) {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string out;
    out.reserve(bytes.size() * 2);
    for (const char c : bytes) {
        out += kDigits[static_cast<unsigned char>(c) >> 4];
        out += kDigits[static_cast<unsigned char>(c) & 15];
    }
    return out;
}

} // namespace

std::string outputFailed() {
    return std::string("Cannot write to standard output (") + std::generic_category().message(errno) +
           "); check where it goes, and that the disk is not full.";
}

std::string readTextFile(const std::string& path) {
    const bool standard = path == "-";
    std::ifstream file;
    if (!standard)
        file.open(path, std::ios::binary);
    std::istream& in = standard ? std::cin : file;
    std::string text;
    std::vector<char> piece(kReadBytes);
    do {
        in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
        text.append(piece.data(), static_cast<std::size_t>(in.gcount()));
        if (text.size() > kMostTextBytes)
            throw CommandError("'" + path + "' is longer than " + std::to_string(kMostTextBytes >> 20) +
                               " MiB, or has no end; give it in parts.");
    } while (in);
    if (in.bad() || !in.eof()) // a folder opens like a file, but fails when it is read
        throw CommandError("Cannot read '" + path + "'; check that it is a file and may be read.");
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

nlohmann::ordered_json readVariables(const std::string& path) {
    auto variables = readJsonFile<nlohmann::ordered_json>(path);
    if (!variables.is_object())
        throw CommandError("'" + path + "' must hold a JSON object of template variables.");
    return variables;
}

CLI::Validator notNegative() {
    return CLI::Validator(
        [](std::string& value) { return value.find('-') == std::string::npos ? std::string() : value + " is below 0"; },
        "");
}

void putText(nlohmann::json& object, const std::string& bytes, const std::string& key) {
    std::string text = model::toValidUtf8(bytes);
    if (text != bytes)
        object[key + "_hex"] = hex(bytes);
    object[key] = std::move(text);
}

nlohmann::json errorJson(const Error& error) {
    return {{"code", errorCodeName(error.code)}, {"message", model::toValidUtf8(error.message)}};
}

void printJson(const nlohmann::json& value) {
    std::string line;
    const std::string text = value.dump();
    for (std::size_t at = 0; at < text.size();) {
        const std::string_view rest = std::string_view(text).substr(at);
        const auto* separator = std::find_if(std::begin(kSeparators), std::end(kSeparators), [&](const auto& s) {
            return rest.substr(0, s.character.size()) == s.character;
        });
        const bool found = separator != std::end(kSeparators);
        line += found ? separator->escaped : rest.substr(0, 1);
        at += found ? separator->character.size() : 1;
    }
    line += '\n';
    if (std::fwrite(line.data(), 1, line.size(), stdout) != line.size() || std::fflush(stdout) != 0)
        throw CommandError(outputFailed());
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
        throw UsageError(option + " is empty; it takes numbers separated by commas, such as 1,2,3.");
    return ids;
}

} // namespace kvscope::cli
