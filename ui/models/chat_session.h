// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "engine/api/request.h"
#include "ui/models/chat_model.h"
#include "ui/models/chat_types.h"

namespace kvscope::ui {

/// Context meter of one conversation, in tokens of the engine's own sequence.
struct ContextUse {
    std::int64_t cached = 0;   ///< of the newest prompt, served from the cache
    std::int64_t thisTurn = 0; ///< computed and written in the newest turn
    std::int64_t length = 0;   ///< of the sequence
    std::int64_t limit = 0;    ///< what the loaded model's context holds; 0 = no model
    friend bool operator==(const ContextUse&, const ContextUse&) = default;
};

/// Tokens per second over the last two seconds.
class Pace {
public:
    void restart() { m_points.clear(); }
    void add(Nanos now, std::int64_t tokens);
    double perSecond() const; ///< 0 = not known yet

private:
    std::deque<std::pair<Nanos, std::int64_t>> m_points; ///< (time, tokens so far)
};

/// One conversation while the window knows it: its messages and, while it is answered, its request.
struct ChatSession {
    std::int64_t key = 0; ///< names the session in callbacks; never reused (an id comes only with the first commit)
    Conversation conversation;
    std::unique_ptr<ChatModel> model;
    bool loaded = false;  ///< the messages are here
    bool removed = false; ///< deleted by the user while something was still under way
    RequestId request;    ///< valid from sending until the answer has ended
    bool submitted = false;
    bool stopAsked = false;
    bool unsavedText = false;         ///< text arrived since the last partial save
    int userRow = -1, answerRow = -1; ///< of the running turn
    Nanos sentAt = 0;
    Pace pace;
    Nanos rateAt = 0; ///< when the shown speed was taken
    double rate = 0;  ///< shown; a figure that changes more than four times a second cannot be read
    ContextUse context;
    /// For each dialog message of the newest request the rows it came from, [first, last].
    std::vector<std::pair<int, int>> dialogRows;

    ChatMessage answer() const { return model->at(answerRow); }
    /// The dialog as the engine gets it: system prompt, then the path without empty answers. Two messages of the user
    /// in a row (the answer between them never came) are joined, since many templates refuse them. Fills `dialogRows`.
    api::DialogPrompt dialog(const QString& modelPath);
    /// Puts the engine's token ranges on the rows.
    void setRanges(const std::vector<std::pair<std::int64_t, std::int64_t>>& messageRanges, std::int64_t promptTokens);
};

/// The longest beginning of `bytes` that does not end inside a UTF-8 character.
std::string_view wholeCharacters(std::string_view bytes);

} // namespace kvscope::ui
