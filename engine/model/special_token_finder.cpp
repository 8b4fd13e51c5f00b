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

bool isSpace(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

} // namespace

std::int32_t SpecialTokenFinder::child(std::int32_t node, unsigned char byte) const {
    for (const auto& [key, next] : m_nodes[node].next)
        if (key == byte)
            return next;
    return -1;
}

void SpecialTokenFinder::add(std::string_view text, TokenId token, bool restricted, StripsSpace strips) {
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
        m_nodes[node].strips = strips;
    }
}

std::vector<SpecialTokenFinder::Candidate>
SpecialTokenFinder::candidates(std::string_view text, bool withRestricted,
                               std::span<const TextRange> protectedRanges) const {
    std::vector<Candidate> found;
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
            found.push_back({{range, reached.token}, reached.strips});
        }
    }
    return found;
}

std::vector<SpecialMatch> SpecialTokenFinder::find(std::string_view text, bool withRestricted,
                                                   std::span<const TextRange> protectedRanges) const {
    if (m_nodes.size() == 1)
        return {};
    std::vector<Candidate> found = candidates(text, withRestricted, protectedRanges);
    const auto length = [](const Candidate& c) { return c.match.range.end - c.match.range.begin; };
    // Candidates come in order of their beginning, so a stable sort leaves the leftmost first among equals.
    std::stable_sort(found.begin(), found.end(),
                     [&](const Candidate& a, const Candidate& b) { return length(a) > length(b); });
    std::vector<bool> taken(found.empty() ? 0 : text.size(), false);
    std::vector<Candidate> kept;
    for (const Candidate& candidate : found) {
        const TextRange& range = candidate.match.range;
        // What was taken before is at least as long: an overlap covers the first or the last byte.
        if (taken[range.begin] || taken[range.end - 1])
            continue;
        std::fill(taken.begin() + static_cast<std::ptrdiff_t>(range.begin),
                  taken.begin() + static_cast<std::ptrdiff_t>(range.end), true);
        kept.push_back(candidate);
    }
    std::sort(kept.begin(), kept.end(),
              [](const Candidate& a, const Candidate& b) { return a.match.range.begin < b.match.range.begin; });
    return withStrippedSpace(text, kept);
}

std::vector<SpecialMatch> SpecialTokenFinder::withStrippedSpace(std::string_view text,
                                                                const std::vector<Candidate>& kept) {
    std::vector<SpecialMatch> matches;
    matches.reserve(kept.size());
    for (std::size_t i = 0; i < kept.size(); ++i) {
        SpecialMatch match = kept[i].match;
        const std::size_t least = i == 0 ? 0 : matches.back().range.end;
        const std::size_t most = i + 1 < kept.size() ? kept[i + 1].match.range.begin : text.size();
        while (kept[i].strips.before && match.range.begin > least && isSpace(text[match.range.begin - 1]))
            --match.range.begin;
        while (kept[i].strips.after && match.range.end < most && isSpace(text[match.range.end]))
            ++match.range.end;
        matches.push_back(match);
    }
    return matches;
}

} // namespace kvscope::model
