// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/model/tokenizer.h"

#include <algorithm>

#include "engine/model/byte_alphabet.h"
#include "engine/model/unicode.h"

namespace kvscope::model {

namespace {

constexpr std::string_view kByteLevelModel = "gpt2";
constexpr std::string_view kSentencePieceModel = "llama";
/// 32-bit offsets also hold the text with its blanks spelt in three bytes.
constexpr std::size_t kLongestText = std::size_t(1) << 30;
/// Texts of control, unknown and user-defined tokens together: some twenty times this is kept to find them. Real
/// vocabularies have less than one.
constexpr std::size_t kMostSpecialBytes = std::size_t(16) << 20;

std::string decodedBytes(const std::string& text, TokenType type, bool byteLevel) {
    switch (type) {
    case TokenType::Unused:
        return {};
    case TokenType::Unknown:
    case TokenType::Control:
    case TokenType::UserDefined:
        return text;
    case TokenType::Byte:
        return byteOfName(text) >= 0 ? std::string(1, static_cast<char>(byteOfName(text))) : text;
    case TokenType::Normal:
        break;
    }
    return byteLevel ? bytesOfSymbols(text).value_or(text) : blanksUnmarked(text);
}

Error notEncodable(std::string reason) {
    return {ErrorCode::Unsupported, std::move(reason)};
}

Error unknownKind(const std::string& model) {
    return {ErrorCode::Unsupported, "The tokenizer kind \"" + model +
                                        "\" (tokenizer.ggml.model) is not supported; use a model with a byte-level "
                                        "(gpt2) or SentencePiece (llama) vocabulary."};
}

} // namespace

Tokenizer::Tokenizer(Vocabulary vocabulary) : m_vocabulary(std::move(vocabulary)) {}

Result<std::shared_ptr<const Tokenizer>> Tokenizer::create(Vocabulary vocabulary) {
    if (auto valid = validate(vocabulary); !valid)
        return tl::unexpected(valid.error());
    std::shared_ptr<Tokenizer> tokenizer(new Tokenizer(std::move(vocabulary)));
    if (auto prepared = tokenizer->prepare(); !prepared)
        return tl::unexpected(prepared.error());
    return std::shared_ptr<const Tokenizer>(std::move(tokenizer));
}

Result<void> Tokenizer::prepare() {
    const Vocabulary& v = m_vocabulary;
    m_byteLevel = v.model == kByteLevelModel;
    if (!m_byteLevel && v.model != kSentencePieceModel)
        return tl::unexpected(unknownKind(v.model));
    m_bytes.reserve(v.size());
    for (std::size_t id = 0; id < v.size(); ++id)
        m_bytes.push_back(decodedBytes(v.tokens[id], v.types[id], m_byteLevel));
    m_endTokens = endOfGenerationTokens(v);
    if (auto prepared = prepareSpecials(); !prepared)
        m_encodeError = prepared.error();
    else if (m_byteLevel)
        prepareByteLevel();
    else
        m_sentencePieces.emplace(v);
    return {};
}

Result<void> Tokenizer::prepareSpecials() {
    // A hostile file may make every token one of these: looked up by bisection.
    std::sort(m_vocabulary.stripBefore.begin(), m_vocabulary.stripBefore.end());
    std::sort(m_vocabulary.stripAfter.begin(), m_vocabulary.stripAfter.end());
    const Vocabulary& v = m_vocabulary;
    const auto listed = [](const std::vector<TokenId>& ids, TokenId id) {
        return std::binary_search(ids.begin(), ids.end(), id);
    };
    std::vector<SpecialToken> specials;
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < v.size(); ++i) {
        const auto id = static_cast<TokenId>(i);
        const bool restricted = isSpecial(id);
        if (!restricted && v.types[i] != TokenType::UserDefined)
            continue;
        bytes += v.tokens[i].size();
        specials.push_back({v.tokens[i], id, restricted, {listed(v.stripBefore, id), listed(v.stripAfter, id)}});
    }
    if (bytes > kMostSpecialBytes)
        return tl::unexpected(notEncodable("The special tokens of this vocabulary are more than " +
                                           std::to_string(kMostSpecialBytes >> 20) +
                                           " MiB of text, so that it cannot tokenize; get the file again."));
    m_specials = SpecialTokenFinder(specials);
    return {};
}

