// SPDX-License-Identifier: GPL-3.0-or-later
//
// What a benchmark asks for, as data: token ids and lengths, who continues whom, who waits for whom. A workload is a
// pure function of its name, scale, seed and vocabulary, so that two runs (and two programs) ask for the same.
//
//   kind        prompt / answer   made of (tokens at scale 1)
//   short         500 / 100       system 200, question 300
//   long-form   2,000 / 1,000     system 200, question 1,800
//   long-doc    7,500 / 500       system 200, document 7,200, question 100
//
//   short, long-form, long-doc   only that kind
//   mix         60 / 25 / 15 % of the three: exact in every 20 requests, their order shuffled
//   multi-turn  16 users, one system prompt of 400, 8 turns of 60 + answer 100; a turn begins with all before it
//   stampede    turns 1 to 4 of these users; when all have ended 64 unrelated prompts of 500 + answer 20; when these
//               have ended turn 5 of each user
//
// There are 4 system prompts and 4 documents; document i always follows system prompt i. The users of multi-turn and
// stampede share their system prompt, as those of one service do. A question is nobody else's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/ids.h"
#include "engine/base/result.h"

namespace kvscope::bench {

enum class RequestKind : std::uint8_t { Short, LongForm, LongDoc, Turn, Flood, Logged };
const char* requestKindName(RequestKind kind); ///< "short", "long-form", "long-doc", "turn", "flood", "logged"

/// One request. Its prompt is `tokens`, behind the prompt and the answer of `follows` where it continues one.
struct PlannedRequest {
    RequestKind kind = RequestKind::Short;
    std::vector<TokenId> tokens;
    std::int64_t historyTokens = 0; ///< of `follows`: its prompt and answer
    std::int64_t answerTokens = 1;  ///< at least one; every answer has exactly this length
    std::int32_t follows = -1;      ///< index of the request that it continues, earlier in the list; -1 = none
    std::int32_t phase = 0;         ///< starts when all requests of lower phases have ended
    std::int32_t owner = 0;         ///< the user whose blocks these are
    std::int32_t turn = 1;          ///< of its user's conversation, from 1
    double arrival = -1;            ///< seconds from the start; -1 = as soon as there is a place (closed loop)

    std::int64_t promptTokens() const { return historyTokens + static_cast<std::int64_t>(tokens.size()); }
    std::int64_t length() const { return promptTokens() + answerTokens; }
};

struct Workload {
    std::string name;
    double scale = 1;
    std::uint64_t seed = 0;
    std::vector<PlannedRequest> requests; ///< in the order in which they are sent, as far as they are ready
    /// Slots of the pool that the workload's definition asks for, in blocks of 16 slots; 0 = it asks for none.
    std::int64_t poolBlocks16 = 0;

    std::int64_t longestSequence() const; ///< most tokens of a prompt and its answer
    std::int64_t answerTokens() const;    ///< of all requests
    bool openLoop() const;                ///< arrival times are given
};

struct WorkloadSpec {
    std::string name;
    double scale = 1;
    std::uint64_t seed = 0;
    std::int32_t requests = 0;  ///< 0 = the workload's own number
    std::int32_t vocab = 32000; ///< ids are below it
};

/// "short", "long-form", "long-doc", "mix", "multi-turn", "stampede"
const std::vector<std::string>& workloadNames();

/// Errors: InvalidArgument (unknown name, scale or number out of range, a number where the definition fixes it).
Result<Workload> makeWorkload(const WorkloadSpec& spec);

/// The longest prompt + answer of the workload at a scale, without making it.
std::int64_t longestAt(std::string_view name, double scale);
/// The largest scale, in steps of 0.001, at which nothing is longer than `tokens`; 0 = none.
double largestScale(std::string_view name, std::int64_t tokens);

} // namespace kvscope::bench
