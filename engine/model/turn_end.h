// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <string>

#include "engine/base/ids.h"
#include "engine/model/chat_template.h"
#include "engine/model/tokenizer.h"

namespace kvscope::model {

/// How a template ends an answer. The end token that a file names is often another one ("<|endoftext|>" where turns end
/// with "<|im_end|>"), and then the model would talk on as the user.
struct TurnEnd {
    std::optional<TokenId> token; ///< the token that stands behind an answer
    std::string text;             ///< where no token does: what the template writes between answer and next message
};

/// Found by rendering a small dialog; neither where the template writes nothing that could be told from an answer.
TurnEnd turnEndOf(const ChatTemplate& chatTemplate, const Tokenizer& tokenizer, const jinja::Variables& variables);

} // namespace kvscope::model
