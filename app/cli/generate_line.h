// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/api/request.h"
#include "engine/base/result.h"

namespace kvscope::cli {

/// Chat templates see the keys of objects in their order.
using OrderedJson = nlohmann::ordered_json;

/// All answers of one prompt are held until the last has ended.
inline constexpr std::int32_t kMostSamples = 1024;

/// One request of `generate`: a line of --batch, or the command line itself.
struct GenerateLine {
    nlohmann::json id; ///< as given: string or number; null when there was none
    api::Prompt prompt = api::TextPrompt{};
    std::string variables; ///< of the chat template, a JSON object; empty = none
    api::SamplingParams sampling;
    std::int32_t samples = 1;                ///< `n`: answers drawn from the same prompt, 1..kMostSamples
    nlohmann::json after;                    ///< id of the line that must end first; null = none
    nlohmann::json forkOf;                   ///< id of the line whose tokens this one starts from; null = none
    std::optional<std::int64_t> forkAt;      ///< how many of them; none = all
    std::optional<std::int64_t> cancelAfter; ///< generated tokens
    bool pin = false;
    std::optional<std::int32_t> repeat; ///< runs one after another, numbered in their ids; none = once, unnumbered
};

/// Reads a --batch line. Fields that are absent or null keep the values of `defaults` (sampling options of the command
/// line). Errors name the field: an unknown one too, since a misspelt setting would silently not apply.
Result<GenerateLine> parseGenerateLine(const OrderedJson& line, const GenerateLine& defaults);

/// A list of OpenAI-style messages: [{role, content, ...}]; content is text, a list of text parts, or null (no text).
/// What else a message has (tool_calls, tool_call_id, ...) the template sees as it is.
Result<api::DialogPrompt> parseMessages(const OrderedJson& messages);

/// The seed of the i-th of n answers: the request's own for the first, a hash of (seed, i) for the others.
std::uint64_t sampleSeed(std::uint64_t seed, std::int32_t index);

} // namespace kvscope::cli
