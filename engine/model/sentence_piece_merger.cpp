// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/model/sentence_piece_merger.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/model/unicode.h"

namespace kvscope::model {

namespace {

constexpr std::string_view kBlank = "\xE2\x96\x81"; // U+2581

/// Order of the heap: the best candidate (highest score, then leftmost) on top.
constexpr auto kWorse = [](const auto& a, const auto& b) {
    return a.score != b.score ? a.score < b.score : a.left > b.left;
};

bool isMergeable(TokenType type) {
    return type == TokenType::Normal || type == TokenType::UserDefined || type == TokenType::Unused;
}

} // namespace

std::string blanksUnmarked(std::string_view text) {
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
        const bool blank = text.substr(at, kBlank.size()) == kBlank;
        out.push_back(blank ? ' ' : text[at]);
        at += blank ? kBlank.size() : 1;
    }
    return out;
}

int byteOfName(std::string_view text) {
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    if (text.size() != 6 || text.substr(0, 3) != "<0x" || text[5] != '>')
        return -1;
    const std::size_t high = kDigits.find(text[3]);
    const std::size_t low = kDigits.find(text[4]);
    if (high == std::string_view::npos || low == std::string_view::npos)
        return -1;
    return static_cast<int>(high * 16 + low);
}

struct SentencePieceMerger::Work {
    std::string text; ///< with its blanks written as U+2581
    std::vector<Node> nodes;
    std::vector<Candidate> heap;
};

SentencePieceMerger::SentencePieceMerger(const Vocabulary& vocabulary) : m_unknown(vocabulary.unknown.value_or(-1)) {
    m_byteTokens.fill(-1);
    m_tokens.reserve(vocabulary.size());
    for (std::size_t id = 0; id < vocabulary.size(); ++id) {
        const std::string& text = vocabulary.tokens[id];
        const auto token = static_cast<TokenId>(id);
        if (vocabulary.types[id] == TokenType::Byte) {
            if (const int byte = byteOfName(text); byte >= 0)
                m_byteTokens[static_cast<std::size_t>(byte)] = token;
        } else if (isMergeable(vocabulary.types[id]) && !text.empty()) {
            float score = vocabulary.scores.empty() ? 0 : vocabulary.scores[id];
            if (std::isnan(score)) // could not be ordered
                score = -std::numeric_limits<float>::infinity();
            m_tokens.insert_or_assign(text, Token{token, score});
            m_longest = std::max(m_longest, text.size());
        }
    }
}

const SentencePieceMerger::Token* SentencePieceMerger::tokenOf(std::string_view text) const {
    if (text.size() > m_longest)
        return nullptr;
    const auto found = m_tokens.find(text);
    return found == m_tokens.end() ? nullptr : &found->second;
}

void SentencePieceMerger::addNode(Work& work, std::string_view character, std::uint32_t textEnd) const {
    const auto index = static_cast<std::int32_t>(work.nodes.size());
    Node node;
    node.begin = static_cast<std::uint32_t>(work.text.size());
    node.length = static_cast<std::uint32_t>(character.size());
    node.textEnd = textEnd;
    node.previous = index - 1;
    if (index > 0)
        work.nodes.back().next = index;
    work.text.append(character);
    work.nodes.push_back(node);
}

void SentencePieceMerger::consider(Work& work, std::int32_t left, std::int32_t right) const {
    if (left < 0 || right < 0)
        return;
    const Node& first = work.nodes[static_cast<std::size_t>(left)];
    const std::uint32_t length = first.length + work.nodes[static_cast<std::size_t>(right)].length;
    const Token* token = tokenOf(std::string_view(work.text).substr(first.begin, length));
    if (token == nullptr)
        return;
    work.heap.push_back({token->score, left, right, length, token->id});
    std::push_heap(work.heap.begin(), work.heap.end(), kWorse);
}

void SentencePieceMerger::mergeAll(Work& work) const {
    while (!work.heap.empty()) {
        std::pop_heap(work.heap.begin(), work.heap.end(), kWorse);
        const Candidate best = work.heap.back();
        work.heap.pop_back();
        Node& left = work.nodes[static_cast<std::size_t>(best.left)];
        Node& right = work.nodes[static_cast<std::size_t>(best.right)];
        // Either may have been merged or have grown since.
        if (left.length == 0 || right.length == 0 || left.length + right.length != best.length)
            continue;
        left.length = best.length;
        left.textEnd = right.textEnd;
        left.token = best.token;
        right.length = 0;
        left.next = right.next;
        if (left.next >= 0)
            work.nodes[static_cast<std::size_t>(left.next)].previous = best.left;
        consider(work, left.previous, best.left);
        consider(work, best.left, left.next);
    }
}

void SentencePieceMerger::appendTokens(const Work& work, const Node& node, std::uint32_t base,
                                       std::vector<TokenId>& ids, std::vector<std::uint32_t>& ends) const {
    const std::string_view bytes = std::string_view(work.text).substr(node.begin, node.length);
    TokenId id = node.token;
    if (id < 0)
        if (const Token* token = tokenOf(bytes))
            id = token->id;
    const auto tokenOfByte = [&](char byte) { return m_byteTokens[static_cast<unsigned char>(byte)]; };
    const bool spellable = std::all_of(bytes.begin(), bytes.end(), [&](char byte) { return tokenOfByte(byte) >= 0; });
    if (id < 0 && !spellable)
        id = m_unknown;
    if (id >= 0) {
        ids.push_back(id);
        ends.push_back(base + node.textEnd);
    } else if (spellable) {
        std::uint32_t left = node.length;
        for (const char byte : bytes) {
            --left;
            ids.push_back(tokenOfByte(byte));
            ends.push_back(base + node.textEnd - (bytes == kBlank ? 0 : left));
        }
    }
}

void SentencePieceMerger::encode(std::string_view text, bool spacePrefix, std::uint32_t base, std::vector<TokenId>& ids,
                                 std::vector<std::uint32_t>& ends) const {
    Work work;
    work.text.reserve(text.size() + text.size() / 2);
    work.nodes.reserve(text.size() + 1);
    if (text.empty())
        return;
    if (spacePrefix)
        addNode(work, kBlank, 0);
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t length = decodeUtf8(text, at).length;
        const std::string_view character = text.substr(at, length);
        at += length;
        addNode(work, character == " " ? kBlank : character, static_cast<std::uint32_t>(at));
    }
    const auto count = static_cast<std::int32_t>(work.nodes.size());
    for (std::int32_t i = 0; i + 1 < count; ++i)
        consider(work, i, i + 1);
    mergeAll(work);
    for (std::int32_t i = 0; i >= 0; i = work.nodes[static_cast<std::size_t>(i)].next)
        appendTokens(work, work.nodes[static_cast<std::size_t>(i)], base, ids, ends);
}

} // namespace kvscope::model
