// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/model/missing_piece.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "engine/model/gguf_types.h"

namespace kvscope::model {
namespace {

namespace fs = std::filesystem;

struct Piece {
    std::string name;
    std::uint64_t bytes = 0;
};

/// What begins as a GGUF file does is no continuation of one: another model, or the first piece under another name.
bool beginsAFile(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    std::array<char, 4> magic{};
    return in.read(magic.data(), magic.size()) && std::string_view(magic.data(), magic.size()) == "GGUF";
}

/// The other files of the folder, by name: the order in which `split` numbers its pieces.
std::vector<Piece> filesBeside(const fs::path& opened) {
    constexpr int kMostFiles = 10'000; // a folder of that many files is no place where a person keeps pieces
    std::vector<Piece> pieces;
    std::error_code error;
    const auto folder = opened.has_parent_path() ? opened.parent_path() : fs::path(".");
    int seen = 0;
    for (auto it = fs::directory_iterator(folder, error); !error && it != fs::directory_iterator() && seen < kMostFiles;
         it.increment(error), ++seen) {
        std::error_code ignored;
        if (it->path().filename() == opened.filename() || !it->is_regular_file(ignored))
            continue;
        const std::uint64_t bytes = it->file_size(ignored);
        if (!ignored && bytes > 0)
            pieces.push_back({it->path().filename().string(), bytes});
    }
    std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.name < b.name; });
    return pieces;
}

bool anyBegins(const std::vector<Piece>& pieces, std::size_t first, std::size_t end, const fs::path& opened) {
    return std::any_of(pieces.begin() + static_cast<std::ptrdiff_t>(first),
                       pieces.begin() + static_cast<std::ptrdiff_t>(end),
                       [&](const Piece& piece) { return beginsAFile(opened.parent_path() / piece.name); });
}

/// The fewest files that follow one another and have the missing size together; {n, n} if there are none.
std::pair<std::size_t, std::size_t> fittingRun(const std::vector<Piece>& pieces, const fs::path& opened,
                                               std::uint64_t missing, std::uint64_t slack) {
    constexpr std::size_t kMostPieces = 64;
    std::pair<std::size_t, std::size_t> best{pieces.size(), pieces.size()};
    std::size_t fewest = kMostPieces + 1;
    for (std::size_t first = 0; first < pieces.size(); ++first) {
        std::uint64_t bytes = 0;
        for (std::size_t end = first; end < pieces.size() && end - first < std::min(kMostPieces, fewest - 1); ++end) {
            bytes += pieces[end].bytes;
            if (bytes > missing + slack)
                break;
            if (bytes < missing)
                continue;
            if (anyBegins(pieces, first, end + 1, opened))
                break;
            best = {first, end + 1};
            fewest = end + 1 - first;
            break;
        }
    }
    return best;
}

/// Names of files are any bytes; a sentence is not.
std::string shown(const std::string& name) {
    constexpr std::size_t kLongestName = 255;
    return forSentence(name, kLongestName);
}

/// Can the name stand between single quotes in a command, as it is shown?
bool isPlain(const std::string& name) {
    return shown(name) == name && name.find('\'') == std::string::npos;
}

} // namespace

std::string missingPieceAdvice(const std::string& path, std::uint64_t missingBytes, std::uint64_t slack) {
    const fs::path opened(path);
    const std::vector<Piece> pieces = filesBeside(opened);
    const auto [first, end] = fittingRun(pieces, opened, missingBytes, slack);
    if (first == end)
        return "Download it again.";
    const std::string half = opened.filename().string();
    std::string named, joined = " '" + half + "'";
    bool plain = isPlain(half);
    for (std::size_t i = first; i < end; ++i) {
        named += (i > first ? i + 1 == end ? " and '" : ", '" : "'") + shown(pieces[i].name) + "'";
        joined += " '" + pieces[i].name + "'";
        plain = plain && isPlain(pieces[i].name);
    }
    return named +
           (end - first > 1 ? " beside it have the size of the missing pieces"
                            : " beside it has the size of the missing piece") +
           ": join them" + (plain ? " (cat" + joined + " > whole.gguf)" : std::string()) + " and open the result.";
}

} // namespace kvscope::model
