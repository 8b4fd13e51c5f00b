// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/ids.h"
#include "engine/base/result.h"
#include "engine/model/byte_pair_merger.h"
#include "engine/model/pretokenizer.h"
#include "engine/model/sentence_piece_merger.h"
#include "engine/model/special_token_finder.h"
#include "engine/model/vocabulary.h"

namespace kvscope::model {

struct EncodeOptions {
    /// Texts of control and unknown tokens become those tokens. Only for text that a template wrote; what users wrote
    /// is listed in `userText` and stays text.
    bool parseSpecial = false;
    /// Put the BOS token in front if the file asks for one.
    bool addBos = false;
    /// Bytes in which control tokens are not recognised (ordered, disjoint). Splitting and merging run across their
    /// borders, so that they change nothing else.
    std::span<const TextRange> userText;
    /// The text opens the prompt. Otherwise it goes on behind other tokens, and a vocabulary that adds a space prefix
    /// adds none before its first word.
    bool atTextStart = true;
    /// The text may bring its own BOS (templates often write it): then none is added.
    bool bosOnlyIfMissing = false;
};

/// Token ids and where they end in the text.
struct Encoding {
    std::vector<TokenId> ids;
    std::vector<std::uint32_t> ends; ///< per id: byte offset behind its text (a BOS put in front: 0)
};

/// Text <-> token ids of one vocabulary. Immutable: any number of threads may use one object.
class Tokenizer {
public:
    /// Fails where the vocabulary is broken or its tokens cannot even be decoded. A vocabulary that can be decoded but
    /// not encoded (its splitting rule or kind is not built) gives a tokenizer whose `encode` says so: such a model can
    /// still be run from ids.
    static Result<std::shared_ptr<const Tokenizer>> create(Vocabulary vocabulary);

    /// Text (any bytes, below 1 GiB) to ids, in time proportional to its length (times its logarithm at worst). Bytes
    /// that are not UTF-8 become byte tokens; a byte for which the vocabulary has no token is left out, or becomes the
    /// unknown token of a SentencePiece vocabulary.
    ///
    /// An EOS that the file asks for (Vocabulary::addEos) is not appended: every text here is one to be continued.
    Result<Encoding> encode(std::string_view text, const EncodeOptions& options = {}) const;
    /// Why `encode` cannot work, if it cannot.
    Result<void> canEncode() const;

    /// Bytes of one token, control tokens written out, unused tokens empty. Empty for ids outside the vocabulary.
    std::string_view bytes(TokenId id) const;
    /// Control and unknown tokens: left out by `skipSpecial`.
    bool isSpecial(TokenId id) const;
    /// Does this token end an answer?
    bool endsGeneration(TokenId id) const;
    const std::vector<TokenId>& endTokens() const { return m_endTokens; }

    /// Bytes of a whole text that begins with these ids: with a vocabulary that adds a space prefix, one leading space
    /// of the first token is left out. May be invalid UTF-8. An id outside the vocabulary is an error.
    Result<std::string> decode(std::span<const TokenId> ids, bool skipSpecial) const;
    /// The space that `decode` leaves out of the first token.
    bool dropsLeadingSpace() const { return m_vocabulary.addSpacePrefix && !m_byteLevel; }

    const Vocabulary& vocabulary() const { return m_vocabulary; }

private:
    explicit Tokenizer(Vocabulary vocabulary);
    Result<void> prepare();
    void prepareByteLevel();
    Result<void> prepareSpecials();
    void encodeByteLevel(std::string_view text, std::uint32_t base, BytePairMerger::Workspace& workspace,
                         Encoding& out) const;

    Vocabulary m_vocabulary;
    bool m_byteLevel = false;
    std::vector<std::string> m_bytes; ///< per token, as decoded
    std::vector<TokenId> m_endTokens;
    SpecialTokenFinder m_specials;
    std::optional<BytePairMerger> m_merger;
    std::optional<SentencePieceMerger> m_sentencePieces;
    const PreTokenizer* m_preTokenizer = nullptr;
    std::optional<Error> m_encodeError;
};

} // namespace kvscope::model
