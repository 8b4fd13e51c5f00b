// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/api/answer_text.h"
#include "engine/api/prompt_encoder.h"
#include "engine/api/request.h"
#include "engine/api/sources.h"
#include "engine/sched/sequence.h"
#include "kernels/backend.h"

namespace kvscope::api {

/// What one token did to an answer.
struct TokenOutcome {
    std::string text;  ///< became certain with it
    bool ends = false; ///< end token, or a stop string is complete
    bool shown = true; ///< belongs to the answer's tokens (an end token does not)
};

/// A request from acceptance to its answer: the part of it that knows text. Tokens and blocks are the scheduler's.
class ActiveRequest {
public:
    /// `prompt.givenTokens` of its ids are the beginning of the answer. `turnEnd`: how the model's template ends an
    /// answer; counts for dialogs.
    ActiveRequest(Request request, EncodedPrompt prompt, std::shared_ptr<const model::Tokenizer> tokenizer,
                  const model::TurnEnd& turnEnd);

    const Request& request() const { return m_request; }
    std::span<const TokenId> promptIds() const { return m_answer.promptTokenIds; } ///< before the answer
    std::int64_t givenTokens() const { return m_givenTokens; }
    /// Of an answer that is written on: its text so far.
    std::string givenText() const { return m_text.shownBefore(); }

    /// The row of kernels::Backend::sample that draws its next token. Valid until the next `accept`.
    kernels::SampleRow sampleRow(std::int32_t logitRow, std::int64_t drawIndex) const;
    TokenOutcome accept(const kernels::SampledToken& token, Nanos now);
    /// The answer; the request is spent. `rest` gets the text that was still held back.
    Answer finish(const sched::EndedSequence& ended, std::int32_t blockSize, std::optional<Error> error,
                  std::string& rest);

    SequenceId sequence; ///< in the scheduler
    /// Where the messages of a dialog lie in the prompt; empty for other prompts.
    std::vector<std::pair<std::int64_t, std::int64_t>> messageRanges;
    std::optional<WaitingEvent> said; ///< the waiting reason given out last
    bool readingSaid = false;         ///< the start of reading was given out

private:
    std::int32_t turnAt(std::int64_t token) const;
    bool endsAnswer(TokenId token) const;
    bool missedByCut(const CacheReceipt& cache, std::int32_t blockSize) const;

    Request m_request;
    std::shared_ptr<const model::Tokenizer> m_tokenizer;
    AnswerText m_text;
    std::vector<kernels::LogitBias> m_bias;
    std::optional<TokenId> m_turnEnd; ///< of the template, beside the file's own end tokens
    std::int64_t m_givenTokens = 0;
    WindowCut m_cut;
    std::int64_t m_newCutAt = -1;
    Answer m_answer;
};

/// The answer of a request that never became a sequence.
Answer failedAnswer(const Request& request, Error error);

} // namespace kvscope::api
