// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/fuzzy_match.h"

#include <QStringList>
#include <algorithm>

namespace kvscope::ui {
namespace {

constexpr int kHit = 1, kWordStart = 8, kRun = 10, kFirst = 4;
constexpr qsizetype kLongestText = 512; // titles; what follows is not looked at
constexpr int kNone = -1;

bool wordStart(const QString& text, qsizetype at) {
    if (at == 0)
        return true;
    const QChar before = text[at - 1], here = text[at];
    return !before.isLetterOrNumber() || (before.isLower() && here.isUpper()) || here.script() != before.script();
}

/// The best way to find `word` in `text` as a subsequence: scores by dynamic programming over (character of the word,
/// place in the text), with the best score that ends exactly there.
std::optional<FuzzyMatch> matchWord(const QString& word, const QString& text, const QString& folded) {
    const qsizetype n = word.size(), m = std::min(text.size(), kLongestText);
    if (n > m)
        return std::nullopt;
    std::vector<std::vector<int>> score(std::size_t(n), std::vector<int>(std::size_t(m), kNone));
    std::vector<std::vector<qsizetype>> from(std::size_t(n), std::vector<qsizetype>(std::size_t(m), -1));
    for (qsizetype i = 0; i < n; ++i) {
        int best = kNone; // of the character before, ended before j - 1
        qsizetype bestAt = -1;
        for (qsizetype j = i; j < m; ++j) {
            const auto row = std::size_t(i), column = std::size_t(j);
            if (i > 0 && j >= 2 && score[row - 1][column - 2] > best) {
                best = score[row - 1][column - 2];
                bestAt = j - 2;
            }
            if (word[i] != folded[j])
                continue;
            const int here = kHit + (wordStart(text, j) ? kWordStart : 0) + (j == 0 ? kFirst : 0);
            if (i == 0) {
                score[row][column] = here;
                continue;
            }
            const int run = score[row - 1][column - 1] == kNone ? kNone : score[row - 1][column - 1] + kRun;
            if (run == kNone && best == kNone)
                continue;
            score[row][column] = here + std::max(run, best);
            from[row][column] = run >= best ? j - 1 : bestAt;
        }
    }
    const std::vector<int>& last = score.back();
    const auto end = std::max_element(last.begin(), last.end());
    if (*end == kNone)
        return std::nullopt;
    FuzzyMatch out;
    out.score = *end * 4 - int(std::min<qsizetype>(m, 100)) / 8; // of equals, the shorter text
    qsizetype at = end - last.begin();
    for (qsizetype i = n - 1; i >= 0; --i) {
        if (!out.ranges.empty() && out.ranges.back().first == at + 1)
            out.ranges.back().first = at;
        else
            out.ranges.emplace_back(at, at + 1);
        at = from[std::size_t(i)][std::size_t(at)];
    }
    std::reverse(out.ranges.begin(), out.ranges.end());
    return out;
}

std::vector<std::pair<qsizetype, qsizetype>> merged(std::vector<std::pair<qsizetype, qsizetype>> ranges) {
    std::sort(ranges.begin(), ranges.end());
    std::vector<std::pair<qsizetype, qsizetype>> out;
    for (const auto& range : ranges) {
        if (!out.empty() && range.first <= out.back().second)
            out.back().second = std::max(out.back().second, range.second);
        else
            out.push_back(range);
    }
    return out;
}

/// Folded character by character, so that places in it are places in the text.
QString foldedInPlace(const QString& text) {
    QString out = text;
    for (QChar& c : out)
        c = c.toCaseFolded();
    return out;
}

} // namespace

std::optional<FuzzyMatch> fuzzyMatch(const QString& pattern, const QString& text) {
    FuzzyMatch out;
    const QString folded = foldedInPlace(text);
    for (const QString& word : foldedInPlace(pattern.simplified()).split(QLatin1Char(' '), Qt::SkipEmptyParts)) {
        const auto match = matchWord(word, text, folded);
        if (!match)
            return std::nullopt;
        out.score += match->score;
        out.ranges.insert(out.ranges.end(), match->ranges.begin(), match->ranges.end());
    }
    out.ranges = merged(std::move(out.ranges));
    return out;
}

} // namespace kvscope::ui
