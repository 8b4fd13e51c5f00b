// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/model/special_token_finder.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace kvscope::model {

namespace {

constexpr std::uint32_t kNoLimit = std::numeric_limits<std::uint32_t>::max();

bool isSpace(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/// Part of the sorted tokens: those whose texts begin with the text of one node.
struct Share {
    std::size_t begin = 0;
    std::size_t end = 0;
};

} // namespace

SpecialTokenFinder::SpecialTokenFinder(std::span<const SpecialToken> tokens) {
    std::vector<SpecialToken> sorted;
    std::copy_if(tokens.begin(), tokens.end(), std::back_inserter(sorted),
                 [](const SpecialToken& token) { return !token.text.empty(); });
    if (sorted.empty())
        return;
    const auto before = [](const SpecialToken& a, const SpecialToken& b) { return a.text < b.text; };
    const auto same = [](const SpecialToken& a, const SpecialToken& b) { return a.text == b.text; };
    std::stable_sort(sorted.begin(), sorted.end(), before);
    sorted.erase(std::unique(sorted.begin(), sorted.end(), same), sorted.end());
    build(std::move(sorted));
    link();
}

/// The trie, level by level: each node has its share of the sorted tokens, and gives it on to its children.
void SpecialTokenFinder::build(std::vector<SpecialToken> tokens) {
    std::vector<Share> level{{0, tokens.size()}};
    m_nodes.emplace_back();
    std::size_t first = 0; // node of level[0]
    for (std::size_t depth = 0; !level.empty(); ++depth) {
        std::vector<Share> below;
        for (std::size_t i = 0; i < level.size(); ++i) {
            Share share = level[i];
            const std::size_t node = first + i;
            m_nodes[node].firstChild = static_cast<std::int32_t>(first + level.size() + below.size());
            if (tokens[share.begin].text.size() == depth) { // the shortest of those with one beginning comes first
                const SpecialToken& token = tokens[share.begin++];
                m_nodes[node].any = static_cast<std::int32_t>(m_entries.size());
                m_entries.push_back(
                    {token.token, static_cast<std::uint32_t>(depth), token.restricted, token.strips, {}, {}});
            }
            while (share.begin < share.end) {
                const char byte = tokens[share.begin].text[depth];
                std::size_t end = share.begin;
                while (end < share.end && tokens[end].text[depth] == byte)
                    ++end;
                below.push_back({share.begin, end});
                m_nodes.emplace_back().byte = static_cast<unsigned char>(byte);
                share.begin = end;
            }
        }
        first += level.size();
        level = std::move(below);
    }
    const auto count = static_cast<std::int32_t>(m_nodes.size());
    m_nodes.emplace_back().firstChild = count; // behind the children of the last node: it has none
}

std::int32_t SpecialTokenFinder::child(std::int32_t node, unsigned char byte) const {
    const auto at = [&](std::int32_t index) { return m_nodes.begin() + index; };
    const auto begin = at(m_nodes[static_cast<std::size_t>(node)].firstChild);
    const auto end = at(m_nodes[static_cast<std::size_t>(node) + 1].firstChild);
    const auto found = std::lower_bound(begin, end, byte, [](const Node& n, unsigned char b) { return n.byte < b; });
    return found != end && found->byte == byte ? static_cast<std::int32_t>(found - m_nodes.begin()) : -1;
}

/// The node of the longest beginning of a token that ends behind `byte`.
std::int32_t SpecialTokenFinder::step(std::int32_t node, unsigned char byte) const {
    for (;;) {
        if (const std::int32_t next = child(node, byte); next >= 0)
            return next;
        if (node == 0)
            return 0;
        node = m_nodes[static_cast<std::size_t>(node)].fallback;
    }
}

/// Puts an entry in front of the chains of what ends where it ends. A jump leads over as many entries as the next one's
/// jump and that one's jump do, where those are equal: any length is found in logarithmic time.
void SpecialTokenFinder::chain(Entry& entry, const Node& suffix) {
    const auto linked = [this](std::int32_t next, Chain Entry::*kind) {
        Chain chain;
        if (next < 0)
            return chain;
        const Chain& first = m_entries[static_cast<std::size_t>(next)].*kind;
        chain.next = chain.jump = next;
        chain.depth = first.depth + 1;
        if (first.jump < 0)
            return chain;
        const Chain& second = m_entries[static_cast<std::size_t>(first.jump)].*kind;
        if (second.jump >= 0 &&
            first.depth - second.depth == second.depth - (m_entries[static_cast<std::size_t>(second.jump)].*kind).depth)
            chain.jump = second.jump;
        return chain;
    };
    entry.any = linked(suffix.any, &Entry::any);
    entry.free = linked(suffix.free, &Entry::free);
}

/// Fallbacks, and the entries that nodes without a token of their own have from them. Level by level: a fallback lies
/// on a higher level.
void SpecialTokenFinder::link() {
    const std::size_t count = m_nodes.size() - 1;
    for (std::size_t parent = 0; parent < count; ++parent) {
        for (std::int32_t at = m_nodes[parent].firstChild; at < m_nodes[parent + 1].firstChild; ++at) {
            Node& node = m_nodes[static_cast<std::size_t>(at)];
            node.fallback = parent == 0 ? 0 : step(m_nodes[parent].fallback, node.byte);
            const Node& suffix = m_nodes[static_cast<std::size_t>(node.fallback)];
            if (node.any < 0) {
                node.any = suffix.any;
                node.free = suffix.free;
                continue;
            }
            Entry& entry = m_entries[static_cast<std::size_t>(node.any)];
            chain(entry, suffix);
            node.free = entry.restricted ? suffix.free : node.any;
        }
    }
}

/// One search through one text.
class SpecialTokenFinder::Search {
public:
    Search(const SpecialTokenFinder& finder, bool withRestricted, std::span<const TextRange> protectedRanges)
        : m_finder(finder)
        , m_withRestricted(withRestricted)
        , m_protected(protectedRanges) {}

