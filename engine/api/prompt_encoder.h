// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/api/dialog_cut.h"
#include "engine/api/request.h"
#include "engine/api/sources.h"
#include "engine/base/result.h"
#include "engine/model/dialog.h"
#include "engine/model/tokenizer.h"

namespace kvscope::api {

/// The ids of a prompt, and where each message of a dialog lies in them.
struct EncodedPrompt {
    std::vector<TokenId> ids; ///< at least one
    std::vector<std::pair<std::int64_t, std::int64_t>> messageRanges;
    std::vector<DialogAdaptation> adaptations;
    bool opensThought = false; ///< the answer begins inside of a thought
    /// Of an unfinished answer that is written on: how many ids at the end are its.
    std::int64_t givenTokens = 0;
    /// Of a chat that has outgrown its window. The messages left out have an empty range, where the next one begins.
    WindowCut cut;
    std::int64_t newCutAt = -1; ///< token where the cut is; -1 = there is none, or it was there in the request before
};

/// Prompt and answer of an earlier request, for forks; nullptr when it is not known (any more).
using FindTokens = std::function<const std::vector<TokenId>*(RequestId)>;

/// Turns what the user gave into token ids, for one model. Immutable.
class PromptEncoder {
public:
    /// `vocab` bounds ids given as numbers. A model without a usable chat template still takes text and ids; why it
    /// takes no dialogs is what `encode` answers then.
    /// `wantedTemplate`: EngineConfig::chatTemplate.
    PromptEncoder(std::shared_ptr<const model::Tokenizer> tokenizer, std::int32_t vocab,
                  const std::optional<std::string>& wantedTemplate = {});

    /// `window`: a dialog that does not fit into it is encoded without its oldest turns; none = as it is.
    /// Errors: Template, InvalidArgument (empty prompt, unknown ids, roles), NotFound (a fork of something unknown),
    /// Unsupported (this model's text cannot be tokenized).
    Result<EncodedPrompt> encode(const Prompt& prompt, const FindTokens& findTokens,
                                 const std::optional<WindowRoom>& window = {}) const;
    bool takesDialogs() const { return m_dialogs.has_value(); }
    /// Of the template that is used; empty where none is.
    const TemplateInfo& templateInfo() const { return m_templateInfo; }
    /// How the chat template ends an answer; nothing where there is none.
    const model::TurnEnd& turnEnd() const;

private:
    Result<std::vector<TokenId>> encodeText(const std::string& text, bool begins) const;
    Result<std::vector<TokenId>> checkIds(const std::vector<TokenId>& ids) const;
    Result<std::vector<TokenId>> encodeFork(const ForkPrompt& fork, const FindTokens& findTokens) const;
    Result<EncodedPrompt> encodeDialog(const DialogPrompt& dialog) const;
    Result<EncodedPrompt> encodeWithin(const DialogPrompt& dialog, const WindowRoom& window) const;
    Result<EncodedPrompt> encodeWithout(const DialogPrompt& dialog, const std::vector<CutMessage>& messages,
                                        const std::vector<std::int32_t>& turns, std::int32_t firstTurn) const;
    Result<EncodedPrompt> encodeMessages(const DialogPrompt& dialog, std::size_t count) const;
    Result<std::vector<TokenId>> idsOfUnfinished(const DialogMessage& answer) const;
    model::ChatMessage asWritten(const DialogMessage& message) const;
    Result<model::DialogInput> dialogInput(const DialogPrompt& dialog, std::size_t count) const;
    std::string wholeText(const std::vector<TokenId>& ids) const;

    std::shared_ptr<const model::Tokenizer> m_tokenizer;
    Result<std::shared_ptr<const model::DialogEncoder>> m_dialogs;
    TemplateInfo m_templateInfo;
    std::int32_t m_vocab;
};

} // namespace kvscope::api
