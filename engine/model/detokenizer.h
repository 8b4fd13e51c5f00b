// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <string>

#include "engine/base/ids.h"
#include "engine/model/tokenizer.h"

namespace kvscope::model {

struct DetokenizerOptions {
    bool skipSpecial = true; ///< control and unknown tokens give no text
    /// The first token opens a text (instead of continuing a prompt): a space prefix is left out of it.
    bool atTextStart = false;
};

/// Token by token to text that can be shown: gives out only whole characters and holds back the bytes of an unfinished
/// one. All pieces and `finish()` in order are exactly the bytes of the tokens. One per answer, one thread.
class Detokenizer {
public:
    explicit Detokenizer(std::shared_ptr<const Tokenizer> tokenizer, DetokenizerOptions options = {});

    /// Text that became whole with this token; often empty in the middle of a character. Bytes that can never become
    /// valid UTF-8 come through as they are.
    std::string push(TokenId id);
    /// The end: the bytes still held back (an unfinished character), as they are. The caller decides what to show.
    std::string finish();
    /// Bytes held back at the moment.
    const std::string& heldBack() const { return m_held; }

private:
    std::shared_ptr<const Tokenizer> m_tokenizer;
    DetokenizerOptions m_options;
    bool m_first = true;
    std::string m_held;
};

} // namespace kvscope::model