    /// The best candidate at each end.
    void scan(std::string_view text) {
        std::int32_t node = 0;
        for (std::size_t at = 0; at < text.size(); ++at) {
            node = m_finder.step(node, static_cast<unsigned char>(text[at]));
            const Node& reached = m_finder.m_nodes[static_cast<std::size_t>(node)];
            if (reached.any >= 0)
                add(static_cast<std::uint32_t>(at + 1), reached.any, reached.free, kNoLimit);
        }
        std::make_heap(m_queue.begin(), m_queue.end(), kWorse);
    }

    void choose(std::size_t textSize) {
        // Per byte that was taken: the end of its match; 0 = free.
        std::vector<std::uint32_t> taken(m_queue.empty() ? 0 : textSize, 0);
        while (!m_queue.empty()) {
            std::pop_heap(m_queue.begin(), m_queue.end(), kWorse);
            const Candidate best = m_queue.back();
            m_queue.pop_back();
            const std::uint32_t begin = best.end - best.length;
            if (taken[best.end - 1] != 0)
                continue;
            // What was taken before is at least as long: an overlap covers the first or the last byte.
            if (const std::uint32_t free = taken[begin]; free != 0) {
                const Entry& entry = m_finder.m_entries[static_cast<std::size_t>(best.entry)];
                const std::size_t before = m_queue.size();
                add(best.end, entry.any.next, entry.free.next, best.end - free);
                if (m_queue.size() > before)
                    std::push_heap(m_queue.begin(), m_queue.end(), kWorse);
                continue;
            }
            std::fill(taken.begin() + begin, taken.begin() + best.end, best.end);
            m_kept.push_back(best);
        }
        std::sort(m_kept.begin(), m_kept.end(), [](const Candidate& a, const Candidate& b) { return a.end < b.end; });
    }

