// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/model/missing_piece.h"

#include <filesystem>
#include <system_error>

namespace kvscope::model {

std::string missingPieceAdvice(const std::string& path, std::uint64_t missingBytes, std::uint64_t slack) {
    constexpr int kMostFiles = 10'000; // a folder of that many files is no place where a person keeps two pieces
    std::error_code error;
    const std::filesystem::path opened(path);
    const auto folder = opened.has_parent_path() ? opened.parent_path() : std::filesystem::path(".");
    int seen = 0;
    for (auto it = std::filesystem::directory_iterator(folder, error);
         !error && it != std::filesystem::directory_iterator() && seen < kMostFiles; it.increment(error), ++seen) {
        std::error_code ignored;
        if (it->path().filename() == opened.filename() || !it->is_regular_file(ignored))
            continue;
        const std::uint64_t bytes = it->file_size(ignored);
        if (!ignored && bytes >= missingBytes && bytes <= missingBytes + slack) {
            const std::string other = it->path().filename().string();
            return "'" + other + "' beside it has the size of the missing piece: join them (cat '" +
                   opened.filename().string() + "' '" + other + "' > whole.gguf) and open the result.";
        }
    }
    return "Download it again.";
}

} // namespace kvscope::model