void Tokenizer::prepareByteLevel() {
    const Vocabulary& v = m_vocabulary;
    const auto kind = findPreTokenizer(v.preTokenizer);
    if (!kind) {
        m_encodeError = kind.error();
        return;
    }
    m_preTokenizer = *kind;
    // Merging must never give a control token: that would let users write one.
    std::vector<std::string> ordinary(v.size());
    for (std::size_t id = 0; id < v.size(); ++id)
        if (v.types[id] == TokenType::Normal)
            ordinary[id] = bytesOfSymbols(v.tokens[id]).value_or(std::string());
    std::vector<std::pair<std::string, std::string>> merges;
    merges.reserve(v.merges.size());
    for (const auto& [left, right] : v.merges) {
        auto leftBytes = bytesOfSymbols(left);
        auto rightBytes = bytesOfSymbols(right);
        if (!leftBytes || !rightBytes) {
            m_encodeError = notEncodable("The merge \"" + left + " " + right +
                                         "\" of the tokenizer holds characters outside the byte alphabet; get the "
                                         "file again.");
            return;
        }
        merges.emplace_back(std::move(*leftBytes), std::move(*rightBytes));
    }
    m_merger.emplace(ordinary, merges);
}

Result<void> Tokenizer::canEncode() const {
    if (m_encodeError)
        return tl::unexpected(*m_encodeError);
    return {};
}

Result<Encoding> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
    if (m_encodeError)
        return tl::unexpected(*m_encodeError);
    if (text.size() >= kLongestText)
        return fail(ErrorCode::TooLong, "A text of 1 GiB or more cannot be tokenized at once; split it.");
    Encoding out;
    BytePairMerger::Workspace workspace;
    std::size_t done = 0;
    bool prefix = options.atTextStart && m_vocabulary.addSpacePrefix; // only where no other text stands before
    const auto ordinaryUpTo = [&](std::size_t end) {
        const std::string_view part = text.substr(done, end - done);
        const auto base = static_cast<std::uint32_t>(done);
        if (m_sentencePieces)
            m_sentencePieces->encode(part, prefix, base, out.ids, out.ends);
        else
            encodeByteLevel(part, base, workspace, out);
    };
    for (const SpecialMatch& match : m_specials.find(text, options.parseSpecial, options.userText)) {
        ordinaryUpTo(match.range.begin);
        out.ids.push_back(match.token);
        out.ends.push_back(static_cast<std::uint32_t>(match.range.end));
        done = match.range.end;
        prefix = m_vocabulary.addSpacePrefix;
    }
    ordinaryUpTo(text.size());

    const auto bos = m_vocabulary.bos;
    const bool there = options.bosOnlyIfMissing && bos && !out.ids.empty() && out.ids.front() == *bos;
    if (options.addBos && m_vocabulary.addBos && bos && !there) {
        out.ids.insert(out.ids.begin(), *bos);
        out.ends.insert(out.ends.begin(), 0);
    }
    return out;
}

void Tokenizer::encodeByteLevel(std::string_view text, std::uint32_t base, BytePairMerger::Workspace& workspace,
                                Encoding& out) const {
    const CodePoints codePoints(text);
    std::size_t begin = 0;
    for (const std::size_t pieceEnd : splitPieces(*m_preTokenizer, codePoints)) {
        const std::size_t end = codePoints.offsets[pieceEnd];
        const std::string_view piece = text.substr(begin, end - begin);
        const auto pieceBase = base + static_cast<std::uint32_t>(begin);
        begin = end;
        if (m_preTokenizer->wholePieceFirst) {
            if (const TokenId whole = m_merger->tokenOf(piece); whole >= 0) {
                out.ids.push_back(whole);
                out.ends.push_back(pieceBase + static_cast<std::uint32_t>(piece.size()));
                continue;
            }
        }
        m_merger->encode(piece, pieceBase, workspace, out.ids, out.ends);
    }
}

std::string_view Tokenizer::bytes(TokenId id) const {
    return id >= 0 && static_cast<std::size_t>(id) < m_bytes.size() ? std::string_view(m_bytes[id])
                                                                    : std::string_view();
}

bool Tokenizer::isSpecial(TokenId id) const {
    if (id < 0 || static_cast<std::size_t>(id) >= m_vocabulary.size())
        return false;
    const TokenType type = m_vocabulary.types[id];
    return type == TokenType::Control || type == TokenType::Unknown;
}

bool Tokenizer::endsGeneration(TokenId id) const {
    return std::binary_search(m_endTokens.begin(), m_endTokens.end(), id);
}

Result<std::string> Tokenizer::decode(std::span<const TokenId> ids, bool skipSpecial) const {
    std::string out;
    for (std::size_t i = 0; i < ids.size(); ++i) {
        const TokenId id = ids[i];
        if (id < 0 || static_cast<std::size_t>(id) >= m_vocabulary.size())
            return fail(ErrorCode::InvalidArgument, "Token id " + std::to_string(id) +
                                                        " is outside the vocabulary (0 to " +
                                                        std::to_string(m_vocabulary.size() - 1) + ").");
        if (skipSpecial && isSpecial(id))
            continue;
        std::string_view piece = bytes(id);
        if (i == 0 && dropsLeadingSpace() && !piece.empty() && piece.front() == ' ')
            piece.remove_prefix(1);
        out.append(piece);
    }
    return out;
}

} // namespace kvscope::model
