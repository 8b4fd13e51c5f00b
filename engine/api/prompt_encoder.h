// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "engine/api/request.h"
#include "engine/base/result.h"
#include "engine/model/tokenizer.h"

namespace kvscope::api {

/// The ids of a prompt, and where each message of a dialog lies in them.
struct EncodedPrompt {
    std::vector<TokenId> ids; ///< at least one
    std::vector<std::pair<std::int64_t, std::int64_t>> messageRanges;
};

/// Prompt and answer of an earlier request, for forks; nullptr when it is not known (any more).
using FindTokens = std::function<const std::vector<TokenId>*(RequestId)>;

/// Turns what the user gave into token ids. `vocab` bounds ids given as numbers. Errors: Template, InvalidArgument
/// (empty prompt, unknown ids), NotFound (a fork of something unknown), Unsupported (no tokenizer for text).
Result<EncodedPrompt> encodePrompt(const Prompt& prompt, const model::Tokenizer& tokenizer, std::int32_t vocab,
                                   const FindTokens& findTokens);

} // namespace kvscope::api
