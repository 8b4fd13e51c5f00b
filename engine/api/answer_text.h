// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/model/detokenizer.h"
#include "engine/model/stop_matcher.h"

namespace kvscope::api {

/// The text of one answer as it grows: tokens to whole characters to text that no stop string can swallow any more.
class AnswerText {
public:
    AnswerText(std::shared_ptr<const model::Tokenizer> tokenizer, std::vector<std::string> stops)
        : m_decoder(std::move(tokenizer))
        , m_stops(std::move(stops)) {}

    /// Text that became certain with this token; often empty.
    std::string push(TokenId token) { return keep(m_stops.push(m_decoder.push(token))); }

    /// The tokens that an answer had when it was cut off, before anything is pushed. What had been shown of them is not
    /// given out again: the bytes that were held back for a stop string were shown when it was cut off.
    void resume(std::span<const TokenId> given) {
        for (const TokenId token : given)
            push(token);
        m_shown = m_text.size() + m_stops.heldBack();
    }
    /// What was shown of the answer when it was cut off, at the moment after `resume`.
    std::string shownBefore() const {
        model::StopMatcher stops = m_stops;
        return m_text + stops.finish();
    }

    /// The end. `cut`: the answer was cut off (token limit, Stop), so that the bytes of an unfinished character are no
    /// fault of the model and are left out; otherwise the model ended it there, and they stay as it wrote them.
    std::string finish(bool cut) {
        std::string rest;
        if (!cut)
            rest += m_stops.push(m_decoder.finish());
        rest += m_stops.finish();
        return keep(std::move(rest));
    }

    const std::optional<std::string>& matchedStop() const { return m_stops.matched(); }
    const std::string& text() const { return m_text; }

private:
    std::string keep(std::string piece) {
        const std::size_t before = m_text.size();
        m_text += piece;
        if (before >= m_shown)
            return piece;
        return m_text.substr(std::min(m_shown, m_text.size()));
    }

    model::Detokenizer m_decoder;
    model::StopMatcher m_stops;
    std::string m_text;
    std::size_t m_shown = 0; ///< bytes of m_text that were shown before the answer was taken up again
};

} // namespace kvscope::api
