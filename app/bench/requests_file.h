// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/bench/workload.h"
#include "engine/base/result.h"

namespace kvscope::bench {

/// Tokens of a text: the model's tokenizer, or `approximateTokens` where there is no model.
using TextTokens = std::function<std::vector<TokenId>(const std::string& text)>;

/// One token for every 4 bytes, its id a function of these bytes and of those before it in the text, so that equal
/// beginnings have equal tokens.
TextTokens approximateTokens(std::int32_t vocab);

/// Recorded requests as a workload, in the order of the file.
///
/// JSON, as ShareGPT is published: a list of objects with `conversations: [{from: human|user|gpt|assistant|system,
/// value}]` or `messages: [{role, content}]`. Each answer in it becomes a request of that many tokens, whose prompt is
/// everything before it in its conversation; instead of the recorded answers, later turns contain those that are
/// generated in the run.
///
/// JSON lines: one request a line, `prompt` (text) or `prompt_ids` or `prompt_tokens` (a number: made up), and
/// `max_tokens`; optional `arrival` (seconds from the start), on every line or on none. Traces with `timestamp` (ms),
/// `input_length`, `output_length` and `hash_ids` (one for every 512 tokens; equal ids are equal tokens) are read too.
///
/// `limit` = most requests, 0 = all. Errors: Corrupt or InvalidArgument, with the number of the line or entry.
Result<Workload> readRequests(const std::string& text, const std::string& name, const TextTokens& tokens,
                              std::int32_t vocab, std::int32_t limit);

} // namespace kvscope::bench
