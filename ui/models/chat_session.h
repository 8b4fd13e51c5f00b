// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/api/request.h"
#include "engine/api/sources.h"
#include "engine/base/thinking.h"
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

/// A message that there is no room for. Nothing of it was sent.
struct OverLong {
    Draft message;
    MessageId edited = kNoId;                ///< it is to be another version of this message; kNoId = the next message
    std::int64_t needed = 0;                 ///< tokens of the whole prompt and the first of the answer
    std::int64_t limit = 0;                  ///< tokens that a sequence may have
    std::int64_t window = 0, poolTokens = 0; ///< which of the two limits it
    bool alone = false;                      ///< the turns before it are left out already
    std::int64_t shortenBy() const { return needed - limit; }
    std::optional<api::LargerWindow> larger; ///< a reload would make room
    QString whyNotLarger;                    ///< or this is why not
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
    bool unsavedText = false;            ///< text arrived since the last partial save
    int userRow = -1, answerRow = -1;    ///< of the running turn
    bool changing = false;               ///< a change of the tree is on its way to the database
    bool continuing = false;             ///< the answer had tokens before this request
    std::vector<ChatMessage> rowsBefore; ///< what gave way to the running turn, until that is on the disk
    ThinkingStream written;              ///< of the running answer: what the model wrote, thought and text
    bool rowDiffers = false;             ///< the row does not have what `written` gives: it was made another way
    bool opensThought = false;           ///< its prompt ended inside of a thought
    Nanos firstTokenAt = -1;
    bool wantsTitle = false; ///< the model is asked for one when nothing else is under way
    RequestId checking;      ///< valid while the engine counts a message that may be too long
    Draft checked;
    MessageId checkedEdit = kNoId;   ///< that message is to be another version of this one; kNoId = the next message
    std::optional<OverLong> tooLong; ///< the user has to choose
    bool waitsForWindow = false;     ///< to be sent when the model is loaded with a larger window
    Draft queued;                    ///< to be sent when the answer has ended
    bool waitingStored = false;      ///< the database knows of one that waits, or waited until now
    Nanos sentAt = 0;
    Pace pace;
    Nanos rateAt = 0; ///< when the shown speed was taken
    double rate = 0;  ///< shown; a figure that changes more than four times a second cannot be read
    ContextUse context;
    /// For each dialog message of the newest request the row it came from; -1 = the system prompt.
    std::vector<int> dialogRows;

    bool ready() const { return loaded && !request.valid() && !checking.valid() && !changing; }
    /// Something is under way or waits: it must not be forgotten.
    bool busy() const {
        return request.valid() || changing || (!removed && (checking.valid() || tooLong || !queued.isEmpty()));
    }
    /// The context meter as the newest receipt of the shown path has it; what the engine says later is truer.
    void contextFromReceipts();
    ChatMessage answer() const { return model->at(answerRow); }
    /// The dialog as the engine gets it: system prompt, then the path without empty answers. What a template cannot
    /// take (a system role, two messages of one side in a row) is the engine's to adapt. While `continuing`, the answer
    /// is its last message. Fills `dialogRows`.
    /// `rows` >= 0: only the first so many rows.
    api::DialogPrompt dialog(const QString& modelPath, int rows = -1);
    /// Marks the row behind the messages that were left out. `rowsOfDialog`: `dialogRows` of the request that was cut.
    void showCut(const api::WindowCut& cut, const std::vector<int>& rowsOfDialog);
    /// Puts the engine's token ranges on the rows.
    void setRanges(const std::vector<std::pair<std::int64_t, std::int64_t>>& messageRanges, std::int64_t promptTokens);
};

/// The longest beginning of `bytes` that does not end inside a UTF-8 character.
std::string_view wholeCharacters(std::string_view bytes);

} // namespace kvscope::ui
