// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/model/byte_pair_merger.h"

#include <algorithm>
#include <string>

namespace kvscope::model {

namespace {

/// Order of the heap: the best candidate (lowest rank, then leftmost) on top.
constexpr auto kWorse = [](const auto& a, const auto& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
};

} // namespace

BytePairMerger::BytePairMerger(const std::vector<std::string>& tokenBytes,
                               const std::vector<std::pair<std::string, std::string>>& merges)
    : m_tokens(static_cast<Symbol>(tokenBytes.size()))
    , m_nextSymbol(m_tokens) {
    m_symbols.reserve(tokenBytes.size());
    for (std::size_t id = 0; id < tokenBytes.size(); ++id)
        if (!tokenBytes[id].empty())
            m_symbols.insert_or_assign(tokenBytes[id], static_cast<Symbol>(id));
    for (std::size_t byte = 0; byte < m_byteSymbols.size(); ++byte)
        m_byteSymbols[byte] = intern(std::string(1, static_cast<char>(byte)));
    std::vector<std::pair<Symbol, Merge>> found;
    found.reserve(merges.size());
    for (std::size_t rank = 0; rank < merges.size(); ++rank) {
        const auto& [left, right] = merges[rank];
        const Symbol leftSymbol = intern(left);
        const Symbol rightSymbol = intern(right);
        found.emplace_back(leftSymbol, Merge{rightSymbol, static_cast<std::uint32_t>(rank), intern(left + right)});
    }
    sortMerges(std::move(found));
}

void BytePairMerger::sortMerges(std::vector<std::pair<Symbol, Merge>> merges) {
    const auto pairOf = [](const auto& merge) { return std::pair(merge.first, merge.second.right); };
    // In order of rank, so that of equal pairs the first stays the first.
    std::stable_sort(merges.begin(), merges.end(), [&](const auto& a, const auto& b) { return pairOf(a) < pairOf(b); });
    merges.erase(
        std::unique(merges.begin(), merges.end(), [&](const auto& a, const auto& b) { return pairOf(a) == pairOf(b); }),
        merges.end());
    m_firstMerge.assign(static_cast<std::size_t>(m_nextSymbol) + 1, 0);
    for (const auto& [left, merge] : merges) {
        ++m_firstMerge[static_cast<std::size_t>(left) + 1];
        m_merges.push_back(merge);
    }
    for (std::size_t left = 1; left < m_firstMerge.size(); ++left)
        m_firstMerge[left] += m_firstMerge[left - 1];
}

BytePairMerger::Symbol BytePairMerger::intern(const std::string& bytes) {
    const auto [entry, isNew] = m_symbols.try_emplace(bytes, m_nextSymbol);
    if (isNew)
        ++m_nextSymbol;
    return entry->second;
}

const BytePairMerger::Merge* BytePairMerger::mergeOf(Symbol left, Symbol right) const {
    const auto begin = m_merges.begin() + m_firstMerge[static_cast<std::size_t>(left)];
    const auto end = m_merges.begin() + m_firstMerge[static_cast<std::size_t>(left) + 1];
    const auto found =
        std::lower_bound(begin, end, right, [](const Merge& merge, Symbol symbol) { return merge.right < symbol; });
    return found != end && found->right == right ? &*found : nullptr;
}

TokenId BytePairMerger::tokenOf(std::string_view bytes) const {
    const auto found = m_symbols.find(bytes);
    return found != m_symbols.end() && found->second < m_tokens ? found->second : -1;
}

bool BytePairMerger::coversAllBytes() const {
    return std::all_of(m_byteSymbols.begin(), m_byteSymbols.end(), [&](Symbol s) { return s < m_tokens; });
}

void BytePairMerger::consider(std::int32_t left, Workspace& workspace) const {
    if (left < 0)
        return;
    const Node& node = workspace.nodes[left];
    if (node.next < 0)
        return;
    const Symbol right = workspace.nodes[node.next].symbol;
    if (const Merge* merge = mergeOf(node.symbol, right)) {
        workspace.heap.push_back({merge->rank, left, node.symbol, right, merge->result});
        std::push_heap(workspace.heap.begin(), workspace.heap.end(), kWorse);
    }
}

void BytePairMerger::mergeAll(Workspace& workspace) const {
    auto& nodes = workspace.nodes;
    auto& heap = workspace.heap;
    while (!heap.empty()) {
        std::pop_heap(heap.begin(), heap.end(), kWorse);
        const Candidate best = heap.back();
        heap.pop_back();
        Node& left = nodes[best.left];
        // A neighbour may have been merged since: then the pair is no longer what was ranked.
        if (left.symbol != best.leftSymbol || left.next < 0 || nodes[left.next].symbol != best.rightSymbol)
            continue;
        Node& right = nodes[left.next];
        left.symbol = best.result;
        left.length += right.length;
        right.symbol = -1;
        left.next = right.next;
        if (left.next >= 0)
            nodes[left.next].previous = best.left;
        consider(left.previous, workspace);
        consider(best.left, workspace);
    }
}

void BytePairMerger::appendTokens(std::string_view piece, const Node& node, std::uint32_t base,
                                  std::vector<TokenId>& ids, std::vector<std::uint32_t>& ends) const {
    if (node.symbol < m_tokens) {
        ids.push_back(node.symbol);
        ends.push_back(base + node.begin + node.length);
        return;
    }
    // The merged bytes are no token: fall back to the bytes that are.
    for (std::uint32_t i = node.begin; i < node.begin + node.length; ++i) {
        const Symbol symbol = m_byteSymbols[static_cast<unsigned char>(piece[i])];
        if (symbol < m_tokens) {
            ids.push_back(symbol);
            ends.push_back(base + i + 1);
        }
    }
}

void BytePairMerger::encode(std::string_view piece, std::uint32_t base, Workspace& workspace, std::vector<TokenId>& ids,
                            std::vector<std::uint32_t>& ends) const {
    if (piece.empty())
        return;
    auto& nodes = workspace.nodes;
    nodes.resize(piece.size());
    workspace.heap.clear();
    const auto count = static_cast<std::int32_t>(piece.size());
    for (std::int32_t i = 0; i < count; ++i)
        nodes[i] = {m_byteSymbols[static_cast<unsigned char>(piece[i])], i - 1, i + 1 < count ? i + 1 : -1,
                    static_cast<std::uint32_t>(i), 1};
    for (std::int32_t i = 0; i < count; ++i)
        consider(i, workspace);
    mergeAll(workspace);
    for (std::int32_t i = 0; i >= 0; i = nodes[i].next)
        appendTokens(piece, nodes[i], base, ids, ends);
}

} // namespace kvscope::model
