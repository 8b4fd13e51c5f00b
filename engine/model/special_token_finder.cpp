// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/model/special_token_finder.h"

#include <algorithm>

namespace kvscope::model {

namespace {

bool overlaps(std::span<const TextRange> ranges, TextRange wanted) {
    // The first range that ends behind the beginning of the wanted one is the only that can matter.
    const auto range =
        std::partition_point(ranges.begin(), ranges.end(), [&](const TextRange& r) { return r.end <= wanted.begin; });
    return range != ranges.end() && range->begin < wanted.end;
}

} // namespace

std::int32_t SpecialTokenFinder::child(std::int32_t node, unsigned char byte) const {
    for (const auto& [key, next] : m_nodes[node].next)
        if (key == byte)
            return next;
    return -1;
}

void SpecialTokenFinder::add(std::string_view text, TokenId token, bool restricted) {
    if (text.empty())
        return;
    std::int32_t node = 0;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        std::int32_t next = child(node, byte);
        if (next < 0) {
            next = static_cast<std::int32_t>(m_nodes.size());
            m_nodes[node].next.emplace_back(byte, next);
            m_nodes.emplace_back();
        }
        node = next;
    }
    if (m_nodes[node].token < 0) {
        m_nodes[node].token = token;
        m_nodes[node].restricted = restricted;
    }
}

std::vector<SpecialMatch> SpecialTokenFinder::candidates(std::string_view text, bool withRestricted,
                                                         std::span<const TextRange> protectedRanges) const {
    std::vector<SpecialMatch> found;
    for (std::size_t begin = 0; begin < text.size(); ++begin) {
        std::int32_t node = 0;
        for (std::size_t at = begin; at < text.size(); ++at) {
            node = child(node, static_cast<unsigned char>(text[at]));
            if (node < 0)
                break;
            const Node& reached = m_nodes[node];
            if (reached.token < 0)
                continue;
            const TextRange range{begin, at + 1};
            if (reached.restricted && (!withRestricted || overlaps(protectedRanges, range)))
                continue;
            found.push_back({range, reached.token});
        }
    }
    return found;
}

std::vector<SpecialMatch> SpecialTokenFinder::find(std::string_view text, bool withRestricted,
                                                   std::span<const TextRange> protectedRanges) const {
    if (m_nodes.size() == 1)
        return {};
    std::vector<SpecialMatch> found = candidates(text, withRestricted, protectedRanges);
    if (found.size() < 2)
        return found;
    // Candidates come in order of their beginning, so a stable sort leaves the leftmost first among equals.
    std::stable_sort(found.begin(), found.end(), [](const SpecialMatch& a, const SpecialMatch& b) {
        return a.range.end - a.range.begin > b.range.end - b.range.begin;
    });
    std::vector<bool> taken(text.size(), false);
    std::vector<SpecialMatch> kept;
    for (const SpecialMatch& match : found) {
        // What was taken before is at least as long: an overlap covers the first or the last byte.
        if (taken[match.range.begin] || taken[match.range.end - 1])
            continue;
        std::fill(taken.begin() + static_cast<std::ptrdiff_t>(match.range.begin),
                  taken.begin() + static_cast<std::ptrdiff_t>(match.range.end), true);
        kept.push_back(match);
    }
    std::sort(kept.begin(), kept.end(),
              [](const SpecialMatch& a, const SpecialMatch& b) { return a.range.begin < b.range.begin; });
    return kept;
}

} // namespace kvscope::model
