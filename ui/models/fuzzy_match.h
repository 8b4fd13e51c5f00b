// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <optional>
#include <utility>
#include <vector>

namespace kvscope::ui {

struct FuzzyMatch {
    int score = 0;                                       ///< the higher the better; 0 for an empty pattern
    std::vector<std::pair<qsizetype, qsizetype>> ranges; ///< of `text` that matched: [begin, end), ascending
};

/// Are all characters of `pattern` in `text`, in this order, letters of any case? Spaces in the pattern separate words
/// that may match in any order. Better: at the beginning of words, in one piece, early.
std::optional<FuzzyMatch> fuzzyMatch(const QString& pattern, const QString& text);

} // namespace kvscope::ui
