// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/ids.h"
#include "engine/base/result.h"
#include "engine/model/chat_template.h"
#include "engine/model/dialog_turns.h"
#include "engine/model/tokenizer.h"
#include "engine/model/turn_end.h"

namespace kvscope::model {

/// One message of a dialog to be encoded.
struct ChatMessage {
    std::string role;    ///< letters, digits, '_' and '-' only: templates write it between their marks
    std::string content; ///< any bytes; control tokens in it stay text
    /// For an answer: the ids that it was generated as. Empty = none are known.
    std::vector<TokenId> tokens;
    std::string opener{}; ///< stands before the content, as if the template had written it: the begin of a thought
    /// What the template sees of it, in this order, where that is more than the role and a text (see setMessageFields);
    /// an undefined value stands for the content above. Empty = role and content.
    std::vector<std::pair<jinja::Value, jinja::Value>> fields{};
    bool onlyText = true; ///< `fields` has nothing but role and content, so that it can be joined with another message
};

struct DialogInput {
    std::vector<ChatMessage> messages;
    bool addGenerationPrompt = true;
    /// The last message (an assistant's) is unfinished and is written on. Needs addGenerationPrompt = false.
    bool continueLast = false;
    jinja::Variables variables; ///< more template variables; bos_token and eos_token are there anyway
    std::tm now{};              ///< for strftime_now, see localTimeNow()
};

/// Token range [begin, end) of a prompt.
using TokenRange = std::pair<std::int64_t, std::int64_t>;

struct EncodedDialog {
    std::vector<TokenId> ids;
    /// Per message, its frame (role, end mark) included as far as the template's loop shows it; the generation prompt
    /// belongs to no message. Ranges are disjoint where messages are rendered in order; a message that the template
    /// left out has an empty one.
    std::vector<TokenRange> messageRanges;
    std::int64_t reusedAnswerTokens = 0;       ///< ids taken over from ChatMessage::tokens
    std::string text;                          ///< the rendering, for showing
    std::vector<DialogAdaptation> adaptations; ///< what was done so that the template took the messages
};

/// Dialog -> prompt ids of one model.
///
/// 1. The template renders the whole dialog once. The renderer tracks which bytes are whose content (chat_template.h).
/// 2. Answers with known ids are laid over their place in the rendering: of the ids, the longest beginning whose
/// decoded
///    bytes (control tokens give none) equal what stands there is taken over as it is. Where the template shows a
///    content several times, the place with the longest match counts.
/// 3. The text before, between and behind those is tokenized, control tokens only outside of user text. Splitting and
///    merging run across the borders of user text, so a dialog without known ids has exactly the ids of its whole text.
///
/// Why the next turn begins with this turn's prompt and answer, as the prefix cache needs it: the text between two
/// answers is tokenized on its own, and a prompt ends where its answer begins. So where the template renders the same
/// bytes again, turn n+1 tokenizes the same pieces of text as turn n did, and takes the answers' ids over; it does not
/// matter that tokenizing an answer's text would give other ids, nor that merges would cross its borders.
///
/// An unfinished answer is continued as it was begun: the dialog before it with the generation prompt, then its text.
/// That is the prompt and answer at the moment it stopped, whatever the template does with finished answers.
///
/// A template that refuses the messages as they are (or leaves the system text or a message of the user out without a
/// word) gets them another way, see waysToGive: the least change that works, and the same one on every turn.
///
/// BOS is put in front if the vocabulary asks for it and the template did not write it. Immutable, any thread.
class DialogEncoder {
public:
    DialogEncoder(std::shared_ptr<const Tokenizer> tokenizer, std::shared_ptr<const ChatTemplate> chatTemplate);
    /// With the template of the tokenizer's file. Error (Template) if it has none or it cannot be used: text prompts
    /// still work then, chats need a template.
    static Result<std::shared_ptr<const DialogEncoder>> create(std::shared_ptr<const Tokenizer> tokenizer);

    /// Errors: Template (raise_exception: its message word for word), InvalidArgument (roles, ids outside the
    /// vocabulary, nothing to continue), and those of Tokenizer::encode.
    Result<EncodedDialog> encode(const DialogInput& input) const;
    /// How this template ends an answer.
    const TurnEnd& turnEnd() const { return m_turnEnd; }
    /// What the generation prompt ends with when it begins a thought: "<think>\n"; empty = it does not.
    const std::string& thoughtOpener() const { return m_thoughtOpener; }

private:
    struct Reuse;
    struct Given;
    Result<Given> give(const DialogInput& input) const;
    Result<Given> giveAsItIs(const DialogInput& input) const;
    Result<Rendering> render(const DialogInput& input, const DialogTurns& turns, std::size_t count) const;
    jinja::Variables withSpecialTexts(jinja::Variables variables) const;
    std::vector<Reuse> findReuse(const DialogInput& input, const jinja::Text& text) const;
    std::optional<Reuse> longestMatch(const std::vector<TokenId>& tokens, std::string_view place) const;
    Result<Encoding> encodeAround(const jinja::Text& text, const std::vector<Reuse>& reuses) const;
    Result<void> appendText(const jinja::Text& text, TextRange range, Encoding& out) const;

    std::shared_ptr<const Tokenizer> m_tokenizer;
    std::shared_ptr<const ChatTemplate> m_template;
    TurnEnd m_turnEnd;
    std::string m_thoughtOpener;
};

/// The message that a token of a prompt lies in or before; -1 = behind all messages (in the generation prompt).
std::int32_t messageAt(std::span<const TokenRange> messageRanges, std::int64_t token);

} // namespace kvscope::model
