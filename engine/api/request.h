// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/ids.h"
#include "engine/base/result.h"

namespace kvscope::api {

/// Sampling as the user sets it. Defaults are those of kvscope-cli (greedy). Ranges are checked by `validate`.
struct SamplingParams {
    double temperature = 0;      ///< 0..2; 0 = greedy
    std::int32_t topK = 0;       ///< 0 = off
    double topP = 1;             ///< (0, 1]; 1 = off
    double minP = 0;             ///< [0, 1); 0 = off
    double repeatPenalty = 1;    ///< [0.5, 2]; 1 = off
    double presencePenalty = 0;  ///< [-2, 2]
    double frequencyPenalty = 0; ///< [-2, 2]
    std::uint64_t seed = 0;
    std::int32_t maxTokens = 128; ///< >= 1
    std::int32_t logprobs = 0;    ///< 0..20
    bool ignoreEos = false;
    std::vector<std::string> stop; ///< stop strings, each non-empty; cut from the text
    std::vector<std::pair<TokenId, double>> logitBias;
};
/// The first impossible value as a sentence with its range.
Result<void> validate(const SamplingParams& params);

/// One message of a dialog.
struct DialogMessage {
    std::string role; ///< "system", "user", "assistant"
    std::string content;
    /// For an answer that this engine's tokenizer produced: its ids, so that re-tokenizing can never change them.
    /// Only used where their decoded bytes equal what the template renders at that place.
    std::vector<TokenId> tokens;
    /// Of an answer: what the model thought before it, kept apart from the content. The template gets both, and decides
    /// what of it the model reads again.
    std::string thinking{};
    /// The message as the template is to see it, where that is more than role and content: a JSON object with tool
    /// calls, the id of the call that it answers, a content in parts, ... Its role is the one above; its text is the
    /// content above. All of it is data: control tokens in it stay text. Empty = role and content.
    std::string fields{};
};

/// What was done to a dialog so that the model's chat template could take it. The messages stay as they are.
enum class DialogAdaptation {
    SystemInFirstMessage, ///< the template has no system role: its text was put before the user's first message
    MessagesJoined,       ///< the template wants the two sides to alternate: neighbours of one side became one
    EmptyMessageAdded,    ///< the template wants the user to speak first: an empty message of theirs was put in front
};

struct DialogPrompt {
    std::vector<DialogMessage> messages;
    bool addGenerationPrompt = true;
    /// The last message is an unfinished answer: render without its end mark and write on (needs addGenerationPrompt =
    /// false). Where its ids are known, they are taken over, all of them, and everything that counts tokens of the
    /// answer (random numbers, penalties, stop strings, characters of several tokens) goes on as if it had never been
    /// cut off: Answer::text and tokenIds are those of the whole answer, `maxTokens` counts the new ones.
    bool continueLast = false;
    /// Further variables of the template, a JSON object: {"tools": [...], "enable_thinking": false}. Data like the
    /// messages. Empty = none.
    std::string variables{};
};
struct TextPrompt {
    std::string text; ///< raw: BOS if the file asks for it, control tokens are not parsed
};
struct TokenPrompt {
    std::vector<TokenId> ids;
};
/// Starts from the first `at` tokens (none = all) of an earlier, ended request's prompt + answer, sharing its blocks.
struct ForkPrompt {
    RequestId of;
    std::optional<std::int64_t> at;
    std::variant<TextPrompt, TokenPrompt> then;
};
using Prompt = std::variant<DialogPrompt, TextPrompt, TokenPrompt, ForkPrompt>;

struct Request {
    RequestId id;  ///< chosen by the caller, never reused
    OwnerId owner; ///< whose blocks these are in map and table
    Prompt prompt;
    SamplingParams sampling;
    std::uint64_t adapter = 0; ///< reserved for adapters: part of every block key
    bool keepForFork = false;  ///< remember the token ids after the end, for ForkPrompt
    /// Positions of the prompt (ascending) whose raw logits go to EngineListener::onLogits. Such a prompt is computed
    /// whole: nothing of it is served from the cache.
    std::vector<std::int64_t> logitPositions;
    /// Nobody waits for it: it takes empty blocks only, and is refused (Full) where it would push cached ones out.
    bool background = false;
    bool pinPrompt = false; ///< keep the prompt's full blocks from being evicted until the model is unloaded
};

enum class FinishReason { Stop, Length, Cancelled, Error };
const char* finishReasonName(FinishReason reason); ///< "stop", "length", "cancelled", "error"

/// Why a prefix was not (wholly) reused. Meaning only; the window has the words.
enum class MissReason {
    None,             ///< everything that could be reused was
    Disabled,         ///< prefix caching is off
    ColdStart,        ///< this beginning was never computed in this session
    ShorterThanBlock, ///< common prefix with something cached ends inside a block
    Diverged,         ///< the dialog changed at `divergingToken` against the owner's previous turn
    Evicted,          ///< was cached, its block was needed by somebody else
    WindowCut,        ///< the oldest turns were left out since the owner's previous turn
    PastWindow,       ///< with sinks, what lies behind the first sinks and window is never kept for others
    CheaperToCompute, ///< the host tier has it, but loading was estimated to take longer
};
const char* missReasonName(MissReason reason);

/// What of a chat that has outgrown its window was left out of a prompt.
struct WindowCut {
    std::int32_t messages = 0; ///< the oldest ones, in whole turns; system messages are never among them
    std::int64_t tokens = 0;   ///< that they would have been
    bool operator==(const WindowCut&) const = default;
};

/// What the cache did for one request.
struct CacheReceipt {
    std::int64_t promptTokens = 0;
    std::int64_t reusedTokens = 0;     ///< served from cached blocks at first admission
    std::int64_t computedTokens = 0;   ///< prompt tokens computed, each once: reused + computed = prompt
    std::int64_t recomputedTokens = 0; ///< tokens computed again after a preemption
    std::int32_t newBlocks = 0;        ///< blocks taken for this request (prompt and answer)
    std::int32_t preemptions = 0;
    std::int32_t swappedBlocks = 0; ///< given to the host tier by preemptions
    std::int32_t loadedBlocks = 0;  ///< filled from the host tier: hits, and what came back after a preemption
    std::int32_t blocksPeak = 0;
    std::int32_t blocksAvailableAfter = 0;
    std::int32_t blocksCachedAfter = 0;
    MissReason missReason = MissReason::None;
    std::int64_t divergingToken =
        -1; ///< index of the first token that differs from the owner's previous turn, -1 = none
    /// The turn that token lies in: 0 = the system prompt, n = the n-th message of the user or its answer; -1 =
    /// unknown.
    std::int32_t divergingTurn = -1;
    /// Tokens in common with what the prompt was compared with (ShorterThanBlock, Diverged).
    std::int64_t commonPrefix = 0;
    OwnerId evictedBy; ///< Evicted: whose need took the block; invalid = not known any more
    /// Evicted: how long before the request came; -1 = not known any more.
    Nanos evictedAgo = -1;
    std::int32_t blockSize = 0;
    WindowCut cut;
};

struct Timings {
    double loadMs = 0, queueMs = 0, prefillMs = 0, decodeMs = 0, ttftMs = 0, e2eMs = 0;
};

struct TokenLogprob {
    TokenId token = -1;
    float logprob = 0;
    std::vector<std::pair<TokenId, float>> top;
};

/// What a request came to. Every request ends exactly once.
struct Answer {
    RequestId id;
    OwnerId owner;
    std::string text; ///< bytes as decoded, stop string cut; may be invalid UTF-8 only if the model wrote such bytes
    std::vector<TokenId> tokenIds;
    std::vector<TokenId> promptTokenIds; ///< what stood before tokenIds
    FinishReason reason = FinishReason::Error;
    std::variant<std::monostate, TokenId, std::string> stopReason; ///< end token or stop string
    std::string endedBy; ///< its text: "<|im_end|>"; empty where nothing ended it
    std::optional<Error> error;
    Timings timings;
    CacheReceipt cache;
    std::vector<TokenLogprob> logprobs;
    std::vector<Nanos> tokenTimes; ///< when each token was drawn
};

} // namespace kvscope::api