    const std::vector<Candidate>& kept() const { return m_kept; }

private:
    static constexpr auto kWorse = [](const Candidate& a, const Candidate& b) {
        return a.length != b.length ? a.length < b.length : a.end > b.end;
    };

    /// The longest token of a chain with at most `limit` bytes; -1 = none.
    std::int32_t fitting(std::int32_t entry, Chain Entry::*kind, std::uint32_t limit) const {
        const auto at = [&](std::int32_t i) -> const Entry& { return m_finder.m_entries[static_cast<std::size_t>(i)]; };
        while (entry >= 0 && at(entry).length > limit) {
            const Chain& chain = at(entry).*kind;
            entry = chain.jump >= 0 && at(chain.jump).length > limit ? chain.jump : chain.next;
        }
        return entry;
    }

    /// Bytes before `end` up to the nearest protected one.
    std::uint32_t unprotectedBefore(std::uint32_t end) const {
        // The last range that begins before `end` is the only one that can matter.
        const auto range = std::partition_point(m_protected.begin(), m_protected.end(),
                                                [&](const TextRange& r) { return r.begin < end; });
        if (range == m_protected.begin())
            return end;
        return end - static_cast<std::uint32_t>(std::min<std::size_t>(std::prev(range)->end, end));
    }

    /// The longest token that may end at `end` with at most `limit` bytes.
    void add(std::uint32_t end, std::int32_t any, std::int32_t free, std::uint32_t limit) {
        std::int32_t best = fitting(free, &Entry::free, limit);
        if (m_withRestricted) {
            const std::int32_t other = fitting(any, &Entry::any, std::min(limit, unprotectedBefore(end)));
            if (other >= 0 && (best < 0 || length(other) > length(best)))
                best = other;
        }
        if (best >= 0)
            m_queue.push_back({length(best), end, best});
    }
    std::uint32_t length(std::int32_t entry) const {
        return m_finder.m_entries[static_cast<std::size_t>(entry)].length;
    }

    const SpecialTokenFinder& m_finder;
    bool m_withRestricted;
    std::span<const TextRange> m_protected;
    std::vector<Candidate> m_queue; ///< a heap: the longest on top, the leftmost among equals
    std::vector<Candidate> m_kept;
};

std::vector<SpecialMatch> SpecialTokenFinder::find(std::string_view text, bool withRestricted,
                                                   std::span<const TextRange> protectedRanges) const {
    if (m_nodes.empty())
        return {};
    Search search(*this, withRestricted, protectedRanges);
    search.scan(text);
    search.choose(text.size());
    std::vector<SpecialMatch> matches;
    std::vector<StripsSpace> strips;
    for (const Candidate& candidate : search.kept()) {
        const Entry& entry = m_entries[static_cast<std::size_t>(candidate.entry)];
        matches.push_back({{candidate.end - candidate.length, candidate.end}, entry.token});
        strips.push_back(entry.strips);
    }
    return withStrippedSpace(text, matches, strips);
}

std::vector<SpecialMatch> SpecialTokenFinder::withStrippedSpace(std::string_view text,
                                                                const std::vector<SpecialMatch>& kept,
                                                                const std::vector<StripsSpace>& strips) {
    std::vector<SpecialMatch> matches;
    matches.reserve(kept.size());
    for (std::size_t i = 0; i < kept.size(); ++i) {
        SpecialMatch match = kept[i];
        const std::size_t least = i == 0 ? 0 : matches.back().range.end;
        const std::size_t most = i + 1 < kept.size() ? kept[i + 1].range.begin : text.size();
        while (strips[i].before && match.range.begin > least && isSpace(text[match.range.begin - 1]))
            --match.range.begin;
        while (strips[i].after && match.range.end < most && isSpace(text[match.range.end]))
            ++match.range.end;
        matches.push_back(match);
    }
    return matches;
}

} // namespace kvscope::model
