// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/model/detokenizer.h"

#include <utility>

#include "engine/model/unicode.h"

namespace kvscope::model {

Detokenizer::Detokenizer(std::shared_ptr<const Tokenizer> tokenizer, DetokenizerOptions options)
    : m_tokenizer(std::move(tokenizer))
    , m_options(options) {}

std::string Detokenizer::push(TokenId id) {
    const bool first = std::exchange(m_first, false);
    if (m_options.skipSpecial && m_tokenizer->isSpecial(id))
        return {};
    std::string_view piece = m_tokenizer->bytes(id);
    if (first && m_options.atTextStart && m_tokenizer->dropsLeadingSpace() && !piece.empty() && piece.front() == ' ')
        piece.remove_prefix(1);
    std::string text = std::move(m_held);
    text.append(piece);
    const std::size_t whole = wholeCharacters(text);
    m_held = text.substr(whole);
    text.resize(whole);
    return text;
}

std::string Detokenizer::finish() {
    return std::exchange(m_held, {});
}

} // namespace kvscope::model
